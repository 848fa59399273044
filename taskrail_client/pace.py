"""When the next request may go out."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio

DEFAULT_POLL_MS = 5_000
"""Milliseconds between polls of a task whose server names none."""

FIRST_PAUSE_MS = 1_000
SHORTEST_POLL_MS = 10
LONGEST_POLL_MS = 3_600_000
LONGEST_PAUSE_MS = 60_000
"""Longest pause after a failure, in milliseconds, unless the server asks for a longer one."""

JITTER = (0.10, 0.20)
"""Share of a pause that is added at random, so that clients that began together do not poll together."""


@dataclass(frozen=True)
class Pace:
    """Pauses between requests.

    Parameters
    ----------
    sleep
        Waits that many seconds.
    uniform
        A random number between two others.
    """

    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    uniform: Callable[[float, float], float] = random.uniform

    def between_polls(self, interval_ms: int | None) -> float:
        """Seconds until the next poll: what the server asks for, and 10 to 20 % more.

        Parameters
        ----------
        interval_ms
            ``pollIntervalMs``, or None when the server named none.
        """
        return self._jittered(_usable(interval_ms))

    def after_failure(self, failures: int, interval_ms: int | None, retry_after_ms: int = 0) -> float:
        """Seconds until the next try: doubled with each failure in a row.

        Parameters
        ----------
        failures
            How many there were in a row; at least 1.
        interval_ms
            ``pollIntervalMs``, the first pause; a second when it is not known.
        retry_after_ms
            What the server asked for, in milliseconds; never waited less.
        """
        first = _usable(FIRST_PAUSE_MS if interval_ms is None else interval_ms)
        longest = max(LONGEST_PAUSE_MS, first)
        return self._jittered(max(min(first * 2 ** min(failures - 1, 30), longest), retry_after_ms))

    def _jittered(self, milliseconds: float) -> float:
        return milliseconds * (1 + self.uniform(*JITTER)) / 1000


def _usable(interval_ms: int | None) -> int:
    return DEFAULT_POLL_MS if interval_ms is None else min(max(interval_ms, SHORTEST_POLL_MS), LONGEST_POLL_MS)
