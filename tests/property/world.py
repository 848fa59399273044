"""One deployment with trouble in it, and what must be true of it: the model beside the machine."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from taskrail import (
    Batch,
    ExistingJob,
    ExistingStateMachine,
    Lambda,
    ProtocolError,
    StepFunctions,
    TaskContext,
    TaskServer,
    ToolError,
    Toolset,
)
from taskrail.call import ClientInfo
from taskrail.clock import minutes, seconds
from taskrail.engines import run_name
from taskrail.errors import TaskNotFound
from taskrail.questions import Question, form_question
from taskrail.rail import leases
from taskrail.rail.rail import Rail
from taskrail.rail.reports import Reports
from taskrail.runtime import build
from taskrail.settings import Settings
from taskrail.store import from_item
from taskrail.task import Status, Task
from taskrail.testing import BUCKET, TABLE, StandingClock
from tests.property import rules
from tests.property.invocations import TroubledFunctions
from tests.property.jobs import Job, TroubledJobs
from tests.property.outside import Meanwhile, Outside, TroubledBucket, TroubledEngine, TroubledTable

CLIENT = ClientInfo(capabilities={"elicitation": {}})
KEYS = ("a", "b", "c")
STEPS = ("s", "t")
REMOTE = ("box", "flow")
"""Tools whose work is none of the kit's: it claims nothing, and reports."""
ON_BATCH = ("long", "box")
ON_LAMBDA = ("brief",)
SETTINGS = Settings(
    table=TABLE, bucket=BUCKET, secret="a secret for tests only", report_url="https://api.example.com/report"
)

_numbers = itertools.count(1)


class Form(BaseModel):
    """What a question wants to know."""

    number: int


class Given(BaseModel):
    """Work that is none of the kit's."""

    script: list[str]
    pad: str = ""


ON = Batch(timeout=minutes(1), attempts=1, queue_within=minutes(10))
WINDOW = minutes(3)


class Ids:
    """Ids that no other example has: all examples share one table."""

    def task_id(self) -> str:
        """A new task id."""
        return f"{next(_numbers):032x}"

    def nonce(self) -> str:
        """A new nonce."""
        return f"n{next(_numbers):x}"


def question(key: str, words: str = "") -> Question:
    """The question that a key stands for, in words of its own unless others are given."""
    return form_question(key, words or f"What is {key}?", Form)


@dataclass
class Ticket:
    """What the model knows of a task."""

    task_id: str
    owner: str
    tool: str
    arguments: dict[str, Any]
    sealed_until: int | None
    acknowledged: bool = False
    """Whether a client holds the ticket."""
    seen: Task | None = None
    """The task as the last write left it."""
    sent: dict[str, list[Any]] = field(default_factory=dict)
    """The usable responses that clients sent, by key."""
    outcomes: dict[str, Any] = field(default_factory=dict)
    """What jobs got from their steps."""
    answers: dict[str, Any] = field(default_factory=dict)
    """What jobs got as answers."""

    def resolves(self, now: int) -> bool:
        """Whether its owner may read it."""
        return self.seen is not None and not self.seen.expired(now)


class World:
    """One deployment, its outside in trouble, and its model.

    Parameters
    ----------
    dynamodb, s3
        Clients of moto.
    look
        Gives the item of a key.
    meanwhile
        Lets another process do something to a task.
    """

    def __init__(
        self,
        dynamodb: Any,
        s3: Any,
        look: Callable[[str], Any],
        meanwhile: Callable[[Meanwhile, str], None],
    ) -> None:
        self._look = look
        self.name = f"world {next(_numbers)}"
        """No other world of the same table has it: an equal call of another one is another call."""
        self.clock = StandingClock()
        self.outside = Outside(self._observe, meanwhile)
        self.engine = TroubledEngine(self.outside, self.clock, self._check_start, self._check_stop)
        self.jobs = TroubledJobs(self.outside, self.clock, self._check_start, self._check_stop)
        self.functions = TroubledFunctions(self.outside, self._check_start)
        self.tickets: dict[str, Ticket] = {}
        self.creating: Ticket | None = None
        self.violations: list[str] = []
        self.server = _catalogue(self)
        table: Any = TroubledTable(self.outside, dynamodb)
        bucket: Any = TroubledBucket(self.outside, s3)
        self.runtime = build(
            self.server,
            SETTINGS,
            dynamodb=table,
            s3=lambda: bucket,
            engines={"step_functions": self.engine, "batch": self.jobs, "lambda": self.functions},
            clock=self.clock,
            ids=Ids(),
        )
        self.rail: Rail = self.runtime.rail

    @property
    def reports(self) -> Reports:
        """The workers' side of the rail."""
        return self.rail.reports

    def started(self, name: str) -> bool:
        """Whether a run was ever started."""
        return name in self.engine.runs or bool(self.jobs.of(name)) or bool(self.functions.of(name))

    def jobs_of(self, task: Task) -> list[Job]:
        """The jobs that count for a task's run: the recorded one, or all while none is."""
        jobs = self.jobs.of(run_name(task.task_id, task.run))
        return [job for job in jobs if task.run_id in (None, job.job_id)]

    def lives(self, task: Task) -> bool:
        """Whether a task's run is not over."""
        name = run_name(task.task_id, task.run)
        if task.tool in ON_LAMBDA and task.claimed:
            return leases.holds(task, self.clock.now() - SETTINGS.missing_grace_ms)
        if task.tool in ON_LAMBDA:
            return self.functions.waits(name)
        return self.engine.lives(name) or any(self.jobs.lives(job) for job in self.jobs_of(task))

    def goes_on(self, task: Task) -> bool:
        """Whether nobody has told a task's run to end."""
        jobs = [job for job in self.jobs_of(task) if self.jobs.lives(job) and job.ordered_at is None]
        return self.engine.lives(run_name(task.task_id, task.run)) or bool(jobs)

    def stored(self, task_id: str) -> Task | None:
        """The task as it stands, seen without a call of the process's own."""
        item = self._look(f"task#{task_id}")
        return None if item is None else from_item(item)

    def broken(self, what: str) -> None:
        """Note a broken rule; the machine fails with it, whatever the kit does with exceptions."""
        self.violations.append(what)

    # --- what is checked while the kit works

    def _observe(self, task_id: str) -> None:
        if task_id.startswith("dedupe#"):
            return
        ticket = self.tickets.get(task_id)
        if ticket is None:
            assert self.creating is not None
            ticket = self.tickets[task_id] = self.creating
            ticket.task_id = task_id
        old, new = ticket.seen, self.stored(task_id)
        ticket.seen = new
        try:
            if old is None:
                if new is not None:
                    rules.check_created(new, self.clock.now())
            elif new is None:
                rules.check_taken_back(old, acknowledged=ticket.acknowledged)
            else:
                rules.check_changed(old, new, self.clock.now())
                self._check_cause(old, new)
                self._check_tokens(old, new)
        except AssertionError as error:
            self.broken(str(error).split("\n")[0] or repr(error))

    def _check_cause(self, old: Task, new: Task) -> None:
        """Nobody but its worker ends a run that is alive, in time and wanted, or a question that may be answered."""
        if new.open or not old.open or self.outside.actor == "worker":
            return
        assert self.outside.actor != "work", "a report ended a task"
        living = self.lives(old)
        if old.status is Status.INPUT_REQUIRED:
            overdue = old.answer_deadline is not None and self.clock.now() >= old.answer_deadline
            over = old.tool in REMOTE and not living
            assert overdue or over or new.status is Status.CANCELLED, "an open question was given up"
            return
        in_time = self.clock.now() < old.run_deadline
        cancelled = old.cancel_requested_at is not None or new.status is Status.CANCELLED
        telling = self.functions.telling
        if telling is not None:
            assert old.run_id in (None, telling), "the record of another invocation ended a run"
            return
        assert not (in_time and living and not cancelled), "a living run was given up"

    def _check_tokens(self, old: Task, new: Task) -> None:
        """A state that waits is forgotten only once it was handed its answer, or asks anew; it gets what was kept."""
        if not new.open:
            return
        for key, token in old.tokens.items():
            if key not in new.tokens:
                assert token in self.engine.handed, "a state that waits was forgotten"
        for key, token in new.tokens.items():
            handed = self.engine.handed.get(token, set())
            assert len(handed) <= 1, "a state was handed two answers"
            assert not handed or key in new.answers, "a state was handed what nobody answered"

    def _check_start(self, task_id: str, run: int) -> None:
        ticket = self.tickets.get(task_id)
        task = None if ticket is None else ticket.seen
        if task is None:
            self.broken("work was started without a ticket")
        elif (not task.open or task.run != run) and not self.outside.overtaken:
            self.broken("a run was started that nobody waits for")
        elif not all(self.started(run_name(task_id, number)) for number in range(1, run)):
            self.broken("a run was started before the one that it follows")
        elif task.tool in ON_BATCH and task.run_id is not None and not self.outside.overtaken:
            self.broken("a run was submitted again though its job was known")

    def _check_stop(self, task_id: str, run: int, job: str | None = None) -> None:
        task = self.tickets[task_id].seen
        if task is None or (job is not None and task.run_id not in (None, job)):
            return
        deadline = task.run_deadline if task.status is Status.WORKING else task.answer_deadline
        overdue = deadline is not None and self.clock.now() >= deadline
        wanted = task.run == run and task.open and task.cancel_requested_at is None and not overdue
        if wanted and not self.outside.overtaken:
            self.broken("a run was stopped that was wanted")

    def got_outcome(self, task_id: str, name: str, outcome: Any) -> None:
        """A job got a step's outcome: once it is recorded, it is the same for every run and attempt."""
        ticket = self.tickets[task_id]
        recorded = ticket.seen is not None and name in ticket.seen.steps
        if recorded and ticket.outcomes.setdefault(name, outcome) != outcome:
            self.broken("a step's recorded outcome changed")

    def got_answer(self, task_id: str, key: str, raw: Any) -> None:
        """A job got an answer: somebody sent it, and it never changes."""
        ticket = self.tickets[task_id]
        if raw not in ticket.sent.get(key, []):
            self.broken("a job got an answer that nobody sent")
        if ticket.answers.setdefault(key, raw) != raw:
            self.broken("a question was answered twice")


def _catalogue(world: World) -> TaskServer:
    """Jobs that do what their script says, and tell the model what they got."""
    tools = Toolset()
    worked = itertools.count()

    def follow(task: TaskContext, script: list[str]) -> int:
        for number, line in enumerate(script):
            verb, _, rest = line.partition(":")
            if verb == "step":
                world.got_outcome(task.task_id, rest, task.step(rest, lambda: next(worked)))
            elif verb in ("ask", "hold"):
                forms = {key: (f"What is {key}?", Form) for key in rest.split(",")}
                answers = task.ask_all(forms, wait=seconds(3) if verb == "hold" else None)
                for key, answer in answers.items():
                    world.got_answer(task.task_id, key, answer.raw)
            elif verb == "other":
                task.ask(rest, "Something else?", Form)
            elif verb == "progress":
                task.progress(number, len(script))
            elif verb == "busy":
                world.clock.advance(int(rest))
                task.check()
            else:
                _END[verb]()
        return next(worked)

    @tools.task(
        runs_on=StepFunctions(timeout=minutes(1)),
        keep_result=minutes(10),
        answer_within=minutes(5),
        poll_interval=seconds(1),
    )
    def short(task: TaskContext, script: list[str], pad: str = "") -> int:
        """A result that is kept for a while."""
        return follow(task, script)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)

        @tools.task(
            runs_on=StepFunctions(timeout=minutes(2)),
            keep_result=None,
            answer_within=minutes(3),
            poll_interval=seconds(5),
        )
        def kept(task: TaskContext, script: list[str], pad: str = "") -> int:
            """A result that is kept for ever."""
            return follow(task, script)

    @tools.task(runs_on=ON, keep_result=minutes(10), answer_within=minutes(5), poll_interval=seconds(1))
    def long(task: TaskContext, script: list[str], pad: str = "") -> int:
        """Work on Batch."""
        return follow(task, script)

    @tools.task(
        runs_on=Lambda(timeout=minutes(1), queue_within=minutes(4)),
        keep_result=minutes(10),
        answer_within=minutes(5),
        poll_interval=seconds(1),
    )
    def brief(task: TaskContext, script: list[str], pad: str = "") -> int:
        """Work on Lambda."""
        return follow(task, script)

    @tools.task(
        runs_on=StepFunctions(timeout=minutes(1)), keep_result=minutes(10), poll_interval=seconds(1), dedupe=WINDOW
    )
    def single(task: TaskContext, script: list[str], pad: str = "") -> int:
        """One task for equal calls."""
        return follow(task, script)

    durations: Any = {"keep_result": minutes(10), "answer_within": minutes(5), "poll_interval": seconds(1)}
    tools.container("box", input=Given, existing=ExistingJob(queue="jobs", definition="box"), runs_on=ON, **durations)
    machine = ExistingStateMachine(arn="arn:aws:states:eu-central-1:123456789012:stateMachine:flow", envelope=True)
    tools.workflow("flow", input=Given, existing=machine, timeout=minutes(1), **durations)

    return TaskServer("property", version="1", tools=[tools])


def _raises(error: BaseException) -> Callable[[], None]:
    def end() -> None:
        raise error

    return end


_END: dict[str, Callable[[], None]] = {
    "refuse": _raises(ToolError("No.", structured={"half": 1})),
    "protocol": _raises(ProtocolError(-1, "Never.", {"why": "so"})),
    "exit": _raises(SystemExit(3)),
    "raise": _raises(RuntimeError("boom")),
}
ENDINGS = tuple(_END)


def not_found(act: Callable[[], object]) -> bool:
    """Whether the call found no such task; the error is the same for all reasons, byte for byte."""
    try:
        act()
    except TaskNotFound as error:
        assert (str(error), error.message, error.data) == (str(TaskNotFound()), TaskNotFound().message, None)
        return True
    return False
