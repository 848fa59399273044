"""Job processes under the supervisor, through the engine: real processes, with code of the tests' own in them."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from local.engine import Jobs, Line, execution_arn
from local.processes import identify
from local.records import Record
from local.stack import PAUSE_MS
from local.supervisor import CLOSE_WITHIN
from taskrail.clock import SystemClock
from taskrail.engines import RunOrder, RunReport, RunState
from taskrail.errors import EngineUnavailable, StartRefused
from taskrail.rail.leases import LEASE_MS
from tests.local_help import Desk, processes_of, short_directory, wait_for

ORDER = RunOrder("tool", "a-1", {}, timeout_ms=1)
FOREVER = "time.sleep(60)"
DEAF = "[signal.signal(s, signal.SIG_IGN) for s in (signal.SIGTERM, signal.SIGINT)]; open('deaf', 'w'); time.sleep(60)"


@pytest.fixture
def desk() -> Iterator[Desk]:
    with short_directory() as directory:
        made = Desk(directory)
        yield made
        made.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[Desk]:
    """One supervisor for the tests that leave it as it was."""
    with short_directory() as directory:
        made = Desk(directory)
        yield made
        made.close()


@pytest.fixture
def name() -> str:
    return f"{uuid4().hex}-1"


def ended(desk: Desk, name: str, within: float = 20.0) -> RunReport:
    """The report of a run, once it is over."""

    def report() -> RunReport | None:
        found = desk.jobs.describe(name)
        return found if found.ended else None

    found = wait_for(report, within, f"the end of {name}")
    assert found is not None
    return found


def deaf(desk: Desk, name: str) -> int:
    """Start a job that hears no signal; its process."""
    marker = desk.stack.directory / f"{name}-deaf"
    desk.run(name, DEAF.replace("'deaf'", repr(str(marker))))
    wait_for(marker.exists, what="deafness")
    return desk.pid(name)


@pytest.mark.parametrize(
    ("code", "report"),
    [
        ("pass", RunReport(RunState.SUCCEEDED)),
        ("sys.exit(3)", RunReport(RunState.FAILED, "exit code 3")),
        ("os._exit(3)", RunReport(RunState.FAILED, "exit code 3")),
        ("1 / 0", RunReport(RunState.FAILED, "exit code 1")),
        ("os.kill(os.getpid(), signal.SIGKILL)", RunReport(RunState.FAILED, "signal SIGKILL")),
        ("os.abort()", RunReport(RunState.FAILED, "signal SIGABRT")),
    ],
)
def test_the_report_says_how_a_run_ended(shared: Desk, name: str, code: str, report: RunReport) -> None:
    shared.run(name, code)
    assert ended(shared, name) == report


def test_an_unknown_run_is_not_found_and_counts_as_stopped(shared: Desk, name: str) -> None:
    assert shared.jobs.describe(name) == RunReport(RunState.NOT_FOUND)
    assert shared.jobs.stop(name)


def test_a_name_started_by_twenty_threads_is_one_process(desk: Desk) -> None:
    with ThreadPoolExecutor(20) as pool:
        starts = [pool.submit(desk.run, "a-1", "pass") for _ in range(20)]
        assert {start.result() for start in starts} == {"arn:aws:states:us-east-1:000000000000:execution:tool:a-1"}
    assert ended(desk, "a-1").state is RunState.SUCCEEDED
    desk.run("a-1", "pass")
    assert desk.started() == ["a-1"]


def test_stopping_ends_the_process_and_is_safe_to_repeat(shared: Desk, name: str) -> None:
    shared.run(name, FOREVER)
    pid = shared.pid(name)
    assert shared.jobs.stop(name)
    assert identify(pid) is None
    assert shared.jobs.stop(name)
    assert shared.jobs.describe(name) == RunReport(RunState.STOPPED)


def test_a_process_that_ignores_sigterm_is_killed_after_its_grace(desk: Desk) -> None:
    pid = deaf(desk, "a-1")
    before = time.monotonic()
    assert not desk.jobs.stop("a-1"), "told to end, but not ended yet"
    assert desk.jobs.describe("a-1").state is RunState.RUNNING
    assert ended(desk, "a-1") == RunReport(RunState.STOPPED)
    assert 4.5 < time.monotonic() - before < 9
    assert identify(pid) is None


def test_a_run_out_of_time_is_ended(shared: Desk, name: str) -> None:
    shared.run(name, FOREVER, timeout_ms=300)
    assert ended(shared, name) == RunReport(RunState.TIMED_OUT)


def test_what_a_job_started_ends_with_it(desk: Desk) -> None:
    desk.run("a-1", "subprocess.Popen(['sleep', '4321.25']); subprocess.Popen(['setsid', '-f', 'true']).wait()")
    desk.run("a-2", "subprocess.Popen(['sleep', '4321.5'], process_group=0)" + "; time.sleep(60)")
    ended(desk, "a-1")
    assert not processes_of("sleep 4321.25")
    wait_for(lambda: processes_of("sleep 4321.5"))
    desk.jobs.stop("a-2")
    ended(desk, "a-2")
    assert not processes_of("sleep 4321.5")


def test_temporary_files_of_a_job_end_with_it_and_its_output_stays(shared: Desk, name: str) -> None:
    shared.run(name, "import tempfile; print(tempfile.mkdtemp())")
    ended(shared, name)
    where = Path(shared.records.log(name).read_text().strip())
    assert shared.records.folder(name) in where.parents
    assert not where.exists()


def test_a_restarted_supervisor_knows_every_run(desk: Desk) -> None:
    """Alive, orderly ended, vanished, stopped: whatever happened while nobody watched."""
    desk.run("done-1", "pass")
    ended(desk, "done-1")
    go = desk.stack.directory / "go"
    desk.run(
        "alive-1", f"while not os.path.exists({str(go)!r}): time.sleep(.01)\nrecords.note_exit(name, 4)\nsys.exit(4)"
    )
    desk.run("gone-1", FOREVER)
    desk.run("stopping-1", FOREVER)
    gone = desk.pid("gone-1")
    desk.pid("alive-1")
    stopping = deaf(desk, "stopped-1")
    assert not desk.jobs.stop("stopped-1")
    desk.kill_supervisor()
    os.kill(gone, signal.SIGKILL)
    os.kill(stopping, signal.SIGKILL)
    wait_for(lambda: identify(gone) is None and identify(stopping) is None)
    desk.restart()

    assert desk.jobs.describe("done-1") == RunReport(RunState.SUCCEEDED)
    assert ended(desk, "gone-1") == RunReport(RunState.FAILED, None), "nobody knows why"
    assert ended(desk, "stopped-1") == RunReport(RunState.STOPPED)
    assert desk.jobs.describe("alive-1").state is RunState.RUNNING
    desk.run("alive-1", "pass")
    go.touch()
    assert ended(desk, "alive-1") == RunReport(RunState.FAILED, "exit code 4")
    assert desk.started().count("alive-1") == 1
    assert desk.jobs.stop("stopping-1"), "an adopted run can be stopped"


def test_a_job_of_batch_knows_its_id_and_its_attempt(shared: Desk, name: str) -> None:
    shared.run(name, "print(os.environ['AWS_BATCH_JOB_ID'], os.environ['AWS_BATCH_JOB_ATTEMPT'])", engine="batch")
    assert ended(shared, name) == RunReport(RunState.SUCCEEDED, attempt=1)
    assert shared.records.log(name).read_text() == f"{execution_arn('tool', name)} 1\n"


def test_variables_of_a_run_are_its_own(shared: Desk, name: str) -> None:
    shared.run(name, "print(os.environ['MINE'], 'AWS_BATCH_JOB_ID' in os.environ)", environment={"MINE": "yes"})
    ended(shared, name)
    assert shared.records.log(name).read_text() == "yes False\n"


def test_a_job_that_a_signal_ends_has_the_exit_code_of_its_container(shared: Desk, name: str) -> None:
    shared.run(name, "os.kill(os.getpid(), signal.SIGKILL)", engine="batch", attempts=2)
    assert ended(shared, name) == RunReport(RunState.FAILED, "exit code 137", attempt=1), "seen, so not tried again"


def test_an_attempt_whose_end_nobody_saw_is_followed_by_the_next(desk: Desk) -> None:
    code = "print(os.environ['AWS_BATCH_JOB_ATTEMPT']); os.environ['AWS_BATCH_JOB_ATTEMPT'] == '1' and time.sleep(60)"
    desk.run("a-1", code, engine="batch", attempts=2, timeout_ms=30_000)
    desk.run("b-1", FOREVER, engine="batch", attempts=1)
    pids = [desk.pid("a-1"), desk.pid("b-1")]
    desk.kill_supervisor()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not any(identify(pid) for pid in pids))
    desk.restart()
    assert ended(desk, "a-1") == RunReport(RunState.SUCCEEDED, attempt=2)
    assert ended(desk, "b-1") == RunReport(RunState.FAILED, attempt=1), "that was its only one"
    desk.kill_supervisor()
    desk.restart()
    assert ended(desk, "a-1") == RunReport(RunState.SUCCEEDED, attempt=2)


def test_an_invocation_is_tried_again_whatever_it_died_of(desk: Desk) -> None:
    first = "records.read(name).attempt == 1 and "
    for number, death in enumerate(("os.kill(os.getpid(), signal.SIGKILL)", "sys.exit(3)", "time.sleep(60)")):
        desk.run(f"a-{number}", first + death, engine="lambda", attempts=2, timeout_ms=2_000)
    desk.run("b-1", "sys.exit(3)", engine="lambda", attempts=2)
    desk.run("c-1", "sys.exit(3)", engine="lambda", attempts=1)
    for number in range(3):
        assert ended(desk, f"a-{number}").state is RunState.SUCCEEDED
    assert {ended(desk, name) for name in ("b-1", "c-1")} == {RunReport(RunState.FAILED, "exit code 3")}
    attempts = [desk.records.read(name).attempt for name in ("a-0", "a-1", "a-2", "b-1", "c-1")]
    assert attempts == [2, 2, 2, 2, 1]
    assert [len([each for each in desk.started() if each == name]) for name in ("a-0", "b-1", "c-1")] == [2, 2, 1]


def test_an_invocation_that_is_told_of_has_every_attempt_behind_it(desk: Desk) -> None:
    desk.run("a-1", "sys.exit(3)", engine="lambda", attempts=3)
    told = desk.line.ask({"do": "ended"})["ok"]
    assert (told["name"], told["attempt"], told["reason"]) == ("a-1", 3, "exit code 3")


def test_a_pause_between_two_attempts_outlives_the_supervisor() -> None:
    with short_directory() as directory:
        desk = Desk(directory, pause_ms=1_500)
        try:
            desk.run("a-1", "records.read(name).attempt == 1 and sys.exit(3)", engine="lambda", attempts=2)
            wait_for(lambda: desk.records.read("a-1").next_at)
            due = desk.records.read("a-1").next_at
            desk.kill_supervisor()
            desk.restart()
            assert ended(desk, "a-1").state is RunState.SUCCEEDED
            record = desk.records.read("a-1")
            assert record.attempt == 2
            assert record.attempt_at >= due
            assert desk.started() == ["a-1", "a-1"]
        finally:
            desk.close()


def test_a_pause_ends_with_the_stack() -> None:
    with short_directory() as directory:
        desk = Desk(directory, pause_ms=60_000)
        try:
            desk.run("a-1", "sys.exit(3)", engine="lambda", attempts=2)
            wait_for(lambda: desk.records.read("a-1").next_at)
            desk.supervisor.terminate()
            desk.supervisor.wait(10)
            assert desk.records.read("a-1").state is RunState.STOPPED
            assert desk.started() == ["a-1"]
        finally:
            desk.close()


def test_the_next_attempt_comes_after_the_lease_of_the_last() -> None:
    assert LEASE_MS < PAUSE_MS <= LEASE_MS + 1_000


def test_an_event_that_was_told_is_handed_out_until_it_is_reported(desk: Desk) -> None:
    desk.line.ask({"do": "tell", "event": {"id": "e-1", "detail": {}}})
    for _ in range(2):
        assert desk.line.ask({"do": "ended"})["ok"] == {"name": "e-1", "event": {"id": "e-1", "detail": {}}}
    desk.line.ask({"do": "reported", "name": "e-1"})
    desk.run("a-1", "pass")
    assert desk.line.ask({"do": "ended"})["ok"]["name"] == "a-1"


def test_a_restarted_supervisor_keeps_the_time_of_an_adopted_run(desk: Desk) -> None:
    desk.run("a-1", FOREVER, timeout_ms=2_000)
    desk.pid("a-1")
    desk.kill_supervisor()
    desk.restart()
    assert ended(desk, "a-1") == RunReport(RunState.TIMED_OUT)


def test_a_run_whose_process_was_never_born_can_be_started_again(desk: Desk) -> None:
    """The supervisor died between its note and the birth."""
    desk.kill_supervisor()
    desk.records.write(Record("a-1", "tool", {"code": "pass"}, 60_000, SystemClock().now()))
    desk.restart()
    assert desk.jobs.describe("a-1").state is RunState.NOT_FOUND
    desk.run("a-1", "pass")
    assert ended(desk, "a-1").state is RunState.SUCCEEDED


def test_a_run_whose_process_was_born_as_its_supervisor_died_is_adopted(desk: Desk) -> None:
    desk.kill_supervisor()
    desk.records.write(Record("a-1", "tool", {"code": "pass"}, 60_000, SystemClock().now()))
    lock = desk.records.lock("a-1")
    desk.restart()
    assert desk.jobs.describe("a-1").state is RunState.RUNNING, "its lock is held by somebody who has not signed"
    desk.run("a-1", "pass")
    os.close(lock)
    assert ended(desk, "a-1") == RunReport(RunState.FAILED, None)
    assert desk.started() == []


def test_a_start_while_the_supervisor_is_away_is_served_by_the_next_one(desk: Desk) -> None:
    desk.kill_supervisor()
    with ThreadPoolExecutor(1) as pool:
        start = pool.submit(desk.run, "a-1", "pass")
        desk.restart()
        start.result(10)
    assert ended(desk, "a-1").state is RunState.SUCCEEDED


def test_sigterm_ends_every_run_deaf_ones_included(desk: Desk) -> None:
    desk.run("a-1", FOREVER)
    pids = [desk.pid("a-1"), deaf(desk, "a-2")]
    desk.supervisor.terminate()
    desk.supervisor.wait(15)
    assert [identify(pid) for pid in pids] == [None, None]
    assert {record.state for record in desk.records.all()} == {RunState.STOPPED}


def test_a_second_sigterm_kills_at_once(desk: Desk) -> None:
    desk.run("a-1", FOREVER)
    polite, pid = desk.pid("a-1"), deaf(desk, "a-2")
    desk.supervisor.terminate()
    begun = time.monotonic()
    wait_for(lambda: identify(polite) is None)
    desk.supervisor.terminate()
    wait_for(lambda: identify(pid) is None)
    assert time.monotonic() - begun < CLOSE_WITHIN
    desk.supervisor.wait(15)


def test_the_end_of_the_launcher_ends_everything(desk: Desk) -> None:
    pids = [deaf(desk, "a-1"), deaf(desk, "a-2")]
    desk.cut()
    desk.supervisor.wait(15)
    assert [identify(pid) for pid in pids] == [None, None]
    assert not desk.stack.directory.exists()


@pytest.mark.parametrize("name", ["../a", "", ".a", "a" * 81])
def test_a_name_that_is_no_folder_is_refused(shared: Desk, name: str) -> None:
    with pytest.raises(StartRefused):
        shared.run(name, "pass")
    assert shared.jobs.describe(name).state is RunState.NOT_FOUND


def test_a_time_out_of_nothing_is_refused(shared: Desk) -> None:
    with pytest.raises(StartRefused):
        shared.run("a-1", "pass", timeout_ms=0)


def test_ends_are_handed_out_until_they_are_reported(desk: Desk) -> None:
    desk.run("a-1", "sys.exit(2)")
    for _ in range(2):
        end: Any = desk.line.ask({"do": "ended"})["ok"]
        assert (end["name"], end["state"], end["reason"]) == ("a-1", "failed", "exit code 2")
    desk.kill_supervisor()
    desk.restart()
    assert desk.line.ask({"do": "ended"})["ok"]["name"] == "a-1"
    desk.line.ask({"do": "reported", "name": "a-1"})
    desk.run("a-2", "pass")
    assert desk.line.ask({"do": "ended"})["ok"]["name"] == "a-2"


@pytest.mark.parametrize(
    "line", [b"\n", b"{\n", b"[]\n", b'{"do": "dance", "name": "a"}\n', b"\xff\xfe\n", b"x" * 2_000_000]
)
def test_garbage_does_not_disturb_the_supervisor(shared: Desk, line: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(shared.stack.socket))
        try:
            connection.sendall(line)
            connection.recv(1000)
        except OSError:
            pass
    assert shared.jobs.describe("a-1").state is RunState.NOT_FOUND


def jobs_at(path: Path) -> Jobs:
    """Runs behind a socket that is no real supervisor's."""
    return Jobs(Line(path, within=0.2), path.parent)


def answering(path: Path, answer: bytes) -> threading.Thread:
    """A supervisor that says what it is told to say, once."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(1)

    def serve() -> None:
        with listener:
            connection = listener.accept()[0]
            with connection:
                connection.recv(10_000)
                connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


@pytest.mark.parametrize(
    "answer", [b"", b"{", b"[]\n", b'{"error": "broken"}\n', b'{"ok": {"state": "odd"}}\n', b'{"ok": null}\n']
)
def test_an_answer_that_says_nothing_is_an_unknown_outcome(tmp_path: Path, answer: bytes) -> None:
    thread = answering(tmp_path / "s", answer)
    with pytest.raises(EngineUnavailable):
        jobs_at(tmp_path / "s").describe("a-1")
    thread.join()


def test_a_refusal_is_told_apart_from_silence(tmp_path: Path) -> None:
    thread = answering(tmp_path / "s", json.dumps({"refused": "no"}).encode() + b"\n")
    with pytest.raises(StartRefused, match="no"):
        jobs_at(tmp_path / "s").start(ORDER, "id", engine="batch")
    thread.join()


def test_no_supervisor_is_an_unknown_outcome(tmp_path: Path) -> None:
    with pytest.raises(EngineUnavailable):
        jobs_at(tmp_path / "nobody").start(ORDER, "id", engine="batch")
    silent = socket.socket(socket.AF_UNIX)
    with silent:
        silent.bind(str(tmp_path / "silent"))
        silent.listen(1)
        with pytest.raises(EngineUnavailable):
            jobs_at(tmp_path / "silent").stop("a-1")
