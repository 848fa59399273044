"""What the supervisor remembers of each run, on disk: it survives the supervisor.

A folder per run under the stack's directory:

``record.json``  what was started and how it ended; replaced as a whole, synchronized before the rename
``lock``         locked from before the process is born until it is gone; holds the process's identity
``exit``         the exit code, written by a job process that comes to its end in an orderly way
``output.log``   what the job printed
``tmp``          the job's directory for temporary files; removed when the run ends
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from local.processes import Identity, identify
from taskrail.engines import RunState

KILL_AFTER_MS = 5_000
"""Grace between SIGTERM and SIGKILL, in milliseconds."""

MARK = "TASKRAIL_LOCAL_RUN"
"""Variable of job processes, and of all that they start: the folder of the run."""

STOP = "stop"
TIME_OUT = "time out"

_LONGEST_TAIL = 200_000
"""Bytes from the end of a log in which lines are looked for."""

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,79}")


@dataclass(frozen=True)
class Record:
    """One run. Moments are milliseconds since the epoch.

    Parameters
    ----------
    name, tool, payload, timeout_ms
        What the engine was asked to start.
    started_at
        When it was.
    engine
        Which engine it plays: ``step_functions``, ``lambda`` or ``batch``.
    run_id
        The id that the engine gave it.
    environment
        Variables of this run alone.
    command
        What runs in place of a Python job's process: the command of a container.
    attempts
        How often it is tried at most, when its process is lost.
    attempt, attempt_at
        Which try this is, from 1, and when it began.
    next_at
        When the next try begins, while it is waited for; else 0.
    state, reason, ended_at
        How it stands, and how and when it ended.
    asked, asked_at
        Why and when the supervisor told the process to end: `STOP`, `TIME_OUT` or None.
    reported
        Whether the end was passed on to `handlers.run_events`, or given up.
    """

    name: str
    tool: str
    payload: dict[str, Any]
    timeout_ms: int
    started_at: int
    engine: str = "step_functions"
    run_id: str = ""
    environment: dict[str, str] = field(default_factory=dict, repr=False)
    command: list[str] = field(default_factory=list)
    attempts: int = 1
    attempt: int = 1
    attempt_at: int = 0
    next_at: int = 0
    state: RunState = RunState.RUNNING
    reason: str | None = None
    ended_at: int | None = None
    asked: str | None = None
    asked_at: int = 0
    reported: bool = False

    @property
    def over(self) -> bool:
        """Whether the run has ended."""
        return self.state is not RunState.RUNNING

    @property
    def deadline(self) -> int:
        """When the attempt is out of time."""
        return (self.attempt_at or self.started_at) + self.timeout_ms


def usable_name(name: object) -> bool:
    """Whether a name may become the name of a folder: as Step Functions limits it, and never a hidden one."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def output_log(runs: Path, name: str) -> Path:
    """The file with what the run `name` printed, in the directory of all runs."""
    return runs / name / "output.log"


def tail(path: Path, lines: int) -> tuple[str, ...]:
    """The last lines of a file, oldest first; of one that is not there, none."""
    try:
        with open(path, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _LONGEST_TAIL))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ()
    return tuple(text.splitlines()[-lines:]) if lines > 0 else ()


class Records:
    """The folders of all runs of one stack.

    Parameters
    ----------
    directory
        Where they lie.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def folder(self, name: str) -> Path:
        """The folder of the run `name`."""
        return self._directory / name

    def log(self, name: str) -> Path:
        """What the run printed."""
        return output_log(self._directory, name)

    def temporary(self, name: str) -> Path:
        """Where the run may leave temporary files."""
        return self.folder(name) / "tmp"

    def mark(self, name: str) -> str:
        """Entry of the environment by which everything that the run started is known."""
        return f"{MARK}={self.folder(name)}"

    def write(self, record: Record) -> None:
        """Put the record in place of an earlier one: afterwards it is on disk, or the earlier one still is."""
        folder = self.folder(record.name)
        folder.mkdir(mode=0o700, exist_ok=True)
        values = asdict(record)
        values["state"] = record.state.value
        new = folder / "record.new"
        with open(new, "w", encoding="utf-8") as file:
            json.dump(values, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, folder / "record.json")
        _sync_directory(folder)

    def read(self, name: str) -> Record:
        """The record of the run `name`.

        Raises
        ------
        FileNotFoundError
            No such run.
        """
        values = json.loads((self.folder(name) / "record.json").read_text(encoding="utf-8"))
        values["state"] = RunState(values["state"])
        return Record(**values)

    def all(self) -> Iterator[Record]:
        """Every record, in no order. A folder whose record was never finished is removed: nothing was started."""
        for name in sorted(os.listdir(self._directory)):
            try:
                yield self.read(name)
            except FileNotFoundError:
                self.remove(name)

    def remove(self, name: str) -> None:
        """Forget the run `name`."""
        shutil.rmtree(self.folder(name), ignore_errors=True)

    def clear_temporary(self, name: str) -> None:
        """Remove what the run left in its directory for temporary files."""
        shutil.rmtree(self.temporary(name), ignore_errors=True)

    def lock(self, name: str) -> int:
        """Open and lock the run's lock, for a process that inherits the descriptor: it holds while either lives.

        Raises
        ------
        BlockingIOError
            A process of this run lives.
        """
        descriptor = os.open(self.folder(name) / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise
        return descriptor

    def locked(self, name: str) -> bool:
        """Whether a process of this run lives."""
        try:
            os.close(self.lock(name))
        except BlockingIOError:
            return True
        return False

    def identity(self, name: str) -> Identity | None:
        """Who the run's process is or was; None when it has not come far enough to say."""
        try:
            pid, born = (self.folder(name) / "lock").read_text(encoding="utf-8").split("\n", 1)
        except (OSError, ValueError):
            return None
        return Identity(int(pid), born)

    def exit_code(self, name: str) -> int | None:
        """The exit code that the process wrote down at its orderly end, or None."""
        try:
            return int((self.folder(name) / "exit").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def clear_attempt(self, name: str) -> None:
        """Forget the process of an earlier attempt: a new one is to sign and to note its own exit code."""
        for file in ("exit", "lock"):
            (self.folder(name) / file).unlink(missing_ok=True)

    def note_exit(self, name: str, code: int) -> None:
        """Write down an exit code, for a supervisor that is not the process's parent."""
        new = self.folder(name) / "exit.new"
        with contextlib.suppress(OSError):
            new.write_text(str(code), encoding="utf-8")
            os.replace(new, self.folder(name) / "exit")


def sign(lock: int) -> None:
    """Write this process's identity into the lock that it inherited: the first thing a job process does."""
    me = identify(os.getpid())
    assert me is not None, "a process that runs can be found"
    os.pwrite(lock, f"{me.pid}\n{me.born}".encode(), 0)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
