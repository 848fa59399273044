"""A client of a few lines for a deployed API: what a test sends is what it says."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

VERSION = "2026-07-28"
_PATIENCE_S = 60


@dataclass(frozen=True)
class Answer:
    """An HTTP answer.

    Parameters
    ----------
    status, headers, body
        Headers by their names in lower case; the body as text.
    """

    status: int
    headers: Mapping[str, str]
    body: str

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


def send(method: str, url: str, headers: Mapping[str, str] | None = None, body: bytes | None = None) -> Answer:
    """One request; refusals are answers as well."""
    request = urllib.request.Request(url, body, dict(headers or {}), method=method)
    try:
        with urllib.request.urlopen(request, timeout=45) as reply:
            return _answer(reply.status, reply.headers, reply.read())
    except urllib.error.HTTPError as error:
        with error:
            return _answer(error.code, error.headers, error.read())


def _answer(status: int, headers: Any, body: bytes) -> Answer:
    return Answer(status, {name.lower(): value for name, value in headers.items()}, body.decode("utf-8", "replace"))


class Client:
    """Speaks MCP to an endpoint, and knows tasks.

    Parameters
    ----------
    url
        The endpoint.
    headers
        More of them: credentials.
    """

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        self._url = url
        self._headers = dict(headers or {})

    def post(self, method: str, mcp_name: str | None = None, /, **params: Any) -> Answer:
        """One message."""
        extensions = {"io.modelcontextprotocol/tasks": {}}
        meta = {
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "extensions": extensions},
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": VERSION,
            "mcp-method": method,
            **({} if mcp_name is None else {"mcp-name": mcp_name}),
            **self._headers,
        }
        return send("POST", self._url, headers, json.dumps(body).encode())

    def result(self, method: str, mcp_name: str | None = None, /, **params: Any) -> dict[str, Any]:
        """The result of a message that is served."""
        answer = self.post(method, mcp_name, **params)
        assert answer.status == 200, (answer.status, answer.body[:500])
        result: dict[str, Any] = answer.json["result"]
        return result

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """``tools/call``."""
        return self.result("tools/call", tool, name=tool, arguments=arguments)

    def get(self, task: str) -> dict[str, Any]:
        """``tasks/get``."""
        return self.result("tasks/get", task, taskId=task)

    def answer(self, task: str, **answers: Any) -> None:
        """``tasks/update`` with accepted questions."""
        given = {key: {"action": "accept", "content": content} for key, content in answers.items()}
        self.result("tasks/update", task, taskId=task, inputResponses=given)

    def until(self, task: str, *statuses: str) -> dict[str, Any]:
        """The task once it stands so; polled as it asks to be."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            current = self.get(task)
            if current["status"] in statuses:
                return current
            assert time.monotonic() < deadline, current
            time.sleep(current["pollIntervalMs"] / 1000)
