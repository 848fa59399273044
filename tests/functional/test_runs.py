"""A task is a series of runs: attempts fence one another, and ends that nobody reported are found."""

from __future__ import annotations

import pytest

from taskrail.clock import minutes, seconds
from taskrail.engines import RunReport, RunState
from taskrail.rail import endings
from taskrail.rail.reports import RunLost
from taskrail.task import Progress
from taskrail.testing import Kit
from tests.functional.sample_tools import done


def test_a_higher_attempt_takes_over_and_fences_the_older_out(kit: Kit) -> None:
    task = kit.call("count", items=["a"])
    name = kit.engine.waiting.pop(0)
    reports = kit.runtime.rail.reports
    first = reports.claim(task.task_id, 1, name, 1)
    assert first is not None
    assert kit.run_one(name, attempt=2) == "completed"
    assert done == ["a"]
    before = task.poll()
    for late in (
        lambda: reports.progress(first, Progress(1), "late"),
        lambda: reports.step(first, "late", "1"),
        lambda: reports.finish(first, lambda t: endings.broken(t, "late", kit.clock.now())),
    ):
        with pytest.raises(RunLost):
            late()
    assert task.poll() == before


def test_an_older_attempt_is_fenced_out_while_the_newer_still_works(kit: Kit) -> None:
    task = kit.call("count", items=["a"])
    reports = kit.runtime.rail.reports
    first = reports.claim(task.task_id, 1, "x", 1)
    second = reports.claim(task.task_id, 1, "x", 2)
    assert first is not None
    assert second is not None
    with pytest.raises(RunLost):
        reports.finish(first, lambda t: endings.broken(t, "the older one", kit.clock.now()))
    reports.finish(second, lambda t: endings.broken(t, "the newer one", kit.clock.now()))
    assert task.text == "the newer one"


def test_an_equal_rival_ends_at_once(kit: Kit) -> None:
    task = kit.call("count", items=["a"])
    name = kit.engine.waiting.pop(0)
    assert kit.runtime.rail.reports.claim(task.task_id, 1, name, 1) is not None
    assert kit.run_one(name, attempt=1) == "nothing to do"
    assert done == []


def test_a_new_attempt_finds_the_steps_of_the_older(kit: Kit) -> None:
    task = kit.call("publish", title="Q3")
    name = kit.engine.waiting.pop(0)
    first = kit.runtime.rail.reports.claim(task.task_id, 1, name, 1)
    assert first is not None
    kit.runtime.rail.reports.step(first, "render", '{"value":99}')
    assert kit.run_one(name, attempt=2) == "asked"
    task.answer(approval={"publish": True})
    assert task.run().text == "Q3: 99 pages published"
    assert done == []


def test_a_run_of_the_past_cannot_be_claimed(kit: Kit) -> None:
    task = kit.call("publish", title="Q3").run()
    assert kit.runtime.rail.reports.claim(task.task_id, 1, "x", 2) is None
    task.answer(approval={"publish": True})
    assert kit.runtime.rail.reports.claim(task.task_id, 1, "x", 3) is None
    assert kit.runtime.rail.reports.claim(task.task_id, 3, "x", 1) is None


def test_an_end_told_twice_late_and_out_of_order_settles_once(kit: Kit) -> None:
    task = kit.call("count", items=["a"])
    name = kit.engine.waiting.pop(0)
    kit.runtime.rail.reports.claim(task.task_id, 1, name, 1)
    kit.runtime.rail.run_heard(task.task_id, 1, RunReport(RunState.RUNNING))
    assert task.status == "working"
    kit.runtime.rail.run_heard(task.task_id, 1, RunReport(RunState.FAILED, "exit code 1"))
    before = task.poll()
    for state in RunState:
        kit.runtime.rail.run_heard(task.task_id, 1, RunReport(state, "later"))
    assert task.poll() == before
    assert "exit code 1" in task.text


def test_an_end_for_a_task_that_nobody_knows_changes_nothing(kit: Kit) -> None:
    for task_id in ("f" * 32, "no id", ""):
        kit.runtime.rail.run_heard(task_id, 1, RunReport(RunState.FAILED))
    assert kit.scan() == []


@pytest.mark.parametrize(
    ("report", "status"),
    [
        (RunReport(RunState.FAILED, "exit code 1"), "completed"),
        (RunReport(RunState.TIMED_OUT), "completed"),
        (RunReport(RunState.SUCCEEDED), "failed"),
    ],
)
def test_an_end_that_nobody_told_is_found_by_the_next_read_after_the_probe_interval(
    kit: Kit, report: RunReport, status: str
) -> None:
    task = kit.call("count", items=["a"])
    name = kit.engine.waiting[0]
    kit.runtime.rail.reports.claim(task.task_id, 1, name, 1)
    kit.engine.end(name, report)
    kit.advance(seconds(14))
    assert task.status == "working"
    kit.advance(seconds(2))
    assert task.status == status


def test_a_quiet_run_that_still_lives_is_left_alone(kit: Kit) -> None:
    task = kit.call("count", items=["a"])
    first = task.poll()
    for _ in range(5):
        kit.advance(seconds(40))
        assert task.status == "working"
    assert task.poll()["lastUpdatedAt"] == first["lastUpdatedAt"]
    assert task.run().status == "completed"


def test_a_run_that_never_started_is_started_again_under_the_same_name(kit: Kit) -> None:
    task = kit.call("count", items=["a"])
    kit.engine.waiting.clear()
    kit.engine.states.clear()
    kit.advance(seconds(16))
    assert task.status == "working"
    assert kit.engine.waiting == []
    kit.advance(seconds(11))
    assert task.status == "working"
    assert kit.engine.waiting == [f"{task.task_id}-1"]
    assert task.run().status == "completed"


def test_poll_intervals_grow_with_the_age_of_the_run(kit: Kit) -> None:
    task = kit.call("count", items=["a"])
    assert task.reply["pollIntervalMs"] == 2_000
    kit.advance(seconds(50))
    assert task.poll()["pollIntervalMs"] == 5_000
    kit.advance(minutes(5))
    assert task.poll()["pollIntervalMs"] == 35_000
    task.run()
    assert task.poll()["pollIntervalMs"] == 2_000


def test_progress_is_told_in_words_and_numbers(kit: Kit) -> None:
    task = kit.call("count", items=["a", "b"])
    claimed = kit.runtime.rail.reports.claim(task.task_id, 1, "x", 1)
    assert claimed is not None
    kit.runtime.rail.reports.progress(claimed, Progress(1, 2), "Counting 1 of 2")
    polled = task.poll()
    assert polled["statusMessage"] == "Counting 1 of 2"
    assert polled["_meta"]["io.taskrail/progress"] == {"done": 1, "total": 2}
    assert polled["lastUpdatedAt"] > polled["createdAt"]


def test_the_last_progress_goes_along_with_the_end_and_with_a_question(kit: Kit) -> None:
    task = kit.call("count", items=["a", "b", "c"]).run()
    assert task.poll()["_meta"]["io.taskrail/progress"] == {"done": 3, "total": 3}
    asking = kit.call("publish_tracked", items=["a", "b"]).run()
    assert asking.status == "input_required"
    assert asking.poll()["_meta"]["io.taskrail/progress"] == {"done": 2, "total": 2}
