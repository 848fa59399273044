"""Sizes and durations: what cannot work is refused with a text that says what to write."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskrail import StepFunctions, days, hours, minutes, seconds
from taskrail.compute import LONGEST_DURATION, Policy, checked_milliseconds, policy


def test_step_functions_has_sizes_that_work_by_default() -> None:
    runs_on = StepFunctions()
    assert (runs_on.memory_mb, runs_on.timeout, runs_on.engine) == (512, timedelta(minutes=10), "step_functions")


def test_a_run_may_take_fourteen_and_a_half_minutes_and_no_longer() -> None:
    assert StepFunctions(timeout=minutes(14.5)).timeout == timedelta(seconds=870)
    with pytest.raises(ValueError, match=r"at most 14 minutes 30 seconds.*15 minutes.*split"):
        StepFunctions(timeout=minutes(14.5) + timedelta(milliseconds=1))
    with pytest.raises(ValueError, match="at most 14 minutes 30 seconds"):
        StepFunctions(timeout=minutes(20))


@pytest.mark.parametrize("memory", [128, 512, 10_240])
def test_memory_in_range(memory: int) -> None:
    assert StepFunctions(memory_mb=memory).memory_mb == memory


@pytest.mark.parametrize("memory", [0, -1, 127, 10_241, 512.0, True, "512", None])
def test_memory_out_of_range_or_no_number(memory: Any) -> None:
    with pytest.raises(ValueError, match="memory_mb"):
        StepFunctions(memory_mb=memory)


@pytest.mark.parametrize("timeout", [seconds(0), seconds(-1), timedelta(microseconds=400), 600, "10m", None])
def test_timeout_that_is_no_duration_longer_than_zero(timeout: Any) -> None:
    with pytest.raises(ValueError, match="timeout"):
        StepFunctions(timeout=timeout)


def test_policy_holds_milliseconds_and_the_budget_includes_queueing() -> None:
    made = policy(StepFunctions(timeout=minutes(2)), hours(24), days(7), seconds(5))
    assert made == Policy(120_000, 60_000, 86_400_000, 604_800_000, 5_000)
    assert made.run_budget_ms == 180_000


def test_a_result_may_be_kept_for_ever() -> None:
    assert policy(StepFunctions(), None, days(1), seconds(1)).keep_result_ms is None


@pytest.mark.parametrize("name", ["keep_result", "answer_within", "poll_interval"])
@pytest.mark.parametrize("duration", [timedelta(0), timedelta(seconds=-1), timedelta(days=4000), timedelta.max, 5])
def test_every_duration_is_checked_by_name(name: str, duration: Any) -> None:
    durations: dict[str, Any] = {"keep_result": hours(1), "answer_within": hours(1), "poll_interval": hours(1)}
    with pytest.raises(ValueError, match=name):
        policy(StepFunctions(), **{**durations, name: duration})


@given(st.timedeltas(min_value=timedelta(milliseconds=1), max_value=LONGEST_DURATION))
def test_a_duration_never_becomes_zero_and_is_a_whole_number(duration: timedelta) -> None:
    length = checked_milliseconds("poll_interval", duration)
    assert isinstance(length, int)
    assert length >= 1
    assert abs(length - duration / timedelta(milliseconds=1)) <= 0.5
