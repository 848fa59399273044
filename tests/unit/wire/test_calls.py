"""`tools/call`: inline tools, questions before the task, tasks, and clients that know none."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from taskrail import clock
from taskrail.questions import form_question, sampling_question
from taskrail.server import TaskServer
from taskrail.task import Status
from tests.unit.wire.stubs import FORMS, HOOKS, NOW, TASKS, Answer, Confirm, Kit, Name, tools

BOTH: dict[str, Any] = {**TASKS, **FORMS}
LARGE: dict[str, Any] = {"pages": 301}
YES: dict[str, Any] = {"large": {"action": "accept", "content": {"go_on": True}}}
TRACE = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"


def accept(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


def retry(kit: Kit, tool: str, arguments: Any, asked: Answer, responses: Any, **more: Any) -> Answer:
    """The retry of a call: its answers, and the state that came with the questions."""
    params = {"inputResponses": responses, "requestState": asked.result["requestState"]}
    return kit.call(tool, arguments, more=params, **more)


# --- parameters


@pytest.mark.parametrize(
    "params",
    [
        {"name": "nobody"},
        {"name": "greet", "arguments": []},
        {"name": "greet", "arguments": None},
        {"name": "greet", "arguments": "x"},
        {"name": "greet", "arguments": {"name": "x"}, "inputResponses": []},
        {"name": "greet", "arguments": {"name": "x"}, "requestState": 5},
        {"name": "greet", "arguments": {"name": "x"}, "requestState": "forged"},
    ],
)
def test_parameters_that_are_wrong(params: dict[str, Any]) -> None:
    answer = Kit().request("tools/call", params)
    assert (answer.status, answer.code) == (400, -32602)


@pytest.mark.parametrize("tool", ["greet", "slow", "guarded"])
@pytest.mark.parametrize("arguments", [{}, {"pages": "many"}, {"nonsense": 1}, {"name": 7}])
def test_arguments_that_do_not_fit_are_a_result_and_start_nothing(tool: str, arguments: dict[str, Any]) -> None:
    if tool == "slow" and not arguments:
        return
    kit = Kit()
    result = kit.call(tool, arguments, capabilities=BOTH).result
    assert (result["resultType"], result["isError"]) == ("complete", True)
    assert kit.rail.tasks == {}
    assert "many" not in result["content"][0]["text"]


def test_arguments_may_be_absent() -> None:
    assert Kit().request("tools/call", {"name": "slow"}, capabilities=TASKS).result["resultType"] == "task"


# --- inline


def test_inline_tools_plain_and_asynchronous() -> None:
    for tool in ("greet", "greet_later"):
        result = Kit().call(tool, {"name": "Ada"}).result
        assert result["content"] == [{"type": "text", "text": "Hello, Ada!"}]
        assert (result["resultType"], result["isError"]) == ("complete", False)


@pytest.mark.parametrize("capabilities", [{}, TASKS])
def test_an_old_task_parameter_is_ignored(capabilities: dict[str, Any]) -> None:
    kit = Kit()
    result = kit.call("greet", {"name": "x"}, capabilities=capabilities, more={"task": {"ttl": 1}}).result
    assert (result["resultType"], "taskId" in result, kit.rail.tasks) == ("complete", False, {})


def test_structured_results_are_repeated_as_text() -> None:
    result = Kit().call("measure", {}).result
    assert result["structuredContent"] == {"region": "", "count": 0}
    assert result["content"][0]["text"] == '{"region":"","count":0}'


def test_other_content() -> None:
    assert Kit().call("picture").result["content"][0]["mimeType"] == "image/png"


def test_a_tool_error_is_a_result_with_its_text() -> None:
    result = Kit().call("refuse_politely").result
    assert result["isError"] is True
    assert [block["text"] for block in result["content"]] == ["Not today.", '{"try":"tomorrow"}']


@pytest.mark.parametrize(
    ("raised", "status", "sent"),
    [
        (4711, 200, 4711),
        (-32602, 400, -32602),
        (-32603, 500, -32603),
        (-1, 200, -1),
        (-32769, 200, -32769),
        (-31999, 200, -31999),
        (-32002, 500, -32603),
        (-32042, 500, -32603),
        (-32099, 500, -32603),
        (-32000, 500, -32603),
    ],
)
def test_a_protocol_error_is_an_error_and_no_reserved_code_gets_out(raised: int, status: int, sent: int) -> None:
    answer = Kit().call("refuse_formally", {"code": raised})
    assert (answer.status, answer.error) == (status, {"code": sent, "message": "No.", "data": {"why": "because"}})


@pytest.mark.parametrize("tool", ["explode", "leave"])
def test_anything_else_is_a_neutral_text_and_a_trace_in_the_log(tool: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "taskrail"):
        result = Kit().call(tool, {"secret": "hush"} if tool == "explode" else {}).result
    assert result["isError"] is True
    assert "hush" not in str(result)
    assert "Traceback" not in str(result)
    reference = result["content"][0]["text"].split()[-1].rstrip(".")
    assert reference in caplog.text
    assert "Traceback" in caplog.text


def test_what_json_cannot_carry_is_an_error_that_says_so() -> None:
    result = Kit().call("unbounded").result
    assert result["isError"] is True
    assert "structuredContent" not in result


def test_a_result_too_large_for_lambda_is_an_error_measured_after_escaping() -> None:
    assert len(Kit().call("long_text", {"length": 1_000_000}).said) == 1_000_000
    result = Kit().call("long_text", {"length": 1_700_000}).result
    assert result["isError"] is True
    assert "5000000" in result["content"][0]["text"]


# --- questions of inline tools


def test_a_question_and_its_answer() -> None:
    kit = Kit()
    asked = kit.call("ask_name", capabilities=FORMS)
    assert asked.result["resultType"] == "input_required"
    assert not {"taskId", "content"} & set(asked.result)
    question = asked.result["inputRequests"]["user_name"]
    assert (question["method"], question["params"]["message"]) == ("elicitation/create", "What is your name?")
    assert (
        retry(kit, "ask_name", {}, asked, {"user_name": accept(name="Ada")}, capabilities=FORMS).said == "Hello, Ada!"
    )
    declined = retry(kit, "ask_name", {}, asked, {"user_name": {"action": "decline"}}, capabilities=FORMS)
    assert declined.said == "Hello, stranger!"


def test_a_retry_works_without_state_and_unknown_answers_are_ignored() -> None:
    responses = {"user_name": accept(name="Ada"), "other": accept(x=1), "more": 5}
    answer = Kit().call("ask_name", capabilities=FORMS, more={"inputResponses": responses})
    assert answer.said == "Hello, Ada!"


@pytest.mark.parametrize(
    "response",
    [12345, None, "x", [], {}, {"action": "maybe"}, {"action": "accept"}, accept(), accept(name=5), accept(name=None)],
)
def test_an_unusable_answer_is_asked_for_again(response: Any) -> None:
    kit = Kit()
    again = kit.call("ask_name", capabilities=FORMS, more={"inputResponses": {"user_name": response}})
    assert list(again.result["inputRequests"]) == ["user_name"]
    last = retry(kit, "ask_name", {}, again, {"user_name": accept(name="Ada")}, capabilities=FORMS)
    assert last.said == "Hello, Ada!"


def test_rounds_carry_earlier_answers_in_the_state() -> None:
    kit = Kit()
    first = kit.call("ask_twice", capabilities=FORMS)
    second = retry(kit, "ask_twice", {}, first, {"step1": accept(name="A")}, capabilities=FORMS)
    assert list(second.result["inputRequests"]) == ["step2"]
    assert second.result["requestState"] != first.result["requestState"]
    third = retry(kit, "ask_twice", {}, second, {"step2": accept(name="B")}, capabilities=FORMS)
    assert third.said == "A B"


def test_the_state_is_bound_to_arguments_tool_and_time() -> None:
    kit = Kit()
    asked = kit.call("guarded", LARGE, capabilities=BOTH)
    assert retry(kit, "guarded", {"pages": 302}, asked, YES, capabilities=BOTH).code == -32602
    assert retry(kit, "ask_name", {}, asked, YES, capabilities=BOTH).code == -32602
    tampered = kit.call("guarded", LARGE, more={"requestState": asked.result["requestState"] + "-TAMPERED"})
    assert tampered.code == -32602
    kit.clock.moment += 3_600_000
    assert retry(kit, "guarded", LARGE, asked, YES, capabilities=BOTH).code == -32602
    assert kit.rail.tasks == {}


@pytest.mark.parametrize(
    ("tool", "declared", "required"),
    [
        ("ask_name", {}, {"elicitation": {}}),
        ("ask_name", {"elicitation": {"url": {}}}, {"elicitation": {}}),
        ("ask_name", {"elicitation": None}, {"elicitation": {}}),
        ("sample", FORMS, {"sampling": {}}),
    ],
)
def test_a_client_is_not_asked_what_it_did_not_declare(tool: str, declared: Any, required: Any) -> None:
    answer = Kit().call(tool, capabilities=declared)
    assert (answer.status, answer.code) == (400, -32021)
    assert set(answer.error["data"]["requiredCapabilities"]) == set(required)


# --- questions before a task


def test_questions_come_before_anything_is_stored() -> None:
    kit = Kit()
    asked = kit.call("guarded", LARGE, capabilities=BOTH)
    assert asked.result["resultType"] == "input_required"
    assert kit.rail.tasks == {}
    created = retry(kit, "guarded", LARGE, asked, YES, capabilities=BOTH).result
    assert created["resultType"] == "task"
    assert not {"requestState", "inputRequests", "result", "error", "task"} & set(created)
    assert kit.rail.created[0]["until"] == NOW + 3_600_000


def test_an_answer_sent_twice_starts_one_task() -> None:
    kit = Kit()
    asked = kit.call("guarded", LARGE, capabilities=BOTH)
    ids = {retry(kit, "guarded", LARGE, asked, YES, capabilities=BOTH).result["taskId"] for _ in range(3)}
    assert len(ids) == len(kit.rail.tasks) == len(kit.rail.created) == 1


def test_an_answer_without_state_is_a_call_of_its_own() -> None:
    kit = Kit()
    for _ in range(2):
        assert (
            kit.call("guarded", LARGE, capabilities=BOTH, more={"inputResponses": YES}).result["resultType"] == "task"
        )
    assert len(kit.rail.tasks) == 2
    assert kit.rail.created[0]["until"] is None


def test_all_rounds_of_a_call_share_one_task_and_one_life() -> None:
    kit = Kit()
    first = kit.call("guarded", LARGE, capabilities=BOTH)
    kit.clock.moment += 1_000_000
    second = retry(kit, "guarded", LARGE, first, {"large": 5}, capabilities=BOTH)
    assert second.result["resultType"] == "input_required"
    by_second = retry(kit, "guarded", LARGE, second, YES, capabilities=BOTH).result["taskId"]
    by_first = retry(kit, "guarded", LARGE, first, YES, capabilities=BOTH).result["taskId"]
    assert by_first == by_second
    assert kit.rail.created[0]["until"] == NOW + 3_600_000


def test_a_hook_can_refuse() -> None:
    kit = Kit()
    no = {"large": {"action": "decline"}}
    for answer in (
        kit.call("guarded", {"pages": -1}, capabilities=BOTH),
        kit.call("guarded", LARGE, capabilities=BOTH, more={"inputResponses": no}),
    ):
        assert (answer.result["isError"], answer.said) == (True, "Not started.")
    assert kit.rail.tasks == {}


def test_a_hook_that_may_not_ask_starts_nothing() -> None:
    kit = Kit()
    assert kit.call("guarded", LARGE, capabilities=TASKS).code == -32021
    assert kit.rail.tasks == {}


def test_a_hook_can_change_the_arguments_of_the_task() -> None:
    kit = Kit()
    assert kit.call("guarded", {"pages": 1, "owner": "whoever asks"}, capabilities=TASKS).result["taskId"]
    assert kit.rail.created[0]["arguments"] == {"pages": 1, "owner": "anonymous"}
    broken = kit.call("guarded", {"pages": 1, "owner": "break"}, capabilities=TASKS)
    assert broken.result["isError"] is True
    assert len(kit.rail.created) == 1


# --- tasks


def test_a_task_is_handed_over_flat() -> None:
    result = Kit().call("slow", {"label": "x"}, capabilities=TASKS).result
    assert set(result) == {
        "resultType", "taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs", "_meta",
    }  # fmt: skip
    assert (result["resultType"], result["status"]) == ("task", "working")


def test_a_start_that_is_refused_is_an_error() -> None:
    kit = Kit()
    kit.rail.refuse = True
    answer = kit.call("slow", capabilities=TASKS)
    assert (answer.status, answer.code, kit.rail.tasks) == (500, -32603, {})


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (TRACE, TRACE),
        (TRACE.upper(), None),
        (TRACE + "-x", None),
        ("ff" + TRACE[2:], None),
        ("00-" + "0" * 32 + TRACE[35:], None),
        (TRACE[:36] + "0" * 16 + "-01", None),
        (TRACE + "\n", None),
        (5, None),
        ("", None),
    ],
)
def test_only_a_well_formed_trace_context_is_kept(sent: Any, kept: str | None) -> None:
    kit = Kit()
    kit.call("slow", capabilities=TASKS, meta={"traceparent": sent})
    assert kit.rail.created[0]["traceparent"] == kept


# --- clients that know no tasks


def test_the_request_waits_for_the_result() -> None:
    kit = Kit()
    kit.clock.meanwhile = lambda: kit.rail.end(Status.COMPLETED, {"content": [], "isError": False})
    result = kit.call("slow").result
    assert (result["resultType"], result["content"], "taskId" in result) == ("complete", [], False)
    assert kit.clock.slept == [200]


def test_pauses_grow_to_a_second_and_end_with_the_budget() -> None:
    kit = Kit(wait_budget_ms=5_000)
    answer = kit.call("slow")
    assert kit.clock.slept[:3] == [200, 300, 450]
    assert max(kit.clock.slept) == 1_000
    assert 4_000 < sum(kit.clock.slept) <= 5_000
    assert kit.rail.only().task_id in answer.said
    assert answer.result["isError"] is False
    assert answer.result["structuredContent"]["taskId"] == kit.rail.only().task_id


def test_the_lambdas_own_time_bounds_the_wait() -> None:
    kit = Kit()
    kit.remaining_ms = lambda: 3_000
    answer = kit.call("slow")
    assert answer.said.startswith("Not finished")
    assert sum(kit.clock.slept) <= 1_000


def test_a_ticket_is_no_error_since_such_clients_see_no_output_schema() -> None:
    kit = Kit()
    answer = kit.call("summarise")
    assert answer.result["isError"] is False
    assert answer.result["structuredContent"] == {
        "taskId": kit.rail.only().task_id,
        "status": "working",
        "expiresAt": clock.iso(kit.rail.only().expires_at or 0),
    }
    listed = {tool["name"]: tool for tool in Kit().request("tools/list").result["tools"]}
    assert "outputSchema" not in listed["summarise"]
    listed = {tool["name"]: tool for tool in Kit().request("tools/list", capabilities=TASKS).result["tools"]}
    assert "outputSchema" in listed["summarise"]


def test_without_tickets_an_unfinished_result_is_an_error_where_a_schema_wants_structure() -> None:
    kit = Kit(TaskServer("stub", version="1.2.3", title="Stub", tools=[tools], tickets=False))
    answer = kit.call("summarise")
    assert answer.result["isError"] is True
    assert kit.rail.only().task_id in answer.said


def test_a_failed_task_is_its_error_and_a_cancelled_one_a_result() -> None:
    kit = Kit()
    kit.clock.meanwhile = lambda: kit.rail.end(Status.FAILED, {"code": 4711, "message": "Lost.", "data": [1]})
    answer = kit.call("slow")
    assert (answer.status, answer.error) == (200, {"code": 4711, "message": "Lost.", "data": [1]})
    kit = Kit()
    kit.clock.meanwhile = lambda: kit.rail.end(Status.CANCELLED)
    assert kit.call("slow").result["isError"] is True


def test_a_table_that_is_away_for_a_while_is_ridden_out() -> None:
    kit = Kit()
    kit.rail.broken = 3
    kit.clock.meanwhile = lambda: kit.rail.end(Status.COMPLETED, {"content": []}) if not kit.rail.broken else None
    assert kit.call("slow").result["content"] == []


def test_a_job_that_asks_is_answered_through_the_rounds_of_the_call() -> None:
    kit = Kit()
    question = form_question("go", "Go on?", Confirm)
    kit.clock.meanwhile = lambda: kit.rail.ask(question, form_question("who", "Who?", Name))
    asked = kit.call("guarded", {"pages": 1}, capabilities=FORMS)
    assert list(asked.result["inputRequests"]) == ["go", "who"]
    assert "taskId" not in asked.result
    HOOKS.clear()
    kit.clock.meanwhile = lambda: None
    more = retry(kit, "guarded", {"pages": 1}, asked, {"go": accept(go_on=True), "who": 5}, capabilities=FORMS)
    assert list(more.result["inputRequests"]) == ["who"]
    kit.clock.meanwhile = lambda: kit.rail.end(Status.COMPLETED, {"content": []})
    last = retry(kit, "guarded", {"pages": 1}, more, {"who": accept(name="A"), "go": 7, "x": 1}, capabilities=FORMS)
    assert last.result["content"] == []
    assert HOOKS == []
    assert len(kit.rail.created) == 1


def test_a_client_may_declare_the_extension_on_the_retry() -> None:
    kit = Kit()
    kit.clock.meanwhile = lambda: kit.rail.ask(form_question("go", "Go on?", Confirm))
    asked = kit.call("slow", capabilities=FORMS)
    answer = retry(kit, "slow", {}, asked, {"go": accept(go_on=True)}, capabilities=BOTH)
    assert (answer.result["resultType"], answer.result["status"]) == ("task", "working")


def test_a_job_that_asks_what_this_client_cannot_answer() -> None:
    kit = Kit()
    kit.clock.meanwhile = lambda: kit.rail.ask(sampling_question("think", "What?", 5))
    answer = kit.call("slow", capabilities=FORMS)
    assert (answer.code, answer.error["data"]) == (-32021, {"requiredCapabilities": {"sampling": {}}})
