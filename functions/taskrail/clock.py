"""The time: the one place that reads it and converts between its units.

Everywhere else a moment is an integer of milliseconds since the epoch, and a duration an
integer of milliseconds. DynamoDB's TTL attribute wants seconds, the wire wants ISO 8601.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Protocol


class Clock(Protocol):
    """What the kit asks of a clock, so that tests can hold it still."""

    def now(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def sleep(self, milliseconds: int) -> None:
        """Let time pass: wait that many milliseconds."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def sleep(self, milliseconds: int) -> None:
        """Wait that many milliseconds."""
        time.sleep(max(0, milliseconds) / 1000)


def iso(moment: int) -> str:
    """ISO 8601 in UTC with milliseconds, as the wire wants it, from milliseconds."""
    seconds, rest = divmod(moment, 1000)
    return f"{_second(seconds)}.{rest:03d}Z"


@lru_cache(maxsize=256)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:-6]


def moment(text: str) -> int:
    """Milliseconds since the epoch from an ISO 8601 text that `iso` wrote."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def seconds_rounded_up(milliseconds: int) -> int:
    """Whole seconds, rounded up: a TTL never cuts into the life that was promised."""
    return -(-milliseconds // 1000)


def milliseconds(duration: timedelta) -> int:
    """A duration in whole milliseconds."""
    return round(duration.total_seconds() * 1000)


def seconds(count: float) -> timedelta:
    """A duration of that many seconds."""
    return timedelta(seconds=count)


def minutes(count: float) -> timedelta:
    """A duration of that many minutes."""
    return timedelta(minutes=count)


def hours(count: float) -> timedelta:
    """A duration of that many hours."""
    return timedelta(hours=count)


def days(count: float) -> timedelta:
    """A duration of that many days."""
    return timedelta(days=count)
