"""The rules that hold for every single write, whoever makes it: from one revision of a task to the next."""

from __future__ import annotations

from typing import Any

from taskrail.questions import Question
from taskrail.task import Status, Task

_FIXED = (
    "task_id",
    "owner",
    "tool",
    "engine",
    "created_at",
    "keep_ms",
    "poll_ms",
    "client",
    "traceparent",
    "sealed_until",
    "schema",
)


def check_created(task: Task, now: int) -> None:
    """A new task is as it should be."""
    assert (task.status, task.run, task.attempt, task.rev) == (Status.WORKING, 1, 0, 1)
    assert task.created_at == task.updated_at <= now
    assert not task.answers and not task.steps and not task.questions
    assert task.run_open and task.claim is None and task.cancel_requested_at is None
    _check_life(task)


def check_taken_back(task: Task, *, acknowledged: bool) -> None:
    """A task that is gone was nobody's, and nobody had touched it."""
    assert not acknowledged, "an acknowledged task was removed"
    assert task.rev == 1, "a task was removed that somebody had touched"


def check_changed(old: Task, new: Task, now: int) -> None:
    """One write keeps all the rules."""
    if new == old:
        return
    assert old.open, "a task that had ended was changed"
    if old.expired(now):
        # The table knows whole seconds only; a claim in the last of them is found out by the worker.
        assert old.expires_at is not None and now < old.expires_at + 1_000, "an expired task was changed"
        assert new.attempt > old.attempt, "an expired task was changed"
    for name in _FIXED:
        assert getattr(new, name) == getattr(old, name), f"{name} was changed"
    assert new.rev == old.rev + 1, "a revision was left out"
    assert new.nonce != old.nonce, "two writes have one nonce"
    _check_last_update(old, new)
    _check_run(old, new)
    _check_lease(old, new, now)
    if new.open:
        _check_memory(old, new)
        _check_life(new)
        if old.ttl_ms is not None:
            assert new.ttl_ms is not None and new.ttl_ms >= old.ttl_ms, "an open ticket's life was cut"
        assert not (new.status is Status.INPUT_REQUIRED and new.cancel_requested_at), "asked who wanted the end"
    else:
        _check_end(new)
    if old.cancel_requested_at is not None:
        assert new.cancel_requested_at == old.cancel_requested_at, "a wish for the end was forgotten"


def _seen(task: Task) -> tuple[Any, ...]:
    return (task.status, task.status_message, task.progress, task.outstanding, task.result, task.error, task.ttl_ms)


def _check_last_update(old: Task, new: Task) -> None:
    if _seen(old) == _seen(new):
        assert new.updated_at == old.updated_at, "lastUpdatedAt moved though nothing was seen to change"
    else:
        assert new.updated_at > old.updated_at, "a change that is seen did not move lastUpdatedAt"


def _check_run(old: Task, new: Task) -> None:
    assert new.run in (old.run, old.run + 1), "a run was left out"
    if new.run > old.run:
        assert old.status is Status.INPUT_REQUIRED and new.status is Status.WORKING, "a run without an answer"
        assert (new.attempt, new.claim, new.run_id, new.run_open) == (0, None, None, True)
        return
    assert new.attempt >= old.attempt, "an older attempt took over"
    if new.attempt > old.attempt:
        assert old.status is new.status is Status.WORKING and old.run_open, "what was no work was claimed"
        assert new.claim == new.nonce
        assert old.attempt == 0 or new.run_id == old.run_id, "an attempt of another job took over"
    else:
        assert new.claim == old.claim, "an equal rival took over"
        assert old.run_id in (None, new.run_id), "another job took the place of the recorded one"


def _check_lease(old: Task, new: Task, now: int) -> None:
    held = new.engine == "lambda" and new.open and new.claimed and new.run_open
    assert (new.lease_until is not None) == held, "a worker without a lease, or a lease without a worker"
    if new.lease_until is None or old.lease_until is None or new.run > old.run:
        return
    assert new.lease_until >= old.lease_until, "a lease became shorter"
    if new.attempt > old.attempt:
        assert now >= old.lease_until, "a run was taken over from a worker that was heard"


def _check_memory(old: Task, new: Task) -> None:
    for what in ("questions", "answers", "steps"):
        before, after = getattr(old, what), getattr(new, what)
        assert {key: after.get(key) for key in before} == before, f"{what}: something that was kept is changed or gone"
    fresh = set(new.answers) - set(old.answers)
    assert fresh <= set(old.outstanding), "an answer to no open question"
    assert new.arguments == old.arguments
    assert bool(new.outstanding) == (new.status is Status.INPUT_REQUIRED), "asks, but nothing; or waits for nothing"
    assert all(isinstance(question, Question) and question.key == key for key, question in new.questions.items())


def _check_life(task: Task) -> None:
    """The ticket outlives whatever may still come, and the result after it."""
    if task.keep_ms is None:
        assert task.ttl_ms is None
        return
    deadline = task.run_deadline if task.status is Status.WORKING else task.answer_deadline
    assert task.expires_at is not None and deadline is not None
    assert task.expires_at >= deadline + task.keep_ms, "the ticket may expire before its result does"


def _check_end(task: Task) -> None:
    assert (task.result is not None) == (task.status is Status.COMPLETED), "completed has a result, nothing else has"
    assert (task.error is not None) == (task.status is Status.FAILED), "failed has an error, nothing else has"
    assert task.status_message
    assert not task.outstanding and task.arguments is None
    if task.keep_ms is None:
        assert task.ttl_ms is None
    else:
        # The move is computed some tries before it lands, and lastUpdatedAt may be a few milliseconds ahead.
        assert task.expires_at is not None
        assert task.expires_at >= task.updated_at + task.keep_ms - 1_000, "the result lives shorter than promised"
