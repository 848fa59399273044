"""The local front over the live deployment, on a port of this machine, and what must hold for any bytes it gets."""

from __future__ import annotations

import json
import logging
import re
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from local.front import Front
from tests.fuzz.bench import FORBIDDEN, Bench, Errors, bench, message_in
from tests.fuzz.events import meaning, plain_body

OURS_TO_REFUSE = frozenset({501, 505})
"""Statuses of the five hundreds that tell a client of its own fault: a method, a coding or a version unknown here."""

_STATUS_LINE = re.compile(rb"HTTP/1\.1 ([1-5][0-9]{2}) [ -~]*\r\n")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)\r\n")


@dataclass(frozen=True)
class Response:
    """One response, as it came."""

    status: int
    headers: dict[str, str]
    body: bytes


class Watched(Front):
    """A front that tells what broke a connection."""

    broken: list[BaseException]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep what is no fault of the network."""
        error = sys.exception()
        if error is not None and not isinstance(error, OSError):
            self.broken.append(error)


class Served:
    """The front, alive.

    Parameters
    ----------
    live
        The deployment behind it.
    """

    def __init__(self, live: Bench) -> None:
        self.live = live
        self.errors = Errors()
        self.failures: list[AssertionError] = []
        self.reached = 0
        listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = listener.getsockname()[1]
        self.front = Watched(listener, self._handle)
        self.front.broken = []
        self._thread = threading.Thread(target=self.front.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        logging.getLogger("taskrail.local").addHandler(self.errors)

    def close(self) -> None:
        """End it."""
        logging.getLogger("taskrail.local").removeHandler(self.errors)
        self.front.shutdown()
        self.front.server_close()
        self._thread.join()

    def _handle(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        """The real handler, each of its answers checked."""
        self.reached += 1
        try:
            return self.live.send(event, meaning(plain_body(event)), event["headers"])
        except AssertionError as failure:
            self.failures.append(failure)
            raise

    def send(self, data: bytes) -> list[Response]:
        """Send bytes on a connection of their own, and check everything that comes back."""
        answer = self._exchange(data)
        for failures in (self.failures, self.front.broken):
            if failures:
                raise failures.pop()  # type: ignore[attr-defined]
        errors, self.errors.records = self.errors.records, []
        assert not errors, errors[0].getMessage()
        responses = list(parsed(answer, may_be_head=b"HEAD" in data))
        for response in responses:
            check(response)
        return responses

    def _exchange(self, data: bytes) -> bytes:
        answer = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                while part := connection.recv(65_536):
                    answer += part
            except TimeoutError:
                raise AssertionError("the connection was neither answered nor closed") from None
            except OSError:
                # It may close while bytes are still coming: to a client that sends on after what it was to end with.
                pass
        return answer


@contextmanager
def served() -> Iterator[Served]:
    """A front over a live deployment, alive within the block."""
    with bench() as live:
        made = Served(live)
        try:
            yield made
        finally:
            made.close()


def parsed(data: bytes, *, may_be_head: bool) -> Iterator[Response]:
    """The responses in what came over a connection; every byte must belong to one."""
    while data:
        line = _STATUS_LINE.match(data)
        assert line is not None, data[:200]
        status, at = int(line[1]), line.end()
        headers: dict[str, str] = {}
        while not data.startswith(b"\r\n", at):
            field = _FIELD.match(data, at)
            assert field is not None, data[at : at + 200]
            name = field[1].decode().lower()
            assert name not in headers, f"{name} twice"
            headers[name] = field[2].decode("latin-1")
            at = field.end()
        data = data[at + 2 :]
        if status == 100:
            continue
        length = int(headers.get("content-length", "0"))
        # A response to HEAD tells a length and has no body.
        empty = may_be_head and length > 0 and (not data or data.startswith(b"HTTP/1.1 "))
        body, data = (b"", data) if empty else (data[:length], data[length:])
        assert empty or len(body) == length
        yield Response(status, headers, body)


def check(response: Response) -> None:
    """It is a response that this front may give: no fault of ours, JSON, and nothing of the inside."""
    assert response.status < 500 or response.status in OURS_TO_REFUSE, response
    if not response.body:
        assert response.status in (202, 204) or response.headers["content-length"] != "0", response
        return
    text = response.body.decode("utf-8")
    assert FORBIDDEN.search(text) is None, text[:500]
    if response.headers["content-type"] == "text/event-stream":
        return
    assert response.headers["content-type"] == "application/json"
    if "jsonrpc" in json.loads(text):
        message_in(text)
    else:
        assert set(json.loads(text)) == {"message"}
