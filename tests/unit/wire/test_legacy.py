"""Earlier revisions, request by request: what each gets, and what none of them ever gets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from taskrail.questions import form_question, sampling_question
from taskrail.task import Progress, Status
from tests.unit.wire.stubs import TASKS, VERSION, Kit, Name

REVISIONS = ["2025-11-25", "2025-06-18", "2025-03-26"]


def post(kit: Kit, body: Any, version: str | None = None) -> tuple[int, Any]:
    """Status and body of the answer to a raw request of that revision."""
    headers = {} if version is None else {"mcp-protocol-version": version}
    answer = kit.post(body, headers)
    assert not {name.lower() for name in answer.headers} & {"mcp-session-id"}
    return answer.status, json.loads(answer.text) if answer.text else None


def ask(kit: Kit, method: str, params: Any = None, version: str | None = "2025-11-25", number: Any = 1) -> Any:
    """The result of a request."""
    body = {"jsonrpc": "2.0", "id": number, "method": method, **({} if params is None else {"params": params})}
    status, answer = post(kit, body, version)
    assert (status, answer["id"], answer["jsonrpc"]) == (200, number, "2.0")
    assert "error" not in answer, answer
    result = answer["result"]
    assert not {"resultType", "ttlMs", "cacheScope"} & result.keys()
    return result


def hello(version: Any) -> dict[str, Any]:
    return {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}


@pytest.mark.parametrize(
    ("requested", "answered"),
    [*((one, one) for one in REVISIONS), ("2024-11-05", REVISIONS[0]), (VERSION, REVISIONS[0])],
)
@pytest.mark.parametrize("header", [None, *REVISIONS])
def test_the_handshake(requested: str, answered: str, header: str | None) -> None:
    result = ask(Kit(), "initialize", hello(requested), header)
    assert result["protocolVersion"] == answered
    assert result["capabilities"] == {"tools": {"listChanged": False}}
    assert result["serverInfo"] == {"name": "stub", "version": "1.2.3", "title": "Stub"}


@pytest.mark.parametrize("version", [*REVISIONS, None])
def test_each_revision_lists_and_calls(version: str | None) -> None:
    kit = Kit()
    assert post(kit, {"jsonrpc": "2.0", "method": "notifications/initialized"}, version) == (202, None)
    assert ask(kit, "ping", None, version) == {}
    names = [tool["name"] for tool in ask(kit, "tools/list", None, version)["tools"]]
    assert "greet" in names and "task_status" in names
    result = ask(kit, "tools/call", {"name": "greet", "arguments": {"name": "Ada"}}, version)
    assert result["content"][0]["type"] == "text" and "Ada" in result["content"][0]["text"]


def test_pages_go_on_where_they_ended() -> None:
    assert ask(Kit(), "tools/list", {"cursor": None})["tools"]
    status, answer = post(Kit(), {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": "x"}})
    assert (status, answer["error"]["code"]) == (200, -32602)


def test_results_are_objects_with_structure_where_the_tool_has_it() -> None:
    kit = Kit()
    for tool in ask(kit, "tools/list")["tools"]:
        assert tool.get("outputSchema", {"type": "object"})["type"] == "object"


@pytest.mark.parametrize(
    "method", ["tasks/get", "tasks/list", "prompts/list", "resources/list", "server/discover", "x"]
)
def test_other_methods_do_not_exist(method: str) -> None:
    status, answer = post(Kit(), {"jsonrpc": "2.0", "id": "a", "method": method}, "2025-11-25")
    assert (status, answer["id"], answer["error"]["code"]) == (200, "a", -32601)


@pytest.mark.parametrize("version", ["2024-11-05", "1.0", "2099-01-01"])
def test_a_version_that_is_not_spoken_is_a_400(version: str) -> None:
    status, answer = post(Kit(), {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}, version)
    assert (status, answer["error"]["code"]) in ((400, -32022), (400, -32602))


def test_a_batch_is_answered_where_the_revision_has_them() -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    wrong = {"jsonrpc": "2.0", "id": 2, "method": "nothing"}
    for version in (None, "2025-03-26"):
        status, answers = post(Kit(), [ping, note, wrong], version)
        assert status == 200 and [answer["id"] for answer in answers] == [1, 2]
        assert answers[0]["result"] == {} and answers[1]["error"]["code"] == -32601
        assert post(Kit(), [note], version) == (202, None)
    for version in ("2025-06-18", "2025-11-25", VERSION):
        status, answer = post(Kit(), [ping], version)
        assert (status, answer["error"]["code"]) == (400, -32600)
    status, answer = post(Kit(), [], None)
    assert (status, answer["error"]["code"]) == (400, -32600)


def test_a_batch_has_a_bound() -> None:
    """Only one request is counted and throttled, whatever is in it."""
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    status, answers = post(Kit(), [ping] * 100, "2025-03-26")
    assert status == 200 and len(answers) == 100
    status, answer = post(Kit(), [ping] * 101, "2025-03-26")
    assert (status, answer["error"]["code"]) == (400, -32600) and "at most 100 messages" in answer["error"]["message"]


def test_a_tool_only_for_clients_that_know_tasks_says_so() -> None:
    status, answer = post(
        Kit(), {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "only_as_task"}}, "2025-11-25"
    )
    assert (status, answer["error"]["code"]) == (200, -32602) and "Tasks" in answer["error"]["message"]


def test_a_tool_that_asks_before_its_task_cannot_be_asked_here() -> None:
    result = ask(Kit(), "tools/call", {"name": "ask_name", "arguments": {}})
    assert result["isError"] is True and "cannot be asked" in result["content"][0]["text"]


def test_a_client_that_comes_back_modern_is_served_modern() -> None:
    """It had fallen back to the handshake because the first answer took long; nothing here remembers that."""
    kit = Kit()
    ask(kit, "initialize", hello(REVISIONS[0]))
    assert VERSION in kit.request("server/discover").result["supportedVersions"]
    assert kit.request("tools/list", capabilities=TASKS).result["resultType"] == "complete"


# Tickets.


def ticket(kit: Kit, tool: str = "slow", **arguments: Any) -> dict[str, Any]:
    """The ticket that a call came to."""
    result = ask(kit, "tools/call", {"name": tool, "arguments": arguments})
    assert result["isError"] is False and result["structuredContent"]["taskId"] in result["content"][0]["text"]
    return dict(result["structuredContent"])


def call(kit: Kit, tool: str, **arguments: Any) -> dict[str, Any]:
    return dict(ask(kit, "tools/call", {"name": tool, "arguments": arguments}))


def test_a_job_is_followed_and_read_through_plain_tools() -> None:
    kit = Kit(wait_budget_ms=2_000)
    held = ticket(kit)
    assert held["status"] == "working"
    again = call(kit, "task_status", task_id=held["taskId"])
    assert again["structuredContent"]["status"] == "working"
    result = {"content": [{"type": "text", "text": "done"}], "isError": False}
    kit.rail.end(Status.COMPLETED, result)
    assert call(kit, "task_status", task_id=held["taskId"]) == result


def test_the_status_waits_for_news_within_the_budget() -> None:
    kit = Kit(wait_budget_ms=3_000)
    held = ticket(kit)
    kit.clock.slept.clear()
    call(kit, "task_status", task_id=held["taskId"])
    assert 1_500 < sum(kit.clock.slept) <= 3_000
    kit.clock.slept.clear()
    kit.clock.meanwhile = lambda: kit.rail.end(Status.CANCELLED)
    assert call(kit, "task_status", task_id=held["taskId"])["isError"] is True
    assert sum(kit.clock.slept) < 1_000, "the end is told at once"


def test_progress_alone_does_not_end_the_wait() -> None:
    """Each answer costs its reader a turn of a model: a chatty job must not make a hundred of them."""
    kit = Kit(wait_budget_ms=10_000)
    held = ticket(kit)

    def advance() -> None:
        task, now = kit.rail.only(), kit.clock.now()
        kit.rail.tasks[task.task_id] = task.reported(Progress(now % 1_000_000, None), None, now)

    kit.clock.slept.clear()
    kit.clock.meanwhile = advance
    told = call(kit, "task_status", task_id=held["taskId"])["structuredContent"]
    assert sum(kit.clock.slept) > 8_000 and told["progress"]["done"] > 0


def test_a_question_is_answered_through_a_plain_tool() -> None:
    kit = Kit(wait_budget_ms=500)
    kit.clock.meanwhile = lambda: kit.rail.ask(form_question("who", "Who?", Name))
    held = ticket(kit)
    kit.clock.meanwhile = lambda: None
    asked = held["questions"]["who"]
    assert (held["status"], asked["message"], asked["schema"]["type"]) == ("input_required", "Who?", "object")
    assert call(kit, "task_answer", task_id=held["taskId"], key="nobody")["isError"] is True
    wrong = call(kit, "task_answer", task_id=held["taskId"], key="who", content={"name": 5})
    assert wrong["isError"] is True and "who" in wrong["content"][0]["text"]
    assert kit.rail.only().outstanding
    call(kit, "task_answer", task_id=held["taskId"], key="who", content={"name": "Ada"})
    assert not kit.rail.only().outstanding


def test_the_job_may_ask_since_the_model_can_pass_it_on() -> None:
    kit = Kit(wait_budget_ms=100)
    ticket(kit)
    assert kit.rail.created_for[-1].askable == {"elicitation": {"form": {}}}


def test_what_no_person_can_answer_is_no_ticket() -> None:
    kit = Kit(wait_budget_ms=500)
    kit.clock.meanwhile = lambda: kit.rail.ask(sampling_question("think", "What?", 5))
    result = ask(kit, "tools/call", {"name": "slow", "arguments": {}})
    assert result["isError"] is True


def test_cancelling_tells_how_it_stands() -> None:
    kit = Kit(wait_budget_ms=100)
    held = ticket(kit)
    assert call(kit, "task_cancel", task_id=held["taskId"])["structuredContent"]["taskId"] == held["taskId"]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"task_id": 5},
        {"task_id": "x"},
        {"task_id": "0" * 32, "more": 1},
        {"task_id": "0" * 32, "key": "k", "action": "dance"},
        {"task_id": "0" * 32, "key": "k", "content": "x"},
    ],
)
def test_arguments_that_do_not_fit_are_told(arguments: dict[str, Any]) -> None:
    result = call(Kit(), "task_answer", **arguments)
    assert result["isError"] is True and "do not fit" in result["content"][0]["text"]


@pytest.mark.parametrize("tool", ["task_status", "task_answer", "task_cancel"])
def test_another_callers_ticket_is_as_unknown_as_any(tool: str) -> None:
    kit = Kit(wait_budget_ms=100)
    held = ticket(kit)
    task = kit.rail.only()
    kit.rail.tasks[task.task_id] = type(task)(**{**vars(task), "owner": "somebody else"})
    more = {"key": "k"} if tool == "task_answer" else {}
    foreign = call(kit, tool, task_id=held["taskId"], **more)
    assert foreign == call(kit, tool, task_id="f" * 32, **more)
    assert foreign["isError"] is True


def test_a_modern_client_without_tasks_has_tickets_too() -> None:
    kit = Kit(wait_budget_ms=100)
    answer = kit.call("slow")
    held = answer.result["structuredContent"]
    assert kit.call("task_status", {"task_id": held["taskId"]}).result["structuredContent"]["status"] == "working"


def test_clients_that_know_tasks_have_no_use_for_them() -> None:
    answer = Kit().call("task_status", {"task_id": "0" * 32}, capabilities=TASKS)
    assert answer.code == -32602 and "Unknown tool" in answer.error["message"]
