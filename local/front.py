"""The API process: HTTP on 127.0.0.1, each request handed to its handler as API Gateway would.

It listens for this machine only, and believes only this machine's own names and pages: a page of
the web that reaches a port of its visitor's machine is refused by its ``Host`` or its ``Origin``.
"""

from __future__ import annotations

import io
import json
import logging
import os
import re
import signal
import socket
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import SplitResult, urlsplit
from uuid import uuid4

from local.child import Wiring, vanish, when_cut
from local.http_event import Incoming, Invocation, Outgoing, Unsendable, event_of, response_of
from local.machines import workflows_of
from local.stack import HOST, REPORT_PATH
from taskrail.caller import Caller
from taskrail.clock import SystemClock
from taskrail.tools import Tool
from taskrail.work import Container, Workflow

MOST_BODY = 10 * 1024 * 1024
"""Bytes of a body (API Gateway, "Quotas for HTTP APIs", payload size)."""

MOST_HEAD = 10_240
"""Bytes of the request line and all headers (same page)."""

READ_WITHIN_MS = 30_000
"""Milliseconds from the request line to the last byte of the body."""

IDLE_MS = 75_000
"""Milliseconds that a connection may wait for its next request."""

CALLER = "local"
"""Owner of all tasks: whoever reaches this machine's own port is its one, known, developer."""

_DRAIN_MS = 2_000
_CHUNK_HEAD = 256

Handler = Callable[[dict[str, Any], Any], Any]
log = logging.getLogger("taskrail.local")


class Refusal(Exception):
    """A request that goes no further; answered as API Gateway answers, and the connection is closed.

    Parameters
    ----------
    status
        HTTP status.
    message
        What was wrong, for the person who reads it.
    """

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Front(ThreadingHTTPServer):
    """The server.

    Parameters
    ----------
    listener
        A socket that listens already.
    handler
        Takes an event and a context.
    verbose
        Whether each request is shown.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, listener: socket.socket, handler: Handler, *, verbose: bool = False) -> None:
        super().__init__(listener.getsockname(), Exchange, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.handler = handler
        self.verbose = verbose
        self.clock = SystemClock()
        port = listener.getsockname()[1]
        names = (HOST, "localhost", "[::1]")
        self.hosts = frozenset(f"{name}:{port}" for name in names) | (frozenset(names) if port == 80 else frozenset())

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection broke: the other side is gone, and nothing is left to say to it."""
        log.debug("a connection broke", exc_info=True)


class _Patient(io.RawIOBase):
    """Reads a socket until a moment that is set per request, however slowly the bytes drip."""

    def __init__(self, connection: socket.socket, clock: SystemClock) -> None:
        self._connection = connection
        self._clock = clock
        self._until = 0

    def allow(self, milliseconds: int) -> None:
        """From now on, wait that long at most."""
        self._until = self._clock.now() + milliseconds

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what there is; TimeoutError once the time is over."""
        left = self._until - self._clock.now()
        if left <= 0:
            raise TimeoutError("The request took too long.")
        self._connection.settimeout(left / 1000)
        return self._connection.recv_into(buffer)


class Exchange(BaseHTTPRequestHandler):
    """One connection, and the requests on it."""

    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.1"
    server_version = "taskrail"
    sys_version = ""
    disable_nagle_algorithm = True
    wbufsize = 65_536
    server: Front

    def setup(self) -> None:
        """Prepare to read with a limit on time."""
        super().setup()
        self._reader = _Patient(self.connection, self.server.clock)
        self.rfile.close()
        self.rfile = io.BufferedReader(self._reader, 65_536)

    def handle_one_request(self) -> None:
        """Wait for a request and answer it."""
        self._reader.allow(IDLE_MS)
        super().handle_one_request()

    def parse_request(self) -> bool:
        """Read the head of the request, whose first line is here."""
        self._reader.allow(READ_WITHIN_MS)
        if not super().parse_request():
            return False
        if self.request_version == "HTTP/0.9":
            self.send_error(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
            return False
        return True

    def handle_expect_100(self) -> bool:
        """Say nothing yet: whether the body is wanted shows after the head was checked."""
        return True

    def exchange(self) -> None:
        """Check, invoke, answer."""
        try:
            request = self._admit()
        except TimeoutError:
            self._refuse(Refusal(HTTPStatus.REQUEST_TIMEOUT, "The request took too long to arrive."))
        except Refusal as refusal:
            self._refuse(refusal)
        else:
            self._send(self._invoke(request))

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = exchange

    def _admit(self) -> Incoming:
        if self.headers.defects or self.headers.get_payload() or any("\n" in value for value in self.headers.values()):
            raise Refusal(HTTPStatus.BAD_REQUEST, "A line of the head is no header.")
        if sum(len(name) + len(value) + 4 for name, value in self.headers.items()) + len(self.requestline) > MOST_HEAD:
            raise Refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"The headers are longer than {MOST_HEAD} bytes.")
        hosts = self.headers.get_all("host", [])
        if len(hosts) != 1:
            raise Refusal(HTTPStatus.BAD_REQUEST, "A request names its Host once.")
        target = self.path
        if not target.startswith("/"):
            # The absolute form of a target overrides Host (RFC 9112, section 3.2.2).
            parts = _absolute(target)
            if parts is None or parts.scheme.lower() != "http" or not parts.netloc:
                raise Refusal(HTTPStatus.BAD_REQUEST, "The target of the request is no path.")
            hosts.append(parts.netloc)
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if any(host.strip().lower() not in self.server.hosts for host in hosts):
            raise Refusal(HTTPStatus.FORBIDDEN, "This server answers only to names of this machine (Host).")
        if not all(_is_this_machine(origin) for origin in self.headers.get_all("origin", [])):
            raise Refusal(HTTPStatus.FORBIDDEN, "Pages of other machines may not call this server (Origin).")
        path, _, query = target.partition("?")
        return Incoming(
            method=self.command,
            path=path,
            query=query,
            headers=tuple((name, value.strip()) for name, value in self.headers.items()),
            body=self._body(),
            protocol=self.request_version,
            peer=str(self.client_address[0]),
        )

    def _body(self) -> bytes:
        lengths = self.headers.get_all("content-length", [])
        codings = self.headers.get_all("transfer-encoding", [])
        if codings and (lengths or self.request_version != "HTTP/1.1"):
            raise Refusal(HTTPStatus.BAD_REQUEST, "The length of the body is told in two ways.")
        if codings and ",".join(codings).strip().lower() != "chunked":
            raise Refusal(HTTPStatus.NOT_IMPLEMENTED, "Of transfer codings only `chunked` is understood.")
        if len(set(lengths)) > 1 or not all(re.fullmatch(r"[0-9]{1,18}", length.strip()) for length in lengths):
            raise Refusal(HTTPStatus.BAD_REQUEST, "Content-Length is no number.")
        length = int(lengths[0]) if lengths else 0
        if length > MOST_BODY:
            raise _too_large()
        if self.headers.get("expect", "").strip().lower() == "100-continue" and (length or codings):
            self.send_response_only(HTTPStatus.CONTINUE)
            self.end_headers()
            self.wfile.flush()
        return self._chunks() if codings else self._exactly(length)

    def _chunks(self) -> bytes:
        body = bytearray()
        while True:
            size_text = self._line().split(b";", 1)[0].strip()
            if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", size_text):
                raise Refusal(HTTPStatus.BAD_REQUEST, "A chunk of the body has no size.")
            size = int(size_text, 16)
            if len(body) + size > MOST_BODY:
                raise _too_large()
            if size == 0:
                break
            body += self._exactly(size)
            if self._line():
                raise Refusal(HTTPStatus.BAD_REQUEST, "A chunk of the body is longer than its size.")
        trailers = 0
        while line := self._line():
            trailers += len(line)
            if trailers > MOST_HEAD:
                raise Refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "The trailers are too long.")
        return bytes(body)

    def _line(self) -> bytes:
        line = self.rfile.readline(_CHUNK_HEAD + 2)
        if not line.endswith(b"\n"):
            raise Refusal(HTTPStatus.BAD_REQUEST, "The body ends too early, or a chunk's head is too long.")
        return line.rstrip(b"\r\n")

    def _exactly(self, length: int) -> bytes:
        data = self.rfile.read(length) if length else b""
        if len(data) != length:
            raise Refusal(HTTPStatus.BAD_REQUEST, "The body is shorter than its length.")
        return data

    def _invoke(self, request: Incoming) -> Outgoing:
        request_id = str(uuid4())
        event = event_of(request, request_id, self.server.clock.now())
        try:
            return response_of(self.server.handler(event, Invocation(request_id, self.server.clock)))
        except Unsendable as fault:
            log.error("the handler's answer cannot be sent: %s", fault)
        except Exception:
            log.exception("the handler failed")
        return _answer(HTTPStatus.INTERNAL_SERVER_ERROR, "Internal Server Error")

    def _refuse(self, refusal: Refusal) -> None:
        self.close_connection = True
        self._send(_answer(refusal.status, refusal.message))
        # Closing with unread bytes resets the connection, and the answer with it: read on for a moment.
        try:
            self.connection.shutdown(socket.SHUT_WR)
            self._reader.allow(_DRAIN_MS)
            while self.rfile.read1(65_536):
                pass
        except OSError:
            pass

    def _send(self, response: Outgoing) -> None:
        self.send_response_only(response.status)
        self.send_header("Date", self.date_time_string())
        for name, value in response.headers:
            self.send_header(name, value)
        chunked = response.parts is not None and self.request_version == "HTTP/1.1"
        if response.parts is not None:
            # Without chunks, the end of the connection is the end of the body.
            self.close_connection = self.close_connection or not chunked
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif response.parts is None and response.status not in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
            self.send_header("Content-Length", str(len(response.body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if response.parts is not None:
            with closing(response.parts):
                self._stream(response.parts, chunked=chunked)
        elif self.command != "HEAD":
            self.wfile.write(response.body)
        self.connection.settimeout(READ_WITHIN_MS / 1000)
        self.wfile.flush()
        if self.server.verbose:
            log.info(
                "%s %s %s", self.command or "-", getattr(self, "path", "-").partition("?")[0], int(response.status)
            )

    def _stream(self, parts: Generator[bytes, None, None], *, chunked: bool) -> None:
        """Send parts of a body as they come, until they end or nobody listens any more."""
        self.connection.settimeout(READ_WITHIN_MS / 1000)
        for part in parts:
            if not part and self._abandoned():
                self.close_connection = True
                return
            if part:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part) if chunked else part)
                self.wfile.flush()
        if chunked:
            self.wfile.write(b"0\r\n\r\n")

    def _abandoned(self) -> bool:
        """Whether the other side has closed the connection."""
        self.connection.setblocking(False)
        try:
            return not self.connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True
        finally:
            self.connection.settimeout(READ_WITHIN_MS / 1000)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what `http.server` could not read; never with its words, which repeat what was sent."""
        status = HTTPStatus(code)
        self.command = getattr(self, "command", None) or ""
        # To a request that calls itself HTTP/0.9 it would answer without a status line.
        self.request_version = self.default_request_version
        self._refuse(Refusal(status, status.phrase))

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: `_send` tells what there is to tell."""


def _answer(status: HTTPStatus, message: str) -> Outgoing:
    body = json.dumps({"message": message}).encode()
    return Outgoing(status, (("Content-Type", "application/json"),), body)


def _too_large() -> Refusal:
    return Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The body is longer than {MOST_BODY} bytes.")


def _absolute(target: str) -> SplitResult | None:
    try:
        return urlsplit(target)
    except ValueError:
        return None


def _is_this_machine(origin: str) -> bool:
    try:
        parts = urlsplit(origin.strip())
        return parts.scheme in ("http", "https") and parts.hostname in (HOST, "localhost", "::1") and parts.port != 0
    except ValueError:
        return False


def routed(otherwise: Handler, routes: Mapping[str, Handler]) -> Handler:
    """A handler that hands each event to the one of its route, as API Gateway's routes do.

    Parameters
    ----------
    otherwise
        Takes what no route takes.
    routes
        Handlers by method and path.
    """

    def handle(event: dict[str, Any], context: Any) -> Any:
        http = event["requestContext"]["http"]
        return routes.get(f"{http['method']} {http['path']}", otherwise)(event, context)

    return handle


def developer(tools: Iterable[Tool]) -> Caller:
    """Whoever calls: known, and allowed whatever any of these tools demands."""
    return Caller(CALLER, scopes=frozenset(scope for tool in tools for scope in tool.scopes))


def facts_of(tool: Tool) -> dict[str, Any]:
    """What the start-up text says of a tool."""
    note = None
    if isinstance(tool.work, Workflow):
        note = "a state machine" if tool.work.definition else "a state machine in AWS: not on this machine"
    elif isinstance(tool.work, Container):
        note = "a container: here its command is a process"
        if not tool.work.command:
            note = "a container without command=: not on this machine"
    return {
        "name": tool.name,
        "mode": tool.mode,
        "engine": None if tool.runs_on is None else tool.runs_on.engine,
        "note": note,
    }


def main(argv: Sequence[str]) -> None:
    """Be the front of a stack."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    wiring = Wiring.of(argv)
    stack = wiring.stack
    when_cut(wiring.lifeline, lambda: vanish(stack))
    logging.basicConfig(
        format="%(message)s", level=logging.INFO if stack.verbose else logging.WARNING, stream=sys.stderr
    )
    logging.getLogger("botocore").setLevel(logging.WARNING)
    from local.assemble import CatalogueError, runtime_of

    try:
        runtime = runtime_of(stack)
    except CatalogueError as error:
        print(f"taskrail: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    from handlers import mcp_api, report

    caller = developer(runtime.server.tools.values())
    handler = routed(
        mcp_api.bind(runtime, identify=lambda event: caller, streams=True),
        {f"POST {REPORT_PATH}": report.bind(runtime)},
    )
    front = Front(socket.socket(fileno=wiring.listener), handler, verbose=stack.verbose)
    wiring.ready(
        name=runtime.server.name,
        workflows=bool(workflows_of(runtime.server.tools.values())),
        tools=[facts_of(tool) for tool in runtime.server.tools.values()],
    )
    front.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
