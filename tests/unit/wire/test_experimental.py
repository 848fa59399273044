"""The experimental tasks of 2025-11-25, request by request: shapes, errors, and that nobody else meets them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from taskrail.caller import Caller
from taskrail.questions import form_question
from taskrail.server import TaskServer, Toolset
from taskrail.task import Progress, Status
from tests.unit.wire.stubs import SERVER, TASKS, Kit, Name, tools

REVISION = "2025-11-25"
RELATED = "io.modelcontextprotocol/related-task"
UNKNOWN = "f" * 32
FIELDS = {"taskId", "status", "createdAt", "lastUpdatedAt", "ttl", "pollInterval"}


def kit_for(owner: str | None = "somebody", server: TaskServer = SERVER, **settings: Any) -> Kit:
    """An app with the option on; for the anonymous caller without an owner."""
    kit = Kit(server, experimental_tasks=True, **settings)
    if owner is not None:
        become(kit, owner)
    return kit


def become(kit: Kit, owner: str) -> None:
    """From now on, that caller calls."""
    kit.app._identify = lambda event: Caller(owner)


def send(kit: Kit, method: str, params: Any = None, version: str | None = REVISION) -> dict[str, Any]:
    """The answer's JSON."""
    body = {"jsonrpc": "2.0", "id": "one", "method": method, **({} if params is None else {"params": params})}
    answer = kit.post(body, {} if version is None else {"mcp-protocol-version": version})
    assert answer.status == 200, answer.text
    value: dict[str, Any] = json.loads(answer.text)
    assert (value["jsonrpc"], value["id"]) == ("2.0", "one")
    return value


def ask(kit: Kit, method: str, params: Any = None, version: str | None = REVISION) -> dict[str, Any]:
    """The result."""
    answer = send(kit, method, params, version)
    assert "error" not in answer, answer
    result: dict[str, Any] = answer["result"]
    assert not {"resultType", "ttlMs", "pollIntervalMs"} & result.keys()
    return result


def refused(kit: Kit, method: str, params: Any = None, version: str | None = REVISION) -> dict[str, Any]:
    """The error."""
    answer = send(kit, method, params, version)
    assert "result" not in answer, answer
    error: dict[str, Any] = answer["error"]
    return error


def call(kit: Kit, tool: str = "slow", arguments: Mapping[str, Any] | None = None) -> str:
    """Call a tool as a task; the task's id."""
    params = {"name": tool, "arguments": arguments or {}, "task": {}}
    return str(ask(kit, "tools/call", params)["task"]["taskId"])


def hello(version: str) -> dict[str, Any]:
    return {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}


# --- what is offered


def test_the_handshake_offers_them_to_their_revision_and_lists_to_callers_that_are_told_apart() -> None:
    cancel = {"cancel": {}, "requests": {"tools": {"call": {}}}}
    tasks = ask(kit_for(), "initialize", hello(REVISION), None)["capabilities"]["tasks"]
    assert tasks == {"list": {}, **cancel}
    assert ask(kit_for(None), "initialize", hello(REVISION), None)["capabilities"]["tasks"] == cancel
    for version in ("2025-06-18", "2025-03-26"):
        assert "tasks" not in ask(kit_for(), "initialize", hello(version), None)["capabilities"]
    assert "tasks" not in ask(Kit(), "initialize", hello(REVISION), None)["capabilities"]


def test_the_handshake_succeeds_whoever_calls() -> None:
    kit = Kit(experimental_tasks=True, auth="jwt")
    assert "list" not in ask(kit, "initialize", hello(REVISION), None)["capabilities"]["tasks"]


def test_the_list_says_which_tools_can_be_tasks() -> None:
    listed = {tool["name"]: tool.get("execution") for tool in ask(kit_for(), "tools/list")["tools"]}
    assert listed["slow"] == {"taskSupport": "optional"}
    assert listed["only_as_task"] == {"taskSupport": "required"}
    assert listed["greet"] is None and listed["task_status"] is None
    for version in ("2025-06-18", "2025-03-26", None):
        assert not any("execution" in tool for tool in ask(kit_for(), "tools/list", None, version)["tools"])
    assert not any("execution" in tool for tool in ask(Kit(), "tools/list")["tools"])


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel", "tasks/list"])
def test_without_the_option_and_in_other_revisions_there_are_no_such_methods(method: str) -> None:
    params = {"taskId": UNKNOWN}
    assert refused(Kit(), method, params)["code"] == -32601
    for version in ("2025-06-18", "2025-03-26"):
        assert refused(kit_for(), method, params, version)["code"] == -32601


def test_without_the_option_the_wish_for_a_task_is_ignored() -> None:
    for kit, version in ((Kit(), REVISION), (kit_for(), "2025-06-18")):
        result = ask(kit, "tools/call", {"name": "greet", "arguments": {"name": "Ada"}, "task": {"ttl": 1}}, version)
        assert "Ada" in result["content"][0]["text"]


def test_the_modern_wire_stays_as_it_is() -> None:
    kit = kit_for()
    assert "tasks" not in kit.request("server/discover").result["capabilities"]
    assert not any("execution" in tool for tool in kit.request("tools/list").result["tools"])
    for method in ("tasks/list", "tasks/result"):
        answer = kit.request(method, {"taskId": UNKNOWN}, capabilities=TASKS)
        assert (answer.status, answer.code) == (404, -32601)
    result = kit.call("slow", capabilities=TASKS, more={"task": {"ttl": 1}}).result
    assert result["resultType"] == "task" and "task" not in result


# --- tools/call with params.task


def test_a_task_is_made_and_its_ttl_is_the_real_one() -> None:
    kit = kit_for()
    result = ask(kit, "tools/call", {"name": "slow", "arguments": {"label": "x"}, "task": {"ttl": 5}})
    task = result["task"]
    assert task.keys() == FIELDS and result.keys() == {"task", "_meta"}
    assert (task["status"], task["ttl"], task["pollInterval"]) == ("working", 60_000, 1_000)
    assert task["taskId"] in result["_meta"]["io.modelcontextprotocol/model-immediate-response"]
    assert [made["arguments"] for made in kit.rail.created] == [{"label": "x"}]
    assert kit.rail.tasks[task["taskId"]].owner == "somebody"
    assert kit.clock.slept == []


def test_what_the_job_asks_can_be_asked_through_a_tool() -> None:
    kit = kit_for()
    call(kit)
    assert "form" in kit.rail.created_for[0].capabilities["elicitation"]
    kit = kit_for(server=TaskServer("stub", version="1", tools=[tools], tickets=False))
    assert "_meta" not in ask(kit, "tools/call", {"name": "slow", "arguments": {}, "task": {}})
    assert "elicitation" not in kit.rail.created_for[0].capabilities


@pytest.mark.parametrize("task", [None, [], "x", {"ttl": "1"}, {"ttl": 0}, {"ttl": -1}, {"ttl": True}, {"ttl": None}])
def test_a_malformed_wish_is_refused(task: Any) -> None:
    kit = kit_for()
    error = refused(kit, "tools/call", {"name": "slow", "arguments": {}, "task": task})
    assert error["code"] == -32602 and "params.task" in error["message"]
    assert kit.rail.created == []


@pytest.mark.parametrize("name", ["greet", "task_status"])
def test_a_tool_that_is_no_task_has_no_such_method(name: str) -> None:
    assert refused(kit_for(), "tools/call", {"name": name, "arguments": {}, "task": {}})["code"] == -32601


def test_a_tool_that_is_only_a_task_has_no_other() -> None:
    kit = kit_for()
    assert refused(kit, "tools/call", {"name": "only_as_task", "arguments": {}})["code"] == -32601
    assert kit.rail.tasks[call(kit, "only_as_task")].open


def test_a_tool_that_the_caller_may_not_know_of_is_unknown() -> None:
    hidden = Toolset()

    @hidden.tool()
    def secret() -> str:
        """Hidden."""
        return ""

    server = TaskServer("stub", version="1", tools=[hidden])
    server.authorize(lambda caller, name: False)
    kit = kit_for(server=server)
    answers = [refused(kit, "tools/call", {"name": name, "task": {}}) for name in ("secret", "nothing")]
    assert answers[0] == answers[1] and answers[0]["code"] == -32602


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("slow", {"lable": "x"}, "lable"),
        ("guarded", {"pages": -1}, "Not started."),
        ("guarded", {"pages": 301}, "cannot be asked"),
        ("nothing", {}, "Unknown tool"),
    ],
)
@pytest.mark.parametrize("tickets", [True, False])
def test_a_call_that_starts_nothing_is_an_error(tool: str, arguments: dict[str, Any], said: str, tickets: bool) -> None:
    kit = kit_for(server=TaskServer("stub", version="1", tools=[tools], tickets=tickets))
    error = refused(kit, "tools/call", {"name": tool, "arguments": arguments, "task": {}})
    assert error["code"] == -32602 and said in error["message"]
    assert kit.rail.created == []


# --- tasks/get


def test_a_task_is_told_in_the_words_of_its_revision() -> None:
    kit = kit_for()
    task_id = call(kit)
    kit.rail.tasks[task_id] = kit.rail.only().reported(Progress(1, 2), "Half", kit.clock.now() + 5)
    told = ask(kit, "tasks/get", {"taskId": task_id})
    assert told.keys() == FIELDS | {"statusMessage", "_meta"}
    assert (told["status"], told["statusMessage"]) == ("working", "Half")
    assert told["_meta"] == {"io.taskrail/progress": {"done": 1, "total": 2}}


@pytest.mark.parametrize(
    ("status", "outcome", "told"),
    [
        (Status.COMPLETED, {"content": []}, "completed"),
        (Status.COMPLETED, {"content": [], "isError": False}, "completed"),
        (Status.COMPLETED, {"content": [], "isError": True}, "failed"),
        (Status.FAILED, {"code": 1, "message": "No."}, "failed"),
        (Status.CANCELLED, None, "cancelled"),
    ],
)
def test_how_a_task_ended(status: Status, outcome: Any, told: str) -> None:
    kit = kit_for()
    task_id = call(kit)
    kit.rail.end(status, outcome)
    got = ask(kit, "tasks/get", {"taskId": task_id})
    assert got["status"] == told and got.keys() == FIELDS | {"statusMessage"}
    assert [one["status"] for one in ask(kit, "tasks/list")["tasks"]] == [told]


def test_a_question_is_answered_through_the_tools() -> None:
    kit = kit_for()
    task_id = call(kit)
    kit.rail.ask(form_question("who", "Who?", Name))
    got = ask(kit, "tasks/get", {"taskId": task_id})
    assert got["status"] == "input_required" and got.keys() == FIELDS | {"statusMessage"}
    assert "task_answer" in got["statusMessage"] and "who" in got["statusMessage"]
    error = refused(kit, "tasks/result", {"taskId": task_id})
    assert error["data"]["status"] == "input_required" and "task_answer" in error["message"]
    assert kit.clock.slept == []
    arguments = {"task_id": task_id, "key": "who", "content": {"name": "Ada"}}
    ask(kit, "tools/call", {"name": "task_answer", "arguments": arguments})
    assert ask(kit, "tasks/get", {"taskId": task_id})["status"] == "working"


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
def test_unknown_foreign_and_malformed_ids_are_the_same(method: str) -> None:
    kit = kit_for("somebody else")
    foreign = call(kit)
    become(kit, "somebody")
    errors = [
        refused(kit, method, params) for params in ({"taskId": foreign}, {"taskId": UNKNOWN}, {"taskId": [5]}, {})
    ]
    assert all(error == errors[0] for error in errors) and errors[0]["code"] == -32602
    assert kit.rail.tasks[foreign].open


# --- tasks/result


def test_the_result_is_that_of_the_call_and_names_its_task() -> None:
    kit = kit_for()
    task_id = call(kit)
    done = {"content": [{"type": "text", "text": "done"}], "_meta": {"mine": 1}}
    kit.clock.meanwhile = lambda: kit.rail.end(Status.COMPLETED, done)
    result = ask(kit, "tasks/result", {"taskId": task_id})
    assert result == {**done, "_meta": {"mine": 1, RELATED: {"taskId": task_id}}}
    assert ask(kit, "tasks/result", {"taskId": task_id}) == result
    assert len(kit.clock.slept) == 1


def test_a_failed_call_has_its_own_error() -> None:
    kit = kit_for()
    task_id = call(kit)
    kit.rail.end(Status.FAILED, {"code": 4711, "message": "Closed.", "data": {"until": "Monday"}})
    error = refused(kit, "tasks/result", {"taskId": task_id})
    assert error == {"code": 4711, "message": "Closed.", "data": {"until": "Monday"}}
    kit.rail.results[task_id] = {"code": -32099, "message": "Closed."}
    assert refused(kit, "tasks/result", {"taskId": task_id})["code"] == -32603


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.CANCELLED])
def test_a_tool_error_and_a_cancelled_call_are_results(status: Status) -> None:
    kit = kit_for()
    task_id = call(kit)
    kit.rail.end(status, {"content": [], "isError": True})
    result = ask(kit, "tasks/result", {"taskId": task_id})
    assert result["isError"] is True and result["_meta"][RELATED] == {"taskId": task_id}


def test_a_result_that_takes_longer_is_polled_for() -> None:
    kit = kit_for()
    task_id = call(kit)
    # One look at the table fails on the way: that loses nothing.
    kit.clock.meanwhile = lambda: setattr(kit.rail, "broken", int(len(kit.clock.slept) == 2))
    error = refused(kit, "tasks/result", {"taskId": task_id})
    assert error["code"] == 425 and "tasks/get" in error["message"]
    interval = kit.rail.only().poll_interval(kit.clock.now())
    assert error["data"] == {"taskId": task_id, "status": "working", "pollInterval": interval, "retryable": True}
    assert 14_000 <= sum(kit.clock.slept) <= 15_000


# --- tasks/cancel


def test_a_task_that_nobody_works_on_is_cancelled_at_once() -> None:
    kit = kit_for()
    task_id = call(kit)
    told = ask(kit, "tasks/cancel", {"taskId": task_id})
    assert (told["taskId"], told["status"], told.keys()) == (task_id, "cancelled", FIELDS | {"statusMessage"})
    assert kit.clock.slept == []


@pytest.mark.parametrize("in_time", [True, False])
def test_work_that_has_begun_is_given_its_time_to_stop(in_time: bool) -> None:
    kit = kit_for()
    task_id = call(kit)
    kit.rail.tasks[task_id] = replace(kit.rail.only(), attempt=1)
    if in_time:
        kit.clock.meanwhile = lambda: kit.rail.end(Status.CANCELLED) if sum(kit.clock.slept) > 2_000 else None
    told = ask(kit, "tasks/cancel", {"taskId": task_id})
    assert told["status"] == ("cancelled" if in_time else "working")
    assert in_time or "requested" in told["statusMessage"]
    assert sum(kit.clock.slept) <= (4_000 if in_time else 15_000)


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.CANCELLED])
def test_a_task_that_has_ended_cannot_be_cancelled(status: Status) -> None:
    kit = kit_for()
    task_id = call(kit)
    kit.rail.end(status, {"content": []})
    error = refused(kit, "tasks/cancel", {"taskId": task_id})
    assert error["code"] == -32602 and status.value in error["message"]


# --- tasks/list


def test_the_list_has_pages_newest_first_and_only_of_this_caller() -> None:
    kit = kit_for()
    mine = []
    for number in range(45):
        kit.clock.moment += 1_000
        mine.append(call(kit))
        if number % 10 == 0:
            become(kit, "somebody else")
            call(kit)
            become(kit, "somebody")
    listed: list[str] = []
    params: dict[str, Any] = {}
    pages = 0
    while True:
        page = ask(kit, "tasks/list", params)
        assert all(task.keys() == FIELDS for task in page["tasks"])
        listed += [task["taskId"] for task in page["tasks"]]
        pages += 1
        if "nextCursor" not in page:
            break
        params = {"cursor": page["nextCursor"]}
    assert listed == mine[::-1] and pages == 3


def test_lists_are_refused_to_the_anonymous_caller() -> None:
    kit = kit_for(None)
    task_id = call(kit)
    assert refused(kit, "tasks/list") == refused(kit, "tasks/nothing")
    assert ask(kit, "tasks/get", {"taskId": task_id})["status"] == "working"


OTHER_SPELLING = base64.urlsafe_b64encode(f"2026-05-28T00:00:00+00:00 {UNKNOWN}".encode()).decode().rstrip("=")


@pytest.mark.parametrize("cursor", ["", "x", 5, [], {}, "dGFza3M6NQ", "é", "A" * 9_999, OTHER_SPELLING])
def test_a_cursor_that_no_list_gave_is_refused(cursor: Any) -> None:
    assert refused(kit_for(), "tasks/list", {"cursor": cursor})["code"] == -32602


def test_no_cursor_and_a_null_one_are_the_first_page() -> None:
    kit = kit_for()
    call(kit)
    assert ask(kit, "tasks/list", {"cursor": None}) == ask(kit, "tasks/list")
