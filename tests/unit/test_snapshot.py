"""Loading the API function makes nothing that a second process must not have: it may start from a snapshot.

Lambda restores many processes from one snapshot of the loaded function (Lambda Developer Guide, "Handling uniqueness
with Lambda SnapStart"). Whatever was drawn, opened or fetched before it was taken, all of them would share.
"""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from botocore.client import BaseClient

from catalogue import server
from handlers.mcp_api import bind
from taskrail.ids import RandomIds
from taskrail.runtime import from_environment
from taskrail.wire.protocol import SUPPORTED_VERSIONS

VERSION = SUPPORTED_VERSIONS[0]

ENVIRONMENT = {
    "TASKRAIL_TABLE": "tasks",
    "TASKRAIL_BUCKET": "payloads",
    "TASKRAIL_SECRET_ARN": "arn:aws:secretsmanager:eu-central-1:111122223333:secret:taskrail",
    "TASKRAIL_FUNCTIONS": '{"count_words": "arn:aws:lambda:eu-central-1:111122223333:function:count"}',
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "eu-central-1",
}


def never(what: str) -> Callable[..., NoReturn]:
    """Something that must not be done."""

    def fail(*args: Any, **keywords: Any) -> NoReturn:
        raise AssertionError(f"{what} while the function was loaded")

    return fail


def test_loading_draws_nothing_opens_nothing_and_fetches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with monkeypatch.context() as loading:
        loading.setattr(BaseClient, "_make_api_call", never("AWS was called"))
        loading.setattr(socket.socket, "connect", never("a connection was opened"))
        for module, name in ((random, "_urandom"), (os, "urandom")):
            loading.setattr(module, name, never("randomness was drawn"))
        for name in ("task_id", "nonce"):
            loading.setattr(RandomIds, name, never("an id was made"))
        handler = bind(from_environment(server))
    listed = handler(request("tools/list"), None)
    assert listed["statusCode"] == 200


def test_ids_are_drawn_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = RandomIds()
    drawn: list[int] = []

    def urandom(size: int) -> bytes:
        drawn.append(size)
        return bytes([len(drawn)] * size)

    monkeypatch.setattr(random, "_urandom", urandom)
    assert ids.task_id() != ids.task_id()
    ids.nonce()
    assert drawn == [16, 16, 8]


def request(method: str) -> dict[str, Any]:
    """An event of an HTTP API with a message without parameters."""
    meta = f'"io.modelcontextprotocol/protocolVersion": "{VERSION}", "io.modelcontextprotocol/clientCapabilities": {{}}'
    body = f'{{"jsonrpc": "2.0", "id": 1, "method": "{method}", "params": {{"_meta": {{{meta}}}}}}}'
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": VERSION,
        "mcp-method": method,
    }
    return {
        "version": "2.0",
        "rawPath": "/mcp",
        "rawQueryString": "",
        "headers": headers,
        "requestContext": {"http": {"method": "POST", "path": "/mcp"}},
        "body": body,
        "isBase64Encoded": False,
    }
