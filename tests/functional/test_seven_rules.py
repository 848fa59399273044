"""The seven rules that carry the design, each with the test that falls when its guard does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from taskrail.clock import hours, minutes, seconds
from taskrail.engines import RunOrder, RunReport, RunState
from taskrail.errors import EngineUnavailable
from taskrail.payloads import RESULT
from taskrail.rail import endings
from taskrail.rail.reports import RunLost
from taskrail.store import Conflict
from taskrail.task import Status, Task
from taskrail.testing import BUCKET, TABLE, Kit, RpcFailure
from tests.functional.sample_tools import done


def claimed(kit: Kit, task_id: str, *, run: int = 1, attempt: int = 1) -> Task:
    task = kit.runtime.rail.reports.claim(task_id, run, "worker", attempt)
    assert task is not None
    return task


# Rule 1: the ticket is hung before the work starts, and handed over after it has started.


def test_rule_1_the_ticket_hangs_before_the_work_starts(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    hung: list[int] = []
    start = kit.engine.start

    def starting(*arguments: Any) -> str:
        hung.append(len(kit.scan()))
        return start(*arguments)

    monkeypatch.setattr(kit.engine, "start", starting)
    task = kit.call("count", items=["a"])
    assert hung == [1]
    assert kit.engine.starts == [f"{task.task_id}-1"]


def test_rule_1_a_refused_start_takes_the_ticket_back(kit: Kit) -> None:
    kit.engine.refuse = True
    with pytest.raises(RpcFailure):
        kit.call("count", items=["a"])
    assert kit.scan() == []


def test_rule_1_a_start_of_unknown_outcome_hands_the_ticket_over(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody_knows(*arguments: Any) -> str:
        raise EngineUnavailable("time-out")

    with monkeypatch.context() as patched:
        patched.setattr(kit.engine, "start", nobody_knows)
        task = kit.call("count", items=["a"])
    for _ in range(3):
        kit.advance(seconds(30))
        task.poll()
    assert task.run().status == "completed"


def test_rule_1_a_repeated_call_that_took_the_ticket_over_keeps_it(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    first = kit.call("big_order", pages=400)
    answers = {"large": {"publish": True}}
    took_over: list[str] = []

    def refused_while_another_call_comes(*arguments: Any) -> str:
        monkeypatch.undo()
        took_over.append(kit.call("big_order", pages=400, answers=answers, state=first.state).task_id)
        kit.engine.refuse = True
        return kit.engine.start(RunOrder("big_order", "another name", {}))

    monkeypatch.setattr(kit.engine, "start", refused_while_another_call_comes)
    kit.call("big_order", pages=400, answers=answers, state=first.state)
    assert kit.runtime.rail.read("anonymous", took_over[0]).open


# Rule 2: the first terminal write wins.


@pytest.mark.parametrize("first", [Status.COMPLETED, Status.FAILED, Status.CANCELLED])
@pytest.mark.parametrize("second", [Status.COMPLETED, Status.FAILED, Status.CANCELLED])
def test_rule_2_the_first_terminal_write_wins(kit: Kit, first: Status, second: Status) -> None:
    task = kit.call("count", items=["a"])
    mine = claimed(kit, task.task_id)

    def end(status: Status) -> None:
        kit.runtime.rail.reports.finish(
            mine, lambda t: t.ended(status, kit.clock.now(), message=status.value, result="{}", error="{}")
        )

    end(first)
    before = kit.scan()
    with pytest.raises(RunLost):
        end(second)
    assert kit.scan() == before


def test_rule_2_a_write_lands_only_on_the_revision_it_was_computed_from(kit: Kit) -> None:
    task = kit.call("count", items=["a"])
    store = kit.runtime.rail.reports._changes.store
    seen = store.read(task.task_id)
    assert seen is not None
    store.write(seen, seen.ended(Status.COMPLETED, kit.clock.now(), message="first"), kit.clock.now(), "one")
    with pytest.raises(Conflict):
        store.write(seen, seen.ended(Status.FAILED, kit.clock.now(), message="second"), kit.clock.now(), "two")


# Rule 3: a task is a series of runs, and attempts fence one another.


def test_rule_3_runs_are_named_one_after_the_other(kit: Kit) -> None:
    task = kit.call("publish", title="Q3").run()
    task.answer(approval={"publish": True})
    assert kit.engine.starts == [f"{task.task_id}-1", f"{task.task_id}-2"]


@pytest.mark.parametrize("attempt", [1, 2])
def test_rule_3_an_attempt_that_is_no_higher_gets_nothing_to_do(kit: Kit, attempt: int) -> None:
    task = kit.call("count", items=["a"])
    claimed(kit, task.task_id, attempt=2)
    assert kit.runtime.rail.reports.claim(task.task_id, 1, "rival", attempt) is None


def test_rule_3_a_higher_attempt_fences_the_older_out(kit: Kit) -> None:
    task = kit.call("count", items=["a"])
    older, newer = claimed(kit, task.task_id), claimed(kit, task.task_id, attempt=2)
    with pytest.raises(RunLost):
        kit.runtime.rail.reports.step(older, "name", "1")
    kit.runtime.rail.reports.step(newer, "name", "2")
    assert kit.runtime.rail.read("anonymous", task.task_id).steps == {"name": "2"}


# Rule 4: every write knows itself.


def test_rule_4_a_write_whose_answer_got_lost_recognises_itself(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every conditional write of a whole life is sent twice, as botocore does when an answer is lost."""
    for name in ("put_item", "update_item"):
        original = getattr(kit.dynamodb, name)

        def twice(original: Any = original, **parameters: Any) -> Any:
            original(**parameters)
            return original(**parameters)

        monkeypatch.setattr(kit.dynamodb, name, twice)
    task = kit.call("publish", title="Q3").run()
    task.answer(approval={"publish": True})
    assert task.run().text == "Q3: 12 pages published"
    assert done == ["rendered"]
    other = kit.call("count", items=["a"])
    other.cancel()
    assert other.status == "cancelled"


# Rule 5: a result has three ways home.


def test_rule_5_the_worker_reports_it(kit: Kit) -> None:
    assert kit.call("count", items=["a"]).run().status == "completed"


def test_rule_5_the_engine_reports_the_end(kit: Kit) -> None:
    task = kit.call("count", items=["a"])
    claimed(kit, task.task_id)
    kit.runtime.rail.run_heard(task.task_id, 1, RunReport(RunState.FAILED, "exit code 1"))
    assert task.status == "completed"


def test_rule_5_a_read_asks_the_engine(kit: Kit) -> None:
    task = kit.call("count", items=["a"])
    claimed(kit, task.task_id)
    kit.engine.end(f"{task.task_id}-1", RunReport(RunState.FAILED, "exit code 1"))
    kit.advance(seconds(16))
    assert task.status == "completed"


def test_rule_5_an_answer_that_was_not_passed_on_is_passed_on_by_a_read(kit: Kit) -> None:
    task = kit.call("publish", title="Q3").run()
    kit.engine.refuse = True
    task.answer(approval={"publish": True})
    kit.engine.refuse = False
    for _ in range(2):
        kit.advance(seconds(30))
        task.poll()
    assert task.run().status == "completed"


def test_rule_5_not_found_counts_only_after_a_second_look(kit: Kit) -> None:
    task = kit.call("count", items=["a"])
    claimed(kit, task.task_id)
    kit.engine.states.clear()
    kit.advance(seconds(16))
    assert task.status == "working"
    kit.engine.states[f"{task.task_id}-1"] = RunReport(RunState.RUNNING)
    kit.advance(seconds(16))
    assert task.status == "working"
    kit.engine.states.clear()
    kit.advance(seconds(16))
    assert task.status == "working"
    kit.advance(seconds(16))
    assert task.status == "failed"


# Rule 6: the owner is part of every read and write.


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_rule_6_foreign_expired_and_unknown_are_the_same(kit: Kit, method: str) -> None:
    foreign = kit.call("publish", title="Q3").run()
    expired = kit.call("count", items=["a"]).run()
    kit.advance(hours(2) + minutes(1))
    before = kit.scan()
    errors = []
    for owner, task_id in (("stranger", foreign.task_id), ("anonymous", expired.task_id), ("anonymous", "0" * 32)):
        kit.owner = owner
        with pytest.raises(RpcFailure) as failure:
            kit.request(method, {"taskId": task_id, "inputResponses": {"approval": {"action": "decline"}}})
        errors.append((failure.value.error, failure.value.status))
    assert errors[0] == errors[1] == errors[2]
    assert kit.scan() == before


def test_rule_6_a_write_in_another_owners_name_is_refused(kit: Kit) -> None:
    task = kit.call("count", items=["a"])
    store = kit.runtime.rail.reports._changes.store
    seen = store.read(task.task_id)
    assert seen is not None
    foreign = replace(seen, owner="stranger")
    with pytest.raises(Conflict):
        store.write(foreign, foreign.cancelling(kit.clock.now()), kit.clock.now(), "nonce")


# Rule 7: what a winner points to cannot be overwritten.


def test_rule_7_a_late_loser_overwrites_nothing_that_the_winner_points_to(kit: Kit) -> None:
    task = kit.call("count", items=["a"])
    mine = claimed(kit, task.task_id)
    payloads = kit.runtime.rail.reports.payloads

    def result(letter: str) -> str:
        text = '{"content":[{"type":"text","text":"' + letter * (RESULT + 1) + '"}]}'
        return payloads.keep(mine, "result", text, RESULT)

    stored = result("w")
    kit.runtime.rail.reports.finish(mine, lambda t: endings.completed(t, stored, "Completed.", kit.clock.now()))
    assert result("l") != stored
    assert task.text == "w" * (RESULT + 1)
    assert len(kit.s3.list_objects_v2(Bucket=BUCKET)["Contents"]) == 2
    assert kit.dynamodb.describe_table(TableName=TABLE)["Table"]["ItemCount"] == 1
