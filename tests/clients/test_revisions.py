"""The earlier revisions over a real port, request by request: no client library stands in between."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.clients.tickets import is_ticket, next_call

pytestmark = [pytest.mark.clients, pytest.mark.timeout(120)]

REVISIONS = ("2025-11-25", "2025-06-18", "2025-03-26")


class Raw:
    """Sends messages of one revision.

    Parameters
    ----------
    url
        The MCP endpoint.
    revision
        Which; its header goes along from the first request after the handshake on.
    """

    def __init__(self, url: str, revision: str) -> None:
        self._url = urlsplit(url)
        # The header came with 2025-06-18.
        self.headers = {} if revision == "2025-03-26" else {"MCP-Protocol-Version": revision}

    def post(self, body: Any, headers: dict[str, str]) -> tuple[int, dict[str, str], Any]:
        """Status, headers and message of an answer."""
        connection = http.client.HTTPConnection(str(self._url.hostname), self._url.port or 80, timeout=30)
        try:
            standard = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
            connection.request("POST", self._url.path, json.dumps(body), {**standard, **headers})
            answer = connection.getresponse()
            text = answer.read()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, names, json.loads(text or "null")
        finally:
            connection.close()

    def ask(self, method: str, params: dict[str, Any] | None = None, *, handshake: bool = False) -> Any:
        """The result of a request."""
        body = {"jsonrpc": "2.0", "id": "a", "method": method, **({} if params is None else {"params": params})}
        status, headers, message = self.post(body, {} if handshake else self.headers)
        assert (status, message["id"], message["jsonrpc"]) == (200, "a", "2.0"), message
        assert "mcp-session-id" not in headers
        assert "result" in message, message
        assert not {"resultType", "ttlMs", "cacheScope"} & message["result"].keys()
        return message["result"]

    def call(self, name: str, **arguments: Any) -> Any:
        """The result of a tool's call."""
        return self.ask("tools/call", {"name": name, "arguments": arguments})

    def finish(self, result: Any, asked: list[str]) -> Any:
        """What a ticket comes to."""
        while is_ticket(result.get("structuredContent")):
            name, arguments = next_call(result["structuredContent"], asked)
            result = self.call(name, **arguments)
        return result


@pytest.fixture(params=REVISIONS)
def raw(request: pytest.FixtureRequest, url: str) -> Raw:
    """A client that shook hands."""
    client = Raw(url, request.param)
    hello = {"protocolVersion": request.param, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    told = client.ask("initialize", hello, handshake=True)
    assert told["protocolVersion"] == request.param
    assert set(told["capabilities"]) == {"tools"}
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert client.post(note, client.headers)[::2] == (202, None)
    return client


def test_the_list_and_a_quick_tool(raw: Raw) -> None:
    """Every tool has an object for a schema, and the tools for tickets are there."""
    assert raw.ask("ping") == {}
    tools = {tool["name"]: tool for tool in raw.ask("tools/list")["tools"]}
    assert {"add", "take_two_minutes", "task_status", "task_answer", "task_cancel"} <= tools.keys()
    assert all(tool["inputSchema"]["type"] == "object" for tool in tools.values())
    assert tools["add"]["outputSchema"]["type"] == "object"
    assert "outputSchema" not in tools["measure_words"], "a ticket is a result of it as well"
    assert raw.call("add", a=2, b=3)["structuredContent"] == {"result": 5}


def test_a_long_job(raw: Raw) -> None:
    """Started, followed and read by plain calls of tools."""
    started = raw.call("take_two_minutes")
    assert started["structuredContent"]["status"] == "working"
    ended = raw.finish(started, [])
    assert (ended["content"][0]["text"], ended["isError"]) == ("Two minutes have passed.", False)


def test_a_question(raw: Raw) -> None:
    """Asked by the ticket, answered by `task_answer`."""
    asked: list[str] = []
    ended = raw.finish(raw.call("publish", title="Rails"), asked)
    assert asked == ["Publish “Rails”?"]
    assert ended["content"][0]["text"] == "“Rails” is published."


def test_a_cancel_and_an_error(raw: Raw) -> None:
    """Both arrive as results with `isError`."""
    task_id = raw.call("wait_long")["structuredContent"]["taskId"]
    cancelled = raw.finish(raw.call("task_cancel", task_id=task_id), [])
    assert cancelled["isError"] is True and "cancelled" in cancelled["content"][0]["text"]
    failed = raw.finish(raw.call("break_down"), [])
    assert (failed["isError"], failed["content"][0]["text"]) == (True, "The machine is out of paper.")


def test_what_else_this_revision_has(raw: Raw) -> None:
    """Batches are of 2025-03-26 only, unknown methods of none, and GET opens no stream."""
    batch = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in (1, 2)]
    status, _, answer = raw.post(batch, raw.headers)
    if raw.headers:
        assert (status, answer["error"]["code"]) == (400, -32600)
    else:
        assert (status, [one["id"] for one in answer]) == (200, [1, 2])
    status, _, answer = raw.post({"jsonrpc": "2.0", "id": 1, "method": "prompts/list"}, raw.headers)
    assert (status, answer["error"]["code"]) == (200, -32601)
    status, _, answer = raw.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"MCP-Protocol-Version": "2024-11-05"})
    assert (status, answer["error"]["code"]) == (400, -32022)
