"""A deployment whose processes may be told what will go wrong.

The table and the bucket are moto's, executions are a queue's, time stands still: they outlive every process.
A process has a `Runtime` of its own over a network of its own, with the clients that `taskrail` makes (retries,
time-outs and all), so that it can die while the rest goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from botocore.awsrequest import AWSResponse

from taskrail.engines import RunReport, RunState, run_name
from taskrail.engines.step_functions import StepFunctions
from taskrail.runtime import Runtime, build, client
from taskrail.settings import Settings
from taskrail.testing import BUCKET, TABLE, Called, CountingIds, Kit, QueueEngine, StandingClock
from tests.faults import catalogue
from tests.faults.executions import MACHINE, Executions
from tests.faults.faults import Clients, Plan, Wire

SETTINGS = Settings(table=TABLE, bucket=BUCKET, secret="a secret for tests only")


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
        machines = dict.fromkeys(catalogue.server.tools, MACHINE)
        self.runtime: Runtime = build(
            catalogue.server,
            SETTINGS,
            dynamodb=dynamodb,
            s3=lambda: clients("s3"),
            engines={"step_functions": StepFunctions(clients("stepfunctions"), machines)},
            clock=world.clock,
            ids=world.ids,
        )
        self.kit = Kit(self.runtime, world.queue, world.clock, dynamodb, None)
        world.clock.on_sleep = world.run_jobs

    def called(self, task_id: str) -> Called:
        """A client of this process that holds that ticket."""
        return Called(self.kit, {"resultType": "task", "taskId": task_id})

    def attempt(self, name: str, number: int = 1) -> str:
        """A job's process: one attempt of the run of that name, of which the engine does not hear yet."""
        if name in self.world.queue.waiting:
            self.world.queue.waiting.remove(name)
        return self.kit.run_one(name, attempt=number)


@dataclass(frozen=True)
class Snapshot:
    """A moment of a world, to go back to."""

    items: Any
    now: int
    queue: QueueEngine
    inputs: dict[str, str]
    task_id: str
    state: str | None
    done: Any


class World:
    """What outlives every process. It can be taken back to an earlier moment: objects in the bucket stay, since
    none is ever written twice.
    """

    def __init__(self) -> None:
        from moto.core.models import botocore_stubber

        self._moto: Callable[..., Any] = botocore_stubber
        self.clock = StandingClock()
        self.ids = CountingIds()
        self.queue = QueueEngine()
        self.executions = Executions(self.queue)
        self.task_id = ""
        """The ticket that the client under test holds."""
        self.state: str | None = None
        """The sealed state that it holds."""
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
        return Snapshot(
            deepcopy(self._table().items),
            self.clock.now(),
            deepcopy(self.queue),
            dict(self.executions.inputs),
            self.task_id,
            self.state,
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
        self.task_id, self.state, self.answered = moment.task_id, moment.state, set()
        catalogue.done.clear()
        catalogue.done.update(moment.done)

    def effect(self, event_name: str, request: Any) -> AWSResponse:
        """What the services do with a request that reaches them."""
        if event_name.startswith("before-send.sfn"):
            return self.executions(event_name, request)
        response: AWSResponse = self._moto(event_name, request)
        return response

    def run_jobs(self) -> None:
        """Let every run that was started happen, in processes to which nothing happens."""
        for name in list(self.queue.waiting):
            self.healthy.attempt(name)

    def run_name(self, run: int = 1) -> str:
        """The name of a run of the ticket's task."""
        return run_name(self.task_id, run)

    def end_run(self, name: str, *, event: bool) -> None:
        """A run died without its worker's report; its engine may or may not manage to tell."""
        self.queue.end(name, RunReport(RunState.FAILED, "States.TaskFailed"))
        if event:
            tell_end(self.healthy, name, "FAILED", "States.TaskFailed")

    def items(self) -> dict[str, int]:
        """When every item of the table expires, in seconds since the epoch, by task id."""
        found = {}
        for key, item in self._table().items.items():
            expires = item.attrs["expiresAt"].value
            found[str(key.value).removeprefix("task#")] = int(expires)
        return found

    def _table(self) -> Any:
        """moto's own table: read and set directly, since every cell would pay for calls."""
        from moto.dynamodb.models import dynamodb_backends

        return dynamodb_backends["123456789012"]["eu-central-1"].tables[TABLE]


def tell_end(process: Process, name: str, status: str, error: str | None = None) -> None:
    """EventBridge delivers the end of an execution to a process."""
    from handlers import run_events

    detail: dict[str, Any] = {"name": name, "status": status, "stateMachineArn": MACHINE}
    if error is not None:
        detail |= {"error": error, "cause": "Traceback: secret-detail-of-aws"}
    event = {"detail-type": "Step Functions Execution Status Change", "source": "aws.states", "detail": detail}
    run_events.bind(process.runtime)(event, None)


@contextmanager
def world() -> Iterator[World]:
    """A new deployment, alive within the block."""
    from moto import mock_aws

    with mock_aws():
        client("dynamodb").create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        s3 = client("s3")
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
        yield World()
