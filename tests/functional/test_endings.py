"""How a job ends is how its task ends: the table of endings, row by row."""

from __future__ import annotations

import json

import pytest

from taskrail.clock import minutes, seconds
from taskrail.engines import RunReport, RunState
from taskrail.testing import Kit, RpcFailure
from tests.functional.sample_tools import done


def test_a_job_that_returns_completes(kit: Kit) -> None:
    task = kit.call("count", items=["a", "b"])
    assert task.is_task
    assert task.reply["status"] == "working"
    assert task.run().status == "completed"
    assert task.structured == {"words": 2, "share": 0.1}
    assert json.loads(task.text) == task.structured
    assert done == ["a", "b"]


def test_an_async_job_completes(kit: Kit) -> None:
    task = kit.call("later", text="quiet").run()
    assert task.text == "QUIET"
    assert done == ["awaited"]


def test_a_tool_error_completes_with_its_text_and_its_partial_result(kit: Kit) -> None:
    task = kit.call("end_as", how="tool_error").run()
    assert task.status == "completed"
    assert task.is_error
    assert "The report has no pages." in task.text
    assert '{"pages":0}' in task.text


def test_a_protocol_error_fails_the_task_with_that_error(kit: Kit) -> None:
    task = kit.call("end_as", how="protocol_error").run()
    assert task.status == "failed"
    assert task.error == {"code": 4711, "message": "The archive is closed.", "data": {"until": "Monday"}}
    assert task.poll()["statusMessage"] == "The archive is closed."
    assert "result" not in task.poll()


@pytest.mark.parametrize("how", ["exception", "interrupt", "exit_text"])
def test_what_a_job_blurts_out_reaches_no_client(kit: Kit, how: str) -> None:
    task = kit.call("end_as", how=how).run()
    assert task.status == "completed"
    assert task.is_error
    assert "hunter2" not in json.dumps(task.poll())
    assert task.task_id in task.text


def test_sys_exit_names_its_code(kit: Kit) -> None:
    task = kit.call("end_as", how="exit").run()
    assert task.status == "completed"
    assert task.is_error
    assert "exit code 3" in task.text


@pytest.mark.parametrize("how", ["infinity", "a_set"])
def test_what_json_cannot_carry_is_an_error_that_says_so(kit: Kit, how: str) -> None:
    task = kit.call("end_as", how=how).run()
    assert task.is_error
    assert "JSON" in task.text


@pytest.mark.parametrize(
    ("report", "says"),
    [
        (RunReport(RunState.FAILED, "exit code 137"), "exit code 137"),
        (RunReport(RunState.TIMED_OUT), "360 s"),
        (RunReport(RunState.STOPPED), "stopped from outside"),
    ],
)
def test_a_claimed_run_that_ends_unheard_completes_as_an_error(kit: Kit, report: RunReport, says: str) -> None:
    task = kit.call("count", items=["a"])
    name = kit.engine.waiting[0]
    kit.runtime.rail.reports.claim(task.task_id, 1, name, 1)
    kit.engine.end(name, report)
    kit.runtime.rail.run_heard(task.task_id, 1, report)
    assert task.status == "completed"
    assert task.is_error
    assert says in task.text
    assert done == []


@pytest.mark.parametrize("claimed", [True, False])
def test_a_run_that_ends_without_report_and_reason_fails(kit: Kit, claimed: bool) -> None:
    task = kit.call("count", items=["a"])
    if claimed:
        kit.runtime.rail.reports.claim(task.task_id, 1, "x", 1)
    kit.runtime.rail.run_heard(task.task_id, 1, RunReport(RunState.SUCCEEDED if claimed else RunState.FAILED))
    assert task.status == "failed"
    assert task.error["code"] == -32603


def test_a_vanished_run_fails_after_a_second_look(kit: Kit) -> None:
    task = kit.call("count", items=["a"])
    kit.runtime.rail.reports.claim(task.task_id, 1, "x", 1)
    kit.engine.waiting.clear()
    kit.engine.states.clear()
    kit.advance(seconds(16))
    assert task.status == "working"
    kit.advance(seconds(11))
    assert task.status == "failed"


def test_a_run_out_of_time_is_stopped_and_completes_as_an_error(kit: Kit) -> None:
    task = kit.call("count", items=["a"])
    name = kit.engine.waiting[0]
    kit.advance(minutes(7))
    assert task.status == "completed"
    assert task.is_error
    assert kit.engine.states[name].state is RunState.STOPPED


def test_a_question_that_nobody_answers_ends_the_task(kit: Kit) -> None:
    task = kit.call("publish", title="Q3").run()
    assert task.status == "input_required"
    kit.advance(minutes(61))
    assert task.status == "completed"
    assert task.is_error
    assert "Nobody answered" in task.text


def test_a_refused_start_leaves_nothing_behind(kit: Kit) -> None:
    kit.engine.refuse = True
    with pytest.raises(RpcFailure) as refusal:
        kit.call("count", items=["a"])
    assert refusal.value.error["code"] == -32603
    assert refusal.value.error["data"] == {"retryable": True}
    items = kit.scan()
    assert items == []


def test_wrong_arguments_are_a_result_and_start_nothing(kit: Kit) -> None:
    for arguments in ({}, {"items": "no list"}, {"items": ["a"], "extra": 1}, {"items": [1]}):
        reply = kit.call("count", **arguments)
        assert not reply.is_task
        assert reply.is_error
        assert "items" in reply.text or "extra" in reply.text
    assert kit.scan() == []
    assert kit.engine.starts == []
