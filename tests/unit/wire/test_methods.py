"""Discovery, the list, tasks/*, subscriptions/listen, and what goes wrong inside."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from taskrail.call import Call
from taskrail.questions import form_question
from taskrail.server import TaskServer, Toolset
from taskrail.task import Status
from tests.unit.wire.stubs import SERVER, TASKS, VERSION, Answer, Confirm, Kit, Name, event, rest_event

UNKNOWN = "f" * 32


def created(kit: Kit) -> str:
    return str(kit.call("slow", capabilities=TASKS).result["taskId"])


def crowd(count: int) -> TaskServer:
    tools = Toolset()
    for number in range(count):

        def body() -> str:
            """Do."""
            return ""

        tools.tool(f"tool_{number}")(body)
    return TaskServer("stub", version="1.2.3", title="Stub", tools=[tools])


# --- server/discover


def test_discovery() -> None:
    result = Kit().request("server/discover").result
    assert result["resultType"] == "complete"
    assert result["supportedVersions"] == [VERSION]
    assert result["capabilities"] == {"tools": {}, "extensions": TASKS["extensions"]}
    assert result["instructions"] == "Use it."
    assert isinstance(result["ttlMs"], int)
    assert result["ttlMs"] >= 0
    assert result["cacheScope"] == "public"


def test_discovery_touches_nothing_that_can_fail() -> None:
    kit = Kit()
    del kit.rail.tasks, kit.rail.clock
    kit.rail.broken = 99
    guarded = event("", {})
    guarded["requestContext"]["authorizer"] = {"jwt": {"claims": {"sub": "x"}}}
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = {"jsonrpc": "2.0", "id": "d", "method": "server/discover", "params": {"_meta": meta}}
    guarded["body"] = json.dumps(body)
    guarded["headers"].update({"mcp-protocol-version": VERSION, "mcp-method": "server/discover"})
    assert Answer(kit.app.handle(guarded)).status == 200


# --- tools/list


def test_the_list_has_every_tool_in_order_and_says_how_long_it_keeps() -> None:
    result = Kit().request("tools/list", capabilities=TASKS).result
    assert [tool["name"] for tool in result["tools"]] == list(SERVER.tools)
    assert all(tool["description"] and tool["inputSchema"]["type"] == "object" for tool in result["tools"])
    assert (result["cacheScope"], "nextCursor" in result) == ("private", False)
    assert Kit().request("tools/list", {"cursor": None}, capabilities=TASKS).result["tools"] == result["tools"]


def test_tools_for_tickets_are_listed_for_clients_that_know_no_tasks() -> None:
    names = [tool["name"] for tool in Kit().request("tools/list").result["tools"]]
    assert names == [*SERVER.tools, "task_status", "task_answer", "task_cancel"]


def test_a_list_that_is_the_same_for_all_may_be_kept_for_all() -> None:
    result = Kit(crowd(3)).request("tools/list").result
    assert (result["cacheScope"], len(result["tools"])) == ("public", 3)


def test_pages() -> None:
    kit = Kit(crowd(201))
    names: list[str] = []
    params: dict[str, Any] = {}
    for size in (100, 100, 1):
        page = kit.request("tools/list", params).result
        assert (len(page["tools"]), page["cacheScope"], page["ttlMs"] >= 0) == (size, "public", True)
        names += [tool["name"] for tool in page["tools"]]
        params = {"cursor": page.get("nextCursor")}
    assert names == [f"tool_{number}" for number in range(201)]
    assert params == {"cursor": None}


@pytest.mark.parametrize("cursor", ["", "x", "dG9vbHM6MA", "dG9vbHM6MTAw", "dG9vbHM6LTE", 100, [], {}, True, "\ud800"])
def test_a_bad_cursor_is_refused(cursor: Any) -> None:
    answer = Kit(crowd(100)).request("tools/list", {"cursor": cursor})
    assert (answer.status, answer.code) == (400, -32602)


# --- tasks


def test_get_shows_the_task_and_what_its_state_carries() -> None:
    kit = Kit()
    task_id = created(kit)

    def get() -> dict[str, Any]:
        return kit.request("tasks/get", {"taskId": task_id}, capabilities=TASKS).result

    assert (get()["resultType"], get()["status"], get()["taskId"]) == ("complete", "working", task_id)
    kit.rail.ask(form_question("go", "Go on?", Confirm))
    assert list(get()["inputRequests"]) == ["go"]
    kit.rail.end(Status.COMPLETED, {"content": [], "isError": True})
    assert get()["result"] == {"content": [], "isError": True}
    assert not {"error", "inputRequests", "requestState"} & set(get())


def test_get_never_sends_a_reserved_code() -> None:
    kit = Kit()
    task_id = created(kit)
    kit.rail.end(Status.FAILED, {"code": -32002, "message": "Gone."})
    result = kit.request("tasks/get", {"taskId": task_id}, capabilities=TASKS).result
    assert (result["status"], result["error"]) == ("failed", {"code": -32603, "message": "Gone."})


def test_progress_travels_beside_the_server_info() -> None:
    from dataclasses import replace

    from taskrail.task import Progress

    kit = Kit()
    task_id = created(kit)
    kit.rail.tasks[task_id] = replace(kit.rail.tasks[task_id], progress=Progress(1, 2))
    meta = kit.request("tasks/get", {"taskId": task_id}, capabilities=TASKS).result["_meta"]
    assert meta["io.taskrail/progress"] == {"done": 1, "total": 2}


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_every_unknown_task_is_the_same_byte_for_byte(method: str) -> None:
    kit = Kit()
    task_id = created(kit)
    kit.rail.tasks[UNKNOWN] = kit.rail.tasks[task_id].__class__(
        **{**vars(kit.rail.tasks[task_id]), "task_id": UNKNOWN, "owner": "somebody else"}
    )
    texts = set()
    shouted = task_id.upper() + "A"
    unknown: list[Any] = [UNKNOWN, "e" * 32, "tasks-conformance-nonexistent", "", 5, None, [], {}, shouted, "\ud800"]
    for wanted in unknown:
        answer = kit.request(method, {"taskId": wanted, "inputResponses": {}}, capabilities=TASKS)
        assert (answer.status, answer.code) == (400, -32602)
        texts.add(answer.text)
    assert len({*texts, kit.request(method, {"inputResponses": {}}, capabilities=TASKS).text}) == 1


def test_update_is_acknowledged_empty_and_seen_at_once() -> None:
    kit = Kit()
    task_id = created(kit)
    kit.rail.ask(form_question("go", "Go on?", Confirm), form_question("who", "Who?", Name))

    def update(responses: Any) -> Answer:
        return kit.request("tasks/update", {"taskId": task_id, "inputResponses": responses}, capabilities=TASKS)

    yes = {"action": "accept", "content": {"go_on": True, "more": 1}}
    assert set(update({"go": yes, "unknown": 5}).result) == {"resultType", "_meta"}
    shown = kit.request("tasks/get", {"taskId": task_id}, capabilities=TASKS).result
    assert (shown["status"], list(shown["inputRequests"])) == ("input_required", ["who"])
    wrong = update({"who": {"action": "accept", "content": {"name": 5}}})
    assert (wrong.status, wrong.code) == (400, -32602)
    assert "who" in wrong.error["message"]
    assert update({"go": yes}).status == 200
    assert update({"who": {"action": "decline"}}).status == 200
    assert kit.rail.only().status is Status.WORKING


@pytest.mark.parametrize("responses", [None, [], "x", 5, ...])
def test_update_needs_an_object_of_responses(responses: Any) -> None:
    kit = Kit()
    params = {"taskId": created(kit), **({} if responses is ... else {"inputResponses": responses})}
    assert kit.request("tasks/update", params, capabilities=TASKS).code == -32602


def test_cancel_is_acknowledged_empty_also_for_an_ended_task() -> None:
    kit = Kit()
    task_id = created(kit)
    for _ in range(2):
        result = kit.request("tasks/cancel", {"taskId": task_id}, capabilities=TASKS).result
        assert (set(result), result["resultType"]) == ({"resultType", "_meta"}, "complete")
    assert kit.rail.only().status is Status.CANCELLED


# --- subscriptions/listen


def frames(answer: Answer) -> list[dict[str, Any]]:
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/event-stream"
    assert answer.headers["X-Accel-Buffering"] == "no"
    events = answer.text.split("\n\n")
    assert events.pop() == ""
    assert all(one.startswith("data: ") and "\n" not in one for one in events)
    return [json.loads(one.removeprefix("data: ")) for one in events]


@pytest.mark.parametrize("request_id", [0, 7, "seven"])
@pytest.mark.parametrize(
    "wanted",
    [{}, {"toolsListChanged": True}, {"promptsListChanged": True, "x": 1}, {"taskIds": [UNKNOWN]}, {"taskIds": None}],
)
def test_listening_is_acknowledged_and_ended(request_id: Any, wanted: dict[str, Any]) -> None:
    capabilities = TASKS if wanted.get("taskIds") else {}
    answer = Kit().request(
        "subscriptions/listen", {"notifications": wanted}, capabilities=capabilities, request_id=request_id
    )
    acknowledged, end = frames(answer)
    key = "io.modelcontextprotocol/subscriptionId"
    assert acknowledged == {
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": {"_meta": {key: request_id}, "notifications": {}},
    }
    assert (end["id"], end["result"]["resultType"], end["result"]["_meta"][key]) == (request_id, "complete", request_id)
    assert type(end["result"]["_meta"][key]) is type(request_id)


def test_listening_for_tasks_needs_the_extension() -> None:
    answer = Kit().request("subscriptions/listen", {"notifications": {"taskIds": []}})
    assert (answer.status, answer.code) == (400, -32021)
    assert answer.error["data"] == {"requiredCapabilities": TASKS}


@pytest.mark.parametrize(
    "params", [{}, {"notifications": None}, {"notifications": []}, {"notifications": {"taskIds": "x"}}]
)
def test_a_malformed_filter_is_refused(params: dict[str, Any]) -> None:
    assert Kit().request("subscriptions/listen", params, capabilities=TASKS).code == -32602


# --- what goes wrong inside


def test_an_unexpected_error_tells_nothing_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    kit = Kit()
    task_id = created(kit)
    kit.rail.results = None  # type: ignore[assignment]
    kit.rail.tasks[task_id] = kit.rail.tasks[task_id].ended(Status.COMPLETED, 5, message="secret")
    with caplog.at_level(logging.ERROR, "taskrail"):
        answer = kit.request("tasks/get", {"taskId": task_id}, capabilities=TASKS)
    assert (answer.status, answer.error, answer.body["id"]) == (500, {"code": -32603, "message": "Internal error."}, 7)
    assert "Traceback" in caplog.text


def test_a_table_that_is_away_is_an_internal_error() -> None:
    kit = Kit()
    task_id = created(kit)
    kit.rail.broken = 1
    answer = kit.request("tasks/get", {"taskId": task_id}, capabilities=TASKS)
    assert (answer.status, answer.error) == (500, {"code": -32603, "message": "Internal error."})


@pytest.mark.parametrize(
    "context",
    [
        {"authorizer": {"jwt": {"claims": {}}}},
        {"authorizer": {"principalId": "x"}},
        {"identity": {"userArn": "arn:aws:iam::1:user/x"}},
        {"identity": {"apiKey": "k"}},
    ],
)
def test_a_caller_that_somebody_vouched_for_is_never_the_anonymous_one(context: dict[str, Any]) -> None:
    kit = Kit()
    task_id = created(kit)
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": TASKS,
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"taskId": task_id, "_meta": meta}}
    headers = {"mcp-protocol-version": VERSION, "mcp-method": "tasks/get"}
    plain = rest_event(json.dumps(body), headers)
    assert Answer(kit.app.handle(plain)).status == 200
    answer = Answer(kit.app.handle({**plain, "requestContext": context}))
    assert (answer.status, answer.code) == (500, -32603)


def test_the_handler_binds_a_runtime_and_takes_lambdas_context() -> None:
    from handlers import mcp_api
    from tests.unit.wire import stubs

    class Context:
        @staticmethod
        def get_remaining_time_in_millis() -> int:
            return 5_000

    clock = stubs.Clock()
    runtime: Any = stubs.Runtime(SERVER, stubs.StubRail(clock), stubs.SETTINGS, clock)
    handler = mcp_api.bind(runtime)
    assert handler({"rawPath": "/"}, Context())["statusCode"] == 404
    assert handler({"rawPath": "/"}, None)["statusCode"] == 404
    with pytest.raises(AttributeError):
        _ = mcp_api.nothing


def test_a_call_knows_its_caller_and_client() -> None:
    tools = Toolset()

    @tools.tool()
    def who(call: Call) -> str:
        """Tell who calls."""
        return f"{call.owner} {call.client.name} {call.client.version} {call.client.tasks}"

    kit = Kit(TaskServer("stub", version="1.2.3", title="Stub", tools=[tools]))
    assert kit.call("who", capabilities=TASKS).said == "anonymous test 1 True"
