"""A deployment on MiniStack: DynamoDB, S3, Step Functions, EventBridge and Lambda by a hand that is not moto's.

MiniStack runs the zip of a function in its own Python, which has none of the kit's dependencies. So every zip here
is a few lines that pass the event on to a server of this process, where our handlers and functions are. What a
Lambda's own surroundings do to them is therefore not tested here.
"""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from handlers import mcp_api, report, run_events
from local.functions import Functions, machines_of
from local.machines import REPORT, create, function_arn
from taskrail.engines.step_functions import StepFunctions
from taskrail.errors import TASKS_EXTENSION
from taskrail.runtime import build, client
from taskrail.server import TaskServer
from taskrail.settings import Settings
from taskrail.testing import BUCKET, TABLE, VERSION
from tests.local_help import wait_for
from tests.races.stores import MINISTACK

HOST = "127.0.0.1"
ROLE = "arn:aws:iam::000000000000:role/tests"

# MiniStack names every error of a function Runtime.HandlerError, so that a ToolError of a function cannot be told.
FORWARD = """
import json, os, urllib.request
def handler(event, context):
    request = urllib.request.Request(os.environ["FORWARD"], json.dumps(event).encode())
    with urllib.request.urlopen(request, timeout=60) as answer:
        body = json.load(answer)
        if answer.headers.get("X-Amz-Function-Error"):
            raise RuntimeError(body["errorMessage"])
        return body
"""


class Deployment:
    """The deployment.

    Parameters
    ----------
    server
        The catalogue.
    endpoint
        URL of MiniStack.
    """

    def __init__(self, server: TaskServer, endpoint: str) -> None:
        def connect(service: str) -> Any:
            return client(service, endpoint_url=endpoint)

        self.dynamodb, self.sfn = connect("dynamodb"), connect("stepfunctions")
        self._lambda, self._events = connect("lambda"), connect("events")
        self._arns: dict[str, str] = {}
        self.runtime = build(
            server,
            Settings(table=TABLE, bucket=BUCKET, secret="a secret for tests only"),
            dynamodb=self.dynamodb,
            s3=lambda: connect("s3"),
            engines={"step_functions": StepFunctions(self.sfn, self._arns)},
        )
        connect("s3").create_bucket(Bucket=BUCKET)
        self.dynamodb.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        self._api = mcp_api.bind(self.runtime)
        machines, functions, unusable = machines_of(self.runtime)
        assert not unusable
        ours = {REPORT: report.bind(self.runtime), "run_events": run_events.bind(self.runtime), **functions}
        self._functions = Functions(socket.create_server((HOST, 0)), ours)
        threading.Thread(target=self._functions.serve_forever, daemon=True).start()
        for name in ours:
            self._create_function(name)
        for tool, machine in machines.items():
            self._arns[tool] = create(self.sfn, machine)
        self._events.put_rule(Name="ends", EventPattern=json.dumps({"source": ["aws.states"]}))
        self._events.put_targets(Rule="ends", Targets=[{"Id": "run_events", "Arn": function_arn("run_events")}])

    def _create_function(self, name: str) -> None:
        code = io.BytesIO()
        with zipfile.ZipFile(code, "w") as archive:
            archive.writestr("forward.py", FORWARD)
        url = f"http://{self._functions.host}/2015-03-31/functions/{name}/invocations"
        self._lambda.create_function(
            FunctionName=name,
            Runtime="python3.12",
            Role=ROLE,
            Handler="forward.handler",
            Code={"ZipFile": code.getvalue()},
            Timeout=60,
            Environment={"Variables": {"FORWARD": url}},
        )

    def close(self) -> None:
        """End the server of functions."""
        self._functions.shutdown()
        self._functions.server_close()

    def request(self, method: str, name: str, /, **params: Any) -> dict[str, Any]:
        """The result of a request by a client that knows tasks, as an HTTP API event."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "extensions": {TASKS_EXTENSION: {}}},
        }
        headers = {
            "content-type": "application/json",
            "mcp-protocol-version": VERSION,
            "mcp-method": method,
            "mcp-name": name,
        }
        event = {
            "version": "2.0",
            "rawPath": "/mcp",
            "headers": headers,
            "requestContext": {"http": {"method": "POST", "path": "/mcp"}, "stage": "$default"},
            "body": json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}),
            "isBase64Encoded": False,
        }
        answer = json.loads(self._api(event, None)["body"])
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def start(self, tool: str, **arguments: Any) -> str:
        """``tools/call``; the task's id."""
        return str(self.request("tools/call", tool, name=tool, arguments=arguments)["taskId"])

    def until(self, task_id: str, ready: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """The task, as soon as it is so."""

        def look() -> dict[str, Any]:
            task = self.request("tasks/get", task_id, taskId=task_id)
            return task if ready(task) else {}

        return wait_for(look, 30, "the task's state")

    def asked(self, task_id: str, *keys: str) -> dict[str, Any]:
        """The open questions, as soon as they are these."""
        task = self.until(task_id, lambda task: set(task.get("inputRequests", ())) == set(keys))
        questions: dict[str, Any] = task["inputRequests"]
        return questions

    def answer(self, task_id: str, **answers: Mapping[str, Any]) -> None:
        """``tasks/update``."""
        self.request("tasks/update", task_id, taskId=task_id, inputResponses=answers)

    def ended(self, task_id: str) -> dict[str, Any]:
        """The task, as soon as it has ended."""
        return self.until(task_id, lambda task: task["status"] in ("completed", "failed", "cancelled"))

    def item(self, task_id: str) -> dict[str, Any]:
        """The task's item, without a read of ours that could repair it."""
        found: dict[str, Any] = self.dynamodb.get_item(TableName=TABLE, Key={"pk": {"S": f"task#{task_id}"}})["Item"]
        return found

    def execution(self, tool: str, task_id: str) -> dict[str, Any]:
        """The execution of a task's first run."""
        arn = f"{self._arns[tool].replace(':stateMachine:', ':execution:')}:{task_id}-1"
        described: dict[str, Any] = self.sfn.describe_execution(executionArn=arn)
        return described


@contextmanager
def emulator() -> Iterator[str]:
    """The URL of MiniStack, a process on this machine that listens to nobody else's."""
    assert MINISTACK.exists(), f"{MINISTACK} is missing: `make test-races` installs it"
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="taskrail-ministack-", ignore_cleanup_errors=True) as directory:
        environ = {**os.environ, "BIND_HOST": HOST, "GATEWAY_PORT": str(port), "TMPDIR": directory}
        with open(Path(directory, "log"), "wb") as log:
            process = subprocess.Popen([MINISTACK], cwd=directory, env=environ, stdout=log, stderr=log)
        try:
            wait_for(lambda: process.poll() is not None or _listens(port), 60, "MiniStack's readiness")
            assert process.poll() is None, Path(directory, "log").read_text()
            yield f"http://{HOST}:{port}"
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _listens(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True
