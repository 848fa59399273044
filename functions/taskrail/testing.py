"""The harness: a whole deployment inside a test, on moto, without threads and without waiting.

Requests go through the real handler as API Gateway events; the table and the bucket are moto's;
runs wait in a queue until the test lets them happen; time stands still until the test moves it::

    from taskrail.testing import harness
    from catalogue import server

    def test_publishing_asks_first():
        with harness(server) as kit:
            task = kit.call("publish_report", documents=[{"name": "a", "text": "one two"}])
            task.run()                                   # the job, up to its question
            assert task.status == "input_required"
            task.answer(approval={"publish": True})
            assert task.run().structured == {"published": True}

`taskrail.pytest_plugin` has the same as a pytest fixture. The harness needs moto, which the kit's
development requirements bring.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from taskrail.access import Caller
from taskrail.clock import milliseconds
from taskrail.engines import RunReport, RunState, parse_run_name
from taskrail.errors import TASKS_EXTENSION, StartRefused
from taskrail.runtime import Runtime, build, client
from taskrail.server import TaskServer
from taskrail.settings import Settings
from taskrail.wire.app import App
from taskrail.worker import run_attempt

TABLE = "tasks"
BUCKET = "payloads"
VERSION = "2026-07-28"
START = 1_780_000_000_000
"""The moment at which a harness's clock stands at first, in milliseconds since the epoch."""


class StandingClock:
    """A clock that moves only when told.

    Parameters
    ----------
    now
        Where it stands, in milliseconds since the epoch.
    """

    def __init__(self, now: int = START) -> None:
        self._now = now
        self.on_sleep: Callable[[], None] = lambda: None

    def now(self) -> int:
        """Milliseconds since the epoch."""
        return self._now

    def sleep(self, milliseconds: int) -> None:
        """Move on at once; whatever waits for its turn gets it."""
        self._now += max(0, milliseconds)
        self.on_sleep()

    def advance(self, milliseconds: int) -> None:
        """Move on; nothing else happens."""
        self._now += milliseconds


class CountingIds:
    """Ids that a test can foretell; every one is new."""

    def __init__(self) -> None:
        self._count = 0

    def task_id(self) -> str:
        """The next task id."""
        self._count += 1
        return f"{self._count:032x}"

    def nonce(self) -> str:
        """The next nonce."""
        self._count += 1
        return f"n{self._count:x}"


@dataclass
class QueueEngine:
    """An engine whose runs happen when the test says so.

    Parameters
    ----------
    refuse
        Set it to have starts refused, as an engine without permission or capacity does.
    """

    refuse: bool = False
    waiting: list[str] = field(default_factory=list)
    states: dict[str, RunReport] = field(default_factory=dict)
    starts: list[str] = field(default_factory=list)

    def start(self, tool: str, name: str, payload: dict[str, object], timeout_ms: int) -> str:
        """Queue the run; a name that was seen before changes nothing."""
        if self.refuse:
            raise StartRefused("The test refuses starts.")
        if name not in self.states:
            self.states[name] = RunReport(RunState.RUNNING)
            self.waiting.append(name)
            self.starts.append(name)
        return f"run:{name}"

    def stop(self, tool: str, name: str) -> bool:
        """Take the run out of the queue."""
        if name in self.states and not self.states[name].ended:
            self.states[name] = RunReport(RunState.STOPPED)
        if name in self.waiting:
            self.waiting.remove(name)
        return True

    def describe(self, tool: str, name: str) -> RunReport:
        """How the run stands."""
        return self.states.get(name, RunReport(RunState.NOT_FOUND))

    def end(self, name: str, report: RunReport) -> None:
        """Let a run be over that way, its worker unheard."""
        self.states[name] = report
        if name in self.waiting:
            self.waiting.remove(name)


class RpcFailure(Exception):
    """The server answered with a JSON-RPC error; `error` is it, `status` the HTTP status."""

    def __init__(self, error: Mapping[str, Any], status: int) -> None:
        super().__init__(f"{error.get('code')}: {error.get('message')}")
        self.error = dict(error)
        self.status = status


class Kit:
    """A deployment under test; `harness` makes it.

    Parameters
    ----------
    runtime, engine, clock, dynamodb, s3
        Its parts, for tests that reach deeper.
    """

    def __init__(self, runtime: Runtime, engine: QueueEngine, clock: StandingClock, dynamodb: Any, s3: Any) -> None:
        self.runtime = runtime
        self.engine = engine
        self.clock = clock
        self.dynamodb = dynamodb
        self.s3 = s3
        self.owner = "anonymous"
        self._count = 0
        self._app = App(runtime, identify=lambda event: Caller(owner=self.owner))
        clock.on_sleep = self.run

    def call(
        self,
        tool: str,
        /,
        *,
        tasks: bool = True,
        capabilities: Mapping[str, Any] | None = None,
        answers: Mapping[str, Any] | None = None,
        state: str | None = None,
        headers: Mapping[str, str] | None = None,
        **arguments: Any,
    ) -> Called:
        """Call a tool as a client does.

        Parameters
        ----------
        tool
            Its name.
        tasks
            Whether the client declares the tasks extension.
        capabilities
            What else it declares; by default that it can be asked by form.
        answers, state
            Answers to pre-flight questions and the state that came with them.
        headers
            More HTTP headers, for arguments annotated with ``x-mcp-header``.
        arguments
            The tool's arguments.

        Raises
        ------
        RpcFailure
            The answer is a JSON-RPC error.
        """
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if answers is not None:
            params["inputResponses"] = {key: _response(answer) for key, answer in answers.items()}
        if state is not None:
            params["requestState"] = state
        more = {"mcp-name": tool, **(headers or {})}
        return Called(self, self.request("tools/call", params, tasks=tasks, capabilities=capabilities, headers=more))

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        tasks: bool = True,
        capabilities: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Send one request and return its result.

        Raises
        ------
        RpcFailure
            The answer is a JSON-RPC error.
        """
        self._count += 1
        declared: dict[str, Any] = dict({"elicitation": {}} if capabilities is None else capabilities)
        if tasks:
            declared["extensions"] = {**declared.get("extensions", {}), TASKS_EXTENSION: {}}
        meta = {
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": declared,
            "io.modelcontextprotocol/clientInfo": {"name": "harness", "version": "1"},
        }
        body = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": {**(params or {}), "_meta": meta}}
        answer = self.post(json.dumps(body), {"mcp-protocol-version": VERSION, "mcp-method": method, **(headers or {})})
        payload = json.loads(answer["body"])
        if "error" in payload:
            raise RpcFailure(payload["error"], answer["statusCode"])
        result: dict[str, Any] = payload["result"]
        return result

    def post(self, body: str, headers: Mapping[str, str]) -> dict[str, Any]:
        """Send a raw body as an HTTP API event; the handler's answer comes back as it is."""
        return self._app.handle(
            {
                "version": "2.0",
                "routeKey": "POST /mcp",
                "rawPath": "/mcp",
                "rawQueryString": "",
                "headers": {
                    "content-type": "application/json",
                    "accept": "application/json, text/event-stream",
                    **headers,
                },
                "requestContext": {"http": {"method": "POST", "path": "/mcp"}, "stage": "$default"},
                "body": body,
                "isBase64Encoded": False,
            },
            None,
        )

    def run(self) -> None:
        """Let every run that waits happen, one after the other."""
        while self.engine.waiting:
            self.run_one(self.engine.waiting.pop(0))

    def run_one(self, name: str, *, attempt: int = 1) -> str:
        """Let the run of that name happen, and its end be known to the engine."""
        parsed = parse_run_name(name)
        assert parsed is not None, f"{name!r} is no run's name"
        task_id, run = parsed
        outcome = run_attempt(
            self.runtime.rail.reports,
            self.runtime.server,
            task_id=task_id,
            run=run,
            run_id=f"run:{name}",
            attempt=attempt,
            ticker=False,
        )
        self.engine.states[name] = RunReport(RunState.SUCCEEDED)
        return outcome

    def advance(self, duration: timedelta) -> None:
        """Let time pass."""
        self.clock.advance(milliseconds(duration))

    def scan(self) -> list[dict[str, Any]]:
        """Every item of the table, as DynamoDB holds it."""
        items: list[dict[str, Any]] = self.dynamodb.scan(TableName=TABLE)["Items"]
        return items

    def upload(self, name: str, body: bytes) -> str:
        """Put a document under the caller's input prefix; its ``s3://`` URI comes back."""
        key = f"inputs/{self.owner}/{name}"
        self.s3.put_object(Bucket=BUCKET, Key=key, Body=body)
        return f"s3://{BUCKET}/{key}"


class Called:
    """What a call came to: a result at once, questions before the task, or a task.

    Parameters
    ----------
    kit, reply
        The deployment, and the result of ``tools/call``.
    """

    def __init__(self, kit: Kit, reply: dict[str, Any]) -> None:
        self._kit = kit
        self.reply = reply

    @property
    def is_task(self) -> bool:
        """Whether the call became a task."""
        return self.reply.get("resultType") == "task"

    @property
    def task_id(self) -> str:
        """The task's id."""
        return str(self.reply["taskId"])

    @property
    def state(self) -> str | None:
        """The sealed state of questions that came before the task."""
        return self.reply.get("requestState")

    def poll(self) -> dict[str, Any]:
        """``tasks/get``."""
        return self._kit.request("tasks/get", {"taskId": self.task_id}, headers={"mcp-name": self.task_id})

    @property
    def status(self) -> str:
        """The task's status now."""
        return str(self.poll()["status"])

    def run(self) -> Called:
        """Let the job happen: to its end, or to its next question."""
        self._kit.run()
        return self

    @property
    def questions(self) -> dict[str, Any]:
        """The open questions, by key."""
        reply = self.poll() if self.is_task else self.reply
        return dict(reply.get("inputRequests", {}))

    def answer_with(self, responses: Mapping[str, Any]) -> Called:
        """``tasks/update`` with responses as they go over the wire."""
        params = {"taskId": self.task_id, "inputResponses": dict(responses)}
        self._kit.request("tasks/update", params, headers={"mcp-name": self.task_id})
        return self

    def answer(self, **answers: Any) -> Called:
        """Accept questions: the content of the form, by key."""
        return self.answer_with({key: _response(content) for key, content in answers.items()})

    def decline(self, *keys: str) -> Called:
        """Decline questions."""
        return self.answer_with({key: {"action": "decline"} for key in keys})

    def cancel(self) -> Called:
        """``tasks/cancel``."""
        self._kit.request("tasks/cancel", {"taskId": self.task_id}, headers={"mcp-name": self.task_id})
        return self

    @property
    def result(self) -> dict[str, Any]:
        """The result of the call; the task must have one."""
        if not self.is_task:
            return self.reply
        detail = self.poll()
        if "result" not in detail:
            raise AssertionError(f"The task has no result; it is {detail['status']}: {detail.get('statusMessage')}")
        result: dict[str, Any] = detail["result"]
        return result

    @property
    def structured(self) -> Any:
        """The structured content of the result."""
        return self.result.get("structuredContent")

    @property
    def text(self) -> str:
        """The text blocks of the result, one a line."""
        return "\n".join(block["text"] for block in self.result["content"] if block["type"] == "text")

    @property
    def is_error(self) -> bool:
        """Whether the tool reported an error."""
        return bool(self.result.get("isError"))

    @property
    def error(self) -> dict[str, Any]:
        """The JSON-RPC error that the task failed with."""
        return dict(self.poll()["error"])

    def attachment(self, name: str) -> bytes:
        """The content of an attached file."""
        stored = self._kit.runtime.rail.read(self._kit.owner, self.task_id)
        payloads = self._kit.runtime.rail.reports.payloads
        for block in payloads.load(stored.result or "{}")["content"]:
            if block["type"] == "resource_link" and block["name"] == name:
                with payloads.open_key(block["uri"].removeprefix("s3:")) as body:
                    return body.read()
        raise AssertionError(f"The result has no attachment {name!r}.")


@contextmanager
def harness(server: TaskServer, *, settings: Settings | None = None) -> Iterator[Kit]:
    """A deployment of a catalogue, alive within the block.

    Parameters
    ----------
    server
        The catalogue.
    settings
        Limits; the defaults when left out.
    """
    from moto import mock_aws

    keys: Any = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing", "region_name": "us-east-1"}
    with mock_aws():
        dynamodb = client("dynamodb", **keys)
        s3 = client("s3", **keys)
        dynamodb.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        s3.create_bucket(Bucket=BUCKET)
        engine, clock = QueueEngine(), StandingClock()
        runtime = build(
            server,
            settings or Settings(table=TABLE, bucket=BUCKET, secret="a secret for tests only"),
            dynamodb=dynamodb,
            s3=lambda: s3,
            engines={"step_functions": engine},
            clock=clock,
            ids=CountingIds(),
        )
        yield Kit(runtime, engine, clock, dynamodb, s3)


def _response(content: Any) -> Any:
    """A response from what a person would fill in; one that is a response already stays so."""
    if isinstance(content, Mapping) and content.get("action") in ("accept", "decline", "cancel"):
        return dict(content)
    return {"action": "accept", "content": content}
