"""A repair looks, decides and writes; what somebody else did between the look and the write counts more."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from taskrail.clock import minutes, seconds
from taskrail.questions import form_question
from taskrail.store import Store
from taskrail.task import Progress, Task
from taskrail.testing import Called, Kit

YES = {"action": "accept", "content": {}}
ANSWER_WITHIN = 3_600_000


@pytest.fixture
def overtaken(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Let something happen right before the next write, once."""

    def before_the_next_write(act: Callable[[], object]) -> None:
        write, waiting = Store.write, [act]

        def overtaken_write(store: Store, old: Task, new: Task, now: int, nonce: str) -> Task:
            if waiting:
                waiting.pop()()
            return write(store, old, new, now, nonce)

        monkeypatch.setattr(Store, "write", overtaken_write)

    return before_the_next_write


def claimed(kit: Kit) -> tuple[Called, Task]:
    """A task whose run a worker has taken up."""
    task = kit.call("count", items=["a"])
    worker = kit.runtime.rail.reports.claim(task.task_id, 1, "run", 1)
    assert worker is not None
    return task, worker


def ask(kit: Kit, worker: Task, key: str) -> Task:
    """A worker asks and ends its run."""
    question = {key: form_question(key, f"{key}?")}
    return kit.runtime.rail.reports.ask(worker, question, ANSWER_WITHIN, hold=False)


def test_a_run_that_told_its_progress_meanwhile_has_not_vanished(
    kit: Kit, overtaken: Callable[[Callable[[], object]], None]
) -> None:
    task, worker = claimed(kit)
    kit.engine.states.clear()
    kit.advance(seconds(15))
    assert task.status == "working"
    kit.advance(seconds(10))
    overtaken(lambda: kit.runtime.rail.reports.progress(worker, Progress(1, 2), "half"))
    assert task.status == "working"
    assert task.poll()["statusMessage"] == "half"


def test_a_run_that_asked_just_in_time_has_not_run_out_of_it(
    kit: Kit, overtaken: Callable[[Callable[[], object]], None]
) -> None:
    task, worker = claimed(kit)
    kit.advance(minutes(6))
    overtaken(lambda: ask(kit, worker, "first"))
    assert task.status == "input_required"


def test_a_question_that_was_answered_just_in_time_was_answered(
    kit: Kit, overtaken: Callable[[Callable[[], object]], None]
) -> None:
    """Another process, whose clock is a little behind, takes the answer, and the next run asks again."""
    task, worker = claimed(kit)
    ask(kit, worker, "first")
    kit.clock.advance(ANSWER_WITHIN)

    def answered_and_asked_again() -> None:
        kit.clock.advance(-1_000)
        task.answer_with({"first": YES})
        again = kit.runtime.rail.reports.claim(task.task_id, 2, "run", 1)
        assert again is not None
        ask(kit, again, "second")
        kit.clock.advance(1_000)

    overtaken(answered_and_asked_again)
    assert task.status == "input_required"
    assert list(task.questions) == ["second"]
    kit.advance(seconds(ANSWER_WITHIN / 1_000))
    assert task.status == "completed"
