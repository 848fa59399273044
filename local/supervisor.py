"""The supervisor of job processes: one process, one thread, one socket.

A request is one line of JSON on a connection of its own, and so is the answer: ``{"ok": …}``,
``{"refused": "why"}`` or ``{"error": "what"}``. Requests: ``start``, ``stop``, ``describe`` for
`local.engine`; ``ended`` and ``reported`` for `local.events`; ``tell`` for `local.aws`, whose executions
have ends too.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Any

from local.child import NOTHING, Wiring, remove
from local.records import Record, Records, usable_name
from local.runs import Refused, Runs
from taskrail.clock import SystemClock
from taskrail.engines import RunState

LONGEST_REQUEST = 1_000_000
"""Bytes of a request: the largest is the event of an execution's end."""

REQUEST_WITHIN = 5.0
STOP_WITHIN = 1.0
ENDED_WITHIN = 10.0
CLOSE_WITHIN = 2.0

# What a start may say besides; each is a field of `local.records.Record`.
_MORE = ("engine", "run_id", "environment", "command", "attempts")

_WORDS = {
    RunState.SUCCEEDED: "well",
    RunState.FAILED: "its process vanished",
    RunState.TIMED_OUT: "its time ran out",
    RunState.STOPPED: "it was stopped",
}

log = logging.getLogger("taskrail.local")


class BadRequest(Exception):
    """A request that the supervisor does not understand; the message says what is wrong with it."""


class Supervisor:
    """Answers requests about runs.

    Parameters
    ----------
    wiring
        What the launcher passed.
    """

    def __init__(self, wiring: Wiring) -> None:
        self._stack = wiring.stack
        self._wiring = wiring
        self._ended = asyncio.Event()
        self._told: dict[str, dict[str, Any]] = {}
        self.records = Records(self._stack.runs)
        self.runs = Runs(
            self.records,
            self._command,
            self._stack.environment(),
            [] if wiring.lifeline == NOTHING else [wiring.lifeline],
            SystemClock(),
            self._on_end,
            self._stack.pause_ms,
        )

    def _command(self, record: Record, lock: int) -> list[str]:
        module = "local.container_process" if record.command else "local.job_process"
        command = self._stack.job_command or (sys.executable, "-m", module)
        return [*command, str(self._stack.directory), record.name, str(lock), str(self._wiring.lifeline)]

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the one request of a connection."""
        try:
            line = await asyncio.wait_for(reader.readline(), REQUEST_WITHIN)
            if line:
                writer.write(json.dumps(await self.answer(line)).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError, TimeoutError):
            # The other side went away, or sent nothing of use: there is nobody to answer.
            pass
        finally:
            writer.close()

    async def answer(self, line: bytes) -> dict[str, Any]:
        """The answer to a request, whatever it is."""
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                raise BadRequest("A request is a JSON object.")
            return {"ok": await self._do(request)}
        except Refused as refusal:
            return {"refused": str(refusal)}
        except (BadRequest, ValueError) as error:
            return {"error": str(error)}
        except Exception:
            log.exception("a request to the supervisor failed")
            return {"error": "The supervisor failed; its log says why."}

    async def _do(self, request: dict[str, Any]) -> Any:
        operation = request.get("do")
        if operation == "ended":
            return await self._next_ended()
        if operation == "tell":
            return self._tell(request)
        name = request.get("name")
        if not isinstance(name, str) or not usable_name(name):
            raise Refused("A run's name is 1 to 80 letters, digits, dashes, underscores and dots.")
        if operation == "start":
            self._start(name, request)
            return None
        if operation == "stop":
            return await self.runs.stop(name, STOP_WITHIN)
        if operation == "describe":
            record = self.runs.record(name)
            if record is None:
                return {"state": RunState.NOT_FOUND.value, "reason": None, "engine": None, "attempt": None}
            about = {"engine": record.engine, "attempt": record.attempt}
            return {"state": record.state.value, "reason": record.reason, **about}
        if operation == "reported":
            if self._told.pop(name, None) is None:
                self.runs.reported(name)
            return None
        raise BadRequest("There is no such operation.")

    def _start(self, name: str, request: dict[str, Any]) -> None:
        tool, payload, timeout_ms = (request.get(key) for key in ("tool", "payload", "timeout_ms"))
        if not isinstance(tool, str) or not isinstance(payload, dict) or not isinstance(timeout_ms, int):
            raise Refused("A start needs a tool, a payload and a time-out in milliseconds.")
        if timeout_ms <= 0:
            raise Refused("A time-out is longer than nothing.")
        more = {key: request[key] for key in _MORE if key in request}
        self.runs.start(tool, name, payload, timeout_ms, **more)

    def _tell(self, request: dict[str, Any]) -> None:
        """Keep the event of an end that happened elsewhere until it was passed on; lost if this process dies."""
        event = request.get("event")
        if not isinstance(event, dict) or not usable_name(event.get("id")):
            raise BadRequest("What is told is an event with an id.")
        self._told[event["id"]] = event
        self._ended.set()

    async def _next_ended(self) -> dict[str, Any] | None:
        """The next run whose end was not passed on, or event that was told; None if there is none for a while."""
        while not (unreported := self.runs.unreported()) and not self._told:
            self._ended.clear()
            try:
                await asyncio.wait_for(self._ended.wait(), ENDED_WITHIN)
            except TimeoutError:
                return None
        if not unreported:
            name, event = next(iter(self._told.items()))
            return {"name": name, "event": event}
        record = unreported[0]
        return {
            "name": record.name,
            "engine": record.engine,
            "tool": record.tool,
            "payload": record.payload,
            "state": record.state.value,
            "reason": record.reason,
            "runId": record.run_id,
            "command": record.command,
            "timeoutMs": record.timeout_ms,
            "attempts": record.attempts,
            "attempt": record.attempt,
            "attemptAt": record.attempt_at or record.started_at,
            "startedAt": record.started_at,
            "endedAt": record.ended_at,
        }

    def _on_end(self, record: Record) -> None:
        level = logging.WARNING if record.state is RunState.FAILED else logging.INFO
        what, where = record.reason or _WORDS[record.state], self.records.log(record.name)
        log.log(level, "a run of %s ended: %s; what it printed: %s", record.tool, what, where)
        self._ended.set()


async def supervise(wiring: Wiring) -> None:
    """Serve until SIGTERM, then end every run; if the launcher dies, kill every run and clean up after it."""
    loop = asyncio.get_running_loop()
    supervisor = Supervisor(wiring)
    terminated, cut = asyncio.Event(), asyncio.Event()

    def on_terminate() -> None:
        if terminated.is_set():
            # Told twice: whoever tells does not want to wait.
            supervisor.runs.kill_all()
        terminated.set()

    def on_cut() -> None:
        loop.remove_reader(wiring.lifeline)
        supervisor.runs.kill_all()
        cut.set()
        terminated.set()

    loop.add_signal_handler(signal.SIGTERM, on_terminate)
    loop.add_signal_handler(signal.SIGCHLD, supervisor.runs.look)
    if wiring.lifeline != NOTHING:
        loop.add_reader(wiring.lifeline, on_cut)
    supervisor.runs.adopt()
    # The server is never closed: that would remove the socket's name, which outlives this process.
    listener = socket.socket(fileno=wiring.listener)
    server = await asyncio.start_unix_server(supervisor.connected, sock=listener, limit=LONGEST_REQUEST)
    wiring.ready()
    await terminated.wait()
    await supervisor.runs.close(CLOSE_WITHIN)
    if cut.is_set():
        remove(wiring.stack.directory)
    del server


def main(argv: Sequence[str]) -> None:
    """Be the supervisor of a stack."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    wiring = Wiring.of(argv)
    logging.basicConfig(
        format="%(message)s", level=logging.INFO if wiring.stack.verbose else logging.WARNING, stream=sys.stderr
    )
    # Not asyncio.run: it would cancel the connections that still wait, loudly, where nobody cares any more.
    asyncio.new_event_loop().run_until_complete(supervise(wiring))
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
