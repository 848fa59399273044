"""What the supervisor remembers on disk, and how processes are told apart."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from local.processes import Identity, alive, end_session, identify
from local.records import STOP, Record, Records, sign, usable_name
from taskrail.engines import RunState

RECORD = Record("a-1", "tool", {"taskId": "a", "run": 1}, 1000, 5)


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path / "runs")


def test_a_record_comes_back_as_it_was_written(records: Records) -> None:
    ended = replace(RECORD, state=RunState.FAILED, reason="exit code 3", ended_at=9, asked=STOP, reported=True)
    records.write(RECORD)
    records.write(ended)
    assert records.read("a-1") == ended
    assert list(records.all()) == [ended]


def test_a_record_that_was_never_finished_is_no_run(records: Records) -> None:
    records.folder("a-1").mkdir()
    (records.folder("a-1") / "record.new").write_text('{"name": "a-1"')
    assert list(records.all()) == []
    assert not records.folder("a-1").exists()


def test_a_lock_lives_as_long_as_one_process_that_inherited_it(records: Records) -> None:
    records.write(RECORD)
    lock = records.lock("a-1")
    heir = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[lock])
    os.close(lock)
    assert records.locked("a-1")
    with pytest.raises(BlockingIOError):
        records.lock("a-1")
    heir.communicate(b"\n")
    assert not records.locked("a-1")


def test_a_process_signs_its_lock(records: Records) -> None:
    records.write(RECORD)
    assert records.identity("a-1") is None
    lock = records.lock("a-1")
    assert records.identity("a-1") is None
    sign(lock)
    os.close(lock)
    assert records.identity("a-1") == identify(os.getpid())


def test_an_exit_code_is_noted(records: Records) -> None:
    records.write(RECORD)
    assert records.exit_code("a-1") is None
    records.note_exit("a-1", 3)
    assert records.exit_code("a-1") == 3


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b", "a\n", "x" * 81, "ä", 7, None])
def test_a_name_that_is_no_folder_is_not_usable(name: object) -> None:
    assert not usable_name(name)


@pytest.mark.parametrize("name", ["a", f"{'0' * 32}-1", "x" * 80])
def test_a_run_name_is_usable(name: str) -> None:
    assert usable_name(name)


def test_a_number_that_another_process_has_now_is_not_alive() -> None:
    me = identify(os.getpid())
    assert me is not None and alive(me)
    assert not alive(Identity(me.pid, "another time"))


def test_a_process_that_has_ended_but_was_not_read_is_not_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert identify(child.pid) is None
    child.wait()


def test_a_session_of_somebody_else_under_the_same_number_is_left_alone() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
    end_session(Identity(child.pid, "another time"))
    child.communicate(b"\n")
    assert child.returncode == 0
