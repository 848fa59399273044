"""A deployment whose calls of AWS are written down: the real handlers over moto, and engines that run nothing.

DynamoDB and S3 are moto's. Step Functions, Batch and Lambda answer from beneath botocore that they took the order; a
run happens when it is told to, through the handler or the worker that the engine would start.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from benchmarks.requests import event
from benchmarks.units import Units, of_call
from handlers import invoked_job, job_runner, mcp_api, run_events
from taskrail.clients import client
from taskrail.clock import Clock
from taskrail.engines import Engine, run_name
from taskrail.engines.adopted import Adopted
from taskrail.engines.batch import Batch
from taskrail.engines.lambda_functions import LambdaFunctions
from taskrail.engines.step_functions import StepFunctions
from taskrail.runtime import build
from taskrail.server import TaskServer
from taskrail.settings import Settings
from taskrail.telemetry import Telemetry
from taskrail.testing import BUCKET, TABLE
from taskrail.worker import run_attempt

REGION = "eu-central-1"
_STARTED = {"startDate": 1_796_040_000.0, "stopDate": 1_796_040_000.0}
_JOB = {"jobId": "7d1b8f3e-5f0a-4a5e-9c3b-2f6f2f1a9a10", "jobName": "job", "jobArn": "arn:aws:batch:job"}
_ANSWERS: dict[str, tuple[int, dict[str, Any]]] = {
    "StartExecution": (200, {"executionArn": "arn:aws:states:execution", **_STARTED}),
    "StopExecution": (200, _STARTED),
    "SubmitJob": (200, _JOB),
    "DescribeJobs": (
        200,
        {"jobs": [{**_JOB, "jobQueue": "q", "status": "RUNNABLE", "startedAt": 1, "jobDefinition": "d"}]},
    ),
    "TerminateJob": (200, {}),
    "Invoke": (202, {}),
}


@dataclass
class Ledger:
    """The calls that were made since it was last opened, how long each took, in seconds, and their units."""

    calls: list[str] = field(default_factory=list)
    took: list[tuple[str, float]] = field(default_factory=list)
    units: Units = field(default_factory=Units)

    def made(self, act: Callable[[], object]) -> tuple[list[str], Units]:
        """The calls and the units of what `act` does."""
        self.calls, self.took, self.units = [], [], Units()
        act()
        return list(self.calls), self.units


class Deployment:
    """A deployment of a catalogue.

    Parameters
    ----------
    server
        The catalogue.
    clock
        Its time.
    endpoint
        Where DynamoDB and S3 are; None for moto in this process.
    """

    def __init__(self, server: TaskServer, clock: Clock, endpoint: str | None = None) -> None:
        self.clock, self.ledger = clock, Ledger()
        self.counts_units = True
        self._where: dict[str, Any] = {"region_name": REGION}
        if endpoint is not None:
            keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
            self._where |= {"endpoint_url": endpoint, **keys}
        self.table = client("dynamodb", **self._where)
        names = list(server.tools)
        engines: dict[str, Engine] = {
            "step_functions": StepFunctions(self._engine("stepfunctions"), dict.fromkeys(names, "arn:aws:states:m")),
            "batch": Batch(
                self._engine("batch"),
                {name: {"queue": "q", "definition": "d"} for name in names},
                Adopted(lambda: None),
                lambda: None,
            ),
            "lambda": LambdaFunctions(self._engine("lambda"), dict.fromkeys(names, "tool")),
        }
        self.runtime = build(
            server,
            Settings(table=TABLE, bucket=BUCKET, secret="a secret for benchmarks only", auth="jwt"),
            dynamodb=self._counted("dynamodb"),
            s3=lambda: self._counted("s3"),
            engines=engines,
            clock=clock,
            telemetry=Telemetry(lambda line: None),
        )
        self._api = mcp_api.bind(self.runtime)
        self._told = run_events.bind(self.runtime)

    def request(self, method: str, about: str | None, /, **params: Any) -> dict[str, Any]:
        """The result of a request.

        Raises
        ------
        RuntimeError
            The answer is an error, which no benchmark asks for.
        """
        answer = json.loads(self._api(event(method, about, params), None)["body"])
        if "result" not in answer:
            raise RuntimeError(f"{method} was refused: {answer}")
        result: dict[str, Any] = answer["result"]
        return result

    def call(self, tool: str, **arguments: Any) -> str:
        """``tools/call``; the id of the task that began."""
        return str(self.request("tools/call", tool, name=tool, arguments=arguments)["taskId"])

    def get(self, task_id: str) -> dict[str, Any]:
        """``tasks/get``."""
        return self.request("tasks/get", task_id, taskId=task_id)

    def update(self, task_id: str, **contents: Any) -> None:
        """``tasks/update`` with answers that accept."""
        answers = {key: {"action": "accept", "content": content} for key, content in contents.items()}
        self.request("tasks/update", task_id, taskId=task_id, inputResponses=answers)

    def cancel(self, task_id: str) -> None:
        """``tasks/cancel``."""
        self.request("tasks/cancel", task_id, taskId=task_id)

    def run(self, engine: str, task_id: str, run: int = 1) -> None:
        """Let a run happen, as its engine would."""
        if engine == "step_functions":
            job_runner.bind(self.runtime)({"input": {"taskId": task_id, "run": run}}, None)
        elif engine == "lambda":
            invoked_job.bind(self.runtime)({"taskId": task_id, "run": run}, _Invocation())
        else:
            reports, server = self.runtime.rail.reports, self.runtime.server
            run_attempt(reports, server, task_id=task_id, run=run, run_id=_JOB["jobId"], attempt=1)

    def tell(self, task_id: str) -> None:
        """EventBridge tells of the end of an execution."""
        detail = {"name": run_name(task_id, 1), "status": "SUCCEEDED"}
        self._told({"detail-type": "Step Functions Execution Status Change", "detail": detail}, None)

    def item(self, task_id: str) -> dict[str, Any]:
        """The task's item, in DynamoDB's own JSON."""
        found: dict[str, Any] = self.table.get_item(TableName=TABLE, Key={"pk": {"S": f"task#{task_id}"}})["Item"]
        return found

    def _counted(self, service: str) -> Any:
        made = client(service, **self._where)
        made.meta.events.register("before-call", self._begins)
        made.meta.events.register("after-call", self._ends)
        return made

    def _engine(self, service: str) -> Any:
        made = client(service, region_name=REGION, aws_access_key_id="bench", aws_secret_access_key="bench")
        made.meta.events.register("before-call", self._begins)
        # In front of moto, which would look for what was never made.
        made.meta.events.register_first(f"before-send.{_event_name(made)}", _answers)
        return made

    def _begins(self, model: Any, params: Any, context: dict[str, Any], **_: Any) -> None:
        self.ledger.calls.append(model.name)
        if self.counts_units and model.service_model.service_name == "dynamodb":
            asked = json.loads(params["body"])
            key = asked.get("Key") or {"pk": asked["Item"]["pk"]}
            context["bench"] = asked.get("ConsistentRead", False), key, self._stored(key)
        context["began"] = time.perf_counter()

    def _ends(self, model: Any, context: dict[str, Any], **_: Any) -> None:
        self.ledger.took.append((model.name, time.perf_counter() - context["began"]))
        if "bench" in context:
            consistent, key, before = context["bench"]
            self.ledger.units += of_call(model.name, before, self._stored(key), consistent=consistent)

    def _stored(self, key: Any) -> Any:
        return self.table.get_item(TableName=TABLE, Key=key).get("Item")

    def make_stores(self) -> None:
        """Make the table and the bucket."""
        self.table.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        where = {"LocationConstraint": REGION}
        client("s3", **self._where).create_bucket(Bucket=BUCKET, CreateBucketConfiguration=where)


@contextmanager
def deployment(server: TaskServer, clock: Clock) -> Iterator[Deployment]:
    """A deployment on moto, alive within the block."""
    from moto import mock_aws

    with mock_aws():
        there = Deployment(server, clock)
        there.make_stores()
        yield there


class _Invocation:
    """What a function sees of an asynchronous invocation."""

    aws_request_id = "8f5e1c1e-1111-4222-8333-944444444444"

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda ends it."""
        return 600_000


class _Body(io.BytesIO):
    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        """The whole body, as urllib3 gives it."""
        yield self.read()


def _answers(request: Any, event_name: str, **_: Any) -> Any:
    from botocore.awsrequest import AWSResponse

    headers: Any = {"content-type": "application/json"}
    status, answer = _ANSWERS[event_name.rpartition(".")[2]]
    return AWSResponse(request.url, status, headers, _Body(json.dumps(answer).encode()))


def _event_name(made: Any) -> str:
    return str(made.meta.service_model.service_id.hyphenize())
