"""What stands between: every answer that is none becomes an error that says what happened, and nothing else."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest
from mcp import MCPError

from taskrail_client import BearerAuth
from taskrail_client.transport import LONGEST_RETRY_AFTER_MS, SteadyTransport
from taskrail_client.trouble import Kind, Trouble, judge

ASKED = {"jsonrpc": "2.0", "id": 7, "method": "tasks/get", "params": {}}
RESULT = {"jsonrpc": "2.0", "id": 7, "result": {"resultType": "complete"}}
ERROR = {"jsonrpc": "2.0", "id": 7, "error": {"code": -32602, "message": "Unknown task"}}


def through(answer: httpx2.Response | Exception, body: Any = ASKED, auth: httpx2.Auth | None = None) -> httpx2.Response:
    """What the official client gets when the network does that."""

    def handle(request: httpx2.Request) -> httpx2.Response:
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def send() -> httpx2.Response:
        inner = httpx2.AsyncClient(transport=httpx2.MockTransport(handle), auth=auth)
        request = httpx2.Request("POST", "https://api.example.com/mcp", json=body)
        response = await SteadyTransport(inner).handle_async_request(request)
        await response.aread()
        return response

    return asyncio.run(send())


def trouble_of(answer: httpx2.Response | Exception, auth: httpx2.Auth | None = None) -> Trouble:
    """What the client makes of it."""
    message = json.loads(through(answer, auth=auth).content)
    assert message["id"] == ASKED["id"]
    error = message["error"]
    return judge(MCPError(error["code"], error["message"], error.get("data")))


@pytest.mark.parametrize(
    ("status", "message"), [(200, RESULT), (400, ERROR), (200, ERROR), (500, {**ERROR, "id": None})]
)
def test_answers_pass(status: int, message: dict[str, Any]) -> None:
    """JSON-RPC answers to this request arrive as they are, whatever their status."""
    response = through(httpx2.Response(status, json=message))
    assert (response.status_code, json.loads(response.content)) == (status, message)
    assert response.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "answer",
    [
        httpx2.Response(200, content=b""),
        httpx2.Response(200, content=b"\xff\xfe{"),
        httpx2.Response(200, content=b"[" * 100_000),
        httpx2.Response(200, json=[]),
        httpx2.Response(200, json={**RESULT, "id": 8}),
        httpx2.Response(200, json={**RESULT, "id": "7"}),
        httpx2.Response(200, json={**RESULT, "result": None}),
        httpx2.Response(200, json={**RESULT, "result": []}),
        httpx2.Response(200, json={**RESULT, **ERROR}),
        httpx2.Response(200, json={**ERROR, "error": "no"}),
        httpx2.Response(200, json={**ERROR, "error": {"code": "x", "message": "y"}}),
        httpx2.Response(200, json={"jsonrpc": "2.0", "id": 7}),
        httpx2.Response(202),
        httpx2.Response(204),
        httpx2.Response(200, headers={"content-type": "text/html"}, text="<html>"),
        httpx2.Response(200, headers={"content-encoding": "gzip"}, stream=httpx2.ByteStream(b"no gzip")),
        httpx2.Response(408),
        httpx2.Response(429),
        httpx2.Response(500, json={"message": "Internal Server Error"}),
        httpx2.Response(502, text="<html>"),
        httpx2.Response(503),
        httpx2.Response(504),
        httpx2.ConnectError("no"),
        httpx2.ConnectTimeout("no"),
        httpx2.ReadTimeout("no"),
        httpx2.ReadError("no"),
        httpx2.WriteError("no"),
        httpx2.RemoteProtocolError("no"),
        httpx2.PoolTimeout("no"),
    ],
    ids=repr,
)
def test_what_may_pass_is_ridden_out(answer: httpx2.Response | Exception) -> None:
    """None of it says anything about the task."""
    assert trouble_of(answer).kind is Kind.PASSING


@pytest.mark.parametrize(
    ("answer", "kind", "arrived"),
    [
        (httpx2.Response(401), Kind.DENIED, True),
        (httpx2.Response(403), Kind.DENIED, True),
        (httpx2.Response(404, json={"message": "Not Found"}), Kind.DOUBTFUL, True),
        (httpx2.Response(413), Kind.DOUBTFUL, True),
        (httpx2.Response(400, json=ERROR), Kind.DOUBTFUL, True),
        (httpx2.Response(500, json={**ERROR, "error": {"code": -32603, "message": "x"}}), Kind.PASSING, True),
        (httpx2.Response(429), Kind.PASSING, False),
        (httpx2.ConnectError("no"), Kind.PASSING, False),
        (httpx2.Response(502), Kind.PASSING, True),
        (httpx2.ReadTimeout("no"), Kind.PASSING, True),
    ],
    ids=repr,
)
def test_what_is_made_of_it(answer: httpx2.Response | Exception, kind: Kind, arrived: bool) -> None:
    """Denials are believed, other refusals doubted; and it is known when nothing can have happened."""
    trouble = trouble_of(answer)
    assert (trouble.kind, not trouble.never_arrived) == (kind, arrived)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (httpx2.ConnectError("x"), "the server cannot be reached"),
        (httpx2.ReadTimeout("x"), "no answer in time"),
        (httpx2.ReadError("x"), "the connection broke"),
        (httpx2.Response(200, text="x"), "the answer was garbage"),
        (httpx2.Response(503), "the server answered HTTP 503"),
    ],
    ids=repr,
)
def test_a_person_is_told_what_happened(answer: httpx2.Response | Exception, reason: str) -> None:
    """In words for whoever waits."""
    assert trouble_of(answer).reason == reason


@pytest.mark.parametrize(
    ("value", "expected"),
    [("3", 3_000), ("99999", LONGEST_RETRY_AFTER_MS), ("soon", 0), ("-1", 0), ("9" * 500, 0), ("٣", 0), ("", 0)],
)
def test_retry_after(value: str, expected: int) -> None:
    """In seconds, and within reason."""
    headers = [(b"retry-after", value.encode())]
    assert trouble_of(httpx2.Response(429, headers=headers)).retry_after_ms == expected


def test_credentials_that_cannot_be_had_do_not_end_the_session() -> None:
    """Ours are told in words; what another way of making them says may hold anything."""

    class Broken(httpx2.Auth):
        def auth_flow(self, request: httpx2.Request) -> Any:
            raise ValueError("password=hunter2")
            yield

    trouble = trouble_of(httpx2.Response(200), BearerAuth(lambda: ""))
    assert (trouble.kind, "bearer token is empty" in trouble.reason) == (Kind.DENIED, True)
    trouble = trouble_of(httpx2.Response(200), Broken())
    assert (trouble.kind, "hunter2" in trouble.reason) == (Kind.DOUBTFUL, False)


def test_what_is_no_request_goes_through() -> None:
    """Notifications have no answer that could be made up."""
    assert through(httpx2.Response(202), {"jsonrpc": "2.0", "method": "notifications/x"}).status_code == 202


def test_nothing_of_the_body_reaches_the_message() -> None:
    """A page of a proxy may hold anything."""
    answer = httpx2.Response(502, text="password=hunter2", headers={"x-secret": "hunter2"})
    assert b"hunter2" not in through(answer).content
