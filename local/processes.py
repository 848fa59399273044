"""Processes of this machine: who they are, whether they live, and how to end all of one session."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_ROUNDS = 3


@dataclass(frozen=True)
class Identity:
    """A process, told apart from a later one with the same number by when it was born.

    Parameters
    ----------
    pid
        Its number.
    born
        When it started, in whatever form the system tells it.
    """

    pid: int
    born: str


def identify(pid: int) -> Identity | None:
    """The living process of that number; None when there is none, or only its unread exit code."""
    if _PROC.joinpath("self").exists():
        fields = _fields(pid)
        if fields is None or fields[0] in "ZX":
            return None
        return Identity(pid, fields[19])
    line = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
    state, _, born = line.partition(" ")
    return None if not state or state.startswith("Z") else Identity(pid, born.strip())


def alive(who: Identity) -> bool:
    """Whether that very process still runs."""
    return identify(who.pid) == who


def tell(who: Identity, signum: signal.Signals) -> None:
    """Send a signal to that very process, if it still runs."""
    if alive(who):
        with contextlib.suppress(ProcessLookupError):
            os.kill(who.pid, signum)


def end_session(who: Identity) -> None:
    """Kill a session's leader and all that it started, also after the leader itself has gone.

    A number is not given to a new process while it names a session or a group that has members, so
    members found under a leader that is gone are the leader's own.
    """
    now = identify(who.pid)
    if now is not None and now != who:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(who.pid, signal.SIGKILL)
    for pid in _members(who.pid):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def end_marked(mark: str) -> None:
    """Kill every other process that has `mark` in its environment, where the system tells environments.

    What a job starts inherits its environment, also into a session of its own, where `end_session`
    does not find it.

    Parameters
    ----------
    mark
        An entry of the environment, as ``NAME=value``.
    """
    entry = b"\0" + mark.encode() + b"\0"
    # Once more for what was born meanwhile.
    for _ in range(_ROUNDS):
        found = False
        for pid in _pids():
            with contextlib.suppress(OSError):
                if pid != os.getpid() and entry in b"\0" + _PROC.joinpath(str(pid), "environ").read_bytes():
                    os.kill(pid, signal.SIGKILL)
                    found = True
        if not found:
            return


def _members(session: int) -> Iterator[int]:
    """Processes of a session, where the system lists them; groups of their own within it included."""
    for pid in _pids():
        fields = _fields(pid)
        if fields is not None and fields[3] == str(session) and fields[0] not in "ZX":
            yield pid


def _pids() -> list[int]:
    """Every process, where the system lists them."""
    try:
        return [int(name) for name in os.listdir(_PROC) if name.isdigit()]
    except OSError:
        return []


def _fields(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from the third on: state, parent, group, session, … (proc_pid_stat(5))."""
    try:
        text = _PROC.joinpath(str(pid), "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The second field is the command's name in parentheses, and may hold anything.
    return text.rpartition(")")[2].split()
