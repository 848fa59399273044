"""The simulation of clients' polls. That the clients are like the real ones is `tests/clients/test_cadence.py`'s."""

from __future__ import annotations

import dataclasses
import math

import pytest

from benchmarks.cost_requests import poll_dollars, probe_dollars
from benchmarks.polls import (
    CLIENTS,
    HOUR,
    INTERVALS,
    JOBS,
    MINUTE,
    SECOND,
    Client,
    adaptive,
    delays,
    fixed,
    poll_times,
    polls_of,
    rows,
)
from taskrail import task

FASTMCP, STRANDS, TASKRAIL = (CLIENTS[name] for name in ("fastmcp", "strands", "taskrail"))


def test_fastmcp_doubles_from_20_ms_up_to_what_is_asked_for() -> None:
    assert poll_times(FASTMCP, fixed(100), 600) == [0, 20, 60, 140, 240, 340, 440, 540, 640]
    assert poll_times(FASTMCP, fixed(0), 70) == [0, 20, 40, 60, 80]


def test_strands_waits_first() -> None:
    assert poll_times(STRANDS, fixed(5 * SECOND), 12 * SECOND) == [5_000, 10_000, 15_000]
    assert poll_times(STRANDS, fixed(0), 15) == [10, 20]


def test_the_kits_own_client_waits_a_little_longer_than_it_is_asked_to() -> None:
    assert poll_times(TASKRAIL, fixed(10 * SECOND), 20 * SECOND) == pytest.approx([11_500, 23_000])


def test_the_adaptive_interval_is_the_kits_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = adaptive(5 * SECOND)
    assert [asked(age) for age in (0, 50_000, 100_000, 600_000, 9 * HOUR)] == [5_000, 5_000, 10_000, 60_000, 60_000]
    monkeypatch.setattr(task, "LONGEST_POLL_MS", 300_000)
    assert asked(9 * HOUR) == 300_000


def test_adaptive_intervals_need_far_fewer_polls_of_long_jobs_and_as_many_of_short_ones() -> None:
    for client in (FASTMCP, STRANDS, TASKRAIL):
        counts = {
            job: [polls_of(client, interval, ms)[0] for interval in (adaptive(), fixed(5_000))]
            for job, ms in JOBS.items()
        }
        assert counts["10 s"][0] == counts["10 s"][1]
        assert counts["10 min"][0] * 2.5 < counts["10 min"][1]
        assert counts["1 h"][0] * 7 < counts["1 h"][1]
        assert counts["8 h"][0] * 11 < counts["8 h"][1]


def test_a_result_is_seen_within_a_tenth_of_the_jobs_time_or_a_minute() -> None:
    """Beside the least interval, and with the 20 % that the kit's own client may add."""
    for client in (FASTMCP, STRANDS, TASKRAIL):
        for job_ms in JOBS.values():
            seen = delays(client, adaptive(), job_ms)
            assert seen is not None
            assert seen[0] < seen[1] <= 1.2 * max(5 * SECOND, min(1.25 * job_ms / 10, MINUTE)) + 1


def test_delays_are_exact() -> None:
    # A poll every 10 s, jobs of 75 s to 125 s: four whole gaps, each 5 s late on average, and a half at either end.
    mean, worst = delays(STRANDS, fixed(10 * SECOND), 100 * SECOND) or (0, 0)
    halves = (5 * 2.5 + 4 * 10 * 5 + 5 * 7.5) / 50
    assert mean == pytest.approx(halves * SECOND)
    assert worst == pytest.approx(10 * SECOND)
    # By trying: a thousand lengths.
    times = poll_times(FASTMCP, adaptive(), 80 * SECOND)
    tried = [next(at for at in times if at >= job) - job for job in [45_000 + 30 * i for i in range(1_000)]]
    mean, worst = delays(FASTMCP, adaptive(), 60 * SECOND) or (0, 0)
    assert mean == pytest.approx(sum(tried) / len(tried), rel=0.02)
    assert worst == pytest.approx(max(tried), rel=0.02)


def test_a_client_that_gives_up_sees_nothing() -> None:
    impatient = CLIENTS["strands-5min"]
    assert delays(impatient, fixed(5 * SECOND), 10 * MINUTE) is None
    assert polls_of(impatient, fixed(5 * SECOND), 10 * MINUTE)[0] == 59
    assert delays(impatient, fixed(5 * SECOND), 3 * MINUTE) == delays(STRANDS, fixed(5 * SECOND), 3 * MINUTE)
    hasty = Client("hasty", "", lambda: lambda interval: 5_000.0, patience_ms=1)
    assert poll_times(hasty, fixed(1), 10) == [] and delays(hasty, fixed(1), 10) is None


def test_a_silent_task_is_probed_at_most_every_fifteen_seconds() -> None:
    assert polls_of(STRANDS, fixed(5 * SECOND), MINUTE) == (12, 3)
    assert polls_of(STRANDS, fixed(MINUTE), 10 * MINUTE) == (10, 9)
    assert polls_of(STRANDS, fixed(5 * SECOND), 15 * SECOND) == (3, 0)


def test_rows_are_every_combination_and_add_up() -> None:
    table = rows()
    assert len({(row.client, row.interval, row.job) for row in table}) == len(CLIENTS) * len(INTERVALS) * len(JOBS)
    for row in table:
        probing = row.probes * probe_dollars()
        assert row.http_dollars == pytest.approx(1e6 * (row.polls * poll_dollars("http") + probing))
        assert row.rest_dollars - row.http_dollars == pytest.approx(2.5 * row.polls)
        assert (row.mean_delay_ms is None) == (row.client == "strands-5min" and JOBS[row.job] >= 10 * MINUTE)
        assert row.mean_delay_ms is None or not math.isnan(row.mean_delay_ms)
    with pytest.raises(dataclasses.FrozenInstanceError):
        table[0].polls = 0  # type: ignore[misc]
