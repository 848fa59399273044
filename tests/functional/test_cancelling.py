"""Cancel is honest: settled at once where nobody works, told where somebody does, never undone."""

from __future__ import annotations

from taskrail.clock import seconds
from taskrail.context import TaskContext
from taskrail.engines import RunState
from taskrail.task import Progress
from taskrail.testing import Kit
from tests.functional import sample_tools
from tests.functional.sample_tools import done


def test_unclaimed_work_is_cancelled_at_once_and_never_happens(kit: Kit) -> None:
    task = kit.call("count", items=["a"])
    name = kit.engine.waiting[0]
    task.cancel()
    assert task.status == "cancelled"
    assert kit.engine.states[name].state is RunState.STOPPED
    assert kit.run_one(name) == "nothing to do"
    assert done == []


def test_a_task_that_waits_for_an_answer_is_cancelled_at_once(kit: Kit) -> None:
    task = kit.call("publish", title="Q3").run()
    task.cancel()
    assert task.status == "cancelled"
    task.answer(approval={"publish": True})
    assert task.run().status == "cancelled"


def test_claimed_work_is_told_and_settles_as_cancelled(kit: Kit) -> None:
    task = kit.call("count", items=["a", "b", "c"])
    name = kit.engine.waiting.pop(0)

    original = TaskContext.progress

    def cancel_after_first(self: TaskContext, done_: float | None = None, *rest: object, **named: object) -> None:
        if done_ == 1:
            task.cancel()
            assert task.status == "working"
            assert "Cancellation was requested" in task.poll()["statusMessage"]
            kit.advance(seconds(3))
        original(self, done_, *rest, **named)  # type: ignore[arg-type]

    TaskContext.progress = cancel_after_first  # type: ignore[method-assign]
    try:
        assert kit.run_one(name) == "cancelled"
    finally:
        TaskContext.progress = original  # type: ignore[method-assign]
    assert task.status == "cancelled"
    assert done == ["a"]
    assert "result" not in task.poll()


def test_work_that_does_not_listen_is_stopped_by_the_next_read(kit: Kit) -> None:
    task = kit.call("count", items=["a"])
    name = kit.engine.waiting.pop(0)
    kit.runtime.rail.reports.claim(task.task_id, 1, name, 1)
    task.cancel()
    kit.advance(seconds(9))
    assert task.status == "working"
    kit.advance(seconds(2))
    assert task.status == "cancelled"
    assert kit.engine.states[name].state is RunState.STOPPED


def test_completed_stays_completed(kit: Kit) -> None:
    task = kit.call("count", items=["a"]).run()
    before = task.poll()
    task.cancel()
    assert task.poll() == before


def test_cancelled_stays_cancelled_when_the_worker_reports_completed(kit: Kit) -> None:
    task = kit.call("count", items=["a"])
    rail = kit.runtime.rail
    claimed = rail.reports.claim(task.task_id, 1, "x", 1)
    assert claimed is not None
    task.cancel()
    kit.advance(seconds(11))
    before = task.poll()
    assert before["status"] == "cancelled"
    from taskrail.rail import endings
    from taskrail.rail.reports import RunLost

    try:
        rail.reports.finish(claimed, lambda t: endings.completed(t, '{"content":[]}', "late", kit.clock.now()))
    except RunLost:
        pass
    else:
        raise AssertionError("a late report must be refused")
    assert task.poll() == before


def test_a_job_that_always_tells_the_same_still_hears_of_its_cancellation(kit: Kit) -> None:
    task = kit.call("tell_the_same")
    kit.clock.on_sleep = lambda: None
    told: list[int] = []

    def cancel_at_the_tenth() -> None:
        told.append(kit.clock.now())
        if len(told) == 10:
            task.cancel()
        assert len(told) < 50, "the job was never told"

    sample_tools.meanwhile = lambda: (kit.advance(seconds(1)), cancel_at_the_tenth())
    assert kit.run_one(kit.engine.waiting.pop(0)) == "cancelled"
    assert task.status == "cancelled"


def test_progress_during_a_cancellation_moves_nothing_that_is_not_seen(kit: Kit) -> None:
    task = kit.call("count", items=["a"])
    mine = kit.runtime.rail.reports.claim(task.task_id, 1, "x", 1)
    assert mine is not None
    mine = kit.runtime.rail.reports.progress(mine, Progress(1), "one")
    task.cancel()
    before = task.poll()
    kit.runtime.rail.reports.progress(mine, Progress(1), "another message")
    assert task.poll() == before
