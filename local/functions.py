"""The Lambda functions of workflows, in a process of their own: `local.aws` forwards invocations to it.

It also makes the state machines, which loads the interpreter in `local.aws`, and then says in the stack's
directory which there are. A function that fails shows its trace in the terminal and fails its state.
"""

from __future__ import annotations

import json
import logging
import re
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from uuid import uuid4

from local.child import Wiring, vanish, when_cut
from local.http_event import Invocation
from local.machines import (
    REPORT,
    Function,
    Machine,
    Registry,
    Unusable,
    create,
    function_of,
    machine_of,
    workflows_of,
)
from local.stack import HOST, Stack
from taskrail import clock
from taskrail.errors import TaskrailError

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient

    from taskrail.runtime import Runtime

LONGEST_MS = 900_000
"""How long a function may take, in milliseconds: as long as any Lambda function."""

LARGEST = 6_000_000
"""Bytes of a payload (Lambda, quotas, synchronous invocation)."""

_PATH = re.compile(r"/2015-03-31/functions/([^/?]+)/invocations")

log = logging.getLogger("taskrail.local")


class Functions(ThreadingHTTPServer):
    """Serves the Invoke operation of the Lambda API.

    Parameters
    ----------
    listener
        A socket that listens already.
    functions
        By name.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, listener: socket.socket, functions: Mapping[str, Function]) -> None:
        super().__init__(listener.getsockname(), _Exchange, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.functions = functions
        self.host = f"{HOST}:{listener.getsockname()[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection broke: nothing is left to say to the other side."""
        log.debug("a connection broke", exc_info=True)

    def invoke(self, name: str, payload: bytes) -> tuple[bytes, bool]:
        """Invoke a function; its JSON, and whether it raised.

        Raises
        ------
        KeyError
            There is no function of that name.
        """
        function = self.functions[name]
        time = clock.SystemClock()
        try:
            event = json.loads(payload or b"{}")
            returned = function(event, Invocation(str(uuid4()), time, within_ms=LONGEST_MS))
            return json.dumps(returned, allow_nan=False).encode(), False
        except TaskrailError as error:
            # Raised on purpose: the state that invoked the function fails with the error's name and text.
            log.info("the function %s refused: %s", name, error)
            return _error(error), True
        except Exception as error:
            log.exception("the function %s failed", name)
            return _error(error), True


class _Exchange(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Functions

    def do_POST(self) -> None:
        """Invoke; pages of a browser, which name their origin or another host, may not."""
        found = _PATH.fullmatch(self.path)
        length = self.headers.get("content-length", "")
        if "origin" in self.headers or self.headers.get("host") != self.server.host:
            return self._answer(HTTPStatus.FORBIDDEN, b"{}")
        if not length.isdecimal() or int(length) > LARGEST:
            self.close_connection = True
            return self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, b"{}")
        payload = self.rfile.read(int(length))
        name = unquote(found[1]).rpartition(":")[2] if found else ""
        try:
            body, failed = self.server.invoke(name, payload)
        except KeyError:
            return self._answer(HTTPStatus.NOT_FOUND, b"{}")
        return self._answer(HTTPStatus.OK, body, failed=failed)

    def _answer(self, status: HTTPStatus, body: bytes, *, failed: bool = False) -> None:
        self.send_response_only(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if failed:
            self.send_header("X-Amz-Function-Error", "Unhandled")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: what a function has to say it says itself."""


def _error(error: Exception) -> bytes:
    """What Lambda answers when a function raised."""
    return json.dumps({"errorMessage": str(error), "errorType": type(error).__name__, "stackTrace": []}).encode()


def machines_of(runtime: Runtime) -> tuple[dict[str, Machine], dict[str, Function], dict[str, str]]:
    """The machines and the functions of a catalogue's workflows, and why some have none; by tool, by name, by tool."""
    machines: dict[str, Machine] = {}
    functions: dict[str, Function] = {}
    unusable: dict[str, str] = {}
    for tool, workflow in workflows_of(runtime.server.tools.values()).items():
        try:
            machine = machine_of(tool, workflow)
            functions |= {name: function_of(target) for name, target in machine.functions.items()}
            machines[tool] = machine
        except Unusable as problem:
            unusable[tool] = str(problem)
    return machines, functions, unusable


def publish(client: SFNClient, machines: Mapping[str, Machine], unusable: dict[str, str], stack: Stack) -> None:
    """Make the state machines and say which there are, and in the terminal which there are not."""
    arns: dict[str, str] = {}
    for tool, machine in machines.items():
        try:
            arns[tool] = create(client, machine)
        except Unusable as problem:
            unusable = unusable | {tool: str(problem)}
    for why in unusable.values():
        log.warning("a workflow cannot run on this machine: %s", why)
    Registry(arns, unusable).save(stack.machines)


def main(argv: Sequence[str]) -> None:
    """Be the functions of a stack."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    wiring = Wiring.of(argv)
    stack = wiring.stack
    when_cut(wiring.lifeline, lambda: vanish(stack))
    logging.basicConfig(
        format="%(message)s", level=logging.INFO if stack.verbose else logging.WARNING, stream=sys.stderr
    )
    logging.getLogger("botocore").setLevel(logging.WARNING)
    import boto3
    from botocore.config import Config

    from handlers.report import bind
    from local.assemble import runtime_of

    runtime = runtime_of(stack)
    machines, functions, unusable = machines_of(runtime)
    server = Functions(socket.socket(fileno=wiring.listener), {**functions, REPORT: bind(runtime)})
    threading.Thread(target=server.serve_forever, name="functions", daemon=True).start()
    # Its first call loads the interpreter, which may take a busy machine a while.
    publish(boto3.client("stepfunctions", config=Config(read_timeout=60)), machines, unusable, stack)
    wiring.ready()
    threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1:])
