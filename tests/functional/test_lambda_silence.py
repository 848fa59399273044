"""A task on Lambda whose function dies, or whose event waits: the failure record tells, or a read finds out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from taskrail import minutes, seconds
from taskrail.testing import Kit, RpcFailure, harness
from tests.functional import lambda_tools
from tests.functional.lambda_bench import GRACE, LEASE, QUESTION, name_of, record, stored, taken_up, tell
from tests.functional.lambda_tools import deaths, done


@pytest.fixture(scope="module")
def deployment() -> Iterator[Kit]:
    with harness(lambda_tools.server) as made:
        yield made


@pytest.fixture
def kit(deployment: Kit) -> Kit:
    deployment.clear()
    done.clear()
    deaths.clear()
    return deployment


# The second line.


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({}, "completed", "The job ended without a result: Runtime.ExitError."),
        ({"errorType": "Runtime.OutOfMemory"}, "completed", "Runtime.OutOfMemory"),
        ({"errorType": "Sandbox.Timedout"}, "completed", "ran out of time"),
        ({"errorType": None, "errorMessage": "2026-05-28T20:27:00.000Z 3f Task timed out after 310.00 seconds"},
         "completed", "ran out of time"),
        ({"errorType": "a message, not a type"}, "failed", "ended without a report"),
        ({"condition": "EventAgeExceeded"}, "failed", "could not be placed (its event grew too old"),
        ({"condition": "ZeroReservedConcurrency"}, "failed", "could not be placed (its function may not run"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("claimed", [False, True])
def test_a_failure_record_settles_the_task(
    kit: Kit, changes: dict[str, Any], status: str, words: str, claimed: bool
) -> None:
    task = kit.call("once", text="a")
    if claimed:
        task.die()
        if changes.get("condition"):
            # Its last attempt never came: what is known is that it had begun.
            status, words = "completed", "ended without a result"
    tell(kit, record(kit, task, **changes))
    seen = task.poll()
    assert seen["status"] == status
    assert words in json.dumps(seen)
    assert "secret" not in json.dumps(seen)
    tell(kit, record(kit, task, errorType="Another.Error"))
    assert task.poll() == seen


def test_a_failure_record_of_a_cancelled_task_cancels_it(kit: Kit) -> None:
    task = kit.call("once", text="a").die().cancel()
    assert task.status == "working"
    tell(kit, record(kit, task))
    assert task.status == "cancelled"


def test_a_failure_record_of_another_invocation_than_the_one_at_work_changes_nothing(kit: Kit) -> None:
    task = kit.call("once", text="a")
    other = {**record(kit, task, requestId="5f0c7e0a-0000-4000-8000-000000000000")}
    taken_up(kit, task)
    before = stored(kit, task)
    tell(kit, other)
    assert stored(kit, task) == before
    tell(kit, record(kit, task))
    assert task.status == "completed"


def test_a_failure_record_about_a_task_that_runs_elsewhere_changes_nothing(kit: Kit) -> None:
    task = kit.call("elsewhere", text="a")
    name = name_of(task)
    made = record(kit, kit.call("once", text="b"), requestId=name)
    tell(kit, {**made, "requestPayload": {"taskId": task.task_id, "run": 1}})
    assert task.run().text == "a"


def test_a_failure_record_of_an_earlier_run_changes_nothing(kit: Kit) -> None:
    task = kit.call("publish", title="Q3").run()
    late = record(kit, task)
    tell(kit, late)
    assert task.status == "input_required"
    task.answer(approval={"publish": True})
    tell(kit, late)
    assert task.run().text == "publish"


def test_a_failure_record_lets_a_question_that_was_held_open_go(kit: Kit) -> None:
    task = kit.call("publish", title="Q3", hold_ms=60_000)
    kit.runtime.rail.reports.ask(taken_up(kit, task), QUESTION, 600_000, hold=True)
    tell(kit, record(kit, task))
    assert task.status == "input_required"
    task.answer(approval={"publish": True})
    assert task.run().text == "publish"


# What a read makes of silence.


def test_a_read_while_the_lease_holds_changes_nothing(kit: Kit) -> None:
    task = kit.call("once", text="a")
    mine, reports = taken_up(kit, task), kit.runtime.rail.reports
    for _ in range(10):
        kit.advance(seconds(30))
        before = stored(kit, task)
        assert task.status == "working"
        assert stored(kit, task) == before
        mine = reports.hear(mine)
    assert kit.functions.starts == [name_of(task)]


def test_a_run_whose_lease_is_over_has_vanished(kit: Kit) -> None:
    task = kit.call("once", text="a").die()
    kit.advance(LEASE + GRACE - seconds(1))
    assert task.status == "working"
    kit.advance(seconds(1))
    assert "vanished" in task.error["message"]
    assert task.again().status == "failed" and done == []


def test_a_run_that_may_be_tried_again_is_waited_for(kit: Kit) -> None:
    task = kit.call("thrice", text="a").die()
    kit.advance(LEASE + minutes(5))
    assert task.status == "working"
    assert task.again().text == "a in attempt 2"
    other = kit.call("thrice", text="b").die()
    kit.advance(LEASE + minutes(5) + GRACE)
    assert "vanished" in other.error["message"]


def test_a_run_at_its_last_attempt_is_not_waited_for(kit: Kit) -> None:
    deaths.extend(("a first", "a first"))
    task = kit.call("thrice", text="a").die()
    kit.advance(minutes(1))
    task.again()
    kit.advance(minutes(2))
    task.again()
    assert stored(kit, task).attempt == 3
    kit.advance(LEASE + GRACE)
    assert "vanished" in task.error["message"]


def test_a_worker_that_is_heard_just_in_time_keeps_its_run(kit: Kit) -> None:
    """The guard is in the write: a reader that saw the lease over comes too late."""
    task = kit.call("once", text="a")
    mine, runs = taken_up(kit, task), kit.runtime.rail._runs
    kit.advance(LEASE + GRACE)
    seen = stored(kit, task)
    kit.runtime.rail.reports.hear(mine)
    assert runs.repair(seen).status == "working"
    assert task.status == "working"


def test_a_question_whose_holder_is_gone_is_let_go(kit: Kit) -> None:
    task = kit.call("publish", title="Q3", hold_ms=60_000)
    kit.runtime.rail.reports.ask(taken_up(kit, task), QUESTION, 600_000, hold=True)
    assert task.status == "input_required" and stored(kit, task).run_open
    kit.advance(LEASE + GRACE)
    assert task.status == "input_required" and not stored(kit, task).run_open
    task.answer(approval={"publish": True})
    assert task.run().text == "publish"


def test_an_unclaimed_run_has_some_time_to_begin(kit: Kit) -> None:
    task = kit.call("once", text="a")
    kit.advance(seconds(14))
    assert task.status == "working"
    assert kit.functions.starts == [name_of(task)]
    kit.advance(seconds(1))
    assert task.status == "working"
    assert kit.functions.starts == [name_of(task)] * 2


def test_an_unclaimed_run_is_invoked_again_with_growing_pauses(kit: Kit) -> None:
    task = kit.call("once", text="a")
    began, invoked = kit.clock.now(), []
    for _ in range(60):
        kit.advance(seconds(30))
        before = len(kit.functions.starts)
        assert task.status == task.status == "working"
        if len(kit.functions.starts) > before:
            invoked.append((kit.clock.now() - began) // 1_000)
    assert invoked == [30, 60, 120, 240, 480, 960]
    assert task.run().text == "a" and done == ["a"]


def test_of_two_readers_at_once_one_invokes(kit: Kit) -> None:
    task = kit.call("once", text="a")
    kit.advance(seconds(20))
    seen = stored(kit, task)
    for _ in range(2):
        assert kit.runtime.rail._runs.repair(seen).open
    assert len(kit.functions.starts) == 2


def test_an_invocation_that_is_refused_is_tried_again_and_the_task_ends_with_its_time(kit: Kit) -> None:
    task = kit.call("once", text="a")
    kit.functions.waiting.clear()
    kit.functions.refuse = True
    kit.advance(minutes(10))
    assert task.status == "working"
    kit.advance(minutes(55))
    assert "ran out of time; it had 3900 s" in task.text


def test_a_start_that_is_refused_leaves_no_task(kit: Kit) -> None:
    kit.functions.refuse = True
    with pytest.raises(RpcFailure):
        kit.call("once", text="a")
    assert kit.scan() == []
