"""Pauses."""

from __future__ import annotations

import pytest

from taskrail_client.pace import DEFAULT_POLL_MS, LONGEST_PAUSE_MS, LONGEST_POLL_MS, Pace

SOONEST, LATEST = Pace(uniform=lambda low, high: low), Pace(uniform=lambda low, high: high)


@pytest.mark.parametrize(
    ("interval", "expected"),
    [(1_000, 1.0), (None, DEFAULT_POLL_MS / 1000), (0, 0.01), (10**15, LONGEST_POLL_MS / 1000)],
)
def test_polls_come_10_to_20_percent_later_than_asked(interval: int | None, expected: float) -> None:
    """Never sooner, and within reason whatever the server says."""
    assert SOONEST.between_polls(interval) == pytest.approx(expected * 1.1)
    assert LATEST.between_polls(interval) == pytest.approx(expected * 1.2)


def test_failures_double_the_pause_up_to_a_minute() -> None:
    """And never below what the server asks for."""
    pauses = [SOONEST.after_failure(failures, 1_000) / 1.1 for failures in range(1, 9)]
    assert pauses == pytest.approx([1, 2, 4, 8, 16, 32, 60, 60])
    assert SOONEST.after_failure(10**6, 1_000) == pytest.approx(LONGEST_PAUSE_MS / 1000 * 1.1)
    assert SOONEST.after_failure(1, 1_000, 90_000) == pytest.approx(99)
    assert SOONEST.after_failure(1, None) == pytest.approx(1.1)
    assert SOONEST.after_failure(1, 120_000) == pytest.approx(132)
