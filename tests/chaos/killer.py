"""SIGKILL to the processes of a launched stack, at moments that a seed decides."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random

from tests.local_help import processes_of

FRONT, SUPERVISOR, EVENTS, JOB = "front", "supervisor", "events", "job_process"
KINDS = (FRONT, SUPERVISOR, EVENTS, JOB)

_UNREADY_IN_A_ROW = 2
"""The launcher gives up on a process that dies five times before it serves; the machine may be slow, not broken."""


class Killer(threading.Thread):
    """Kills until it is told to stop: each kind of process once, in some order, and then on at random.

    Parameters
    ----------
    launcher, directory
        Process and directory of the stack whose processes die.
    seed
        Decides who dies, and when.
    pause
        Shortest and longest time between two kills, in seconds.
    """

    def __init__(self, launcher: int, directory: str, seed: int, pause: tuple[float, float]) -> None:
        super().__init__(name="killer", daemon=True)
        self.kills: Counter[str] = Counter()
        self.killed_runs: set[str] = set()
        self._random = Random(seed)
        self._pause = pause
        self._launcher = launcher
        self._directory = directory
        self._unready: Counter[str] = Counter()
        self._stopped = threading.Event()
        self._one_at_a_time = threading.Lock()

    def run(self) -> None:
        """Kill at intervals."""
        due = list(KINDS)
        self._random.shuffle(due)
        while not self._stopped.wait(self._random.uniform(*self._pause)):
            kind = due[-1] if due else self._random.choice(KINDS)
            if self.kill(kind) and due:
                due.pop()

    def stop(self) -> None:
        """No more kills after this."""
        self._stopped.set()
        self.join()

    def kill(self, kind: str) -> bool:
        """Kill a process of that kind now, if there is one that may die."""
        with self._one_at_a_time:
            return not self._stopped.is_set() and self._kill(kind)

    def killed(self, task_id: str) -> bool:
        """Whether a job process of this task was killed."""
        return any(name.startswith(task_id) for name in self.killed_runs)

    def _kill(self, kind: str) -> bool:
        victims = processes_of(f"local.{kind} {self._directory}")
        if kind != JOB:
            # Between its birth and its own program, a job looks like the supervisor.
            victims = [pid for pid in victims if _parent(pid) == self._launcher]
        if not victims:
            return False
        victim = self._random.choice(victims)
        if kind == JOB:
            words = _words_after(victim, self._directory)
            if not words:
                return False
            self.killed_runs.add(words[0])
        elif _serves(victim, self._directory):
            self._unready[kind] = 0
        elif self._unready[kind] < _UNREADY_IN_A_ROW:
            self._unready[kind] += 1
        else:
            return False
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
            self.kills[kind] += 1
        return True


def _words_after(pid: int, directory: str) -> list[str]:
    """What follows the stack's directory on the command line of a process; nothing once it is gone."""
    with suppress(OSError, ValueError):
        words = Path("/proc", str(pid), "cmdline").read_text().split("\0")
        return words[words.index(directory) + 1 :]
    return []


def _serves(pid: int, directory: str) -> bool:
    """Whether a process has said that it is ready: it has closed the pipe on which it says so."""
    words = _words_after(pid, directory)
    try:
        return not os.readlink(f"/proc/{pid}/fd/{words[1]}").startswith("pipe:")
    except FileNotFoundError:
        return True
    except (OSError, IndexError):
        return False


def _parent(pid: int) -> int | None:
    with suppress(OSError):
        return int(Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[1])
    return None
