"""What moto needs before it can stand in for DynamoDB under real threads. Private seams: one version only."""

from __future__ import annotations

import threading
from importlib.metadata import PackageNotFoundError, version
from typing import Any

MOTO = "5.2.5"


class WrongMoto(Exception):
    """The installed moto is not the one that the patches were written for."""


def check() -> None:
    """Refuse another version of moto.

    Raises
    ------
    WrongMoto
        Another version is installed.
    """
    try:
        found = version("moto")
    except PackageNotFoundError:
        found = "none"
    if found != MOTO:
        raise WrongMoto(f"the local stack needs moto {MOTO} and found {found}: pip install -r requirements/local.txt")


def apply() -> None:
    """Patch moto in this process.

    Raises
    ------
    WrongMoto
        Another version is installed.
    """
    check()
    _one_dynamodb_call_at_a_time()
    _keep_connections()


def _one_dynamodb_call_at_a_time() -> None:
    """moto checks a condition and writes in two steps: two threads can both find it true. AWS's items cannot."""
    from moto.dynamodb.responses import DynamoHandler

    lock = threading.RLock()
    original = DynamoHandler.call_action

    def call_action(self: Any) -> Any:
        with lock:
            return original(self)

    DynamoHandler.call_action = call_action  # type: ignore[method-assign]


def _keep_connections() -> None:
    """moto's server closes after every answer, so that every call of a client pays for a connection."""
    from moto.moto_server.werkzeug_app import MotoRequestHandler

    MotoRequestHandler.protocol_version = "HTTP/1.1"
    MotoRequestHandler.disable_nagle_algorithm = True
