"""The clients of `benchmarks.polls` poll as the real ones do: each real loop is driven, in a time that is a number."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.polls import CLIENTS, HOUR, MINUTE, SECOND, Client, adaptive, fixed, poll_times

pytestmark = [pytest.mark.clients]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DRIVER = str(HERE / "cadence_driver.py")

INTERVALS = {"adaptive": (adaptive(), 5 * SECOND, MINUTE), "fixed": (fixed(5 * SECOND), 5 * SECOND, 0)}
JOBS = (10 * SECOND, MINUTE, 10 * MINUTE, HOUR, 8 * HOUR)


def driven(client: str, *numbers: int) -> dict[str, Any]:
    """What a real client did."""
    python = str(ROOT / f".venv-{client}" / "bin" / "python")
    command = [python, DRIVER, client, *map(str, numbers)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=50)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("interval", INTERVALS)
def test_fastmcp_polls_as_it_is_reckoned(interval: str, job: int) -> None:
    reckoned, least, most = INTERVALS[interval]
    did = driven("fastmcp", least, most, job)
    assert did["polls"] == pytest.approx(poll_times(CLIENTS["fastmcp"], reckoned, job))
    assert did["others"] == []


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("interval", INTERVALS)
def test_strands_polls_as_it_is_reckoned(interval: str, job: int) -> None:
    reckoned, least, most = INTERVALS[interval]
    did = driven("strands", least, most, job, 9 * HOUR)
    assert did["polls"] == pytest.approx(poll_times(CLIENTS["strands"], reckoned, job))
    assert did["others"] == []


@pytest.mark.parametrize("interval", INTERVALS)
def test_strands_gives_up_after_five_minutes_and_cancels(interval: str) -> None:
    reckoned, least, most = INTERVALS[interval]
    did = driven("strands", least, most, HOUR)
    assert did["polls"] == pytest.approx(poll_times(CLIENTS["strands-5min"], reckoned, HOUR))
    assert did["polls"][-1] < 5 * MINUTE and did["others"] == ["tasks/cancel"]


def test_a_wrong_cadence_would_be_seen() -> None:
    """The comparison compares: another first poll is another series."""
    late = Client("late", "", lambda: lambda interval_ms: float(interval_ms))
    assert driven("fastmcp", 5 * SECOND, MINUTE, MINUTE)["polls"] != pytest.approx(poll_times(late, adaptive(), MINUTE))
