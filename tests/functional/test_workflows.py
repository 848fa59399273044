"""State machines as tools: what they are told, what they report, how they ask, and how they end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from taskrail.clock import hours, minutes, seconds
from taskrail.engines import RunReport, RunState
from taskrail.errors import QuestionError
from taskrail.rail.remote import TaskCancelled, TokenRefused
from taskrail.signing import Signer
from taskrail.testing import Called, Kit, harness
from tests.functional import work_tools

FORM = {"type": "object", "properties": {"really": {"type": "boolean"}}, "required": ["really"]}
ASKED = {"key": "go", "message": "Apply it?", "schema": FORM}
YES = {"action": "accept", "content": {"really": True}}


@pytest.fixture(scope="module")
def deployment() -> Iterator[Kit]:
    with harness(work_tools.server) as made:
        yield made


@pytest.fixture
def kit(deployment: Kit) -> Kit:
    deployment.clear()
    return deployment


@pytest.fixture
def task(kit: Kit) -> Called:
    return kit.call("migrate", table="orders")


def test_an_execution_gets_its_identity_its_arguments_with_defaults_and_a_token(task: Called) -> None:
    told = dict(task.order.input)
    token = told.pop("reportToken")
    assert told == {
        "taskId": task.task_id,
        "run": 1,
        "arguments": {"table": "orders", "batches": 3, "notes": ""},
    }
    assert isinstance(token, str) and token.startswith(f"{task.task_id}.1.")


def test_the_same_run_gets_the_same_input_again(kit: Kit, task: Called) -> None:
    """Step Functions takes a repeated name only with the same input."""
    first = task.order.input
    # The engine has forgotten the run: two looks later it is started again.
    kit.engine.states.clear()
    for _ in range(2):
        kit.advance(seconds(30))
        task.poll()
    assert kit.engine.starts == [task.order.name] * 2
    assert task.order.input == first


def test_large_arguments_come_as_a_pointer(kit: Kit) -> None:
    small = kit.call("migrate", table="t", notes="n" * 50_000)
    assert small.order.input["arguments"]["notes"] == "n" * 50_000  # type: ignore[index]
    large = kit.call("migrate", table="t", notes="n" * 150_000)
    uri = str(large.order.input["argumentsUri"])
    assert "arguments" not in large.order.input
    assert uri.startswith(f"s3://payloads/tasks/{large.task_id}/")
    body = kit.s3.get_object(Bucket="payloads", Key=uri.removeprefix("s3://payloads/"))["Body"].read()
    assert json.loads(body)["notes"] == "n" * 150_000


def test_an_adopted_state_machine_gets_the_plain_arguments(kit: Kit) -> None:
    task = kit.call("adopted_machine", table="orders")
    assert task.order.input == {"table": "orders", "batches": 3, "notes": ""}


def test_progress_is_told_and_the_answer_says_whether_to_stop(kit: Kit, task: Called) -> None:
    assert task.report("progress", done=1, total=3, message="Batch 1 of 3") == {"cancel": False}
    seen = task.poll()
    assert seen["statusMessage"] == "Batch 1 of 3"
    assert seen["_meta"]["io.taskrail/progress"] == {"done": 1, "total": 3}
    task.cancel()
    assert task.status == "working"
    assert task.report("progress", done=2, total=3) == {"cancel": True}


def test_the_output_is_the_result(task: Called) -> None:
    task.end({"rows": 12})
    assert task.status == "completed"
    assert task.structured == {"rows": 12}


def test_an_output_that_the_tool_did_not_promise_is_an_error_that_says_so(task: Called) -> None:
    task.end({"cells": 12})
    assert task.is_error and "rows" in task.text and "12" not in task.text


@pytest.mark.parametrize("output", [None, "text", 5, [1, 2], {"a": {"b": 1}}])
def test_without_a_promise_any_output_will_do(kit: Kit, output: Any) -> None:
    task = kit.call("anything").end(output)
    assert not task.is_error
    if isinstance(output, dict):
        assert task.structured == output


def test_an_output_that_the_event_left_out_is_asked_for(kit: Kit, task: Called) -> None:
    name = task.order.name
    kit.engine.end(name, RunReport(RunState.SUCCEEDED, output='{"rows":7}'))
    kit.runtime.rail.run_heard(task.task_id, 1, RunReport(RunState.SUCCEEDED, whole=False))
    assert task.structured == {"rows": 7}


@pytest.mark.parametrize(
    ("error", "cause", "told", "kept"),
    [
        ("States.Timeout", "secret trace", "States.Timeout", "secret"),
        ("Lambda.AWSLambdaException", "secret trace", "Lambda.AWSLambdaException", "secret"),
        ("ToolError", "The table is locked.", "The table is locked.", "Task "),
    ],
)
def test_a_failed_execution_tells_its_error_and_only_what_is_meant_for_the_caller(
    task: Called, error: str, cause: str, told: str, kept: str
) -> None:
    task.end(error=error, cause=cause)
    assert (task.status, task.is_error) == ("completed", True)
    assert told in task.text and kept not in task.text


def test_an_end_that_nobody_told_is_found_by_a_read(kit: Kit, task: Called) -> None:
    kit.engine.end(task.order.name, RunReport(RunState.SUCCEEDED, output='{"rows":7}'))
    kit.advance(seconds(20))
    assert task.structured == {"rows": 7}


def test_a_state_asks_and_gets_the_answer(kit: Kit, task: Called) -> None:
    task.report("ask", **ASKED, taskToken="token-1")
    assert task.status == "input_required"
    assert task.questions["go"]["params"] == {"mode": "form", "message": "Apply it?", "requestedSchema": FORM}
    task.answer_with({"go": YES})
    assert json.loads(kit.engine.resumed["token-1"]) == YES
    assert task.status == "working"
    assert kit.engine.starts == [f"{task.task_id}-1"], "an answer starts no other execution"
    assert not kit.runtime.rail.read(kit.owner, task.task_id).tokens, "the token is dropped once it is used"
    assert task.end({"rows": 1}).structured == {"rows": 1}


def test_declining_is_an_answer(kit: Kit, task: Called) -> None:
    task.report("ask", **ASKED, taskToken="token-1")
    task.decline("go")
    assert json.loads(kit.engine.resumed["token-1"]) == {"action": "decline"}


def test_an_answer_that_breaks_the_form_leaves_the_state_waiting(kit: Kit, task: Called) -> None:
    task.report("ask", **ASKED, taskToken="token-1")
    with pytest.raises(Exception, match="go"):
        task.answer_with({"go": {"action": "accept", "content": {"really": "maybe"}}})
    assert kit.engine.resumed == {} and task.status == "input_required"


def test_parallel_questions_are_answered_one_by_one(kit: Kit, task: Called) -> None:
    """A branch goes on with its own answer, while the other still waits."""
    task.report("ask", **{**ASKED, "key": "left"}, taskToken="token-left")
    task.report("ask", **{**ASKED, "key": "right"}, taskToken="token-right")
    assert set(task.questions) == {"left", "right"}
    task.answer_with({"right": YES})
    assert set(kit.engine.resumed) == {"token-right"}
    assert (task.status, set(task.questions)) == ("input_required", {"left"})
    assert task.report("progress", message="The right branch goes on") == {"cancel": False}
    task.answer_with({"left": YES})
    assert set(kit.engine.resumed) == {"token-left", "token-right"}
    assert task.status == "working"


def test_a_retried_state_gets_the_answer_under_its_new_token(kit: Kit, task: Called) -> None:
    task.report("ask", **ASKED, taskToken="token-1")
    task.report("ask", **ASKED, taskToken="token-2")
    assert list(task.questions) == ["go"]
    task.answer_with({"go": YES})
    assert set(kit.engine.resumed) == {"token-2"}


def test_an_answer_that_is_there_already_is_passed_on_at_once(kit: Kit, task: Called) -> None:
    task.report("ask", **ASKED, taskToken="token-1")
    task.answer_with({"go": YES})
    task.report("ask", **ASKED, taskToken="token-2")
    assert json.loads(kit.engine.resumed["token-2"]) == YES
    assert task.status == "working"


def test_an_answer_that_was_kept_but_not_passed_on_is_passed_on_by_a_read(kit: Kit, task: Called) -> None:
    task.report("ask", **ASKED, taskToken="token-1")
    kit.engine.refuse = True
    task.answer_with({"go": YES})
    assert kit.engine.resumed == {}
    kit.engine.refuse = False
    task.poll()
    assert kit.engine.resumed == {}, "whoever recorded the answer gets the time to pass it on"
    kit.advance(seconds(11))
    task.poll()
    assert json.loads(kit.engine.resumed["token-1"]) == YES


def test_the_same_key_with_another_question_is_refused(task: Called) -> None:
    task.report("ask", **ASKED, taskToken="token-1")
    with pytest.raises(QuestionError, match="another question"):
        task.report("ask", **{**ASKED, "message": "Something else?"}, taskToken="token-2")
    assert task.questions["go"]["params"]["message"] == "Apply it?"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"deep": {"type": "object"}}},
        {"type": "array"},
        {"type": "object", "properties": {"n": {"type": "integer", "multipleOf": 3}}},
        {"type": "object", "properties": {"n": 5}},
    ],
)
def test_a_form_that_no_client_could_show_is_refused(task: Called, schema: dict[str, Any]) -> None:
    with pytest.raises(QuestionError, match="go"):
        task.report("ask", key="go", message="Go?", schema=schema, taskToken="token-1")
    assert task.status == "working"


def test_a_client_that_cannot_be_asked_is_not(kit: Kit) -> None:
    task = kit.call("migrate", table="orders", capabilities={})
    with pytest.raises(QuestionError, match="elicitation"):
        task.report("ask", **ASKED, taskToken="token-1")
    assert task.status == "working"


def test_waiting_for_an_answer_is_not_counted_as_work(kit: Kit, task: Called) -> None:
    """Its ten minutes begin anew: a person had it, not the state machine."""
    task.report("ask", **ASKED, taskToken="token-1")
    kit.advance(hours(1.5))
    task.answer_with({"go": YES})
    kit.advance(minutes(9))
    assert task.status == "working"
    kit.advance(minutes(5))
    assert task.is_error and "ran out of time" in task.text


def test_a_question_that_nobody_answers_ends_the_execution(kit: Kit, task: Called) -> None:
    task.report("ask", **ASKED, taskToken="token-1")
    kit.advance(hours(2) + seconds(1))
    assert task.is_error and "Nobody answered" in task.text
    assert kit.engine.states[task.order.name].state is RunState.STOPPED


def test_an_execution_that_ends_while_its_question_is_open_is_over(kit: Kit, task: Called) -> None:
    """Nothing would take up the answer: no other execution follows."""
    task.report("ask", **ASKED, taskToken="token-1")
    task.end(error="States.Timeout")
    assert task.is_error and "States.Timeout" in task.text


def test_a_waiting_workflow_is_cancelled_at_once(kit: Kit, task: Called) -> None:
    task.report("ask", **ASKED, taskToken="token-1")
    task.cancel()
    assert task.status == "cancelled"
    assert kit.engine.states[task.order.name].state is RunState.STOPPED


def test_a_working_workflow_is_told_and_then_stopped(kit: Kit, task: Called) -> None:
    task.cancel()
    assert (task.status, kit.engine.states[task.order.name].state) == ("working", RunState.RUNNING)
    kit.advance(seconds(11))
    assert task.status == "cancelled"
    assert kit.engine.states[task.order.name].state is RunState.STOPPED


def test_a_workflow_that_heard_of_the_cancellation_and_ended_itself_is_cancelled(task: Called) -> None:
    task.cancel()
    task.end(error="Cancelled")
    assert task.status == "cancelled"


def test_a_workflow_that_finished_all_the_same_keeps_its_result(task: Called) -> None:
    task.cancel()
    assert task.end({"rows": 3}).structured == {"rows": 3}


def test_a_state_that_asks_after_the_cancellation_fails_instead_of_waiting(task: Called) -> None:
    task.cancel()
    with pytest.raises(TaskCancelled):
        task.report("ask", **ASKED, taskToken="token-1")
    task.end(error="TaskCancelled")
    with pytest.raises(TaskCancelled):
        task.report("ask", **ASKED, taskToken="token-1")


def test_a_report_that_is_late_is_told_that_it_is_over(task: Called) -> None:
    task.end({"rows": 3})
    before = task.poll()
    for what in ("progress", "ask", "answers", "arguments"):
        assert task.report(what, message="late", key="k") == {"cancel": True, "ended": True}
    assert task.poll() == before


def test_a_token_is_for_its_own_task_run_and_time(kit: Kit, task: Called) -> None:
    other = kit.call("migrate", table="others")
    mine, theirs = str(task.order.input["reportToken"]), str(other.order.input["reportToken"])
    take, told = kit.runtime.remote.take, {"do": "progress", "message": "hello"}
    take(mine, told)
    assert (task.poll()["statusMessage"], "statusMessage" in other.poll()) == ("hello", False)
    swapped = ".".join([other.task_id, *mine.split(".")[1:]])
    for bad in (None, "", 5, mine[:-1], mine + "x", swapped, f"{mine}.{theirs}", "a.b.c.d"):
        with pytest.raises(TokenRefused):
            take(bad, told)
    kit.advance(hours(24 * 367))
    with pytest.raises(TokenRefused):
        take(mine, told)


def test_a_token_of_another_deployment_is_refused(kit: Kit, task: Called) -> None:
    token = Signer(lambda: "another secret for tests").report_token(task.task_id, 1, 10**14)
    with pytest.raises(TokenRefused):
        kit.runtime.remote.take(token, {"do": "progress", "message": "hello"})
