"""Events in both formats, browsers, and the JSON of the body."""

from __future__ import annotations

import base64
import json

import pytest

from taskrail.errors import InvalidRequest, ParseError
from taskrail.wire import jsonrpc
from taskrail.wire.cors import Cors
from taskrail.wire.http import HttpRequest, accepts_answer
from tests.unit.wire.stubs import TASKS, VERSION, Answer, Kit, event, rest_event

DISCOVER = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "server/discover",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    },
}
HEADERS = {"MCP-Protocol-Version": VERSION, "Mcp-Method": "server/discover"}


def test_rest_events_behind_a_stage_are_served() -> None:
    assert Answer(Kit().app.handle(rest_event(json.dumps(DISCOVER), HEADERS))).result["supportedVersions"] == [VERSION]


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/prod/mcp", "//mcp"])
def test_the_endpoint_tolerates_a_stage_and_a_slash(path: str) -> None:
    assert Kit().post(DISCOVER, HEADERS, path=path).status == 200


@pytest.mark.parametrize("path", ["/", "/mcp/more", "/a/b/mcp", "/MCP", "/.well-known/oauth-protected-resource", ""])
def test_other_paths_are_not_found(path: str) -> None:
    answer = Kit().post(DISCOVER, HEADERS, path=path)
    assert (answer.status, "id" in answer.body) == (404, False)


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD"])
def test_only_post_is_allowed(method: str) -> None:
    answer = Kit().post("", {}, method=method)
    assert (answer.status, answer.headers["Allow"]) == (405, "POST")


def test_a_base64_body_is_served_and_a_forged_one_is_not_json() -> None:
    good = {
        **event("", HEADERS),
        "body": base64.b64encode(json.dumps(DISCOVER).encode()).decode(),
        "isBase64Encoded": True,
    }
    assert Answer(Kit().app.handle(good)).status == 200
    answer = Answer(Kit().app.handle({**good, "body": "!" + str(good["body"])}))
    assert (answer.status, answer.code, "id" in answer.body) == (400, -32700, False)


def test_headers_null_is_a_request_without_headers() -> None:
    bare = {**event(json.dumps(DISCOVER), {}), "headers": None, "multiValueHeaders": None}
    assert Answer(Kit().app.handle(bare)).code == -32020


def test_header_names_compare_without_case_and_content_type_takes_parameters() -> None:
    headers = {"mcp-PROTOCOL-version": f" {VERSION}\t", "MCP-METHOD": "server/discover"}
    headers["Content-Type"] = "application/json; charset=utf-8"
    assert Kit().post(DISCOVER, headers).status == 200


def test_a_repeated_header_cannot_hide_its_second_value() -> None:
    twice = rest_event(json.dumps(DISCOVER), HEADERS)
    twice["multiValueHeaders"]["Mcp-Method"] = ["tools/call", "server/discover"]
    assert Answer(Kit().app.handle(twice)).code == -32020


def test_sessions_and_resumption_are_ignored() -> None:
    answer = Kit().post(DISCOVER, {**HEADERS, "Mcp-Session-Id": "s", "Last-Event-ID": "9"})
    assert answer.status == 200
    assert not {name.lower() for name in answer.headers} & {"mcp-session-id", "last-event-id"}


@pytest.mark.parametrize(
    "junk", [None, [], "x", 1, {"rawPath": 3}, {"headers": [], "httpMethod": "POST", "path": "/mcp"}]
)
def test_an_event_of_any_shape_gets_an_answer(junk: object) -> None:
    answer = Answer(Kit().app.handle(junk))
    assert 400 <= answer.status < 500
    assert "error" in answer.body


@pytest.mark.parametrize(
    ("accept", "served"),
    [
        (None, True),
        ("", True),
        ("*/*", True),
        ("application/json", True),
        ("text/event-stream", True),
        ("application/*;q=0.1, text/html", True),
        ("Application/JSON; q=1.0", True),
        ("text/html", False),
        ("application/json;q=0", False),
        ("application/json;q=0, */*", True),
        ("application/json;q=0, text/event-stream;q=0, */*", False),
        ("application/json;q=banana", True),
    ],
)
def test_accept_refuses_only_what_rules_out_both_types(accept: str | None, served: bool) -> None:
    assert accepts_answer(accept) is served
    if accept is not None:
        assert Kit().post(DISCOVER, {**HEADERS, "accept": accept}).status == (200 if served else 406)


# --- browsers


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("https://api.example.com", True),
        ("http://API.example.com", True),
        ("https://api.example.com:443", True),
        ("https://app.example.com", True),
        ("https://app.example.com:8443", False),
        ("https://evil.example.com", False),
        ("https://api.example.com.evil.com", False),
        ("null", False),
        ("", False),
        ("https://api.example.com, https://evil.example.com", False),
    ],
)
def test_origins(origin: str, allowed: bool) -> None:
    answer = Kit(allowed_origins=("https://app.example.com/",)).post(DISCOVER, {**HEADERS, "Origin": origin})
    assert answer.status == (200 if allowed else 403)
    assert answer.headers.get("Access-Control-Allow-Origin") == (origin if allowed else None)
    if not allowed:
        assert "id" not in answer.body


def test_every_origin_only_when_that_is_said() -> None:
    answer = Kit(allowed_origins=("*",)).post(DISCOVER, {**HEADERS, "Origin": "null"})
    assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (200, "*")


def test_errors_reach_an_allowed_page_too() -> None:
    answer = Kit().post("{", {"Origin": "https://api.example.com"})
    assert (answer.code, answer.headers["Access-Control-Allow-Origin"]) == (-32700, "https://api.example.com")


def test_a_preflight_names_every_header_that_a_client_sends() -> None:
    answer = Kit().post("", {"Origin": "https://api.example.com"}, method="OPTIONS")
    allowed = set(answer.headers["Access-Control-Allow-Headers"].split(", "))
    assert answer.status == 204
    assert answer.text == ""
    assert {"content-type", "accept", "authorization", "mcp-protocol-version", "mcp-method", "mcp-name"} <= allowed
    assert {"last-event-id", "mcp-session-id", "traceparent", "tracestate"} <= allowed
    assert {"mcp-param-region", "mcp-param-count", "mcp-param-on"} <= allowed
    assert "POST" in answer.headers["Access-Control-Allow-Methods"]
    assert int(answer.headers["Access-Control-Max-Age"]) > 0
    assert answer.headers["Vary"] == "Origin"
    assert Kit().post("", {"Origin": "https://evil.com"}, method="OPTIONS").status == 403


def test_ipv6_and_ports_are_the_same_host() -> None:
    cors = Cors((), ())
    assert cors.allows({"origin": "http://[::1]:8321", "host": "[::1]:8321"})
    assert cors.allows({"origin": "http://localhost:8321", "host": "localhost:8321"})
    assert not cors.allows({"origin": "http://localhost:8321", "host": "localhost:8322"})
    assert not cors.allows({"origin": "http://localhost"})


def test_formats_give_the_same_request() -> None:
    body = "{}"
    assert HttpRequest.from_event(event(body, {})).body == HttpRequest.from_event(rest_event(body, {})).body
    assert HttpRequest.from_event(rest_event(body, {"X-A": "1"})).headers == {"x-a": "1"}


# --- the body


def load(text: str | bytes) -> object:
    body = text if isinstance(text, bytes) else text.encode()
    return jsonrpc.loads(body, max_bytes=10_000, max_depth=64, max_values=1_000)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "nonsense",
        '{"a": NaN}',
        "[Infinity]",
        "-Infinity",
        "1e400",
        "9" * 5_000,
        b"\xff",
        b"\xef\xbb\xbf{}",
        '"\x01"',
    ],
)
def test_what_is_not_json_is_a_parse_error(text: str | bytes) -> None:
    with pytest.raises(ParseError):
        load(text)


def test_nesting_is_bounded_exactly() -> None:
    assert load("[" * 64 + "]" * 64) is not None
    assert load('{"a":' * 63 + "[1]" + "}" * 63) is not None
    assert load("[" + "[]," * 200 + "[]]") is not None
    for deep in ("[" * 65 + "]" * 65, '{"a":' * 64 + "[1]" + "}" * 64, "[" * 4_000 + "]" * 4_000):
        with pytest.raises(InvalidRequest, match="64 levels"):
            load(deep)


def test_nesting_beyond_pythons_own_limit_is_an_answer() -> None:
    depth = 500_000
    answer = Kit().post("[" * depth + "]" * depth)
    assert (answer.status, answer.code) == (400, -32600)


def test_a_body_that_is_too_long_is_refused() -> None:
    answer = Kit(max_body_bytes=100).post({"jsonrpc": "2.0", "id": 1, "method": "x" * 100})
    assert (answer.status, answer.code, "id" in answer.body) == (413, -32600, False)


def test_lone_surrogates_are_replaced_but_the_id_comes_back_as_it_was() -> None:
    body = json.dumps({**DISCOVER, "id": "\ud800", "method": "\udfff"})
    answer = Kit().post(body, {**HEADERS, "Mcp-Method": "=?"})
    assert answer.body["id"] == "\ud800"
    answer = Kit().call("greet", {"name": "a\ud83d"})
    assert answer.said == "Hello, a\ufffd!"
    assert load('{"\\ud800": ["\\uDC00", "\\ud83d\\ude00"]}') == {"\ufffd": ["\ufffd", "\U0001f600"]}


def test_duplicate_keys_and_large_integers_are_read() -> None:
    assert load('{"a": 1, "a": 2}') == {"a": 2}
    assert load("9" * 100) == int("9" * 100)


@pytest.mark.parametrize(
    ("body", "answered_id"),
    [
        ([DISCOVER], None),
        ([], None),
        ("text", None),
        (7, None),
        (None, None),
        ({**DISCOVER, "id": None}, None),
        ({**DISCOVER, "id": 1.5}, None),
        ({**DISCOVER, "id": 1.0}, None),
        ({**DISCOVER, "id": True}, None),
        ({**DISCOVER, "id": [1]}, None),
        ({**DISCOVER, "jsonrpc": "1.0"}, 1),
        ({"id": "x", "method": "ping"}, "x"),
        ({**DISCOVER, "method": 5}, 1),
        ({**DISCOVER, "params": [1]}, 1),
        ({**DISCOVER, "params": None}, 1),
        ({"jsonrpc": "2.0", "id": 4, "result": {}}, 4),
        ({"jsonrpc": "2.0"}, None),
    ],
)
def test_what_is_no_request_is_refused_with_its_id_if_it_has_one(body: object, answered_id: object) -> None:
    answer = Kit().post(json.dumps(body), HEADERS)
    assert (answer.status, answer.code) == (400, -32600)
    assert answer.body.get("id") == answered_id
    assert ("id" in answer.body) == (answered_id is not None)


@pytest.mark.parametrize("method", ["notifications/cancelled", "notifications/initialized", "tasks/cancel", "x"])
def test_notifications_are_accepted_and_change_nothing(method: str) -> None:
    kit = Kit()
    task = kit.call("slow", capabilities=TASKS).result
    params = {"requestId": 7, "taskId": task["taskId"]}
    answer = kit.post({"jsonrpc": "2.0", "method": method, "params": params})
    assert (answer.status, answer.text, "Content-Type" in answer.headers) == (202, "", False)
    assert kit.rail.only().open
    assert kit.post({"jsonrpc": "2.0", "method": method}).status == 202


def test_text_with_surrogates_still_encodes() -> None:
    assert jsonrpc.dumps({"a": "\ud800", "b": "é"}).encode()
    assert json.loads(jsonrpc.dumps(["\ud800"])) == ["\ud800"]
