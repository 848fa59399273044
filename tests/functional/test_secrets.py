"""Where secrets get to: everything stored, told, logged and answered is searched for every marked text.

Each test has a table: for every mark, exactly the places where it must be, and so also where it must not be.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import pytest

from taskrail.errors import TASKS_EXTENSION
from taskrail.testing import VERSION, Kit, harness
from tests.functional import secret_tools
from tests.functional.secret_tools import mark
from tests.functional.witness import Witness, emptied, witness

NOWHERE: set[str] = set()
TRACE = f"00-{'ab' * 16}-{'cd' * 8}-01"

CALLER: dict[str, set[str]] = {
    # Whatever a client says of itself and of its right to call is read and forgotten.
    "token": NOWHERE,
    "cookie": NOWHERE,
    "api-key": NOWHERE,
    "own-header": NOWHERE,
    "client-name": NOWHERE,
    "client-version": NOWHERE,
    "client-title": NOWHERE,
    "capability": NOWHERE,
    "own-capability": NOWHERE,
    "tracestate": NOWHERE,
    "baggage": NOWHERE,
    "progress-token": NOWHERE,
}
HEADERS = {
    "authorization": f"Bearer {mark('token')}",
    "cookie": f"session={mark('cookie')}",
    "x-api-key": mark("api-key"),
    "x-own": mark("own-header"),
    "mcp-session-id": mark("own-header"),
    "last-event-id": mark("own-header"),
    "user-agent": mark("client-name"),
    "tracestate": mark("tracestate"),
    "baggage": mark("baggage"),
}
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {
        "elicitation": {"form": {"note": mark("capability")}},
        "sampling": {"note": mark("capability")},
        "extensions": {TASKS_EXTENSION: {"note": mark("capability")}, "x/y": {"note": mark("capability")}},
        "experimental": {mark("own-capability"): mark("own-capability")},
    },
    "io.modelcontextprotocol/clientInfo": {
        "name": mark("client-name"),
        "version": mark("client-version"),
        "title": mark("client-title"),
    },
    "traceparent": TRACE,
    "tracestate": mark("tracestate"),
    "baggage": mark("baggage"),
    "progressToken": mark("progress-token"),
}


class Client:
    """A client that carries secrets on every request.

    Parameters
    ----------
    seen
        The witness of its deployment.
    """

    def __init__(self, seen: Witness) -> None:
        self.seen = seen

    def send(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON-RPC answer."""
        return self.seen.send(method, params, META, HEADERS)

    def call(self, tool: str, arguments: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """The answer to a call."""
        return self.send("tools/call", {"name": tool, "arguments": dict(arguments), **more})

    def task(self, tool: str, **arguments: Any) -> str:
        """The id of the task that a call becomes."""
        return str(self.call(tool, arguments)["result"]["taskId"])

    def get(self, task_id: str) -> dict[str, Any]:
        """The task as the client sees it."""
        result: dict[str, Any] = self.send("tasks/get", {"taskId": task_id})["result"]
        return result

    def answer(self, task_id: str, **responses: Any) -> dict[str, Any]:
        """The answer to an update."""
        return self.send("tasks/update", {"taskId": task_id, "inputResponses": responses})


@pytest.fixture(scope="module")
def deployment() -> Iterator[Kit]:
    with harness(secret_tools.server) as made:
        yield made


@pytest.fixture
def kit(deployment: Kit) -> Kit:
    """The deployment as if it were new."""
    emptied(deployment)
    return deployment


def accepted(place: str, length: int = 0) -> dict[str, Any]:
    return {"action": "accept", "content": {"pin": mark(place) + "x" * length, "also": mark(f"{place}-extra")}}


def agree(seen: Witness, table: Mapping[str, set[str]]) -> None:
    """Every mark is in exactly the places that the table names."""
    found = {name: seen.places(mark(name)) for name in table}
    assert found == dict(table)


@pytest.mark.parametrize("size", [0, 5_000])
def test_in_a_whole_life_of_a_task(kit: Kit, size: int) -> None:
    """In an object, what is over stays until the object is deleted with its task; in an item it is taken out."""
    with witness(kit) as seen:
        client = Client(seen)
        task_id = client.task("whole_life", small=mark("argument"), large="x" * size)
        client.get(task_id)
        kit.advance(timedelta(seconds=5))
        seen.run()
        client.get(task_id)
        client.answer(task_id, pin=accepted("answer"), **{mark("unknown-key"): accepted("unknown-answer")})
        seen.run()
        client.get(task_id)
        client.answer(task_id, more=accepted("large-answer", 5_000))
        seen.run()
        assert client.get(task_id)["status"] == "completed"
    agree(
        seen,
        CALLER
        | {
            "argument": {"bucket", "bucket at the end"} if size else {"item"},
            "progress": {"item"},
            "step": {"item"},
            "large-step": {"bucket", "bucket at the end"},
            "question": {"item", "answer"},
            "second-question": {"item", "answer"},
            "answer": {"item"},
            "answer-extra": {"item"},
            "large-answer": {"bucket", "bucket at the end"},
            "unknown-key": NOWHERE,
            "unknown-answer": NOWHERE,
            "result": {"ended item", "answer"},
            "file-name": {"bucket", "bucket at the end", "ended item", "answer"},
            "file": {"bucket", "bucket at the end"},
        },
    )
    assert seen.places(TRACE) == {"item", "ended item", "engine"}
    assert [json.loads(told)[2] for told in seen.seen["engine"]] == [
        {"taskId": task_id, "run": run} for run in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    ("how", "table"),
    [
        ("tool_error", {"tool-error": {"ended item", "answer"}, "partial-result": {"ended item", "answer"}}),
        ("protocol_error", {"error-message": {"ended item", "answer"}, "error-data": {"ended item", "answer"}}),
        ("exit", {"exit": NOWHERE}),
        ("result", {"wrong-result": NOWHERE, "wrong-name": NOWHERE}),
        ("exception", {"exception": {"log"}, "cause": {"log"}, "note": {"log"}}),
    ],
)
def test_in_a_job_that_ends_badly(kit: Kit, how: str, table: dict[str, set[str]]) -> None:
    """What a job's exception says goes to the log, as the author of the job wrote it; its variables do not."""
    with witness(kit) as seen:
        client = Client(seen)
        task_id = client.task("end_badly", how=how, secret=mark("argument"))
        seen.run()
        assert client.get(task_id)["status"] in ("completed", "failed")
    agree(seen, CALLER | {"argument": {"item"}} | table)


@pytest.mark.parametrize("fail", [False, True])
def test_in_a_tool_that_is_answered_at_once(kit: Kit, fail: bool) -> None:
    with witness(kit) as seen:
        Client(seen).call("at_once", {"secret": mark("argument"), "fail": fail})
    outcome = {"inline-exception": {"log"}} if fail else {"inline-result": {"answer"}}
    agree(seen, CALLER | {"argument": NOWHERE} | outcome)


@pytest.mark.parametrize(
    ("tool", "arguments", "table"),
    [
        ("whole_life", {"small": [mark("value")], "large": mark("other")}, {"value": NOWHERE, "other": NOWHERE}),
        ("whole_life", {"small": mark("other")}, {"other": NOWHERE}),
        # The caller is told which name of its own was wrong; nobody else is.
        (
            "whole_life",
            {"small": "", "large": "", mark("name"): mark("value")},
            {"name": {"answer"}, "value": NOWHERE},
        ),
        ("at_once", {"secret": {mark("name"): mark("value")}}, {"name": NOWHERE, "value": NOWHERE}),
        ("at_once", {"secret": "", "fail": mark("value")}, {"value": NOWHERE}),
        ("by_hand", {"code": mark("value")}, {"value": NOWHERE}),
        ("by_hand", {"size": mark("value")}, {"value": NOWHERE}),
        ("by_hand", {mark("name"): mark("value")}, {"name": {"answer"}, "value": NOWHERE}),
    ],
)
def test_in_arguments_that_do_not_fit(
    kit: Kit, tool: str, arguments: dict[str, Any], table: dict[str, set[str]]
) -> None:
    with witness(kit) as seen:
        assert Client(seen).call(tool, arguments)["result"]["isError"]
    agree(seen, CALLER | table)


@pytest.mark.parametrize(
    "response",
    [
        mark("response"),
        {"action": mark("response")},
        {"action": "accept", "content": {"pin": [mark("response")]}},
        {"action": "accept", "content": {"pin": mark("response") + "x" * 7_000}},
        {"action": "accept", "content": {mark("response"): "x"}},
        {"action": "accept", "content": mark("response")},
    ],
)
def test_in_a_response_that_does_not_fit(kit: Kit, response: Any) -> None:
    with witness(kit) as seen:
        client = Client(seen)
        task_id = client.task("whole_life", small="", large="")
        seen.run()
        assert client.answer(task_id, pin=response)["error"]["code"] == -32602
        assert client.get(task_id)["status"] == "input_required"
    agree(seen, CALLER | {"response": NOWHERE})


@pytest.mark.parametrize(
    ("pin", "table"),
    [
        ("", {"hook-error": NOWHERE, "hook-exception": NOWHERE, "account": {"item"}}),
        ("wrong", {"hook-error": {"answer"}, "hook-exception": NOWHERE, "account": NOWHERE}),
        ("broken", {"hook-error": NOWHERE, "hook-exception": {"log"}, "account": NOWHERE}),
    ],
)
def test_in_what_is_asked_before_the_task(kit: Kit, pin: str, table: dict[str, set[str]]) -> None:
    """The state that the caller carries holds its own answers, readable for whoever has it: for the caller."""
    arguments = {"account": mark("account")}
    with witness(kit) as seen:
        client = Client(seen)
        first = client.call("asks_first", arguments)["result"]
        content = {"pin": pin or mark("pin"), "also": mark("pin-extra")}
        second = client.call(
            "asks_first",
            arguments,
            requestState=first["requestState"],
            inputResponses={"pin": {"action": "accept", "content": content}, "other": mark("unasked")},
        )["result"]
        sure = {"sure": {"action": "accept", "content": {"note": mark("last-answer")}}}
        client.call("asks_first", arguments, requestState=second["requestState"], inputResponses=sure)
        seen.run()
    table = {**table, "first-question": {"answer"}, "unasked": NOWHERE, "last-answer": NOWHERE}
    agree(seen, CALLER | table | {"pin-extra": {"answer"}} | ({} if pin else {"pin": {"answer"}}))


def test_in_a_task_that_is_cancelled(kit: Kit) -> None:
    with witness(kit) as seen:
        client = Client(seen)
        task_id = client.task("whole_life", small=mark("argument"), large="")
        seen.run()
        client.answer(task_id, pin=accepted("answer"))
        seen.run()
        client.send("tasks/cancel", {"taskId": task_id})
        assert client.get(task_id)["status"] == "cancelled"
    agree(seen, CALLER | {"argument": {"item"}, "answer": {"item"}, "step": {"item"}})


def test_in_a_start_that_was_refused(kit: Kit) -> None:
    kit.engine.refuse = True
    with witness(kit) as seen:
        answer = Client(seen).call("whole_life", {"small": mark("argument"), "large": ""})
        assert answer["error"]["code"] == -32603
        assert kit.scan() == []
    agree(seen, CALLER | {"argument": {"item"}})


@pytest.mark.parametrize("missing", ["table", "bucket"])
def test_in_a_fault_of_ours(kit: Kit, missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log of it names the fault of AWS, not what was to be stored."""
    rail = kit.runtime.rail
    if missing == "table":
        monkeypatch.setattr(rail._changes.store, "_table", "no-such-table")
    else:
        monkeypatch.setattr(rail.reports.payloads, "_bucket", "no-such-bucket")
    with witness(kit) as seen:
        answer = Client(seen).call("whole_life", {"small": mark("argument"), "large": "x" * 5_000})
        assert (answer["error"]["code"], answer["error"]["message"]) == (-32603, "Internal error.")
    agree(seen, CALLER | {"argument": {"bucket", "bucket at the end"} if missing == "table" else NOWHERE})
    assert any("ResourceNotFound" in text or "NoSuchBucket" in text for text in seen.seen["log"])


def test_in_what_an_engine_says_of_an_execution(kit: Kit) -> None:
    from handlers import run_events

    with witness(kit) as seen:
        client = Client(seen)
        task_id = client.task("whole_life", small="", large="")
        name = kit.engine.waiting[0]
        kit.runtime.rail.reports.claim(task_id, 1, name, 1)
        detail = {"name": name, "status": "FAILED", "error": "States.TaskFailed", "cause": mark("cause")}
        detail |= {"input": mark("input"), "output": mark("output")}
        event = {"detail-type": "Step Functions Execution Status Change", "source": "aws.states", "detail": detail}
        run_events.bind(kit.runtime)(event, None)
        assert "States.TaskFailed" in json.dumps(client.get(task_id))
    agree(seen, CALLER | {"cause": NOWHERE, "input": NOWHERE, "output": NOWHERE})


@pytest.mark.parametrize(
    "body",
    [
        mark("body"),
        f'{{"jsonrpc": "2.0", "id": 1, "method": "{mark("body")}"',
        {"method": mark("body"), "params": {"_meta": META}},
        {"method": "tools/call", "params": {mark("body"): mark("body")}},
        {"method": "tools/call", "params": {"name": mark("body"), "_meta": META}},
        {"method": "tasks/get", "params": {"taskId": mark("body"), "_meta": META}},
        {"method": "tasks/get", "jsonrpc": mark("body")},
        {"method": "notifications/cancelled", "id": mark("body") * 100, "params": {"requestId": mark("body")}},
    ],
)
def test_in_requests_that_are_refused(kit: Kit, body: Any) -> None:
    if isinstance(body, dict):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, **body})
    with witness(kit) as seen:
        headers = {**HEADERS, "mcp-protocol-version": VERSION, "origin": f"https://{mark('origin')}.example"}
        seen.post(body, headers)
        del headers["origin"]
        seen.post(body, headers)
        seen.post(body, {**headers, "mcp-method": mark("method-header"), "mcp-name": mark("name-header")})
    agree(seen, CALLER | dict.fromkeys(("body", "origin", "method-header", "name-header"), NOWHERE))


def test_in_a_state_that_is_not_ours(kit: Kit) -> None:
    with witness(kit) as seen:
        answer = Client(seen).call("asks_first", {"account": mark("account")}, requestState=mark("state"))
        assert answer["error"]["code"] == -32602
    agree(seen, CALLER | {"state": NOWHERE, "account": NOWHERE})


@pytest.mark.parametrize(
    ("method", "params", "places"),
    [
        # The handshake of earlier revisions answers with a version of its own.
        ("initialize", {"protocolVersion": mark("version")}, NOWHERE),
        # The protocol wants it repeated to the caller.
        (
            "tools/list",
            {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": mark("version")}},
            {"answer"},
        ),
    ],
)
def test_in_a_version_that_is_not_spoken(kit: Kit, method: str, params: dict[str, Any], places: set[str]) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    headers = HEADERS if method == "initialize" else {**HEADERS, "mcp-protocol-version": mark("version")}
    with witness(kit) as seen:
        seen.post(body, {**headers, "mcp-method": method})
    agree(seen, CALLER | {"version": places})


def test_nobody_but_the_owner_is_told(kit: Kit) -> None:
    """Another caller's answers are the same whether the task exists or not, byte for byte."""
    client_kit = Client(Witness(kit))
    task_id = client_kit.task("whole_life", small=mark("argument"), large="")
    kit.run()
    kit.owner = "somebody-else"
    other = Witness(kit)
    for number, method in enumerate(("tasks/get", "tasks/update", "tasks/cancel")):
        for asked in (task_id, "f" * 32):
            other._count = number
            other.send(method, {"taskId": asked, "inputResponses": {"pin": accepted("foreign")}}, META, HEADERS)
    answers = other.seen["answer"]
    assert len(set(answers)) == 3
    assert other.places(mark("question")) == {"item"}
    assert other.places(mark("foreign")) == NOWHERE
