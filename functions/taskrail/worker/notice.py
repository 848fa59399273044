"""The order to end that a process gets by SIGTERM, and how it leaves a job's code.

A job's code may be anywhere when the order comes. It is left by an exception in the main thread, so that
its ``finally`` blocks run: once, and never from within a call that tells its task something.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from taskrail.context import RunInterrupted, Unwind

HEAR_WITHIN_MS = 2_500
"""How long a cancelled job may go without looking, until its code is left: longer than a worker's own look takes."""


class Notice:
    """Whether this process was told to end, and by which exception the job's code is then left.

    Only the main thread hears signals and runs jobs that can be left; another thread decides (`leave`).
    """

    def __init__(self) -> None:
        self._main = threading.main_thread().ident
        self._begun = False
        self._open = False
        self._whole = 0
        self._way: type[Unwind] | None = None
        self.listening = False
        """Whether SIGTERM is heard; without that nothing can be left."""
        self.given = False
        """Whether the order has come."""
        self.left: type[Unwind] | None = None
        """What the job's code was left by, once it was."""

    def listen(self) -> None:
        """Hear SIGTERM from now on. Only the main thread can do this."""
        signal.signal(signal.SIGTERM, self._hear)
        self.listening = True

    def begin(self) -> None:
        """There is something now that an order to end must not just drop: the run is claimed."""
        self._begun = True

    @contextmanager
    def job(self) -> Iterator[None]:
        """While the job's own code runs; it is left by the exception that was decided on.

        Raises
        ------
        Unwind
            The job was left. What its clean-up raises in place of that is no ending of its own.
        """
        self._open = True
        try:
            self._go()
            yield
        except BaseException as error:
            if self.left is not None and not isinstance(error, self.left):
                raise self.left from error
            raise
        finally:
            self._open = False

    @contextmanager
    def whole(self) -> Iterator[None]:
        """While the main thread is in a call that is not to be torn; the job is left at its end."""
        if threading.get_ident() != self._main:
            yield
            return
        self._whole += 1
        try:
            yield
        except Unwind:
            # The job is being left already.
            self._open = False
            raise
        finally:
            self._whole -= 1
        self._go()

    def leave(self, way: type[Unwind]) -> None:
        """Have the job's code left by that exception, from whatever thread; the first call counts.

        Parameters
        ----------
        way
            The exception's class.
        """
        if self._way is None and self.listening and self._main is not None:
            self._way = way
            # A signal reaches the main thread in whatever wait it is.
            signal.pthread_kill(self._main, signal.SIGTERM)

    def _hear(self, signum: int, frame: FrameType | None) -> None:
        self.given = True
        if not self._begun:
            self._begun = True
            raise RunInterrupted
        self._go()

    def _go(self) -> None:
        if self._way is not None and self._open and not self._whole:
            # Left once: a clean-up that is torn is none.
            self._open = False
            self.left = self._way
            raise self._way
