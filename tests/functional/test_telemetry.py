"""What a deployment tells of itself: a line per request and per turn of a task, metrics in them, and no secrets."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from taskrail.clock import minutes, seconds
from taskrail.engines import RunReport, RunState
from taskrail.telemetry import JsonLines, Telemetry, owner_mark, xray_header
from taskrail.testing import Kit, RpcFailure, harness
from tests.functional import work_tools

TRACE = f"00-{'0af7651916cd43dd8448eb211c80319c'}-{'b7ad6b7169203331'}-01"
Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def deployment() -> Iterator[Kit]:
    with harness(work_tools.server) as made:
        yield made


@pytest.fixture
def kit(deployment: Kit) -> Kit:
    deployment.clear()
    return deployment


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    """The lines since it was last asked."""
    caplog.set_level(logging.INFO, "taskrail.telemetry")

    def told() -> list[dict[str, Any]]:
        found = [json.loads(JsonLines().format(record)) for record in caplog.records if "telemetry" in record.name]
        caplog.clear()
        return found

    return told


def turns(found: list[dict[str, Any]]) -> list[str]:
    return [line["event"].removeprefix("task_") for line in found if line["event"] != "request"]


def test_each_request_is_one_line(kit: Kit, lines: Lines) -> None:
    kit.meta = {"traceparent": TRACE}
    task = kit.call("migrate", table="secret-argument")
    request = lines()[-1]
    directive = request.pop("_aws")["CloudWatchMetrics"][0]
    assert request == {
        "event": "request",
        "method": "tools/call",
        "tool": "migrate",
        "status": 200,
        "taskId": task.task_id,
        "owner": owner_mark("anonymous"),
        "traceId": TRACE.split("-")[1],
        "Requests": 1,
        "RequestErrors": 0,
        "Duration": 0,
    }
    assert directive["Namespace"] == "Taskrail"
    assert {metric["Name"] for metric in directive["Metrics"]} == {"Requests", "RequestErrors", "Duration"}
    assert directive["Dimensions"] == [["method"], []]


def test_a_refused_request_names_its_error_and_nothing_that_was_made_up(kit: Kit, lines: Lines) -> None:
    for method, params in (("tools/nothing-of-ours", {}), ("tasks/get", {"taskId": "secret-id"})):
        with pytest.raises(RpcFailure):
            kit.request(method, params, headers={"mcp-name": "secret-id"})
    unknown, no_task = lines()
    assert (unknown["error"], unknown["status"], "method" in unknown) == (-32601, 404, False)
    assert (no_task["error"], no_task["method"], "taskId" in no_task) == (-32602, "tasks/get", False)
    assert unknown["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [[]]


def test_every_turn_of_a_task_is_told_once(kit: Kit, lines: Lines) -> None:
    task = kit.call("migrate", table="t")
    assert turns(lines()) == ["created"]
    kit.advance(seconds(3))
    task.report("progress", message="half", done=1, total=2)
    [progress] = lines()
    assert (progress["event"], progress["TimeToFirstProgress"]) == ("task_progress", 3_000)
    kit.advance(seconds(3))
    task.report("progress", message="more", done=2, total=2)
    assert lines() == [], "only the first progress is a turn"
    task.report("ask", key="go", message="Go?", taskToken="token")
    task.answer(go={})
    found = lines()
    assert turns(found) == ["asked", "answered"]
    assert (found[0]["QuestionsOpened"], found[-1]["event"]) == (1, "request")
    kit.advance(minutes(1))
    task.end({"rows": 1})
    task.poll()
    found = lines()
    assert turns(found) == ["ended"]
    ended = found[0]
    assert (ended["taskStatus"], ended["TimeToEnd"], ended["TasksEnded"]) == ("completed", 66_000, 1)
    assert ["tool", "taskStatus"] in ended["_aws"]["CloudWatchMetrics"][0]["Dimensions"]


def test_what_nobody_answered_is_closed_with_the_task(kit: Kit, lines: Lines) -> None:
    task = kit.call("migrate", table="t")
    task.report("ask", key="go", message="Go?", taskToken="token")
    task.cancel()
    assert turns(lines()) == ["created", "asked", "unanswered", "ended"]


def test_repairs_are_told(kit: Kit, lines: Lines) -> None:
    task = kit.call("migrate", table="t")
    kit.engine.end(task.order.name, RunReport(RunState.FAILED, "States.Timeout"))
    kit.advance(seconds(20))
    task.poll()
    assert turns(lines()) == ["created", "repair_settled", "ended"]


def test_nothing_of_a_call_is_in_the_lines(kit: Kit, lines: Lines) -> None:
    kit.owner = "secret-owner"
    kit.meta = {"io.taskrail/idempotencyKey": "secret-key", "baggage": "secret-baggage"}
    task = kit.call("migrate", table="secret-argument")
    task.report("progress", message="secret-progress", done=1)
    task.report("ask", key="secret-key", message="secret-question", taskToken="secret-token")
    task.answer_with({"secret-key": {"action": "accept", "content": {"note": "secret-answer"}}})
    task.end({"rows": 1, "note": "secret-output"})
    task.poll()
    text = json.dumps(lines())
    assert "created" in text and "secret" not in text


def test_a_log_record_becomes_one_line_of_json() -> None:
    record = logging.LogRecord("taskrail", logging.ERROR, __file__, 1, "task %s:\nbroken", ("t",), None)
    record.aws_request_id = "r-1"
    line = JsonLines().format(record)
    told = json.loads(line)
    assert "\n" not in line
    assert (told["level"], told["message"], told["requestId"]) == ("ERROR", "task t:\nbroken", "r-1")
    try:
        raise ValueError("why")
    except ValueError as error:
        record.exc_info = (ValueError, error, error.__traceback__)
    assert "ValueError: why" in json.loads(JsonLines().format(record))["exception"]


@pytest.mark.parametrize("letter", ["x", "\n", "😀", "\x00"])
def test_a_line_has_a_bound_however_long_an_error_is(letter: str) -> None:
    """Its beginning, which says where it was, and its end remain."""
    record = logging.LogRecord("taskrail", logging.ERROR, __file__, 1, "task t: (%s) over", (letter * 100_000,), None)
    try:
        raise ValueError(f"begins {letter * 3_000_000} ends")
    except ValueError as error:
        record.exc_info = (ValueError, error, error.__traceback__)
    line = JsonLines().format(record)
    assert len(line.encode()) <= JsonLines.LONGEST < 256_000
    told = json.loads(line)
    assert told["message"].startswith("task t: (") and told["message"].endswith(" over")
    assert len(told["message"]) <= 2_000 and len(told["exception"]) <= 12_000
    assert "Traceback" in told["exception"] and "begins" in told["exception"] and told["exception"].endswith(" ends")
    assert "characters left out" in told["message"] and "characters left out" in told["exception"]


def test_a_line_about_a_request_has_a_bound() -> None:
    """All that comes from outside is checked before, and a tool's own error code is cut."""
    lines: list[Any] = []
    Telemetry(lines.append, deployment="d" * 128).request(
        now=10**13,
        method="subscriptions/listen",
        tool="t" * 128,
        status=200,
        error=-(10**4_000),
        duration_ms=10**6,
        task_id="f" * 32,
        owner="a claim of any length" * 10_000,
        traceparent=TRACE,
    )
    assert len(json.dumps(lines[0], separators=(",", ":"))) < 1_000
    assert lines[0]["error"] == -(2**53 - 1)


def test_an_execution_joins_the_callers_trace(kit: Kit) -> None:
    """X-Ray writes the same ids another way: https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html"""
    kit.meta = {"traceparent": TRACE}
    assert kit.call("migrate", table="t").order.traceparent == TRACE
    assert kit.call("cut", film="f").order.environment["TRACEPARENT"] == TRACE
    assert xray_header(TRACE) == "Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=b7ad6b7169203331;Sampled=1"
    assert xray_header(None) is None


def test_the_deployments_name_is_a_dimension_of_every_metric() -> None:
    """An account may have several deployments in one region."""
    lines: list[Any] = []
    telemetry = Telemetry(lines.append, deployment="reports")
    telemetry.request(
        now=1,
        method="tools/list",
        tool=None,
        status=200,
        error=None,
        duration_ms=1,
        task_id=None,
        owner=None,
        traceparent=None,
    )
    assert lines[0]["deployment"] == "reports"
    assert lines[0]["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["deployment", "method"], ["deployment"]]
