"""Calls that come again, questions before the task, and clients that know no tasks."""

from __future__ import annotations

import pytest

from taskrail.clock import minutes
from taskrail.testing import Kit, RpcFailure
from tests.functional.sample_tools import done


def test_a_pre_flight_question_stores_and_starts_nothing(kit: Kit) -> None:
    first = kit.call("big_order", pages=400)
    assert first.reply["resultType"] == "input_required"
    assert set(first.questions) == {"large"}
    assert kit.scan() == []
    assert kit.engine.starts == []


def test_a_pre_flight_answer_sent_twice_is_one_task(kit: Kit) -> None:
    first = kit.call("big_order", pages=400)
    again = [
        kit.call("big_order", pages=400, answers={"large": {"publish": True}}, state=first.state) for _ in range(3)
    ]
    assert len({task.task_id for task in again}) == 1
    again[0].run()
    late = kit.call("big_order", pages=400, answers={"large": {"publish": True}}, state=first.state)
    assert late.task_id == again[0].task_id
    assert late.reply["status"] == "completed"
    assert done == ["ordered 400"]


def test_a_pre_flight_refusal_starts_nothing(kit: Kit) -> None:
    first = kit.call("big_order", pages=400)
    reply = kit.call("big_order", pages=400, answers={"large": {"publish": False}}, state=first.state)
    assert reply.is_error
    assert reply.text == "Not started."
    assert kit.scan() == []


def test_a_state_is_good_for_its_own_call_only(kit: Kit) -> None:
    first = kit.call("big_order", pages=400)
    answers = {"large": {"publish": True}}
    with pytest.raises(RpcFailure) as failure:
        kit.call("big_order", pages=500, answers=answers, state=first.state)
    assert failure.value.error["code"] == -32602
    kit.owner = "somebody else"
    with pytest.raises(RpcFailure) as failure:
        kit.call("big_order", pages=400, answers=answers, state=first.state)
    assert failure.value.error["code"] == -32602
    kit.owner = "anonymous"
    kit.advance(minutes(61))
    with pytest.raises(RpcFailure) as failure:
        kit.call("big_order", pages=400, answers=answers, state=first.state)
    assert failure.value.error["code"] == -32602
    assert kit.scan() == []


def test_a_replay_of_a_call_that_never_started_starts_it(kit: Kit) -> None:
    first = kit.call("big_order", pages=400)
    answers = {"large": {"publish": True}}
    task = kit.call("big_order", pages=400, answers=answers, state=first.state)
    kit.engine.waiting.clear()
    kit.engine.states.clear()
    kit.call("big_order", pages=400, answers=answers, state=first.state)
    assert task.run().status == "completed"
    assert done == ["ordered 400"]


def test_a_client_without_tasks_gets_the_result(kit: Kit) -> None:
    reply = kit.call("count", tasks=False, items=["a", "b"])
    assert reply.reply["resultType"] == "complete"
    assert reply.structured == {"words": 2, "share": 0.1}


def test_a_client_without_tasks_is_told_the_ticket_when_time_runs_out(kit: Kit) -> None:
    kit.clock.on_sleep = lambda: None
    reply = kit.call("text_back", tasks=False, text="x")
    assert reply.reply["resultType"] == "complete"
    assert len(kit.scan()) == 1
    assert kit.scan()[0]["pk"]["S"].removeprefix("task#") in reply.text


def test_a_required_tool_refuses_a_client_without_tasks(kit: Kit) -> None:
    with pytest.raises(RpcFailure) as failure:
        kit.call("only_as_task", tasks=False)
    assert failure.value.error["code"] == -32021
    assert failure.value.status == 400
    assert kit.scan() == []


def test_a_question_reaches_a_client_without_tasks_as_a_round_trip(kit: Kit) -> None:
    first = kit.call("publish", tasks=False, title="Q3")
    assert first.reply["resultType"] == "input_required"
    assert set(first.questions) == {"approval"}
    second = kit.call("publish", tasks=False, title="Q3", answers={"approval": {"publish": True}}, state=first.state)
    assert second.text == "Q3: 12 pages published"
    assert done == ["rendered"]


def test_an_inline_tool_asks_and_answers(kit: Kit) -> None:
    first = kit.call("ask_inline")
    assert set(first.questions) == {"who"}
    assert kit.call("ask_inline", answers={"who": {"name": "Ada"}}, state=first.state).text == "Hello, Ada!"
    assert kit.call("ask_inline", answers={"who": {"name": "Ada"}}).text == "Hello, Ada!"
    asked_again = kit.call("ask_inline", answers={"who": {"name": 7}}, state=first.state)
    assert set(asked_again.questions) == {"who"}


def test_another_owner_sees_nothing(kit: Kit) -> None:
    task = kit.call("count", items=["a"])
    kit.owner = "somebody else"
    random = "f" * 32
    for method, more in (("tasks/get", {}), ("tasks/update", {"inputResponses": {}}), ("tasks/cancel", {})):
        errors = []
        for task_id in (task.task_id, random):
            with pytest.raises(RpcFailure) as failure:
                kit.request(method, {"taskId": task_id, **more})
            errors.append(failure.value.error)
        assert errors[0] == errors[1]
        assert errors[0]["code"] == -32602
    kit.owner = "anonymous"
    assert task.status == "working"
