"""A job asks, its run ends, the answer starts the next one, and what was done is not done again."""

from __future__ import annotations

import pytest

from taskrail.clock import days, hours, minutes
from taskrail.engines import RunReport, RunState
from taskrail.testing import Kit, RpcFailure
from tests.functional.sample_tools import done


def test_the_first_half_is_paid_once(kit: Kit) -> None:
    task = kit.call("publish", title="Q3").run()
    assert task.status == "input_required"
    question = task.questions["approval"]
    assert question["method"] == "elicitation/create"
    assert question["params"]["message"] == "Publish Q3?"
    task.answer(approval={"publish": True})
    assert task.status == "working"
    assert task.run().text == "Q3: 12 pages published"
    assert done == ["rendered"]
    assert kit.engine.starts == [f"{task.task_id}-1", f"{task.task_id}-2"]


def test_an_answer_is_gone_from_the_questions_at_once(kit: Kit) -> None:
    task = kit.call("two_questions").run()
    assert set(task.questions) == {"first", "last"}
    task.answer(first={"name": "Ada", "extra": "passes"})
    assert set(task.questions) == {"last"}
    assert task.status == "input_required"
    task.answer(last={"name": "Lovelace"})
    assert task.status == "working"
    assert task.run().text == "Ada Lovelace"


def test_an_answer_hours_later_finds_the_arguments_and_the_steps(kit: Kit) -> None:
    task = kit.call("two_questions").run()
    kit.advance(days(6))
    task.answer(first={"name": "Ada"}, last={"name": "Lovelace"})
    assert task.run().text == "Ada Lovelace"


def test_a_decline_is_an_answer(kit: Kit) -> None:
    task = kit.call("publish", title="Q3").run()
    task.decline("approval")
    assert task.run().is_error
    assert task.text == "The report was not approved."


@pytest.mark.parametrize(
    "response",
    [None, 7, "yes", [], {}, {"action": "maybe"}, {"action": "accept"}, {"action": "accept", "content": {}},
     {"action": "accept", "content": {"publish": "yes"}}, {"action": "accept", "content": None}],
)  # fmt: skip
def test_a_malformed_answer_names_its_key_and_leaves_the_question_open(kit: Kit, response: object) -> None:
    task = kit.call("publish", title="Q3").run()
    before = task.poll()
    with pytest.raises(RpcFailure) as failure:
        task.answer_with({"approval": response})
    assert failure.value.error["code"] == -32602
    assert "approval" in failure.value.error["message"]
    assert task.poll() == before


def test_unknown_and_answered_keys_are_acknowledged_and_ignored(kit: Kit) -> None:
    task = kit.call("publish", title="Q3").run()
    before = task.poll()
    task.answer_with({"nobody_asked": {"action": "accept", "content": {}}, "neither": 5})
    assert task.poll() == before
    task.answer(approval={"publish": True})
    after = task.poll()
    task.answer(approval={"publish": False})
    assert task.poll() == after
    assert task.run().text == "Q3: 12 pages published"
    assert len(kit.engine.starts) == 2


def test_the_same_key_for_another_question_is_an_error_of_the_job(kit: Kit) -> None:
    task = kit.call("same_key_twice").run()
    task.answer(key={"name": "x"})
    assert task.run().is_error
    assert "'key'" in task.text


def test_a_client_that_cannot_be_asked_gets_an_error_that_says_so(kit: Kit) -> None:
    task = kit.call("publish", capabilities={}, title="Q3").run()
    assert task.status == "completed"
    assert task.is_error
    assert "elicitation" in task.text


def test_url_mode_alone_is_no_form(kit: Kit) -> None:
    task = kit.call("publish", capabilities={"elicitation": {"url": {}}}, title="Q3").run()
    assert task.is_error


def test_the_end_of_the_asking_run_changes_nothing(kit: Kit) -> None:
    task = kit.call("publish", title="Q3").run()
    before = task.poll()
    for state in RunState:
        kit.runtime.rail.run_heard(task.task_id, 1, RunReport(state))
    assert task.poll() == before
    task.answer(approval={"publish": True})
    kit.runtime.rail.run_heard(task.task_id, 1, RunReport(RunState.FAILED, "late"))
    assert task.run().text == "Q3: 12 pages published"


def test_an_answer_whose_run_did_not_start_is_passed_on_by_a_read(kit: Kit) -> None:
    task = kit.call("publish", title="Q3").run()
    kit.engine.refuse = True
    task.answer(approval={"publish": True})
    assert task.status == "working"
    kit.engine.refuse = False
    for _ in range(3):
        kit.advance(minutes(1))
        task.poll()
    assert task.run().text == "Q3: 12 pages published"


def test_files_attached_in_a_step_are_remembered_with_it(kit: Kit) -> None:
    task = kit.call("attach_files").run()
    task.answer(go_on={})
    task.run()
    links = [block for block in task.result["content"] if block["type"] == "resource_link"]
    assert [link["name"] for link in links] == ["inside.txt", "after.csv"]
    assert all(link["uri"].startswith("https://") for link in links)
    assert links[1]["description"] == "A table"
    assert task.attachment("inside.txt") == b"from the step"
    assert task.attachment("after.csv") == b"a,b\n1,2\n"


def test_a_ticket_outlives_the_work_and_the_result_its_promise(kit: Kit) -> None:
    task = kit.call("count", items=["a"])
    assert task.reply["ttlMs"] == (5 * 60 + 60 + 2 * 3600) * 1000
    kit.advance(minutes(4))
    task.run()
    assert task.poll()["ttlMs"] == (4 * 60 + 2 * 3600) * 1000
    kit.advance(hours(2) - minutes(1))
    assert task.status == "completed"
    kit.advance(minutes(2))
    with pytest.raises(RpcFailure) as failure:
        task.poll()
    assert failure.value.error["code"] == -32602


def test_a_question_lengthens_the_ticket(kit: Kit) -> None:
    task = kit.call("publish", title="Q3")
    before = task.reply["ttlMs"]
    kit.advance(minutes(5))
    task.run()
    assert task.poll()["ttlMs"] >= before + 3600_000 - 60_000
