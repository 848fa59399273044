"""A deployment whose processes may be told what will go wrong.

The table and the bucket are moto's, executions and jobs happen when a test says so, time stands still: they
outlive every process.
A process has a `Runtime` of its own over a network of its own, with the clients that `taskrail` makes (retries,
time-outs and all), so that it can die while the rest goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from botocore.awsrequest import AWSResponse

from handlers import expired, report, run_events
from taskrail.clients import client
from taskrail.engines import RunReport, RunState, parse_run_name, run_name
from taskrail.engines.adopted import Adopted
from taskrail.engines.batch import Batch
from taskrail.engines.lambda_functions import LambdaFunctions
from taskrail.engines.step_functions import StepFunctions
from taskrail.runtime import Runtime, build
from taskrail.settings import Settings
from taskrail.testing import BUCKET, TABLE, Called, CountingIds, Kit, QueueEngine, StandingClock
from taskrail.worker import run_attempt
from tests.faults import catalogue
from tests.faults.executions import MACHINE, Executions, Flow
from tests.faults.faults import Clients, Plan, Wire
from tests.faults.invocations import FUNCTION, RETRY_AFTER_MS, Event, Invocations
from tests.faults.jobs import Job, Jobs
from tests.faults.remote import go_on_with_flow, go_on_with_job

SETTINGS = Settings(
    table=TABLE, bucket=BUCKET, secret="a secret for tests only", report_url="https://api.example.com/report"
)


class Process:
    """One process of the deployment: an API function, or a job's.

    Parameters
    ----------
    world
        The deployment.
    plan
        The fault it will meet.
    clients
        Taken over from the process before it.
    """

    def __init__(self, world: World, plan: Plan | None = None, *, clients: Clients | None = None) -> None:
        self.world = world
        self.wire = Wire(world.effect, world.clock, plan)
        clients = clients or world.clients
        clients.wire = self.wire
        dynamodb = clients("dynamodb")
        tools = catalogue.server.tools
        machines = {name: MACHINE + name for name in tools}
        functions = {name: FUNCTION + name for name in tools}
        jobs = {name: {"queue": "jobs", "definition": name} for name in tools}
        adopted = Adopted(lambda: clients("resourcegroupstaggingapi"))
        self.runtime: Runtime = build(
            catalogue.server,
            SETTINGS,
            dynamodb=dynamodb,
            s3=lambda: clients("s3"),
            engines={
                "step_functions": StepFunctions(clients("stepfunctions"), machines),
                "lambda": LambdaFunctions(clients("lambda"), functions),
                "batch": Batch(clients("batch"), jobs, adopted, lambda: clients("logs")),
            },
            clock=world.clock,
            ids=world.ids,
        )
        self.report = report.bind(self.runtime)
        self.kit = Kit(self.runtime, world.queue, world.clock, dynamodb, None)
        world.clock.on_sleep = world.run_jobs

    def called(self, task_id: str) -> Called:
        """A client of this process that holds that ticket."""
        return Called(self.kit, {"resultType": "task", "taskId": task_id})

    def attempt(self, name: str, number: int = 1) -> str:
        """A job's process: one attempt of the run of that name, of which the engine does not hear yet."""
        if jobs := self.world.jobs.of(name):
            return self.work(jobs[0], number)
        if events := self.world.invocations.of(name):
            return self.deliver(events[0])
        if name in self.world.queue.waiting:
            self.world.queue.waiting.remove(name)
        return self.kit.run_one(name, attempt=number)

    def deliver(self, event: Event) -> str:
        """A function's process: Lambda invokes it with an event, after a pause if it has failed before."""
        if event.delivered:
            self.world.clock.advance(RETRY_AFTER_MS)
        event.delivered += 1
        outcome = run_attempt(
            self.runtime.rail.reports,
            self.runtime.server,
            task_id=event.payload["taskId"],
            run=event.payload["run"],
            run_id=event.request_id,
            attempt=None,
            ticker=False,
        )
        event.over = True
        return outcome

    def work(self, job: Job, attempt: int = 1) -> str:
        """A container of the kit's: one attempt of a job on Batch."""
        parsed = parse_run_name(job.name)
        assert parsed is not None
        job.status, (task_id, run) = "RUNNING", parsed
        outcome = run_attempt(
            self.runtime.rail.reports,
            self.runtime.server,
            task_id=task_id,
            run=run,
            run_id=job.job_id,
            attempt=attempt,
            ticker=False,
        )
        job.end(0)
        return outcome


@dataclass(frozen=True)
class Snapshot:
    """A moment of a world, to go back to."""

    items: Any
    now: int
    queue: QueueEngine
    inputs: dict[str, str]
    flows: dict[str, Flow]
    jobs: Jobs
    invocations: Invocations
    objects: dict[str, Any]
    task_id: str
    state: str | None
    removed: dict[str, Any]
    done: Any


class World:
    """What outlives every process. It can be taken back to an earlier moment."""

    def __init__(self) -> None:
        from moto.core.models import botocore_stubber

        self._moto: Callable[..., Any] = botocore_stubber
        self.clock = StandingClock()
        self.ids = CountingIds()
        self.queue = QueueEngine()
        self.executions = Executions(self.queue)
        self.jobs = Jobs()
        self.invocations = Invocations()
        self.task_id = ""
        """The ticket that the client under test holds."""
        self.state: str | None = None
        """The sealed state that it holds."""
        self.removed: dict[str, Any] = {}
        """The record of an item that the table deleted."""
        self.answered: set[str] = set()
        """The questions that it has answered."""
        self.clients = Clients(client)
        """For the process under test."""
        self.healthy = Process(self, clients=Clients(client))
        """A process to which nothing happens."""
        catalogue.done.clear()
        catalogue.clocks[:] = [self.clock]
        self._table().items.clear()
        self._beginning = self.snapshot()

    def snapshot(self) -> Snapshot:
        """This moment."""
        objects = {key: list(versions) for key, versions in dict.items(self._objects())}
        for versions in objects.values():
            for version in versions:
                version.dispose()
        return Snapshot(
            deepcopy(self._table().items),
            self.clock.now(),
            deepcopy(self.queue),
            dict(self.executions.inputs),
            deepcopy(self.executions.flows),
            deepcopy(self.jobs),
            deepcopy(self.invocations),
            objects,
            self.task_id,
            self.state,
            self.removed,
            catalogue.done.copy(),
        )

    def go_back(self, moment: Snapshot | None = None) -> None:
        """Let everything be as it was at a moment; in the beginning when left out."""
        moment = moment or self._beginning
        self._table().items = deepcopy(moment.items)
        self.clock.advance(moment.now - self.clock.now())
        self.clock.on_sleep = self.run_jobs
        vars(self.queue).update(vars(deepcopy(moment.queue)))
        self.executions.inputs = dict(moment.inputs)
        self.executions.flows = deepcopy(moment.flows)
        vars(self.jobs).update(vars(deepcopy(moment.jobs)))
        vars(self.invocations).update(vars(deepcopy(moment.invocations)))
        objects = self._objects()
        for key in set(objects) - set(moment.objects):
            dict.pop(objects, key)
        dict.update(objects, {key: list(versions) for key, versions in moment.objects.items()})
        self.task_id, self.state, self.answered = moment.task_id, moment.state, set()
        self.removed = moment.removed
        catalogue.done.clear()
        catalogue.done.update(moment.done)

    def effect(self, event_name: str, request: Any) -> AWSResponse:
        """What the services do with a request that reaches them."""
        if event_name.startswith("before-send.sfn"):
            return self.executions(event_name, request)
        if event_name.startswith("before-send.batch"):
            return self.jobs(event_name, request)
        if event_name.startswith("before-send.lambda"):
            return self.invocations(event_name, request)
        response: AWSResponse = self._moto(event_name, request)
        return response

    def run_jobs(self) -> None:
        """Let all work that was started go on, in processes to which nothing happens."""
        for name in list(self.queue.waiting):
            self.healthy.attempt(name)
        for event in self.invocations.waiting():
            self.healthy.deliver(event)
        for flow in self.executions.living():
            go_on_with_flow(self.healthy, flow)
        self.jobs.kill()
        for job in self.jobs.living():
            if catalogue.server.tools[job.tool].work is not None:
                go_on_with_job(self.healthy, job)
            elif job.status == "RUNNABLE":
                self.healthy.work(job)

    def run_name(self, run: int = 1) -> str:
        """The name of a run of the ticket's task."""
        return run_name(self.task_id, run)

    def end_run(self, name: str, *, event: bool) -> None:
        """A run died without its worker's report; its engine may or may not manage to tell."""
        if jobs := self.jobs.of(name):
            jobs[0].end(1)
            if event:
                tell_job(self.healthy, jobs[0])
            return
        if events := self.invocations.of(name):
            events[0].over = True
            if event:
                tell_lost(self.healthy, events[0])
            return
        self.queue.end(name, RunReport(RunState.FAILED, "States.TaskFailed"))
        if event:
            tell_end(self.healthy, name, "FAILED", "States.TaskFailed")

    def time_out(self) -> None:
        """What has a time of its own has had it. A state that waits for an answer has none."""
        for name, state in self.queue.states.items():
            if not state.ended:
                self.queue.end(name, RunReport(RunState.TIMED_OUT))
        self.jobs.time_out()
        self.invocations.time_out()

    def items(self) -> dict[str, int]:
        """When every task's item expires, in seconds since the epoch, by task id."""
        found = {}
        for key, item in self._table().items.items():
            if str(key.value).startswith("task#"):
                found[str(key.value).removeprefix("task#")] = int(item.attrs["expiresAt"].value)
        return found

    def reservations(self) -> int:
        """How many records there are of calls that are made once."""
        return len(self._table().items) - len(self.items())

    def objects_of(self, task_id: str) -> list[str]:
        """What the bucket holds of a task."""
        return [key for key in self._objects() if f"/{task_id}/" in key]

    def remove(self, task_id: str) -> dict[str, Any]:
        """The table deletes an item; the record of it in the table's stream."""
        items = self._table().items
        (key,) = (key for key in items if key.value == f"task#{task_id}")
        image = items.pop(key).to_json()["Attributes"]
        return {"eventName": "REMOVE", "dynamodb": {"SequenceNumber": "1", "OldImage": image}}

    def living(self) -> list[str]:
        """The names of all runs that go on."""
        runs = [name for name, state in self.queue.states.items() if not state.ended]
        others = (*self.executions.living(), *self.jobs.living(), *self.invocations.waiting())
        return [*runs, *(run.name for run in others)]

    def starts(self, task_id: str) -> list[str]:
        """The names of a task's runs, each as often as it was begun."""
        others = (*self.jobs.all.values(), *self.invocations.all)
        names = [*self.queue.starts, *self.executions.flows, *(run.name for run in others)]
        return [name for name in names if name.startswith(task_id)]

    def _objects(self) -> Any:
        """moto's own bucket, read and set directly, like the table."""
        from moto.s3.models import s3_backends

        return s3_backends["123456789012"]["aws"].buckets[BUCKET].keys

    def _table(self) -> Any:
        """moto's own table: read and set directly, since every cell would pay for calls."""
        from moto.dynamodb.models import dynamodb_backends

        return dynamodb_backends["123456789012"]["eu-central-1"].tables[TABLE]


def tell_end(process: Process, name: str, status: str, error: str | None = None) -> None:
    """EventBridge delivers the end of an execution to a process."""
    detail: dict[str, Any] = {"name": name, "status": status, "stateMachineArn": MACHINE}
    if error is not None:
        detail |= {"error": error, "cause": "Traceback: secret-detail-of-aws"}
    tell_execution(process, detail)


def tell_execution(process: Process, detail: dict[str, Any]) -> None:
    """EventBridge delivers how an execution stands to a process."""
    event = {"detail-type": "Step Functions Execution Status Change", "source": "aws.states", "detail": detail}
    run_events.bind(process.runtime)(event, None)


def tell_job(process: Process, job: Job) -> None:
    """EventBridge delivers how a job stands to a process."""
    event = {"detail-type": "Batch Job State Change", "source": "aws.batch", "detail": job.detail()}
    run_events.bind(process.runtime)(event, None)


def tell_lost(process: Process, event: Event) -> None:
    """Lambda sends what it has given up to a function's failure destination."""
    run_events.bind(process.runtime)(event.record(), None)


def tell_removed(process: Process, record: dict[str, Any]) -> bool:
    """The table's stream delivers that an item is gone; whether all that was left of it is gone, too."""
    return expired.bind(process.runtime)({"Records": [record]}, None) == {"batchItemFailures": []}


@contextmanager
def world() -> Iterator[World]:
    """A new deployment, alive within the block."""
    from moto import mock_aws
    from moto.s3.models import FakeKey

    def kept(key: FakeKey, garbage: bool = False) -> None:
        """A body that the bucket lets go of may be needed again, when the world goes back."""
        key.disposed = True

    with mock_aws(), patch.object(FakeKey, "dispose", kept):
        client("dynamodb").create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        s3 = client("s3")
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
        yield World()
