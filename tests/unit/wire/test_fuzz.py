"""Whatever comes in, an answer goes out: never an exception, never a 500 for what a client did wrong."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.strategies import TASKS, Vocabulary, mirrored, values
from tests.unit.wire.stubs import SERVER, Answer, Kit, event, rest_event

WORDS = Vocabulary(
    tools=SERVER.tools,
    arguments=["name", "pages", "label", "region", "count", "on", "code", "secret"],
    keys=["user_name", "large", "step1"],
)


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """An event around a message, with headers that mostly mirror it."""
    message = draw(WORDS.messages())
    headers = draw(mirrored(message))
    body = json.dumps(message)
    return event(body, headers) if draw(st.booleans()) else rest_event(body, headers)


def check(answer: Answer) -> None:
    """What every answer to a fault of the client looks like."""
    if answer.status == 202 or answer.headers["Content-Type"] == "text/event-stream":
        return
    # One fixture tool answers with a code of the caller's choice.
    assert answer.status < 500 or answer.error["message"] == "No."
    # Clients of 2025-03-26 may send batches.
    body = json.loads(answer.text)
    for message in body if isinstance(body, list) else [answer.body]:
        check_message(message)


def check_message(body: dict[str, Any]) -> None:
    """What every message to a client looks like."""
    assert ("result" in body) != ("error" in body)
    if "error" in body:
        assert isinstance(body["error"]["code"], int)
        assert body["error"]["message"]
    else:
        assert isinstance(body["result"], dict)


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
