"""Where secrets of work that is none of the kit's get to: workflows, containers, reports, calls made once.

As in `test_secrets`, each test has a table: for every mark, exactly the places where it must be.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from handlers import run_events
from taskrail.engines import run_name
from taskrail.testing import Kit, harness
from taskrail.wire.calls import IDEMPOTENCY_KEY
from tests.functional import secret_tools
from tests.functional.secret_tools import mark
from tests.functional.test_secrets import CALLER, HEADERS, META, NOWHERE, TRACE, Client, accepted, agree
from tests.functional.witness import Witness, emptied, witness

DEFINED = dict.fromkeys(
    ("image-name", "command", "environment", "machine-name", "queue-name", "definition-name"), NOWHERE
)
"""What a declaration says of the account, or what its deployment hands to the work: no caller is told."""


@pytest.fixture(scope="module")
def deployment() -> Iterator[Kit]:
    with harness(secret_tools.server) as made:
        yield made


@pytest.fixture
def kit(deployment: Kit) -> Kit:
    """The deployment as if it were new."""
    emptied(deployment)
    return deployment


def token_of(seen: Witness, task_id: str) -> str:
    """The report token that the work of a task got."""
    name = run_name(task_id, 1)
    order = seen.kit.engine_of(name).orders[name]
    return str(order.environment.get("TASKRAIL_REPORT_TOKEN", order.input.get("reportToken")))


def nobody_knows(seen: Witness, token: str) -> None:
    """A report token is in the order of its run, and nowhere else: not even its signature."""
    assert seen.places(token) == {"engine"}
    assert seen.places(token.rpartition(".")[2]) == {"engine"}


def event_of_job(kit: Kit, task_id: str, exit_code: int | None, **more: Any) -> None:
    """Batch tells how the job of a task's first run ended."""
    name = run_name(task_id, 1)
    container: dict[str, Any] = {"exitCode": exit_code, "reason": mark("container-reason"), "logStreamName": "stream"}
    container |= {"environment": [{"name": "PASSWORD", "value": mark("environment")}], "command": [mark("command")]}
    detail = {
        "jobName": name,
        "jobId": kit.jobs.ids[name],
        "status": "FAILED" if exit_code else "SUCCEEDED",
        "statusReason": "Essential container in task exited",
        "attempts": [{"startedAt": 1, "stoppedAt": 2, "container": container}],
        "container": container,
        "parameters": {"word": mark("parameter")},
        **more,
    }
    event = {"detail-type": "Batch Job State Change", "source": "aws.batch", "detail": detail}
    run_events.bind(kit.runtime)(event, None)


def event_of_execution(kit: Kit, task_id: str, **more: Any) -> None:
    """Step Functions tells how the execution of a task's first run ended."""
    detail = {"name": run_name(task_id, 1), "input": json.dumps({"secret": mark("event-input")}), **more}
    event = {"detail-type": "Step Functions Execution Status Change", "source": "aws.states", "detail": detail}
    run_events.bind(kit.runtime)(event, None)


def test_in_the_list_of_tools(kit: Kit) -> None:
    with witness(kit) as seen:
        assert len(Client(seen).send("tools/list", {})["result"]["tools"]) > 5
    agree(seen, CALLER | DEFINED)


def test_in_a_whole_life_of_a_workflow(kit: Kit) -> None:
    """A task token stays in the item until its answer was passed on, and the answer until the end."""
    with witness(kit) as seen:
        client = Client(seen)
        task_id = client.task("machine", secret=mark("argument"))
        token = token_of(seen, task_id)
        seen.report(token, {"do": "progress", "done": 1, "total": 1, "message": mark("progress")})
        ask = {"do": "ask", "key": "pin", "message": mark("question"), "taskToken": mark("task-token")}
        seen.report(token, {**ask, "schema": {"type": "object", "properties": {"pin": {"type": "string"}}}})
        client.get(task_id)
        client.answer(task_id, pin=accepted("answer"))
        seen.report(token, {"do": "answers", "keys": ["pin"]})
        event_of_execution(kit, task_id, status="SUCCEEDED", output=json.dumps({"a": mark("output")}))
        assert client.get(task_id)["status"] == "completed"
    agree(
        seen,
        CALLER
        | DEFINED
        | {
            "argument": {"item", "engine"},
            "progress": {"item"},
            "question": {"item", "answer"},
            "task-token": {"item", "state"},
            "answer": {"item", "state", "reply"},
            "output": {"ended item", "answer"},
            "event-input": NOWHERE,
        },
    )
    nobody_knows(seen, token)


@pytest.mark.parametrize(
    ("error", "cause", "table"),
    [
        ("States.TaskFailed", mark("cause"), {"cause": NOWHERE}),
        ("Exception", json.dumps({"errorMessage": mark("cause"), "stackTrace": [mark("trace")]}), {"cause": NOWHERE}),
        ("ToolError", mark("cause"), {"cause": {"ended item", "answer"}}),
        (
            "ToolError",
            json.dumps({"errorMessage": mark("cause"), "stackTrace": [mark("trace")], "requestId": mark("trace")}),
            {"cause": {"ended item", "answer"}},
        ),
    ],
)
def test_in_a_workflow_that_fails(kit: Kit, error: str, cause: str, table: dict[str, set[str]]) -> None:
    """The name of its error is told; its cause only where the workflow means it for the caller."""
    with witness(kit) as seen:
        client = Client(seen)
        task_id = client.task("machine", secret=mark("argument"))
        event_of_execution(kit, task_id, status="FAILED", error=error, cause=cause, output=mark("output"))
        assert client.get(task_id)["status"] == "completed"
        token = token_of(seen, task_id)
    agree(seen, CALLER | {"argument": {"item", "engine"}, "trace": NOWHERE, "output": NOWHERE} | table)
    nobody_knows(seen, token)


@pytest.mark.parametrize(
    ("tool", "exit_code", "log", "result"),
    [
        ("image", 0, NOWHERE, {"ended item", "answer"}),
        ("image", 1, {"ended item", "answer"}, {"ended item", "answer"}),
        ("quiet", 1, NOWHERE, {"ended item", "answer"}),
    ],
)
def test_in_a_whole_life_of_a_container(kit: Kit, tool: str, exit_code: int, log: set[str], result: set[str]) -> None:
    """Its arguments are in the bucket, and only what its command names is told to Batch."""
    with witness(kit) as seen:
        client = Client(seen)
        task_id = client.task(tool, secret=mark("argument"), word=mark("word"))
        token, job = token_of(seen, task_id), {"job": kit.jobs.ids[run_name(task_id, 1)], "attempt": 1}
        kit.jobs.logs["stream"] = (mark("log"),)
        seen.report(token, {"do": "arguments", **job})
        seen.report(token, {"do": "ask", "key": "pin", "message": mark("question"), **job})
        client.get(task_id)
        client.answer(task_id, pin=accepted("answer"))
        seen.report(token, {"do": "answers", **job})
        seen.report(token, {"do": "result", "result": mark("result"), **job})
        upload = seen.report(token, {"do": "result", "upload": True, **job})["uploadUrl"]
        event_of_job(kit, task_id, exit_code)
        assert client.get(task_id)["status"] == "completed"
    agree(
        seen,
        CALLER
        | DEFINED
        | {
            "argument": {"bucket", "bucket at the end", "reply"},
            "word": {"bucket", "bucket at the end", "reply"} | ({"engine"} if tool == "image" else NOWHERE),
            "question": {"item", "answer"},
            "answer": {"item", "reply"},
            "result": {"bucket", "bucket at the end"} | result,
            "log": log,
            "container-reason": NOWHERE,
            "parameter": NOWHERE,
        },
    )
    nobody_knows(seen, token)
    assert seen.places(upload) == {"reply"}


def test_in_a_job_of_the_kits_on_batch(kit: Kit) -> None:
    """Its environment names the task: no argument, no token, no secret."""
    with witness(kit) as seen:
        client = Client(seen)
        task_id = client.task("on_batch", secret=mark("argument"))
        seen.run()
        assert client.get(task_id)["status"] == "completed"
    agree(seen, CALLER | {"argument": {"item"}, "result": {"ended item", "answer"}})
    ((_, _, _, environment, parameters),) = map(json.loads, seen.seen["engine"])
    assert environment == {"TASKRAIL_TASK_ID": task_id, "TASKRAIL_RUN": "1", "TRACEPARENT": TRACE}
    assert parameters == {}


def test_in_what_batch_says_of_a_job(kit: Kit) -> None:
    """Words of Batch's own that nobody knows are told, without names of the account."""
    reason = f"Something new with arn:aws:ecs:eu-central-1:123456789012:{mark('resource')} in 123456789012"
    with witness(kit) as seen:
        client = Client(seen)
        task_id = client.task("on_batch", secret="")
        kit.runtime.rail.reports.claim(task_id, 1, kit.jobs.ids[run_name(task_id, 1)], 1)
        event_of_job(kit, task_id, None, status="FAILED", statusReason=reason)
        assert "Something new" in json.dumps(client.get(task_id))
    agree(seen, CALLER | dict.fromkeys(("resource", "container-reason", "environment", "command"), NOWHERE))
    assert seen.places("arn:aws:ecs") == NOWHERE
    assert not any("123456789012" in text for text in seen.seen["answer"])


def test_in_a_call_that_is_made_once(kit: Kit) -> None:
    """The key that a caller gives a call, and what the call is about, are kept as hashes."""
    meta = {**META, IDEMPOTENCY_KEY: mark("idempotency-key")}
    with witness(kit) as seen:
        arguments = {"secret": mark("argument")}
        first = seen.send("tools/call", {"name": "once", "arguments": arguments}, meta, HEADERS)["result"]["taskId"]
        again = seen.send("tools/call", {"name": "once", "arguments": arguments}, meta, HEADERS)["result"]["taskId"]
        assert first == again
        other = {"secret": mark("other-argument")}
        refused = seen.send("tools/call", {"name": "once", "arguments": other}, meta, HEADERS)
        assert refused["error"]["code"] == -32602
        wrong = {**META, IDEMPOTENCY_KEY: [mark("wrong-key")]}
        assert seen.send("tools/call", {"name": "once", "arguments": other}, wrong, HEADERS)["error"]
        seen.run()
    agree(
        seen,
        CALLER | {"idempotency-key": NOWHERE, "wrong-key": NOWHERE, "argument": {"item"}, "other-argument": NOWHERE},
    )
    assert seen.places(first) >= {"reservation"}


@pytest.mark.parametrize(
    "report",
    [
        {"do": mark("report")},
        {"do": "progress", "done": mark("report")},
        {"do": "progress", "message": [mark("report")]},
        {"do": "ask", "key": [mark("report")], "message": "M"},
        {"do": "ask", "key": "k", "message": "M", "schema": mark("report")},
        {"do": "ask", "key": "k", "message": "M", "schema": {"type": mark("report")}},
        {"do": "ask", "key": "k", "message": "M", "taskToken": [mark("report")]},
        {"do": "answers", "keys": mark("report")},
        {"do": "result", "result": mark("report")},
        {"do": "progress", "done": 1, mark("report"): mark("report")},
    ],
)
def test_in_reports_that_are_refused_or_say_too_much(kit: Kit, report: dict[str, Any]) -> None:
    with witness(kit) as seen:
        task_id = Client(seen).task("machine", secret="")
        token = token_of(seen, task_id)
        seen.report(token, report)
        seen.report(mark("wrong-token"), report)
        seen.report(token[:-1] + ("A" if token[-1] != "A" else "B"), report)
    agree(seen, CALLER | {"report": NOWHERE, "wrong-token": NOWHERE})
    nobody_knows(seen, token)
