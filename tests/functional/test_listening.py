"""Listening for tasks over a real table and a real socket: what it reads, whom it tells what, and how it comes."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from handlers import mcp_api
from local.front import Front
from taskrail import minutes, seconds
from taskrail.caller import Caller
from taskrail.clock import SystemClock
from taskrail.engines import RunReport, RunState
from taskrail.settings import Settings
from taskrail.testing import BUCKET, TABLE, VERSION, Kit, harness
from tests.functional import sample_tools
from tests.local_help import launched, wait_for

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
HOLD = Settings(table=TABLE, bucket=BUCKET, secret="a secret for tests only", listen="hold")
DECLARED = {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}


@pytest.fixture
def kit() -> Iterator[Kit]:
    with harness(sample_tools.server, settings=HOLD) as made:
        made.owner = "somebody"
        yield made


def request(*task_ids: str, request_id: Any = 1) -> tuple[str, dict[str, str]]:
    """The body and the headers of a request that listens."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": DECLARED,
    }
    params = {"notifications": {"taskIds": list(task_ids)}, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": request_id, "method": "subscriptions/listen", "params": params}
    return json.dumps(body), {"mcp-protocol-version": VERSION, "mcp-method": "subscriptions/listen"}


def listened(kit: Kit, *task_ids: str) -> list[dict[str, Any]]:
    """The acknowledged filter, and what was told."""
    answer = kit.post(*request(*task_ids))
    assert answer["statusCode"] == 200, answer["body"]
    messages = [json.loads(one.removeprefix("data: ")) for one in answer["body"].split("\n\n") if one]
    assert messages[-1]["result"]["resultType"] == "complete"
    return [messages[0]["params"]["notifications"], *(message["params"] for message in messages[1:-1])]


def calls_of(kit: Kit) -> list[tuple[str, dict[str, Any]]]:
    """The calls that are made on the table from now on, with what they ask."""
    made: list[tuple[str, dict[str, Any]]] = []

    def note(model: Any, params: dict[str, Any], **_: Any) -> None:
        made.append((model.name, json.loads(params["body"])))

    kit.dynamodb.meta.events.register("before-call.dynamodb", note)
    return made


def test_a_change_ends_the_wait_and_is_what_tasks_get_tells(kit: Kit) -> None:
    quiet, loud = kit.call("publish", title="Report"), kit.call("count", items=["a", "b"])
    quiet.run()
    # What the harness's engine has in its queue happens while the request sleeps.
    late = kit.call("text_back", text="x")
    acknowledged, *told = listened(kit, quiet.task_id, late.task_id)
    assert acknowledged == {"taskIds": [quiet.task_id, late.task_id]}
    assert [one["status"] for one in told] == ["input_required", "completed"]
    assert told[0]["inputRequests"].keys() == {"approval"}
    got = late.poll()
    assert told[1].pop("_meta") == {SUBSCRIPTION: 1}
    assert {**told[1], "resultType": "complete", "_meta": got["_meta"]} == got
    assert loud.status == "completed"


def test_nobody_hears_of_what_is_not_theirs_or_no_longer_there(kit: Kit) -> None:
    gone = kit.call("text_back", text="x")
    gone.run()
    kit.advance(minutes(60 * 24 * 8))
    kit.owner = "somebody else"
    foreign = kit.call("publish", title="Secret")
    kit.owner = "somebody"
    for task_id in (gone.task_id, foreign.task_id, "f" * 32, "no id"):
        assert listened(kit, task_id) == [{}]


def test_one_batched_read_a_look_whatever_the_number_of_tasks(kit: Kit) -> None:
    tickets = [kit.call("text_back", text="x") for _ in range(10)]
    kit.clock.on_sleep = lambda: None
    before = kit.clock.now()
    made = calls_of(kit)
    listened(kit, *(ticket.task_id for ticket in tickets))
    looks = [asked for name, asked in made if name == "BatchGetItem"]
    assert len(made) == len(looks) <= 1 + (kit.clock.now() - before) / 1_000
    assert all(asked["RequestItems"][TABLE]["ConsistentRead"] is True for asked in looks)
    assert all(len(asked["RequestItems"][TABLE]["Keys"]) == 10 for asked in looks)
    assert kit.clock.now() - before == 15_000 and len(looks) <= 7


def test_listening_repairs_what_it_finds_silent(kit: Kit) -> None:
    """The run has ended, and nobody told: neither the worker nor the engine's event."""
    ticket = kit.call("text_back", text="x")
    (name,) = kit.engine.waiting
    kit.engine.end(name, RunReport(RunState.FAILED, "Lambda.Unknown"))
    kit.advance(seconds(20))
    (told,) = listened(kit, ticket.task_id)[1:]
    assert told["status"] == "failed"


def test_what_a_batched_read_leaves_out_is_asked_for_again(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    tickets = [kit.call("text_back", text="x").task_id for _ in range(3)]
    real, rounds = kit.dynamodb.batch_get_item, 0

    def partial(RequestItems: dict[str, Any]) -> dict[str, Any]:
        nonlocal rounds
        rounds += 1
        first, *rest = RequestItems[TABLE]["Keys"]
        answer: dict[str, Any] = real(RequestItems={TABLE: {**RequestItems[TABLE], "Keys": [first]}})
        return {**answer, "UnprocessedKeys": {TABLE: {**RequestItems[TABLE], "Keys": rest}} if rest else {}}

    monkeypatch.setattr(kit.dynamodb, "batch_get_item", partial)
    assert list(kit.runtime.rail.read_many("somebody", tickets)) == tickets
    assert rounds == 3
    monkeypatch.setattr(
        kit.dynamodb, "batch_get_item", lambda RequestItems: {"Responses": {}, "UnprocessedKeys": RequestItems}
    )
    answer = kit.post(*request(*tickets))
    assert answer["statusCode"] == 500 and json.loads(answer["body"])["error"]["code"] == -32603


def test_more_keys_than_one_call_takes_are_read_in_several(kit: Kit) -> None:
    ticket = kit.call("text_back", text="x").task_id
    made = calls_of(kit)
    others = [f"{number:032x}" for number in range(1_000, 1_150)]
    assert list(kit.runtime.rail.read_many("somebody", [*others, ticket])) == [ticket]
    assert [len(asked["RequestItems"][TABLE]["Keys"]) for _, asked in made] == [100, 51]
    assert kit.runtime.rail.read_many("somebody", []) == {} and len(made) == 2


# --- a stream, over a socket


class Door:
    """A front over a deployment, and what its handler returned."""

    def __init__(self, kit: Kit) -> None:
        self.bodies: list[Any] = []
        settings = replace(kit.runtime.settings, listen="stream", listen_seconds=60)
        runtime = replace(kit.runtime, settings=settings, clock=SystemClock())
        handler = mcp_api.bind(runtime, lambda event: Caller("somebody"), streams=True)

        def noting(event: dict[str, Any], context: Any) -> dict[str, Any]:
            answer = handler(event, context)
            self.bodies.append(answer["body"])
            return answer

        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        self._front = Front(listener, noting)
        self._thread = threading.Thread(target=self._front.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self._front.shutdown()
        self._front.server_close()
        self._thread.join()

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)


@contextmanager
def door_of(kit: Kit) -> Iterator[Door]:
    door = Door(kit)
    try:
        yield door
    finally:
        door.close()


def sent(response: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """The messages of a stream, each as soon as it is there."""
    while line := response.readline():
        if line.startswith(b"data: "):
            yield json.loads(line.removeprefix(b"data: "))


def test_a_stream_comes_as_it_happens_and_leaves_the_connection_open(kit: Kit) -> None:
    ticket = kit.call("publish", title="Report")
    with door_of(kit) as door:
        connection = door.connect()
        connection.request("POST", "/mcp", *request(ticket.task_id))
        response = connection.getresponse()
        assert (response.status, response.headers["Transfer-Encoding"]) == (200, "chunked")
        assert response.headers["Content-Type"] == "text/event-stream" and response.headers["Content-Length"] is None
        messages = sent(response)
        assert next(messages)["params"]["notifications"] == {"taskIds": [ticket.task_id]}
        ticket.run()
        assert next(messages)["params"]["status"] == "input_required"
        ticket.answer(approval={"publish": True}).run()
        heard = []
        for message in messages:
            heard.append(message.get("params", {}).get("status"))
        assert heard[-2:] == ["completed", None] and set(heard[:-2]) <= {"working"}
        connection.request("POST", "/mcp", *request("f" * 32))
        assert len(list(sent(connection.getresponse()))) == 2
        connection.close()


def test_a_client_that_went_away_is_streamed_to_no_more(kit: Kit) -> None:
    ticket = kit.call("publish", title="Report")
    with door_of(kit) as door:
        connection = door.connect()
        connection.request("POST", "/mcp", *request(ticket.task_id))
        next(sent(connection.getresponse()))
        (body,) = door.bodies
        assert body.gi_frame is not None
        connection.close()
        wait_for(lambda: body.gi_frame is None, 5, "the end of the stream")


def test_an_old_http_client_gets_the_stream_without_chunks(kit: Kit) -> None:
    ticket = kit.call("text_back", text="x" * 100_000).run()
    body, headers = request(ticket.task_id)
    head = [f"{name}: {value}" for name, value in headers.items()]
    lines = ["POST /mcp HTTP/1.0", "Host: localhost", f"Content-Length: {len(body)}", *head, "", body]
    with door_of(kit) as door, socket.create_connection(("127.0.0.1", door.port), timeout=10) as connection:
        lines[1] += f":{door.port}"
        connection.sendall("\r\n".join(lines).encode())
        answer = b""
        while part := connection.recv(65_536):
            answer += part
    top, _, rest = answer.partition(b"\r\n\r\n")
    assert b"Transfer-Encoding" not in top and b"Connection: close" in top
    messages = [json.loads(line.removeprefix(b"data: ")) for line in rest.split(b"\n\n") if line]
    assert [message.get("params", {}).get("status") for message in messages] == [None, "completed", None]


def test_the_local_stack_streams_and_lists(tmp_path: Any) -> None:
    """As it comes: streams by default, and with the option a list of tasks by the table's index."""
    environ = {"TASKRAIL_EXPERIMENTAL_TASKS": "true"}
    arguments = ("--port", "0", "--catalogue", "tests.functional.local_tools")
    with launched(*arguments, environ=environ) as stack:
        address = stack.facts["url"].split("/")[2]
        connection = http.client.HTTPConnection(address, timeout=30)

        def old(method: str, **params: Any) -> dict[str, Any]:
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
            connection.request("POST", "/mcp", body, {"mcp-protocol-version": "2025-11-25"})
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
            result: dict[str, Any] = answer["result"]
            return result

        path = tmp_path / "go"
        made = old("tools/call", name="wait_for_file", arguments={"path": str(path)}, task={"ttl": 60_000})
        task_id = made["task"]["taskId"]
        listener = http.client.HTTPConnection(address, timeout=30)
        listener.request("POST", "/mcp", *request(task_id))
        messages = sent(listener.getresponse())
        assert next(messages)["params"]["notifications"] == {"taskIds": [task_id]}
        path.touch()
        statuses = [message.get("params", {}).get("status") for message in messages]
        assert statuses[-2:] == ["completed", None]
        assert [task["taskId"] for task in old("tasks/list")["tasks"]] == [task_id]
        assert old("tasks/result", taskId=task_id)["content"][0]["type"] == "text"
        listener.close()
        connection.close()
