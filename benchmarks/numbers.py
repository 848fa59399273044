"""Medians, spreads and ratios."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Measure:
    """What was measured several times.

    Parameters
    ----------
    median
        The value that half of them stay below.
    low, high
        The quarter points: half of all lies between them.
    count
        How many there were.
    """

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Measure:
        """The measure of some values, at least one."""
        low, high = _quarters(values)
        return cls(statistics.median(values), low, high, len(values))

    def as_json(self) -> dict[str, float]:
        """For the results' file."""
        return asdict(self)


def ratio(values: Sequence[float], others: Sequence[float]) -> Measure:
    """How often the others' value goes into ours, round by round.

    Both were measured in turns, so that what slows the machine down for a while is in both and cancels out.

    Parameters
    ----------
    values, others
        One of each round, in the same order.
    """
    return Measure.of([value / other for value, other in zip(values, others, strict=True)])


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that `percent` of all values stay at or below (nearest rank)."""
    ordered = sorted(values)
    rank = max(1, -(-len(ordered) * percent // 100))
    return ordered[int(rank) - 1]


def _quarters(values: Sequence[float]) -> tuple[float, float]:
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high
