"""What the supervisor refuses, and what it leaves behind when it does."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from local import runs as runs_module
from local.records import Records
from local.runs import Refused, Runs
from taskrail.clock import SystemClock
from taskrail.engines import RunState


def runs_of(directory: Path, command: Sequence[str]) -> Runs:
    records = Records(directory / "runs")
    return Runs(records, lambda record, lock: command, {}, (), SystemClock(), lambda record: None)


def test_a_start_that_fails_is_refused_and_leaves_no_record(tmp_path: Path) -> None:
    async def scenario() -> None:
        runs = runs_of(tmp_path, ["/no/such/program"])
        with pytest.raises(Refused, match="No such file"):
            runs.start("tool", "a-1", {}, 1_000)
        assert runs.record("a-1") is None

    asyncio.run(scenario())
    assert list((tmp_path / "runs").iterdir()) == []


def test_more_runs_than_one_machine_bears_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs_module, "MOST_RUNNING", 1)

    async def scenario() -> None:
        runs = runs_of(tmp_path, [sys.executable, "-c", "import time; time.sleep(60)"])
        runs.start("tool", "a-1", {}, 60_000)
        with pytest.raises(Refused, match="More than 1 runs"):
            runs.start("tool", "a-2", {}, 60_000)
        runs.start("tool", "a-1", {}, 60_000)
        runs.kill_all()
        with pytest.raises(Refused, match="ending"):
            runs.start("tool", "a-3", {}, 60_000)
        while runs.running():
            runs.look()
            await asyncio.sleep(0.01)
        record = runs.record("a-1")
        assert record is not None
        assert (record.state, record.reason) == (RunState.FAILED, "signal SIGKILL")

    asyncio.run(scenario())


def test_a_run_whose_record_cannot_be_written_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full: what runs is still watched and stopped."""

    def full(self: Records, record: object) -> None:
        raise OSError(28, "No space left on device")

    async def scenario() -> None:
        runs = runs_of(tmp_path, [sys.executable, "-c", "import time; time.sleep(60)"])
        runs.start("tool", "a-1", {}, 60_000)
        monkeypatch.setattr(Records, "write", full)
        stop = asyncio.ensure_future(runs.stop("a-1", within=10))
        while not stop.done():
            runs.look()
            await asyncio.sleep(0.01)
        assert stop.result()
        record = runs.record("a-1")
        assert record is not None
        assert record.state is RunState.STOPPED
        with pytest.raises(Refused, match="No space left"):
            runs.start("tool", "a-2", {}, 60_000)

    asyncio.run(scenario())
