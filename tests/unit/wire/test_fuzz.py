"""Whatever comes in, an answer goes out: never an exception, never a 500 for what a client did wrong."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from taskrail.wire import protocol
from tests.unit.wire.stubs import SERVER, TASKS, VERSION, Answer, Kit, event, rest_event

surrogates = st.text(st.characters(codec=None), max_size=8)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | surrogates
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(surrogates, inner, max_size=4), max_leaves=12
)
objects = st.dictionaries(surrogates, values, max_size=4)


def or_junk(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly what belongs there."""
    return st.one_of(strategy, strategy, strategy, values)


metas = st.fixed_dictionaries(
    {
        "io.modelcontextprotocol/protocolVersion": or_junk(st.just(VERSION)),
        "io.modelcontextprotocol/clientCapabilities": or_junk(
            st.sampled_from([{}, TASKS, {"elicitation": {}}, {**TASKS, "elicitation": {}, "sampling": {}}])
        ),
    },
    optional={"traceparent": values, "io.modelcontextprotocol/clientInfo": values, "progressToken": values},
)
params = st.fixed_dictionaries(
    {"_meta": or_junk(metas)},
    optional={
        "name": or_junk(st.sampled_from(list(SERVER.tools))),
        "arguments": or_junk(
            st.dictionaries(
                st.sampled_from(["name", "pages", "label", "region", "count", "on", "code", "secret"]), values
            )
        ),
        "inputResponses": or_junk(st.dictionaries(st.sampled_from(["user_name", "large", "step1"]), values)),
        "requestState": surrogates | st.from_regex(r"[A-Za-z0-9_-]{1,20}\.[A-Za-z0-9_-]{43}", fullmatch=True),
        "taskId": or_junk(st.sampled_from([f"{1:032x}", "f" * 32])),
        "cursor": values,
        "notifications": or_junk(st.fixed_dictionaries({}, optional={"taskIds": values, "toolsListChanged": values})),
    },
)
methods = or_junk(st.sampled_from([*sorted(protocol.METHODS), "initialize", "ping"]))
messages = st.fixed_dictionaries(
    {"jsonrpc": or_junk(st.just("2.0")), "method": methods, "params": or_junk(params)},
    optional={"id": or_junk(st.integers())},
)
header_values = st.text(st.characters(codec="latin-1"), max_size=12)


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """An event around a message, with headers that mostly mirror it."""
    message = draw(messages)
    headers: dict[str, Any] = {}
    if draw(st.integers(0, 9)):
        headers["MCP-Protocol-Version"] = VERSION
        headers["Mcp-Method"] = message["method"] if isinstance(message["method"], str) else draw(header_values)
        name = message["params"].get("name") if isinstance(message["params"], dict) else None
        if isinstance(name, str):
            headers["Mcp-Name"] = name
    headers.update(
        draw(
            st.dictionaries(
                st.sampled_from(["accept", "origin", "mcp-name", "mcp-param-region", "host"]), header_values, max_size=1
            )
        )
    )
    body = json.dumps(message)
    return event(body, headers) if draw(st.booleans()) else rest_event(body, headers)


def check(answer: Answer) -> None:
    """What every answer to a fault of the client looks like."""
    if answer.status == 202 or answer.headers["Content-Type"] == "text/event-stream":
        return
    # One fixture tool answers with a code of the caller's choice.
    assert answer.status < 500 or answer.error["message"] == "No."
    body = answer.body
    assert ("result" in body) != ("error" in body)
    if "error" in body:
        assert isinstance(body["error"]["code"], int)
        assert body["error"]["message"]
    else:
        assert answer.result


@settings(max_examples=400)
@given(requests())
def test_any_request_gets_an_answer(request: dict[str, Any]) -> None:
    kit = Kit(wait_budget_ms=300)
    kit.call("slow", capabilities=TASKS)
    check(Answer(kit.app.handle(request)))


@settings(max_examples=200)
@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")) | values.map(json.dumps))
def test_any_body_gets_an_answer(body: str) -> None:
    check(Kit().post(body))


@settings(max_examples=200)
@given(
    values
    | st.dictionaries(
        st.sampled_from(
            [
                "headers",
                "body",
                "httpMethod",
                "path",
                "rawPath",
                "version",
                "requestContext",
                "isBase64Encoded",
                "multiValueHeaders",
            ]
        ),
        values,
    )
)
def test_any_event_gets_an_answer(junk: Any) -> None:
    check(Answer(Kit().app.handle(junk)))
