"""What the tests of the local stack share: waiting on conditions, a supervisor with stand-in jobs, a launched stack."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from local.child import Wiring
from local.engine import Jobs, Line, execution_arn
from local.processes import end_session, identify
from local.records import Records
from local.stack import Stack
from taskrail.engines import RunOrder

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[1]

# A job process whose payload is its code.
STAND_IN = """
import os, signal, subprocess, sys, time
from pathlib import Path
from local.records import Records, sign
directory, name, lock, lifeline = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
sign(lock)
records = Records(directory / "runs")
with open(directory / "started", "a") as file:
    file.write(name + chr(10))
exec(records.read(name).payload["code"])
"""


def wait_for(condition: Callable[[], T], within: float = 20.0, what: str = "the condition") -> T:
    """What `condition` returns once that is true; an error when it does not come true in time."""
    until = time.monotonic() + within
    while not (value := condition()):
        assert time.monotonic() < until, f"{what} did not come true within {within} s"
        time.sleep(0.01)
    return value


def processes_of(text: str) -> list[int]:
    """Living processes whose command line has that text, but for this one."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            line = Path("/proc", entry, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in line and identify(int(entry)) is not None:
            found.append(int(entry))
    return found


class Desk:
    """A supervisor under test, with stand-in jobs, and the sockets that the launcher would hold."""

    def __init__(self, directory: Path, pause_ms: int = 100) -> None:
        job = (sys.executable, "-c", STAND_IN)
        self.stack = Stack(directory, 1, 1, 1, "catalogue", pause_ms=pause_ms, job_command=job)
        self.stack.save()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.stack.socket))
        self._listener.listen(128)
        self.lifeline_read, self.lifeline_write = os.pipe()
        self.line = Line(self.stack.socket, within=10.0)
        self.jobs = Jobs(self.line, self.stack.runs)
        self.records = Records(self.stack.runs)
        self.supervisor = self._supervise()

    def _supervise(self) -> subprocess.Popen[bytes]:
        wiring = Wiring(self.stack, self.lifeline_read, listener=self._listener.fileno())
        return subprocess.Popen(
            [sys.executable, "-m", "local.supervisor", *wiring.arguments()],
            env=self.stack.environment(),
            pass_fds=wiring.descriptors(),
            start_new_session=True,
        )

    def run(self, name: str, code: str, timeout_ms: int = 60_000, **more: Any) -> str:
        """Start a stand-in job; its id."""
        order = RunOrder("tool", name, {"code": code}, timeout_ms=timeout_ms)
        return self.jobs.start(order, execution_arn("tool", name), **{"engine": "step_functions", **more})

    def started(self) -> list[str]:
        """The name of every job process that came to life, once per process."""
        try:
            return (self.stack.directory / "started").read_text().split()
        except FileNotFoundError:
            return []

    def pid(self, name: str) -> int:
        """The process of a run, as soon as it lives."""
        who = wait_for(lambda: self.records.identity(name), what="the birth of the job")
        assert who is not None
        return who.pid

    def kill_supervisor(self) -> None:
        """As a crash would."""
        self.supervisor.kill()
        self.supervisor.wait()

    def restart(self) -> None:
        """A new supervisor after the death of the last."""
        self.supervisor = self._supervise()

    def close(self) -> None:
        """End everything, whatever state it is in."""
        self.supervisor.kill()
        self.supervisor.wait()
        self._listener.close()
        for record in self.records.all() if self.stack.runs.exists() else ():
            who = self.records.identity(record.name)
            if who is not None:
                end_session(who)
        for descriptor in (self.lifeline_read, self.lifeline_write):
            if descriptor >= 0:
                os.close(descriptor)

    def cut(self) -> None:
        """The launcher dies."""
        os.close(self.lifeline_write)
        self.lifeline_write = -1


@dataclass
class Launched:
    """A launched stack."""

    process: subprocess.Popen[str]
    ready_file: Path
    directory: Path

    @property
    def facts(self) -> dict[str, Any]:
        """What the ready file says now."""
        facts: dict[str, Any] = json.loads(self.ready_file.read_text())
        return facts

    def leftovers(self) -> list[str]:
        """What is left of the stack: processes and files."""
        return [f"process {pid}" for pid in processes_of(str(self.directory))] + [
            str(path) for path in self.directory.glob("*")
        ]

    def end(self, signum: signal.Signals = signal.SIGINT, within: float = 20.0) -> str:
        """Signal the launcher, wait for its end, and return what it printed."""
        self.process.send_signal(signum)
        output, _ = self.process.communicate(timeout=within)
        return output


@contextmanager
def short_directory() -> Iterator[Path]:
    """A directory whose name leaves room for the path of a socket, which has about a hundred bytes."""
    with tempfile.TemporaryDirectory(prefix="tr-", dir="/tmp", ignore_cleanup_errors=True) as name:
        yield Path(name)


@contextmanager
def launched(*arguments: str, environ: Mapping[str, str] | None = None, ready: bool = True) -> Iterator[Launched]:
    """`python -m local`, once it serves; its temporary files lie under a directory of its own.

    Whatever is left of it is killed afterwards. Without `ready`, it is handed over as soon as it was started.
    """
    with short_directory() as base:
        directory, ready_file = base / "tmp", base / "ready.json"
        directory.mkdir()
        process = subprocess.Popen(
            [sys.executable, "-m", "local", "--ready-file", str(ready_file), *arguments],
            cwd=ROOT,
            env={**os.environ, **(environ or {}), "TMPDIR": str(directory)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            if ready:
                wait_for(lambda: ready_file.exists() or process.poll() is not None, 40, "readiness")
                assert process.poll() is None, process.communicate()[0]
            yield Launched(process, ready_file, directory)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                try:
                    process.communicate(timeout=20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.communicate()
            for pid in processes_of(str(directory)):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


class Rpc:
    """A client of a launched stack, in the fewest lines that the wire allows."""

    def __init__(self, url: str) -> None:
        self._address = url.split("/")[2]
        self._id = 0

    def call(self, method: str, mcp_name: str | None = None, /, **params: Any) -> dict[str, Any]:
        """One request; its answer's JSON."""
        self._id += 1
        capabilities: dict[str, Any] = {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": method,
            **({"Mcp-Name": mcp_name} if mcp_name else {}),
        }
        connection = http.client.HTTPConnection(self._address, timeout=30)
        try:
            body = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
            connection.request("POST", "/mcp", json.dumps(body), headers)
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
            return answer
        finally:
            connection.close()

    def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool; the result."""
        answer = self.call("tools/call", name, name=name, arguments=arguments)
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def start(self, name: str, **arguments: Any) -> str:
        """Call a task tool; the taskId."""
        return str(self.tool(name, **arguments)["taskId"])

    def get(self, task_id: str) -> dict[str, Any]:
        """A task as it is now."""
        result: dict[str, Any] = self.call("tasks/get", taskId=task_id)["result"]
        return result

    def until(self, task_id: str, *statuses: str, within: float = 30.0) -> dict[str, Any]:
        """A task once it has one of these statuses."""
        return wait_for(
            lambda: task if (task := self.get(task_id))["status"] in statuses else {}, within, f"{statuses}"
        )
