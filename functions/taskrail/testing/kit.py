"""A deployment under test, and what a call to it came to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from taskrail.caller import Caller
from taskrail.clock import milliseconds
from taskrail.engines import RunOrder, RunReport, RunState, parse_run_name, run_name
from taskrail.engines.lambda_functions import report_of_record
from taskrail.errors import TASKS_EXTENSION
from taskrail.runtime import Runtime
from taskrail.testing.fakes import START, QueueEngine, StandingClock
from taskrail.wire.app import App
from taskrail.worker import run_attempt

TABLE = "tasks"
BUCKET = "payloads"
VERSION = "2026-07-28"


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
    runtime, engine, clock, dynamodb, s3, jobs, functions
        Its parts, for tests that reach deeper: `engine` stands for Step Functions, `jobs` for Batch, `functions` for
        Lambda.
    """

    def __init__(
        self,
        runtime: Runtime,
        engine: QueueEngine,
        clock: StandingClock,
        dynamodb: Any,
        s3: Any,
        jobs: QueueEngine | None = None,
        functions: QueueEngine | None = None,
    ) -> None:
        self.runtime = runtime
        self.engine = engine
        self.jobs = jobs or QueueEngine(records_ids=True)
        self.functions = functions or QueueEngine(by_lease=True)
        self.clock = clock
        self.dynamodb = dynamodb
        self.s3 = s3
        self.owner = "anonymous"
        """Whoever calls: set it to act as another caller. The harness takes every caller for one that is known."""
        self.caller: Caller | None = None
        """The same with subject, tenant, scopes and claims; it counts in place of `owner`."""
        self.meta: dict[str, Any] = {}
        """More `_meta` for every request."""
        self._count = 0
        self._app = App(runtime, identify=lambda event: self.caller or Caller(owner=self.owner))
        clock.on_sleep = self.run

    def clear(self) -> None:
        """Make the deployment as if it were new: no task, no object, no run, the first moment and caller.

        Cheaper than another harness, for a fixture that many tests share.
        """
        for item in self.scan():
            self.dynamodb.delete_item(TableName=TABLE, Key={"pk": item["pk"]})
        for page in self.s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET):
            for found in page.get("Contents", ()):
                self.s3.delete_object(Bucket=BUCKET, Key=found["Key"])
        for engine in (self.engine, self.jobs, self.functions):
            engine.clear()
        self.clock.advance(START - self.clock.now())
        self.clock.on_sleep = self.run
        self.owner, self.caller = "anonymous", None
        self.meta = {}

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
            **self.meta,
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
        """Let every run of a Python job that waits happen, one after the other."""
        while (name := self._next_job()) is not None:
            self.run_one(name)

    def run_one(self, name: str, *, attempt: int = 1) -> str:
        """Let the run of that name happen, and its end be known to the engine.

        On Lambda once more is the same event, delivered again; nothing there tells which attempt it is.
        """
        parsed = parse_run_name(name)
        assert parsed is not None, f"{name!r} is no run's name"
        task_id, run = parsed
        engine = self.engine_of(name)
        if name in engine.waiting:
            engine.waiting.remove(name)
        outcome = run_attempt(
            self.runtime.rail.reports,
            self.runtime.server,
            task_id=task_id,
            run=run,
            run_id=engine.ids.get(name) or self._recorded(task_id) or name,
            attempt=None if engine.by_lease else attempt,
            ticker=False,
        )
        engine.states[name] = RunReport(RunState.SUCCEEDED)
        return outcome

    def _recorded(self, task_id: str) -> str | None:
        """The id of a run that was under way before this harness was made."""
        item = self.dynamodb.get_item(TableName=TABLE, Key={"pk": {"S": f"task#{task_id}"}}).get("Item", {})
        found: str | None = item.get("runId", {}).get("S")
        return found

    def engine_of(self, name: str) -> QueueEngine:
        """The engine that was told to start the run of that name."""
        return next((engine for engine in (self.jobs, self.functions) if name in engine.ids), self.engine)

    def _next_job(self) -> str | None:
        for engine in (self.engine, self.jobs, self.functions):
            for name in engine.waiting:
                tool = self.runtime.server.get(engine.orders[name].tool)
                if tool is None or tool.work is None:
                    return name
        return None

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

    def die(self) -> Called:
        """Let the worker of a Lambda tool take up its run and die at once; nothing is heard of it."""
        name = self._run
        self._kit.functions.waiting.remove(name)
        reports, request = self._kit.runtime.rail.reports, self._kit.functions.ids[name]
        reports.claim_by_lease(self.task_id, self._number, request, lambda: 0)
        return self

    def again(self) -> Called:
        """Let Lambda deliver the event of the current run again: after a worker's death, or once too often."""
        self._kit.run_one(self._run)
        return self

    @property
    def _number(self) -> int:
        item = self._kit.dynamodb.get_item(TableName=TABLE, Key={"pk": {"S": f"task#{self.task_id}"}})["Item"]
        return int(item["run"]["N"])

    @property
    def _run(self) -> str:
        return run_name(self.task_id, self._number)

    @property
    def order(self) -> RunOrder:
        """What the engine was told about the work: an execution's input, a job's environment and parameters."""
        name = run_name(self.task_id, 1)
        return self._kit.engine_of(name).orders[name]

    def report(self, do: str, /, **what: Any) -> dict[str, Any]:
        """Report as the work of a workflow or a container does; the reply.

        Parameters
        ----------
        do
            ``progress``, ``ask``, ``answers``, ``arguments`` or ``result``.
        what
            What belongs to it.
        """
        order = self.order
        token = order.environment.get("TASKRAIL_REPORT_TOKEN", order.input.get("reportToken"))
        if order.environment:
            job = {"job": self._kit.jobs.ids[order.name], "attempt": 1}
            what = {**job, **what}
        return self._kit.runtime.remote.take(token, {"do": do, **what})

    def end(
        self, output: Any = None, *, error: str | None = None, cause: str | None = None, exit_code: int = 0
    ) -> Called:
        """Let the work of a workflow or a container be over, and the engine tell of it; or a Lambda tool's worker.

        Parameters
        ----------
        output
            What the state machine returned.
        error, cause
            How the execution failed. The caller reads the name of the error, and the cause of a ``ToolError``.
            Of a Lambda tool, the type of the error that its function died of, at its last attempt.
        exit_code
            How the container ended.
        """
        name = run_name(self.task_id, 1)
        engine = self._kit.engine_of(name)
        if engine.by_lease:
            return self._lost(error or "Runtime.ExitError")
        if engine.records_ids:
            state = RunState.FAILED if exit_code else RunState.SUCCEEDED
            reason = f"exit code {exit_code}" if exit_code else None
            report = RunReport(state, reason, run_id=engine.ids[name], attempt=1, log=name)
        elif error is not None:
            report = RunReport(RunState.FAILED, error, told=cause if error == "ToolError" else None)
        else:
            report = RunReport(RunState.SUCCEEDED, output=json.dumps(output))
        engine.end(name, report)
        self._kit.runtime.rail.run_heard(self.task_id, 1, report)
        return self

    def _lost(self, kind: str) -> Called:
        """The record that Lambda sends to a function's failure destination."""
        name, functions = self._run, self._kit.functions
        if name in functions.waiting:
            functions.waiting.remove(name)
        record = {
            "version": "1.0",
            "requestContext": {
                "requestId": functions.ids[name],
                "condition": "RetriesExhausted",
                "approximateInvokeCount": 1,
            },
            "requestPayload": dict(functions.orders[name].input),
            "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
            "responsePayload": {"errorType": kind, "errorMessage": f"RequestId: {functions.ids[name]} Error: {kind}"},
        }
        told = report_of_record(record)
        if told is not None:
            self._kit.runtime.rail.run_heard(self.task_id, self._number, told[1])
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


def _response(content: Any) -> Any:
    """A response from what a person would fill in; one that is a response already stays so."""
    if isinstance(content, Mapping) and content.get("action") in ("accept", "decline", "cancel"):
        return dict(content)
    return {"action": "accept", "content": content}
