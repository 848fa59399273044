"""DynamoDB by two independent hands, each atomic under threads: moto with a lock around it, and MiniStack."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from moto import mock_aws

from taskrail.testing import TABLE
from tests.local_help import wait_for

HOST = "127.0.0.1"
REGION = "eu-central-1"
MINISTACK = Path(__file__).resolve().parents[2] / ".venv-ministack" / "bin" / "ministack"
"""Made by `make test-races`: MiniStack needs another botocore than the kit's tests."""

_SWITCH_EVERY_S = 1e-4
"""Far more often than usual, so that threads meet in the middle of things."""


@contextmanager
def moto() -> Iterator[Any]:
    """A client of moto in this process.

    By itself moto checks a condition and writes in two steps, between which another thread may come.
    """
    from moto.dynamodb.responses import DynamoHandler

    lock, unguarded = threading.Lock(), DynamoHandler.call_action

    def guarded(handler: Any) -> Any:
        with lock:
            return unguarded(handler)

    with mock_aws(), pytest.MonkeyPatch.context() as patch, _restless_threads():
        patch.setattr(DynamoHandler, "call_action", guarded)
        yield _with_table(boto3.client("dynamodb", region_name=REGION))


@contextmanager
def ministack() -> Iterator[Any]:
    """A client of MiniStack, a process on this machine that listens to nobody else's."""
    assert MINISTACK.exists(), f"{MINISTACK} is missing: `make test-races` installs it"
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="taskrail-ministack-") as directory, _restless_threads():
        environ = {**os.environ, "BIND_HOST": HOST, "GATEWAY_PORT": str(port), "TMPDIR": directory}
        with open(Path(directory, "log"), "wb") as log:
            process = subprocess.Popen([MINISTACK], cwd=directory, env=environ, stdout=log, stderr=log)
        try:
            wait_for(lambda: process.poll() is not None or _listens(port), 60, "MiniStack's readiness")
            assert process.poll() is None, Path(directory, "log").read_text()
            config = Config(max_pool_connections=50, proxies={})
            client: Any = boto3.client(
                "dynamodb", region_name=REGION, endpoint_url=f"http://{HOST}:{port}", config=config
            )
            yield _with_table(client)
            client.close()
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _with_table(client: Any) -> Any:
    client.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return client


def _listens(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True


@contextmanager
def _restless_threads() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_EVERY_S)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
