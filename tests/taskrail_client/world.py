"""A client and a deployment in one process: faults by plan between them, and time that moves only by their pauses."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from taskrail.testing import Kit
from taskrail_client import Pace, Store, TaskrailClient

URL = "https://api.example.com/mcp"

NEVER_ARRIVED = ("refused", "429")
LOST = ("cut", "502", "503", "504", "garbage", "page", "half", "other id", "no result", "timeout", "-32603", "500")
"""Faults after the server has done its work: only its answer is lost."""

Plan = Callable[[str, int], str | None]
"""From a method and how often it came before, to a fault, or None."""


def never(method: str, count: int) -> str | None:
    """No fault."""
    return None


class Wire(httpx2.AsyncBaseTransport):
    """HTTP without a network.

    Parameters
    ----------
    kit
        The deployment.
    plan
        Which request meets which fault.
    works_after
        After how many polls the work that waits happens.
    """

    def __init__(self, kit: Kit, plan: Plan = never, works_after: int = 2) -> None:
        self.kit = kit
        self.plan = plan
        self.works_after = works_after
        self.sent: list[tuple[str, str | None]] = []
        self.requests: list[httpx2.Request] = []
        self.answers: dict[str, Callable[[dict[str, Any]], httpx2.Response | None]] = {}
        """Answers in the server's place, by method; None lets the server answer."""

    def count(self, method: str) -> int:
        """How many requests of a method there were."""
        return sum(sent == method for sent, _ in self.sent)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request through."""
        message = json.loads(request.content)
        method = message["method"]
        fault = self.plan(method, self.count(method))
        self.sent.append((method, fault))
        self.requests.append(request)
        if fault == "refused":
            raise httpx2.ConnectError("refused")
        if fault == "429":
            return httpx2.Response(429, json={"message": "Too Many Requests"})
        if (answer := self.answers.get(method)) is not None and (response := answer(message)) is not None:
            return response
        reply = self.kit.post(request.content.decode(), dict(request.headers))
        if method == "tasks/get" and self.count(method) % self.works_after == 0:
            self.kit.run()
        if fault is not None:
            return spoiled(fault, message["id"], reply["body"])
        return httpx2.Response(reply["statusCode"], headers=reply["headers"], content=reply.get("body") or "")


def spoiled(fault: str, request_id: object, body: str) -> httpx2.Response:
    """What comes in place of an answer."""
    head = {"content-type": "application/json"}
    match fault:
        case "cut":
            raise httpx2.RemoteProtocolError("the peer closed the connection")
        case "timeout":
            raise httpx2.ReadTimeout("no answer in time")
        case "502" | "503" | "504":
            return httpx2.Response(int(fault), text="<html>Bad gateway</html>", headers={"content-type": "text/html"})
        case "500":
            return httpx2.Response(500, json={"message": "Internal Server Error"})
        case "garbage":
            return httpx2.Response(200, headers=head, content=b"\x00\xff{{{")
        case "page":
            return httpx2.Response(200, headers={"content-type": "text/html"}, content="<html>Please log in</html>")
        case "half":
            return httpx2.Response(200, headers=head, content=body[: len(body) // 2])
        case "other id":
            return httpx2.Response(200, json={"jsonrpc": "2.0", "id": 987_654, "result": {"resultType": "complete"}})
        case "no result":
            return httpx2.Response(200, json={"jsonrpc": "2.0", "id": request_id, "result": {"resultType": "complete"}})
        case "-32603":
            error = {"code": -32603, "message": "Internal error"}
            return httpx2.Response(500, json={"jsonrpc": "2.0", "id": request_id, "error": error})
    raise AssertionError(fault)


class World:
    """One user's machine and one deployment.

    Parameters
    ----------
    kit
        The deployment.
    folder
        Where the machine keeps its store.
    """

    def __init__(self, kit: Kit, folder: Path) -> None:
        self.kit = kit
        self.wire = Wire(kit)
        self.path = folder / "tasks.sqlite3"
        self.file = folder / "lines"
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        """Let that much time pass at once; of long pauses only a part, or the work would run out of time."""
        assert len(self.slept) < 2_000, "the client never stops"
        self.slept.append(seconds)
        self.kit.clock.advance(round(min(seconds, 5.0) * 1000))

    def store(self) -> Store:
        """The store, opened once more."""
        return Store(self.path, now=self.kit.clock.now)

    @asynccontextmanager
    async def client(self, *, listen: bool = False, **more: Any) -> AsyncIterator[TaskrailClient]:
        """A client, as a new process would make it."""
        store = self.store()
        try:
            async with TaskrailClient(
                URL, store=store, pace=Pace(sleep=self.sleep), listen=listen, transport=self.wire, **more
            ) as client:
                yield client
        finally:
            store.close()

    def lines(self) -> list[str]:
        """Every run of `tally`."""
        return self.file.read_text().splitlines() if self.file.exists() else []


@pytest.fixture(scope="package")
def deployment() -> Iterator[Kit]:
    """One deployment for many tests."""
    from taskrail.testing import harness
    from tests.taskrail_client.catalogue import server

    with harness(server) as kit:
        yield kit


@pytest.fixture
def world(deployment: Kit, tmp_path: Path) -> World:
    """A machine and a deployment as if both were new."""
    deployment.clear()
    deployment.clock.on_sleep = lambda: None
    return World(deployment, tmp_path)
