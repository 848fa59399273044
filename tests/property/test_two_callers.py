"""Two callers of one deployment: to each, the other's tickets are as unknown as ids that nobody has.

Over every kind of authorizer, both event formats, every method that takes a task's id, and every state that a
task can be in: the answer is the same, byte for byte, and nothing moves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taskrail.errors import TASKS_EXTENSION
from taskrail.settings import Settings
from taskrail.testing import VERSION, Called, Kit, harness
from taskrail.wire.app import App
from tests.counts import count, sized
from tests.functional import work_tools

pytestmark = pytest.mark.timeout(sized(60, 600))

KINDS = ("jwt", "iam", "lambda", "api_key")
METHODS = ("tasks/get", "tasks/update", "tasks/cancel", "task_status", "task_answer", "task_cancel", "legacy")
STATES = ("working", "asking", "completed", "failed", "cancelled", "expired")
NOBODY = "f" * 32


def verdict(kind: str, caller: str, *, rest: bool) -> dict[str, Any]:
    """The request context that API Gateway makes of a caller."""
    claims = {"iss": "https://issuer.example.com", "sub": caller}
    if kind == "jwt":
        return {"authorizer": {"claims": claims} if rest else {"jwt": {"claims": claims, "scopes": None}}}
    if kind == "iam":
        identity = {"accountId": "123456789012", "caller": caller, "callerId": caller}
        return {"identity": identity} if rest else {"authorizer": {"iam": identity}}
    if kind == "lambda":
        return {"authorizer": {"user": caller} if rest else {"lambda": {"user": caller}}}
    return {"identity": {"apiKey": f"secret-{caller}", "apiKeyId": caller}}


def event(body: Any, headers: dict[str, str], context: dict[str, Any], *, rest: bool) -> dict[str, Any]:
    """A request as an event of a REST API, or of an HTTP API."""
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream", **headers}
    common = {"headers": headers, "body": json.dumps(body), "isBase64Encoded": False}
    if rest:
        return {**common, "httpMethod": "POST", "path": "/mcp", "requestContext": {"stage": "v1", **context}}
    http = {"http": {"method": "POST", "path": "/mcp"}, "stage": "$default"}
    return {**common, "version": "2.0", "rawPath": "/mcp", "requestContext": {**http, **context}}


def request(method: str, task_id: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Body and headers of a request about a task."""
    if method == "legacy":
        params: dict[str, Any] = {"name": "task_status", "arguments": {"task_id": task_id}}
        return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, {
            "mcp-protocol-version": "2025-11-25"
        }
    ticket = not method.startswith("tasks/")
    declared: dict[str, Any] = {} if ticket else {"extensions": {TASKS_EXTENSION: {}}}
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": declared,
    }
    if ticket:
        more = {"key": "go", "content": {}} if method == "task_answer" else {}
        params = {"name": method, "arguments": {"task_id": task_id, **more}}
    else:
        more = {"inputResponses": {"go": {"action": "accept", "content": {}}}} if method == "tasks/update" else {}
        params = {"taskId": task_id, **more}
    wire_method = "tools/call" if ticket else method
    headers = {"mcp-protocol-version": VERSION, "mcp-method": wire_method}
    if ticket:
        headers["mcp-name"] = method
    return {"jsonrpc": "2.0", "id": 1, "method": wire_method, "params": {**params, "_meta": meta}}, headers


@pytest.fixture(scope="module")
def deployment() -> Iterator[Kit]:
    with harness(work_tools.server) as made:
        yield made


def app_for(kit: Kit, kind: str) -> App:
    """The same deployment behind an authorizer of that kind."""
    key = "user" if kind == "lambda" else None
    chosen = Settings(
        table="tasks",
        bucket="payloads",
        secret="a secret for tests only",
        auth=kind,
        owner_key=key,
        iam_owner="session",
        wait_budget_ms=300,
    )
    return App(replace(kit.runtime, settings=chosen))


def brought_to(kit: Kit, app: App, kind: str, rest: bool, state: str) -> str:
    """The id of a task of the caller `owner`, in that state."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "extensions": {TASKS_EXTENSION: {}}},
    }
    params = {"name": "migrate", "arguments": {"table": "t"}, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"mcp-protocol-version": VERSION, "mcp-method": "tools/call", "mcp-name": "migrate"}
    answer = app.handle(event(body, headers, verdict(kind, "owner", rest=rest), rest=rest))
    called = Called(kit, json.loads(answer["body"])["result"])
    if state == "asking":
        called.report("ask", key="go", message="Go?", taskToken="token")
    elif state == "completed":
        called.end({"rows": 1})
    elif state == "failed":
        called.end(error="States.Timeout")
    elif state == "cancelled":
        called.report("ask", key="go", message="Go?", taskToken="token")
        kit.runtime.rail.cancel(kit.runtime.rail._changes.store.read(called.task_id).owner, called.task_id)  # type: ignore[union-attr]
    elif state == "expired":
        kit.clock.advance(400 * 86_400_000)
    return called.task_id


@settings(
    max_examples=sized(short=40, long=200),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    kind=st.sampled_from(KINDS),
    rest=st.booleans(),
    method=st.sampled_from(METHODS),
    state=st.sampled_from(STATES),
    asked_by=st.sampled_from(["stranger", "own", "Owner", "owner ", "owner:1"]),
)
def test_anothers_ticket_is_as_unknown_as_any(
    deployment: Kit, kind: str, rest: bool, method: str, state: str, asked_by: str
) -> None:
    count("requests of two callers")
    kit = deployment
    kit.clear()
    app = app_for(kit, kind)
    task_id = brought_to(kit, app, kind, rest, state)
    before = kit.scan()
    context = verdict(kind, asked_by, rest=rest)
    answers = []
    for asked in (task_id, NOBODY):
        body, headers = request(method, asked)
        answers.append(app.handle(event(body, headers, context, rest=rest)))
    assert answers[0] == answers[1]
    assert task_id not in answers[0]["body"]
    assert kit.scan() == before
    if state != "expired":
        body, headers = request("tasks/get", task_id)
        own = app.handle(event(body, headers, verdict(kind, "owner", rest=not rest), rest=not rest))
        assert json.loads(own["body"])["result"]["taskId"] == task_id, "the owner finds it, through either API"
