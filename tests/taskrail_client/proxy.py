"""A proxy on a port of its own that spoils what goes through it, by plan."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tests.taskrail_client.world import Plan, never

FAULTS = ("429", "502", "cut", "half", "garbage", "delay", "mute")

DELAY_SECONDS = 0.3


class Proxy(ThreadingHTTPServer):
    """The proxy.

    Parameters
    ----------
    upstream
        URL of the MCP endpoint behind it.
    plan
        Which request meets which fault.
    """

    daemon_threads = True

    def __init__(self, upstream: str, plan: Plan = never) -> None:
        super().__init__(("127.0.0.1", 0), _Exchange)
        parts = urlsplit(upstream)
        self.upstream, self.path = parts.netloc, parts.path
        self.plan = plan
        self.sent: list[tuple[str, str | None]] = []
        self.answered = threading.Event()
        """Set when a call was answered and the answer is on its way."""
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """URL of the MCP endpoint, spoiled."""
        return f"http://127.0.0.1:{self.server_port}{self.path}"

    def fault(self, method: str) -> str | None:
        """The fault of the next request."""
        with self._lock:
            fault = self.plan(method, sum(sent == method for sent, _ in self.sent))
            self.sent.append((method, fault))
            return fault

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client went away: what it is there for."""


class _Exchange(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        method = json.loads(body)["method"]
        fault = self.server.fault(method)
        if fault == "429":
            self._answer(429, b'{"message":"Too Many Requests"}')
            return
        connection = http.client.HTTPConnection(self.server.upstream, timeout=60)
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            connection.request("POST", self.path, body, headers)
            reply = connection.getresponse()
            status, kind, data = reply.status, reply.headers.get("content-type", ""), reply.read()
        finally:
            connection.close()
        match fault:
            case "502":
                self._answer(502, b"<html>Bad gateway</html>", "text/html")
            case "cut":
                self.close_connection = True
            case "half":
                self.close_connection = True
                self._head(status, kind, len(data))
                self.wfile.write(data[: len(data) // 2])
            case "garbage":
                self._answer(200, b"\x00\xff not json")
            case "mute":
                self._answer(200, b"")
            case _:
                if fault == "delay":
                    time.sleep(DELAY_SECONDS)
                self._answer(status, data, kind)
        if method == "tools/call":
            self.server.answered.set()

    def _answer(self, status: int, data: bytes, kind: str = "application/json") -> None:
        self._head(status, kind, len(data))
        self.wfile.write(data)
        self.wfile.flush()

    def _head(self, status: int, kind: str, length: int) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def proxied(upstream: str, plan: Plan = never) -> Iterator[Proxy]:
    """A proxy, for a while."""
    proxy = Proxy(upstream, plan)
    thread = threading.Thread(target=proxy.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()
