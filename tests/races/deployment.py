"""A deployment over one table that threads compete for, new for every round, and the races themselves."""

from __future__ import annotations

import io
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Any

from botocore.exceptions import ClientError
from pydantic import BaseModel

from taskrail import (
    Batch,
    ExistingJob,
    ExistingStateMachine,
    Lambda,
    StepFunctions,
    TaskContext,
    TaskServer,
    Toolset,
)
from taskrail.call import ClientInfo
from taskrail.clock import hours, minutes, seconds
from taskrail.engines import RunOrder, RunReport, RunState
from taskrail.errors import StartRefused
from taskrail.ids import RandomIds
from taskrail.questions import form_question
from taskrail.rail import endings
from taskrail.rail.reports import RunLost
from taskrail.runtime import build
from taskrail.settings import Settings
from taskrail.signing import Signer
from taskrail.store import Store
from taskrail.task import Task
from taskrail.testing import BUCKET, START, TABLE, QueueEngine, StandingClock
from tests.counts import sized

THREADS = sized(5, 20)
PLACES = 2
"""How many tasks of the tool `limited` a caller may have open."""

tools = Toolset()
DURATIONS: Any = {"keep_result": hours(1), "answer_within": hours(1), "poll_interval": seconds(5)}
ON_BATCH = Batch(timeout=minutes(1), attempts=3, queue_within=minutes(10))


class Given(BaseModel):
    """Work that is none of the kit's."""


@tools.task(runs_on=StepFunctions(timeout=minutes(1)), **DURATIONS)
def work(task: TaskContext) -> None:
    """Never really runs: the tests report in its place."""


@tools.task(runs_on=ON_BATCH, **DURATIONS)
def on_batch(task: TaskContext) -> None:
    """Never really runs either."""


@tools.task(runs_on=Lambda(timeout=minutes(1)), **DURATIONS)
def on_lambda(task: TaskContext) -> None:
    """Nor does this."""


@tools.task(runs_on=StepFunctions(timeout=minutes(1)), dedupe=hours(1), **DURATIONS)
def once(task: TaskContext) -> None:
    """One task, however often it is called."""


@tools.task(runs_on=ON_BATCH, dedupe=hours(1), **DURATIONS)
def once_on_batch(task: TaskContext) -> None:
    """The same on Batch."""


@tools.task(runs_on=StepFunctions(timeout=minutes(1)), **DURATIONS)
def limited(task: TaskContext) -> None:
    """Of which a caller may have two open."""


tools.container("box", input=Given, existing=ExistingJob(queue="jobs", definition="box"), runs_on=ON_BATCH, **DURATIONS)
tools.workflow(
    "flow",
    input=Given,
    existing=ExistingStateMachine(arn="arn:aws:states:eu-central-1:123456789012:stateMachine:flow", envelope=True),
    timeout=minutes(1),
    **DURATIONS,
)

SERVER = TaskServer("races", version="1", tools=[tools])
CLIENT = ClientInfo(capabilities={"elicitation": {}})
YES = {"action": "accept", "content": {}}


class CountingStore(Store):
    """A store that notes which changes took effect."""

    def __init__(self, client: Any) -> None:
        super().__init__(client, TABLE)
        self.landed: list[Task] = []

    def write(self, old: Task, new: Task, now: int, nonce: str) -> Task:
        """As `Store.write`."""
        after = super().write(old, new, now, nonce)
        self.landed.append(after)
        return after


@dataclass
class CountingEngine(QueueEngine):
    """An engine that is asked by several threads at once, and refuses as often as it is told."""

    refusals: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    handed: list[tuple[str, str]] = field(default_factory=list)
    lock: Any = field(default_factory=threading.Lock)

    def start(self, order: RunOrder) -> str:
        """As `Engine.start`."""
        name = order.name
        with self.lock:
            self.asked[name] += 1
            if self.refusals > 0 and name not in self.states:
                self.refusals -= 1
                raise StartRefused("The test refuses starts.")
            return super().start(order)

    def resume(self, token: str, output: str) -> None:
        """As `Engine.resume`; what it was handed is noted, token by token."""
        with self.lock:
            self.handed.append((token, output))
            super().resume(token, output)


@dataclass
class CountingJobs:
    """Batch, asked by several threads at once: every start is a new job, whatever its name."""

    refusals: int = 0
    names: dict[str, str] = field(default_factory=dict)
    states: dict[str, RunState] = field(default_factory=dict)
    stopped: list[str] = field(default_factory=list)
    lock: Any = field(default_factory=threading.Lock)

    records_ids = True
    stops_gently = True
    by_lease = False

    def start(self, order: RunOrder) -> str:
        """As `Engine.start`."""
        with self.lock:
            if self.refusals > 0:
                self.refusals -= 1
                raise StartRefused("The test refuses starts.")
            job = f"job-{len(self.names) + 1}"
            self.names[job], self.states[job] = order.name, RunState.RUNNING
            return job

    def stop(self, tool: str, name: str, run_id: str | None) -> bool:
        """As `Engine.stop`: a job that runs is told, and not over yet."""
        with self.lock:
            told = [job for job in self._jobs(name, run_id) if self.states[job] is RunState.RUNNING]
            self.stopped += told
            return not told

    def describe(self, tool: str, name: str, run_id: str | None) -> RunReport:
        """As `Engine.describe`."""
        with self.lock:
            jobs = self._jobs(name, run_id)
            job = next((job for job in jobs if self.states[job] is RunState.RUNNING), next(iter(jobs), None))
            return RunReport(RunState.NOT_FOUND) if job is None else self.report(job)

    def report(self, job: str) -> RunReport:
        """The account of a job."""
        return RunReport(self.states[job], run_id=job, attempt=1)

    def resume(self, token: str, output: str) -> None:
        """As `Engine.resume`: no job waits with a token."""

    def log_tail(self, tool: str, log: str, lines: int) -> tuple[str, ...]:
        """As `Engine.log_tail`: there is none."""
        return ()

    def _jobs(self, name: str, run_id: str | None) -> list[str]:
        return [job for job, of in self.names.items() if job == run_id or (run_id is None and of == name)]


class Objects:
    """A bucket."""

    def __init__(self) -> None:
        self._bodies: dict[str, bytes] = {}

    def put_object(self, **parameters: Any) -> None:
        """Store an object."""
        self._bodies[parameters["Key"]] = parameters["Body"]

    def get_object(self, **parameters: Any) -> dict[str, Any]:
        """Read an object."""
        body = self._bodies.get(parameters["Key"])
        if body is None:
            raise ClientError({"Error": {"Code": "NoSuchKey"}}, "GetObject")
        return {"Body": io.BytesIO(body), "ContentLength": len(body)}


class Deployment:
    """The rail over one table, new for every round."""

    def __init__(self, client: Any) -> None:
        self.clock = StandingClock()
        self.engine = CountingEngine()
        self.jobs = CountingJobs()
        self.functions = CountingEngine(by_lease=True)
        self.store = CountingStore(client)
        settings = Settings(
            table=TABLE,
            bucket=BUCKET,
            secret="a secret for tests only",
            report_url="https://api.example.com/report",
            most_open={"limited": PLACES},
        )
        objects: Any = Objects()
        engines: dict[str, Any] = {"step_functions": self.engine, "batch": self.jobs, "lambda": self.functions}
        ids = RandomIds()
        runtime = build(
            SERVER, settings, dynamodb=client, s3=lambda: objects, engines=engines, clock=self.clock, ids=ids
        )
        self.signer = Signer(runtime.secret)
        self.owner = f"anna-{ids.nonce()}"
        """Whoever calls what is made once: all rounds share one table."""
        self.rail, self.remote = runtime.rail, runtime.remote
        self.rail._changes.store = self.store
        self.reports = self.rail.reports

    def call(self, tool: str) -> Task:
        """A call of a tool, without an id of its own."""
        return self.rail.create(self.owner, SERVER.tools[tool], {}, CLIENT)

    def forget(self, task: Task) -> None:
        """What a removed task had reserved is freed."""
        self.rail._repeats.free(task)

    def report(self, task: Task, do: str, /, **what: Any) -> dict[str, Any]:
        """A report of a workflow or a container."""
        token = self.signer.report_token(task.task_id, task.run, START + 600_000_000)
        return self.remote.take(token, {"do": do, **what})

    def ask(self, task: Task, key: str, token: str) -> dict[str, Any]:
        """A state of a workflow asks, and waits with its token."""
        return self.report(task, "ask", key=key, message=f"{key}?", taskToken=token)

    def create(self, task_id: str | None = None) -> Task:
        """A ticket of Anna's."""
        tool = SERVER.tools["work"]
        return self.rail.create("anna", tool, {}, CLIENT, task_id=task_id, sealed_until=START + 600_000)

    def claimed(self) -> Task:
        """A ticket whose first run is under way."""
        claimed = self.reports.claim(self.create().task_id, 1, "run", 1)
        assert claimed is not None
        return claimed

    def asking(self, *keys: str) -> Task:
        """A ticket with open questions; its run has ended."""
        questions = {key: form_question(key, f"{key}?") for key in keys}
        return self.reports.ask(self.claimed(), questions, 3_600_000, hold=False)

    def stored(self, task: Task) -> Task:
        """The task as it stands."""
        current = self.store.read(task.task_id)
        assert current is not None
        return current

    def finish(self, task: Task) -> str:
        """The worker reports its result."""
        try:
            self.reports.finish(task, lambda t: endings.completed(t, '{"content":[]}', "Completed.", self.clock.now()))
        except RunLost:
            return "lost"
        return "won"


def race(*calls: Callable[[], Any]) -> list[Any]:
    """Let the calls go at the same moment; what each returned, in order. An error of one is the test's."""
    outcomes: list[Any] = [None] * len(calls)
    errors: list[BaseException] = []
    barrier = threading.Barrier(len(calls))

    def run(index: int, call: Callable[[], Any]) -> None:
        try:
            barrier.wait()
            outcomes[index] = call()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return outcomes


def with_crowd(*calls: Callable[[], Any], crowd: Sequence[Callable[[], Any]]) -> list[Any]:
    """A race in which the crowd, again and again, is as many as it takes to occupy all threads."""
    return race(*calls, *islice(cycle(crowd), THREADS - len(calls)))
