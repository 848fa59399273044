"""Starts the processes of a local stack, watches them, and ends all of them.

::

    launcher ─┬─ aws          moto: DynamoDB, S3, executions; when it dies, the tasks are gone, and the stack ends
              ├─ supervisor ─── processes of jobs and containers, each a session of its own
              ├─ front        the API; started again when it dies
              ├─ events       tells the API's code how runs ended; started again when it dies
              └─ functions    the Lambda functions of workflows, if there are any; started again when it dies

The launcher owns the listening sockets: a process that is started again finds the connections made
meanwhile. It holds the only write end of the lifeline, whose end tells all others that it is gone,
even after SIGKILL.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local.child import NOTHING, Wiring, remove
from local.processes import alive, end_marked, end_session
from local.records import Records
from local.stack import HOST, Stack

READY_WITHIN = 60.0
END_WITHIN = 8.0
MOST_FAILURES = 5
"""How often in a row a process may die before it was ready; after that the stack ends."""

_LONGEST_SOCKET_PATH = 100


class CannotStart(Exception):
    """The stack cannot start; the message is one line that says why."""


@dataclass(frozen=True)
class Options:
    """What the command line asks for.

    Parameters
    ----------
    port
        Port of the front; 0 for a free one.
    catalogue
        Module that has the `server`.
    ready_file
        File that is written once the stack serves, or None.
    verbose
        Whether requests and ends of runs are shown.
    """

    port: int
    catalogue: str
    ready_file: Path | None = None
    verbose: bool = False


@dataclass
class _Child:
    """One kind of process, and the one of it that runs now."""

    module: str
    listener: socket.socket | None = None
    process: subprocess.Popen[bytes] | None = None
    ready: bool = False
    said: bytes = b""
    facts: dict[str, Any] = field(default_factory=dict)
    failures: int = 0

    @property
    def runs(self) -> bool:
        """Whether the process has not ended."""
        return self.process is not None and self.process.poll() is None


class Launcher:
    """One local stack, from start to end.

    Parameters
    ----------
    options
        What the command line asks for.
    say
        Shows a text to the person at the terminal.
    """

    def __init__(self, options: Options, say: Callable[[str], None]) -> None:
        self._options = options
        self._say = say
        self._news = asyncio.Event()
        self._told = False
        self._failed: str | None = None
        self._ending = False
        self._served = False
        self._signals = 0
        self._children: list[_Child] = []
        self._lifeline = (NOTHING, NOTHING)
        self.stack: Stack | None = None

    async def run(self, announce: Callable[[Stack, dict[str, Any]], str]) -> int:
        """Start, serve until a signal, end; the exit code.

        Parameters
        ----------
        announce
            Makes the start-up text from the stack and the front's facts.
        """
        loop = asyncio.get_running_loop()
        # Before anything exists that would have to be removed again.
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # nohup ignores SIGHUP for a process that is to outlive its terminal.
            if signal.getsignal(signum) is not signal.SIG_IGN or signum is not signal.SIGHUP:
                loop.add_signal_handler(signum, self._on_signal)
        loop.add_signal_handler(signal.SIGCHLD, self._on_child)
        try:
            with self._prepared() as stack:
                self.stack = stack
                try:
                    aws, supervisor, front, events, functions = self._children
                    for child in (aws, supervisor, front):
                        self._spawn(child)
                    if await self._ready(aws, supervisor, front):
                        # Nobody waits for it, and what is wrong with a catalogue is told once.
                        self._spawn(events)
                        if front.facts["workflows"]:
                            self._spawn(functions)
                        self._say(announce(stack, front.facts))
                        self._write_ready_file()
                        while not self._told:
                            await self._something_new()
                finally:
                    await self._end(stack)
        except CannotStart as problem:
            self._failed = self._failed or str(problem)
        if self._failed is not None:
            print(f"taskrail: {self._failed}", file=sys.stderr, flush=True)
            return 1
        return 0

    @contextlib.contextmanager
    def _prepared(self) -> Iterator[Stack]:
        """The sockets, the lifeline and the directory; all are gone afterwards."""
        with contextlib.ExitStack() as cleanup:
            front = cleanup.enter_context(_listen(self._options.port))
            aws = cleanup.enter_context(_listen(0))
            functions = cleanup.enter_context(_listen(0))
            directory = Path(cleanup.enter_context(_directory()))
            stack = Stack(
                directory=directory,
                port=front.getsockname()[1],
                aws_port=aws.getsockname()[1],
                functions_port=functions.getsockname()[1],
                catalogue=self._options.catalogue,
                verbose=self._options.verbose,
            )
            stack.save()
            supervisor = cleanup.enter_context(socket.socket(socket.AF_UNIX))
            supervisor.bind(str(stack.socket))
            supervisor.listen(128)
            self._lifeline = os.pipe()
            for descriptor in self._lifeline:
                cleanup.callback(os.close, descriptor)
            self._children = [
                _Child("local.aws", aws),
                _Child("local.supervisor", supervisor),
                _Child("local.front", front),
                _Child("local.events"),
                _Child("local.functions", functions),
            ]
            yield stack

    def _spawn(self, child: _Child) -> None:
        assert self.stack is not None
        status_read, status_write = os.pipe()
        listener = NOTHING if child.listener is None else child.listener.fileno()
        wiring = Wiring(self.stack, self._lifeline[0], status_write, listener)
        child.ready, child.said = False, b""
        try:
            child.process = subprocess.Popen(
                [sys.executable, "-m", child.module, *wiring.arguments()],
                stdin=subprocess.DEVNULL,
                env=self.stack.environment(),
                pass_fds=wiring.descriptors(),
                # Ctrl-C goes to the terminal's group: the launcher alone decides who ends when.
                start_new_session=True,
            )
        except OSError as error:
            os.close(status_read)
            raise CannotStart(f"{child.module} could not be started: {error.strerror}") from error
        finally:
            os.close(status_write)
        asyncio.get_running_loop().add_reader(status_read, self._on_status, child, status_read)

    def _on_status(self, child: _Child, status: int) -> None:
        """A process said that it is ready, or died before it could."""
        part = os.read(status, 65_536)
        child.said += part
        if part and not child.said.endswith(b"\n"):
            return
        asyncio.get_running_loop().remove_reader(status)
        os.close(status)
        if part:
            child.facts = json.loads(child.said)
            child.ready = True
            self._news.set()
            if self._served and not self._ending:
                self._write_ready_file()

    def _on_signal(self) -> None:
        self._signals += 1
        self._tell()
        if self._signals > 1:
            # Asked twice: no grace for anybody.
            for child in self._children:
                if child.process is not None:
                    child.process.terminate()

    def _on_child(self) -> None:
        """Start again what died, as long as the stack lives."""
        for child in self._children:
            if child.process is None or child.runs or self._ending:
                continue
            code, child.process = child.process.returncode, None
            was_ready = child.ready
            child.failures = 0 if was_ready else child.failures + 1
            if child.module == "local.aws" and was_ready:
                self._fail("the local AWS ended, and all tasks with it")
            elif child.failures >= (MOST_FAILURES if self._served else 1):
                self._fail(f"{child.module} did not start (exit code {code})")
            else:
                self._say(f"{child.module} ended (exit code {code}); it is started again")
                try:
                    self._spawn(child)
                except CannotStart as problem:
                    self._fail(str(problem))

    def _fail(self, why: str) -> None:
        self._failed = self._failed or why
        self._tell()

    def _tell(self) -> None:
        """The stack is to end."""
        self._told = True
        self._news.set()

    async def _ready(self, *children: _Child) -> bool:
        """Wait for these processes; False when a signal or a failure came first."""
        try:
            async with asyncio.timeout(READY_WITHIN):
                while not self._told and not all(child.ready for child in children):
                    await self._something_new()
        except TimeoutError:
            self._fail(f"not ready within {READY_WITHIN:.0f} s")
        self._served = not self._told
        return self._served

    async def _something_new(self) -> None:
        self._news.clear()
        await self._news.wait()

    async def _end(self, stack: Stack) -> None:
        """End the processes in the order in which they need each other; jobs may still report to the local AWS."""
        self._ending = True
        if self._options.ready_file is not None:
            self._options.ready_file.unlink(missing_ok=True)
        if self._children:
            aws, supervisor, front, events, functions = self._children
            await _ended(front)
            await _ended(supervisor)
            await _end_leftovers(stack)
            await _ended(events)
            await _ended(functions)
            await _ended(aws)

    def _write_ready_file(self) -> None:
        path, stack = self._options.ready_file, self.stack
        if path is None or stack is None:
            return
        processes = {child.module: child.process.pid for child in self._children if child.process is not None}
        facts = {
            "url": stack.url,
            "endpoint": stack.endpoint,
            "directory": str(stack.directory),
            "processes": processes,
        }
        try:
            new = path.with_name(f"{path.name}.new")
            new.write_text(json.dumps({**facts, "pid": os.getpid()}), encoding="utf-8")
            os.replace(new, path)
        except OSError as error:
            self._fail(f"the ready file cannot be written: {error.strerror}")


async def _ended(child: _Child) -> None:
    """End a process: politely, then not."""
    process = child.process
    if process is None:
        return
    process.terminate()
    until = asyncio.get_running_loop().time() + END_WITHIN
    while process.poll() is None:
        if asyncio.get_running_loop().time() > until:
            process.kill()
        await asyncio.sleep(0.01)


async def _end_leftovers(stack: Stack) -> None:
    """Kill what an ended supervisor left behind, if it could not end everything itself."""
    records = Records(stack.runs)
    for record in records.all():
        identity = records.identity(record.name)
        if record.over or identity is None:
            continue
        end_session(identity)
        end_marked(records.mark(record.name))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_WITHIN):
                while alive(identity):
                    await asyncio.sleep(0.01)


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise CannotStart(f"port {port} is in use; choose another with --port, or 0 for a free one") from error
        raise CannotStart(f"port {port} cannot be used: {error.strerror}") from error
    return listener


@contextlib.contextmanager
def _directory() -> Iterator[str]:
    path = tempfile.mkdtemp(prefix="taskrail-")
    if len(path) + len("/supervisor.sock") > _LONGEST_SOCKET_PATH:
        os.rmdir(path)
        # The path of a socket has about a hundred bytes, however long the way to the temporary files is.
        path = tempfile.mkdtemp(prefix="taskrail-", dir="/tmp")
    try:
        yield path
    finally:
        remove(Path(path))
