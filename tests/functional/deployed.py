"""A deployment behind its real handlers, on moto, with every AWS call that it makes written down.

Step Functions is moto's too: it keeps executions by name but runs nothing, so that a test lets a run happen
through `job_runner`, as the state machine would. Lambda accepts every event and delivers none: a test does, through
`invoked_job`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from handlers import invoked_job, job_runner, mcp_api, run_events
from taskrail.clients import client
from taskrail.engines.lambda_functions import LambdaFunctions
from taskrail.engines.step_functions import StepFunctions
from taskrail.errors import TASKS_EXTENSION
from taskrail.runtime import Lazy, build
from taskrail.server import TaskServer
from taskrail.settings import Settings
from taskrail.testing import BUCKET, TABLE, VERSION, StandingClock
from tests.faults.faults import answer

DEFINITION = {"StartAt": "Job", "States": {"Job": {"Type": "Pass", "End": True}}}


FUNCTION = "arn:aws:lambda:eu-central-1:123456789012:function:job"


class Invocation:
    """What Lambda tells a handler of an invocation.

    Parameters
    ----------
    aws_request_id
        Its id.
    """

    def __init__(self, aws_request_id: str) -> None:
        self.aws_request_id = aws_request_id

    def get_remaining_time_in_millis(self) -> int:
        """Always plenty."""
        return 900_000


class Deployed:
    """The deployment.

    Parameters
    ----------
    server
        The catalogue.
    machine
        ARN of the state machine of all its tools.
    """

    def __init__(self, server: TaskServer, machine: str) -> None:
        self.clock = StandingClock()
        self.calls: list[str] = []
        self.machine = machine
        self.sfn = client("stepfunctions")
        self.runtime = build(
            server,
            Settings(table=TABLE, bucket=BUCKET, secret="a secret for tests only"),
            dynamodb=self._counted("dynamodb"),
            s3=lambda: self._counted("s3"),
            engines={
                "step_functions": StepFunctions(self._counted("stepfunctions"), dict.fromkeys(server.tools, machine)),
                "lambda": Lazy(
                    lambda: LambdaFunctions(self._lambda(), dict.fromkeys(server.tools, FUNCTION)),
                    records_ids=False,
                    stops_gently=False,
                    by_lease=True,
                ),
            },
            clock=self.clock,
        )
        self._api = mcp_api.bind(self.runtime)
        self._job = job_runner.bind(self.runtime)
        self._invoked = invoked_job.bind(self.runtime)
        self._event = run_events.bind(self.runtime)

    def _counted(self, service: str) -> Any:
        made = client(service)
        made.meta.events.register("before-call", lambda model, **_: self.calls.append(model.name))
        return made

    def _lambda(self) -> Any:
        made = self._counted("lambda")
        made.meta.events.register_first("before-send.lambda.Invoke", lambda request, **_: answer(request.url, 202, ""))
        return made

    def made(self, act: Callable[[], object]) -> list[str]:
        """The AWS calls that something makes."""
        self.calls.clear()
        act()
        return list(self.calls)

    def request(self, method: str, mcp_name: str | None = None, /, **params: Any) -> dict[str, Any]:
        """The result of a request by a client that knows tasks, as an HTTP API event."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "extensions": {TASKS_EXTENSION: {}}},
        }
        headers = {"content-type": "application/json", "mcp-protocol-version": VERSION, "mcp-method": method}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        event = {
            "version": "2.0",
            "routeKey": "POST /mcp",
            "rawPath": "/mcp",
            "headers": headers if mcp_name is None else {**headers, "mcp-name": mcp_name},
            "requestContext": {"http": {"method": "POST", "path": "/mcp"}, "stage": "$default"},
            "body": json.dumps(body),
            "isBase64Encoded": False,
        }
        answer = json.loads(self._api(event, None)["body"])
        assert "error" not in answer, answer["error"]
        result: dict[str, Any] = answer["result"]
        return result

    def call(self, tool: str, **arguments: Any) -> str:
        """``tools/call``; the task's id."""
        return str(self.request("tools/call", tool, name=tool, arguments=arguments)["taskId"])

    def get(self, task_id: str) -> dict[str, Any]:
        """``tasks/get``."""
        return self.request("tasks/get", task_id, taskId=task_id)

    def update(self, task_id: str, **answers: Any) -> dict[str, Any]:
        """``tasks/update``: questions are accepted."""
        responses = {key: {"action": "accept", "content": content} for key, content in answers.items()}
        return self.request("tasks/update", task_id, taskId=task_id, inputResponses=responses)

    def cancel(self, task_id: str) -> dict[str, Any]:
        """``tasks/cancel``."""
        return self.request("tasks/cancel", task_id, taskId=task_id)

    def run(self, task_id: str, run: int = 1, **more: Any) -> dict[str, Any]:
        """The state machine invokes the job's function with an execution's input and context."""
        execution = self.execution(f"{task_id}-{run}")
        return self.invoke({"input": json.loads(execution["input"]), "execution": execution["executionArn"], **more})

    def invoke(self, event: dict[str, Any], context: Any = None) -> dict[str, Any]:
        """Lambda invokes the job's function."""
        return self._job(event, context)

    def deliver(self, task_id: str, run: int = 1, request_id: str = "r-1") -> dict[str, Any]:
        """Lambda invokes the function of a job of its own with an event that it had queued."""
        return self._invoked({"taskId": task_id, "run": run}, Invocation(request_id))

    def execution(self, name: str) -> dict[str, Any]:
        """The execution of that name."""
        described: dict[str, Any] = self.sfn.describe_execution(executionArn=self.arn(name))
        return described

    def arn(self, name: str) -> str:
        """The ARN that the execution of that name has."""
        return f"{self.machine.replace(':stateMachine:', ':execution:')}:{name}"

    def tell(self, event: dict[str, Any]) -> None:
        """EventBridge delivers an event."""
        self._event(event, None)


@contextmanager
def deployed(server: TaskServer) -> Iterator[Deployed]:
    """A deployment of a catalogue, alive within the block."""
    from moto import mock_aws

    with mock_aws():
        client("dynamodb").create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        client("s3").create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
        machine = client("stepfunctions").create_state_machine(
            name="jobs", definition=json.dumps(DEFINITION), roleArn="arn:aws:iam::123456789012:role/jobs"
        )
        yield Deployed(server, machine["stateMachineArn"])
