"""Sizes and durations: what cannot work is refused with a text that says what to write."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskrail import Batch, Lambda, StepFunctions, days, hours, minutes, seconds
from taskrail.compute import FARGATE_MEMORY_MB, LONGEST_DURATION, Policy, checked_milliseconds, policy


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


def test_batch_has_sizes_that_work_by_default() -> None:
    runs_on = Batch()
    assert (runs_on.vcpu, runs_on.memory_mb, runs_on.timeout) == (1, 2048, hours(1))
    assert (runs_on.attempts, runs_on.spot, runs_on.architecture, runs_on.storage_gb) == (3, False, "arm64", None)
    assert (runs_on.engine, runs_on.queue_ms) == ("batch", 6 * 3_600_000)


@pytest.mark.parametrize(
    ("vcpu", "lowest", "highest", "count"),
    [
        (0.25, 512, 2048, 3),
        (0.5, 1024, 4096, 4),
        (1, 2048, 8192, 7),
        (2, 4096, 16_384, 13),
        (4, 8192, 30_720, 23),
        (8, 16_384, 61_440, 12),
        (16, 32_768, 122_880, 12),
    ],
)
def test_fargate_offers_these_sizes_and_no_others(vcpu: float, lowest: int, highest: int, count: int) -> None:
    sizes = FARGATE_MEMORY_MB[vcpu]
    assert (sizes[0], sizes[-1], len(sizes)) == (lowest, highest, count)
    for memory in sizes:
        assert Batch(vcpu=vcpu, memory_mb=memory).memory_mb == memory
    for memory in (lowest - 1, lowest + 1, highest + 1024):
        with pytest.raises(ValueError, match=rf"memory_mb=.*with {vcpu} vCPU is one of {lowest}, .*{highest}"):
            Batch(vcpu=vcpu, memory_mb=memory)


@pytest.mark.parametrize("vcpu", [0, 3, 32, -1, "1", None, True])
def test_a_number_of_cpus_that_is_not_on_offer(vcpu: Any) -> None:
    with pytest.raises(ValueError, match=r"Batch\(vcpu=...\) is one of 0.25, 0.5, 1, 2, 4, 8, 16"):
        Batch(vcpu=vcpu)


def test_bounds_of_batch() -> None:
    assert Batch(timeout=minutes(1), queue_within=minutes(10), attempts=1, storage_gb=21)
    assert Batch(
        timeout=days(14), queue_within=hours(24), attempts=10, storage_gb=200, architecture="x86_64", spot=True
    )


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"memory_mb": 2048.0}, "memory_mb"),
        ({"memory_mb": True}, "memory_mb"),
        ({"timeout": seconds(59)}, "timeout=...\\) is 1 minute to 14 days"),
        ({"timeout": days(15)}, "timeout=...\\) is 1 minute to 14 days"),
        ({"timeout": 3600}, "timeout=...\\) is a duration"),
        ({"queue_within": minutes(9)}, "queue_within=...\\) is 10 minutes to 24 hours"),
        ({"queue_within": hours(25)}, "queue_within=...\\) is 10 minutes to 24 hours"),
        ({"attempts": 0}, "attempts=...\\) is a whole number from 1 to 10"),
        ({"attempts": 11}, "attempts"),
        ({"attempts": True}, "attempts"),
        ({"storage_gb": 20}, "storage_gb=...\\) is a whole number from 21 to 200"),
        ({"storage_gb": 201}, "storage_gb"),
        ({"spot": 1}, "spot"),
        ({"architecture": "ARM64"}, "architecture=...\\) is 'arm64' or 'x86_64'"),
    ],
)
def test_what_batch_does_not_offer(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Batch(**wrong)


def test_lambda_has_sizes_that_work_by_default() -> None:
    runs_on = Lambda()
    assert (runs_on.memory_mb, runs_on.timeout, runs_on.attempts) == (512, minutes(10), 1)
    assert (runs_on.engine, runs_on.queue_ms) == ("lambda", 3_600_000)


def test_bounds_of_lambda() -> None:
    assert Lambda(memory_mb=128, timeout=minutes(14.5), attempts=1, queue_within=minutes(1))
    assert Lambda(memory_mb=10_240, timeout=seconds(1), attempts=3, queue_within=hours(6))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"memory_mb": 127}, r"Lambda\(memory_mb=...\) must be 128 to 10240"),
        ({"memory_mb": 10_241}, "memory_mb"),
        ({"memory_mb": True}, r"Lambda\(memory_mb=...\) is a whole number"),
        ({"timeout": minutes(14.6)}, r"Lambda\(timeout=...\) is at most 14 minutes 30 seconds"),
        ({"timeout": seconds(0)}, r"Lambda\(timeout=...\) must be longer than zero"),
        ({"timeout": 600}, r"Lambda\(timeout=...\) is a duration"),
        ({"attempts": 0}, r"Lambda\(attempts=...\) is a whole number from 1 to 3"),
        ({"attempts": 4}, "attempts"),
        ({"attempts": True}, "attempts"),
        ({"queue_within": seconds(59)}, r"Lambda\(queue_within=...\) is 1 minute to 6 hours"),
        ({"queue_within": hours(7)}, "queue_within"),
        ({"queue_within": 3600}, r"Lambda\(queue_within=...\) is a duration"),
    ],
)
def test_what_lambda_does_not_offer(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Lambda(**wrong)


@pytest.mark.parametrize(("attempts", "least"), [(2, minutes(6)), (3, minutes(13))])
def test_the_last_attempt_on_lambda_has_to_begin_while_its_event_is_kept(attempts: int, least: timedelta) -> None:
    """Lambda counts the age of an event from the call, and waits one minute and then two between attempts."""
    assert Lambda(timeout=minutes(5), attempts=attempts, queue_within=least)
    with pytest.raises(ValueError, match=rf"queue_within=...\) with attempts={attempts} is at least {least} here"):
        Lambda(timeout=minutes(5), attempts=attempts, queue_within=least - seconds(1))


def test_every_attempt_has_the_whole_time() -> None:
    made = policy(Batch(timeout=hours(2), attempts=3, queue_within=hours(1)), hours(24), days(7), seconds(5))
    assert (made.timeout_ms, made.attempts, made.queue_ms) == (7_200_000, 3, 3_600_000)
    assert made.run_budget_ms == 7 * 3_600_000
