"""The rungs of the ladder, and which of two faults answers."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from taskrail.wire import protocol
from tests.unit.wire.stubs import FORMS, TASKS, VERSION, Kit

V = "io.modelcontextprotocol/protocolVersion"
C = "io.modelcontextprotocol/clientCapabilities"
I = "io.modelcontextprotocol/clientInfo"  # noqa: E741


def post(meta: Any, headers: dict[str, str] | None = None, method: str = "server/discover") -> Any:
    params = {} if meta is ... else {"_meta": meta}
    sent = {"mcp-protocol-version": VERSION, "mcp-method": method} if headers is None else headers
    return Kit().post({"jsonrpc": "2.0", "id": 9, "method": method, "params": params}, sent)


# --- 2: the era


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26"])
def test_a_request_without_modern_metadata_is_of_an_earlier_revision(version: str) -> None:
    answer = Kit().post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, {"mcp-protocol-version": version})
    assert (answer.status, "resultType" in answer.body["result"]) == (200, False)


@pytest.mark.parametrize("method", ["server/discover", "tasks/get", "subscriptions/listen"])
def test_a_method_of_this_revision_alone_is_told_what_it_lacks(method: str) -> None:
    answer = Kit().post({"jsonrpc": "2.0", "id": 1, "method": method}, {})
    assert (answer.status, answer.code) == (400, -32602)
    assert "_meta" in answer.error["message"]


def test_initialize_with_modern_metadata_is_an_unknown_method() -> None:
    answer = Kit().request("initialize")
    assert (answer.status, answer.code, answer.body["id"]) == (404, -32601, 7)


# --- 3: metadata


@pytest.mark.parametrize(
    ("meta", "named"),
    [
        (..., "_meta"),
        (None, "_meta"),
        ([], "_meta"),
        ({}, V),
        ({C: {}}, V),
        ({V: 1, C: {}}, V),
        ({V: None, C: {}}, V),
        ({V: VERSION}, C),
        ({V: VERSION, C: None}, C),
        ({V: VERSION, C: []}, C),
        ({V: VERSION, I: {"name": "x", "version": "1"}}, C),
    ],
)
def test_metadata_is_required_and_named(meta: Any, named: str) -> None:
    for answer in (post(meta), post(meta, {})):
        assert (answer.status, answer.code, answer.body["id"]) == (400, -32602, 9)
        assert named in answer.error["message"]


@pytest.mark.parametrize("info", [None, "x", [], {}, {"name": 3}])
def test_client_info_is_never_required(info: Any) -> None:
    assert post({V: VERSION, C: {}, I: info}).status == 200
    assert post({V: VERSION, C: {}}).status == 200


# --- 4 and 5: mirrored headers, version


@pytest.mark.parametrize(
    "headers",
    [
        {"mcp-protocol-version": None},
        {"mcp-protocol-version": "2025-11-25"},
        {"mcp-protocol-version": ""},
        {"mcp-method": None},
        {"mcp-method": "SERVER/DISCOVER"},
        {"mcp-method": "tools/list"},
        {"mcp-method": "=?base64?c2VydmVyL2Rpc2NvdmVy?="},
    ],
)
def test_headers_mirror_the_body(headers: dict[str, str | None]) -> None:
    answer = Kit().request("server/discover", headers=headers)
    assert (answer.status, answer.code) == (400, -32020)


def test_an_unsupported_version_names_what_discover_names() -> None:
    answer = Kit().request("server/discover", headers={"mcp-protocol-version": "v999"}, meta={V: "v999"})
    assert (answer.status, answer.code) == (400, -32022)
    assert answer.error["data"] == {
        "supported": Kit().request("server/discover").result["supportedVersions"],
        "requested": "v999",
    }


# --- 6: methods


@pytest.mark.parametrize(
    "method",
    [
        "tasks/list",
        "tasks/result",
        "ping",
        "logging/setLevel",
        "prompts/list",
        "prompts/get",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "completion/complete",
        "unknown/method",
        "",
    ],
)
def test_unknown_methods(method: str) -> None:
    answer = Kit().request(method, {"taskId": "x"}, capabilities=TASKS)
    assert (answer.status, answer.code, answer.body["id"]) == (404, -32601, 7)


# --- 7: names


def encoded(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


@pytest.mark.parametrize("header", ["greet", "  greet\t", encoded("greet")])
def test_the_name_header_may_be_padded_or_encoded(header: str) -> None:
    assert Kit().call("greet", {"name": "x"}, headers={"mcp-name": header}).status == 200


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Greet",
        "other",
        "=?base64?Z3JlZXQ?=",
        "=?base64?Z3Jl!ZXQ=?=",
        "=?BASE64?Z3JlZXQ=?=",
        "=?base64?Z3JlZXR=?=",
        "=?base64?/w==?=",
        "gr\u00e9et",
        "=?base64?=",
    ],
)
def test_a_name_header_that_is_missing_wrong_or_broken(header: str | None) -> None:
    answer = Kit().call("greet", {"name": "x"}, headers={"mcp-name": header})
    assert (answer.status, answer.code) == (400, -32020)


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_tasks_may_go_without_a_name_header_but_not_with_a_wrong_one(method: str) -> None:
    kit = Kit()
    task_id = kit.call("slow", capabilities=TASKS).result["taskId"]
    params = {"taskId": task_id, "inputResponses": {}}
    assert kit.request(method, params, capabilities=TASKS).status == 200
    assert kit.request(method, params, capabilities=TASKS, headers={"mcp-name": task_id}).status == 200
    answer = kit.request(method, params, capabilities=TASKS, headers={"mcp-name": "0" * 32})
    assert (answer.status, answer.code) == (400, -32020)


# --- 8: annotated arguments


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({}, {}),
        ({"region": "eu"}, {"mcp-param-region": "eu"}),
        ({"region": "eu"}, {"MCP-Param-REGION": " eu "}),
        ({"region": "Hello"}, {"mcp-param-region": "=?base64?SGVsbG8=?="}),
        ({"region": "SGVsbG8="}, {"mcp-param-region": "SGVsbG8="}),
        ({"region": "=?base64?SGVsbG8="}, {"mcp-param-region": "=?base64?SGVsbG8="}),
        ({"region": "=?base64?x?="}, {"mcp-param-region": encoded("=?base64?x?=")}),
        ({"region": " 世界\n"}, {"mcp-param-region": encoded(" 世界\n")}),
        ({"region": ""}, {"mcp-param-region": ""}),
        ({"count": 42}, {"mcp-param-count": "42"}),
        ({"count": 42}, {"mcp-param-count": "42.0"}),
        ({"count": -7}, {"mcp-param-count": "-7"}),
        ({"count": 2**53 - 1}, {"mcp-param-count": str(2**53 - 1)}),
    ],
)
def test_annotated_arguments_that_agree(arguments: dict[str, Any], headers: dict[str, str | None]) -> None:
    answer = Kit().call("measure", arguments, headers=headers)
    assert answer.result["isError"] is False


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "eu"}, {}),
        ({}, {"mcp-param-region": "eu"}),
        ({"region": None}, {"mcp-param-region": "eu"}),
        ({"region": "eu"}, {"mcp-param-region": "EU"}),
        ({"region": "Hello"}, {"mcp-param-region": "=?base64?SGVsbG8?="}),
        ({"region": "Hello"}, {"mcp-param-region": "=?base64?SGVs!!!bG8=?="}),
        ({"region": "é"}, {"mcp-param-region": "é"}),
        ({"count": 42}, {"mcp-param-count": "43"}),
        ({"count": 42}, {"mcp-param-count": "42.5"}),
        ({"count": 42}, {"mcp-param-count": "0x2a"}),
        ({"count": 42}, {"mcp-param-count": "٤٢"}),
        ({"count": 2**53 + 1}, {"mcp-param-count": "9007199254740992"}),
    ],
)
def test_annotated_arguments_that_disagree(arguments: dict[str, Any], headers: dict[str, str | None]) -> None:
    answer = Kit().call("measure", arguments, headers=headers)
    assert (answer.status, answer.code) == (400, -32020)
    assert "Mcp-Param-" in answer.error["message"]


def test_booleans_are_spelt_in_lower_case() -> None:
    kit = Kit()
    assert kit.call("switch", {"on": True}, headers={"mcp-param-on": "true"}).status == 200
    assert kit.call("switch", {"on": False}, headers={"mcp-param-on": "false"}).status == 200
    assert kit.call("switch", {"on": True}, headers={"mcp-param-on": "True"}).code == -32020
    assert kit.call("switch", {"on": True}, headers={"mcp-param-on": "1"}).code == -32020


def test_a_wrongly_typed_argument_is_left_to_its_own_answer() -> None:
    answer = Kit().call("measure", {"count": [1]}, headers={"mcp-param-count": "1"})
    assert answer.result["isError"] is True


# --- 9: capabilities


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
@pytest.mark.parametrize(
    "declared", [{}, {"extensions": {protocol.TOOLS_CALL: {}}}, None, True, "x", [], {"tasks": {}}]
)
def test_tasks_need_the_extension_on_that_very_request(method: str, declared: Any) -> None:
    kit = Kit()
    task_id = kit.call("slow", capabilities=TASKS).result["taskId"]
    name = "io.modelcontextprotocol/tasks"
    capabilities = declared if isinstance(declared, dict) else {"extensions": {name: declared}}
    before = kit.rail.only()
    answer = kit.request(method, {"taskId": task_id, "inputResponses": {}}, capabilities=capabilities, meta={name: {}})
    assert (answer.status, answer.code) == (400, -32021)
    assert answer.error["data"] == {"requiredCapabilities": {"extensions": {name: {}}}}
    assert kit.rail.only() is before


def test_a_required_task_needs_the_extension() -> None:
    kit = Kit()
    answer = kit.call("only_as_task")
    assert (answer.status, answer.code) == (400, -32021)
    assert answer.error["data"] == {"requiredCapabilities": TASKS}
    assert kit.rail.tasks == {}
    assert kit.call("only_as_task", capabilities=TASKS).result["resultType"] == "task"


# --- which fault answers


def test_the_first_fault_in_order_answers() -> None:
    kit = Kit()
    old = {V: "v1", "more": 1}
    # Metadata before headers, headers before version, version before method, method before name.
    assert post({C: {}}, {}).code == -32602
    assert kit.request("nonsense", headers={"mcp-method": None}, meta=old).code == -32020
    assert kit.request("nonsense", headers={"mcp-protocol-version": "v1"}, meta=old).code == -32022
    assert kit.request("nonsense", headers={"mcp-name": "wrong"}).code == -32601
    # Name before annotated arguments and capabilities, those before the meaning of parameters.
    assert kit.call("measure", {"region": "x"}, headers={"mcp-name": "y"}).code == -32020
    assert kit.call("only_as_task", 5, headers={"mcp-name": "y"}).code == -32020
    assert kit.call("only_as_task", 5).code == -32021
    assert kit.request("tasks/get", {"taskId": 5}).code == -32021
    assert kit.request("tasks/get", {"taskId": 5}, headers={"mcp-name": "y"}).code == -32020
    assert kit.request("subscriptions/listen", {"notifications": {"taskIds": 5}}).code == -32021
    assert kit.call("nobody", {"region": "x"}, capabilities=FORMS).code == -32602
