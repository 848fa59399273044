"""A call to AWS that hangs must not eat the 29 seconds after which API Gateway gives a request up.

The hung service is a socket on this machine that takes connections and never answers.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import botocore.config
import pytest

from handlers import mcp_api
from taskrail.errors import TASKS_EXTENSION
from taskrail.runtime import build, client
from taskrail.settings import Settings
from taskrail.testing import VERSION, QueueEngine
from tests.functional import sample_tools

BUDGET_S = 25
"""What a hung call may take in all: API Gateway's 29 s, less the cold start, the way and the answer."""
HURRY = 10
"""The client's own time-outs, divided by this, so that the test need not wait for them."""
SLACK_S = 5
"""What a busy machine may take beside the waiting."""

TASK_ID = "0123456789abcdef" * 2


def longest_pauses(tries: int) -> float:
    """Seconds that botocore's standard mode pauses at most: up to 1, 2, 4 … after a throttle, less after the rest."""
    return float(sum(2**tried for tried in range(tries - 1)))


class Hung:
    """A service that hangs."""

    def __init__(self) -> None:
        # The kernel completes connections up to the backlog; nobody ever takes them up.
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=50)
        self._socket.setblocking(False)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def connections(self) -> int:
        """How many connections have come since last asked."""
        count = 0
        while True:
            try:
                self._socket.accept()[0].close()
            except BlockingIOError:
                return count
            count += 1

    def close(self) -> None:
        """Be gone: from now on connections are refused."""
        self._socket.close()


@pytest.fixture
def hung() -> Iterator[Hung]:
    made = Hung()
    yield made
    made.close()


@pytest.fixture
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kit's clients, with the time-outs that they ask for made shorter."""
    real = botocore.config.Config

    def hurried(**options: Any) -> Any:
        for name in ("connect_timeout", "read_timeout"):
            if name in options:
                options[name] /= HURRY
        return real(**options)

    monkeypatch.setattr("botocore.config.Config", hurried)


def answer(url: str, method: str, mcp_name: str | None = None, /, **params: Any) -> tuple[dict[str, Any], float]:
    """The answer of a deployment whose DynamoDB is at that address, and the seconds that it took."""
    runtime = build(
        sample_tools.server,
        Settings(table="tasks", bucket="payloads", secret="a secret for tests only"),
        dynamodb=client("dynamodb", endpoint_url=url),
        s3=lambda: client("s3", endpoint_url=url),
        engines={"step_functions": QueueEngine()},
    )
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {TASKS_EXTENSION: {}}},
    }
    headers = {"content-type": "application/json", "mcp-protocol-version": VERSION, "mcp-method": method}
    event = {
        "version": "2.0",
        "rawPath": "/mcp",
        "headers": headers if mcp_name is None else {**headers, "mcp-name": mcp_name},
        "requestContext": {"http": {"method": "POST", "path": "/mcp"}, "stage": "$default"},
        "body": json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}),
        "isBase64Encoded": False,
    }
    handler = mcp_api.bind(runtime)
    began = time.monotonic()
    body: dict[str, Any] = json.loads(handler(event, None)["body"])
    return body, time.monotonic() - began


@pytest.mark.parametrize("service", ["dynamodb", "s3", "stepfunctions", "lambda"])
def test_every_try_of_a_call_hung_or_throttled_fits_into_the_budget(service: str) -> None:
    config = client(service).meta.config
    assert config.retries["mode"] == "standard"
    tries = config.retries["total_max_attempts"]
    assert tries > 1
    assert tries * (config.connect_timeout + config.read_timeout) + longest_pauses(tries) < BUDGET_S


@pytest.mark.parametrize("service", ["dynamodb", "s3", "stepfunctions", "lambda"])
def test_the_pauses_between_tries_are_as_long_as_reckoned(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from botocore.awsrequest import AWSResponse

    pauses: list[float] = []
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=pauses.append))
    made = client(service)
    throttled = b'{"__type": "ThrottlingException"}' if service != "s3" else b"<Error><Code>SlowDown</Code></Error>"

    def throttle(request: Any, **_: Any) -> AWSResponse:
        return AWSResponse(request.url, 503, {}, SimpleNamespace(stream=lambda **_: iter([throttled])))  # type: ignore[arg-type]

    made.meta.events.register_first("before-send", throttle)
    calls: dict[str, Callable[[], object]] = {
        "dynamodb": lambda: made.list_tables(),
        "s3": lambda: made.list_buckets(),
        "stepfunctions": lambda: made.list_state_machines(),
        "lambda": lambda: made.list_functions(),
    }
    with pytest.raises(made.exceptions.ClientError):
        calls[service]()
    tries = made.meta.config.retries["total_max_attempts"]
    assert len(pauses) == tries - 1
    assert sum(pauses) <= longest_pauses(tries)


def test_a_poll_of_a_table_that_hangs_fails_in_time(hung: Hung, in_a_hurry: None) -> None:
    body, took = answer(hung.url, "tasks/get", TASK_ID, taskId=TASK_ID)
    assert body["error"] == {"code": -32603, "message": "Internal error."}
    config = client("dynamodb").meta.config
    tries = config.retries["total_max_attempts"]
    assert hung.connections() == tries
    # Nothing is waited for but the tries, whose real length the formula above holds.
    assert tries * config.read_timeout <= took < tries * config.read_timeout + SLACK_S


def test_a_call_on_a_table_that_hangs_fails_in_time_and_starts_nothing(hung: Hung, in_a_hurry: None) -> None:
    body, took = answer(hung.url, "tools/call", "count", name="count", arguments={"items": ["a"]})
    assert body["error"] == {"code": -32603, "message": "Internal error."}
    assert took < BUDGET_S / HURRY + SLACK_S


def test_a_poll_of_a_table_that_refuses_connections_fails_at_once(hung: Hung, in_a_hurry: None) -> None:
    hung.close()
    body, took = answer(hung.url, "tasks/get", TASK_ID, taskId=TASK_ID)
    assert body["error"] == {"code": -32603, "message": "Internal error."}
    assert took < SLACK_S


@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
def test_discovery_answers_while_the_table_hangs(method: str, hung: Hung) -> None:
    body, took = answer(hung.url, method)
    assert "result" in body
    assert hung.connections() == 0
    assert took < SLACK_S


def test_an_inline_tool_answers_while_the_table_hangs(hung: Hung) -> None:
    body, _ = answer(hung.url, "tools/call", "greet", name="greet", arguments={"name": "Ada"})
    assert body["result"]["content"][0]["text"] == "Hello, Ada!"
    assert hung.connections() == 0
