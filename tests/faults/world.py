"""A deployment whose processes may be told what will go wrong.

The table and the bucket are moto's, executions are a queue's, time stands still: they outlive every process.
A process has clients and a `Runtime` of its own over a network of its own (`taskrail`'s retries, time-outs and
all), so that it can die while the rest goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from botocore.awsrequest import AWSResponse

from taskrail.engines import RunReport, RunState, run_name
from taskrail.engines.step_functions import StepFunctions
from taskrail.runtime import Runtime, build, client
from taskrail.settings import Settings
from taskrail.testing import BUCKET, TABLE, Called, CountingIds, Kit, QueueEngine, StandingClock
from tests.faults import catalogue
from tests.faults.executions import MACHINE, Executions
from tests.faults.faults import Plan, Wire

SETTINGS = Settings(table=TABLE, bucket=BUCKET, secret="a secret for tests only")


class Process:
    """One process of the deployment: an API function, or a job's.

    Parameters
    ----------
    world
        The deployment.
    plan
        The fault it will meet.
    """

    def __init__(self, world: World, plan: Plan | None = None) -> None:
        self.world = world
        self.wire = Wire(world.effect, plan)
        dynamodb = self._client("dynamodb")
        machines = dict.fromkeys(catalogue.server.tools, MACHINE)
        self.runtime: Runtime = build(
            catalogue.server,
            SETTINGS,
            dynamodb=dynamodb,
            s3=lambda: self._client("s3"),
            engines={"step_functions": StepFunctions(self._client("stepfunctions"), machines)},
            clock=world.clock,
            ids=world.ids,
        )
        self.kit = Kit(self.runtime, world.queue, world.clock, dynamodb, None)
        world.clock.on_sleep = world.run_jobs

    def _client(self, service: str) -> Any:
        made = client(service)
        self.wire.attach(made)
        return made

    def called(self, task_id: str) -> Called:
        """A client of this process that holds that ticket."""
        return Called(self.kit, {"resultType": "task", "taskId": task_id})

    def attempt(self, name: str, number: int = 1) -> str:
        """A job's process: one attempt of the run of that name, of which the engine does not hear yet."""
        if name in self.world.queue.waiting:
            self.world.queue.waiting.remove(name)
        return self.kit.run_one(name, attempt=number)


class World:
    """What outlives every process."""

    def __init__(self) -> None:
        from moto.core.models import botocore_stubber

        self._moto: Callable[..., Any] = botocore_stubber
        self.clock = StandingClock()
        self.ids = CountingIds()
        self.queue = QueueEngine()
        self.healthy = Process(self)
        """A process to which nothing happens."""
        self.reset()

    def reset(self) -> None:
        """Begin anew: no task, no run, no work done."""
        from moto.dynamodb.models import dynamodb_backends

        for tables in dynamodb_backends["123456789012"].values():
            for table in tables.tables.values():
                table.items.clear()
        self.clock = StandingClock()
        self.clock.on_sleep = self.run_jobs
        self.queue.refuse = False
        self.queue.waiting.clear()
        self.queue.states.clear()
        self.queue.starts.clear()
        self._executions = Executions(self.queue)
        self.healthy = Process(self)
        self.task_id = ""
        """The ticket that the client under test holds."""
        self.state: str | None = None
        """The sealed state that it holds."""
        self.answered: set[str] = set()
        """The questions that it has answered."""
        catalogue.done.clear()
        catalogue.clocks[:] = [self.clock]

    def effect(self, event_name: str, request: Any) -> AWSResponse:
        """What the services do with a request that reaches them."""
        if event_name.startswith("before-send.sfn"):
            return self._executions(event_name, request)
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

    def items(self) -> dict[str, dict[str, Any]]:
        """Every item of the table, by task id."""
        return {item["pk"]["S"].removeprefix("task#"): item for item in self.healthy.kit.scan()}


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
        made = World()
        made.healthy.kit.dynamodb.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        s3 = client("s3")
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
        yield made
