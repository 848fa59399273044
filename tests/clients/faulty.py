"""A proxy that spoils the first poll of every task: for what a client does when one answer does not arrive."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import urlsplit

Fault = Literal["502", "cut"]

_HOP_BY_HOP = frozenset({"connection", "host", "keep-alive", "transfer-encoding", "content-length"})


class Faulty:
    """What went through the proxy.

    Parameters
    ----------
    url
        The proxy's own MCP endpoint.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.methods: list[str] = []
        self.spoiled: list[str] = []

    def spoils(self, message: Any) -> bool:
        """Note a message, and say whether its answer is the first one to a poll of its task."""
        if not isinstance(message, dict):
            return False
        self.methods.append(message.get("method", ""))
        task_id = polled(message)
        if task_id is None or task_id in self.spoiled:
            return False
        self.spoiled.append(task_id)
        return True


def polled(message: dict[str, Any]) -> str | None:
    """The task that a message asks about, by `tasks/get` or by the tool `task_status`."""
    params = message.get("params") or {}
    if message.get("method") == "tasks/get":
        return str(params.get("taskId"))
    if message.get("method") == "tools/call" and params.get("name") == "task_status":
        return str(params.get("arguments", {}).get("task_id"))
    return None


@contextmanager
def faulty(target: str, fault: Fault) -> Iterator[Faulty]:
    """Stand in front of a server.

    Parameters
    ----------
    target
        Its MCP endpoint.
    fault
        Answer with 502, as a gateway does, or cut the connection in the middle of the answer.

    Yields
    ------
    Faulty
        Where to connect, and what was seen.
    """
    upstream = urlsplit(target)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            spoiled = seen.spoils(json.loads(body) if body else None)
            if spoiled and fault == "502":
                self.reply(502, {"Content-Type": "application/json"}, b'{"message": "Internal server error"}')
                return
            connection = http.client.HTTPConnection(str(upstream.hostname), upstream.port or 80, timeout=60)
            try:
                kept = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
                connection.request(self.command, self.path, body or None, kept)
                answer = connection.getresponse()
                content = answer.read()
                headers = {name: value for name, value in answer.getheaders() if name.lower() not in _HOP_BY_HOP}
            finally:
                connection.close()
            self.reply(answer.status, headers, content, cut=spoiled)

        do_POST = do_GET = do_DELETE = forward

        def reply(self, status: int, headers: dict[str, str], content: bytes, *, cut: bool = False) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if cut else content)
            if cut:
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    seen = Faulty(f"http://127.0.0.1:{server.server_address[1]}{upstream.path}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
