"""What a process of the stack and its launcher hand each other: descriptors, one line when ready, a lifeline."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.stack import Stack
from taskrail.clock import SystemClock

NOTHING = -1
"""Stands for a descriptor that a process was not given."""

_REMOVALS = 50


@dataclass(frozen=True)
class Wiring:
    """What the launcher passed on the command line.

    Parameters
    ----------
    stack
        The stack that the process belongs to.
    lifeline
        Read end of a pipe that nobody writes to: it ends when the launcher does, however it died.
    status
        Write end of the pipe on which the process says that it is ready.
    listener
        The socket to listen on. It belongs to the launcher, so that a process which is started
        again finds the connections that were made meanwhile.
    """

    stack: Stack
    lifeline: int
    status: int = NOTHING
    listener: int = NOTHING

    @classmethod
    def of(cls, argv: Sequence[str]) -> Wiring:
        """Read the command line that `arguments` made."""
        directory, lifeline, status, listener = argv
        return cls(Stack.load(Path(directory)), int(lifeline), int(status), int(listener))

    def arguments(self) -> list[str]:
        """The command line of a process with this wiring."""
        return [str(self.stack.directory), str(self.lifeline), str(self.status), str(self.listener)]

    def descriptors(self) -> tuple[int, ...]:
        """The descriptors that the process must inherit."""
        return tuple(fd for fd in (self.lifeline, self.status, self.listener) if fd != NOTHING)

    def ready(self, **facts: Any) -> None:
        """Tell the launcher, once, that the process serves; `facts` go along as JSON."""
        if self.status == NOTHING:
            return
        try:
            with os.fdopen(self.status, "wb") as status:
                status.write(json.dumps(facts).encode() + b"\n")
        except OSError:
            # The launcher is gone: the lifeline says so too, and ends the process.
            pass


def when_cut(lifeline: int, then: Callable[[], None]) -> None:
    """Call `then` in a thread of its own as soon as the launcher is gone."""

    def wait() -> None:
        while os.read(lifeline, 1):
            pass
        then()

    threading.Thread(target=wait, name="lifeline", daemon=True).start()


def vanish(stack: Stack) -> None:
    """End this process, whose launcher is gone, and remove what the launcher can no longer remove."""
    remove(stack.directory)
    os._exit(1)


def remove(directory: Path) -> None:
    """Remove a stack's directory, while dying processes may still write there and others remove it too."""
    for _ in range(_REMOVALS):
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.exists():
            return
        SystemClock().sleep(20)
