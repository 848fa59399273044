"""How many bytes a request and a task leave in CloudWatch Logs: the kit's own lines measured, AWS's by sample.

The kit's lines come from `taskrail.telemetry` itself. Lambda's, API Gateway's and Step Functions' are written out here
in the form that their documentation shows; no account was at hand to measure them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from taskrail.task import Status, Task
from taskrail.telemetry import JsonLines, Line, Telemetry

OVERHEAD = 26
"""Bytes that CloudWatch Logs adds to each event (PutLogEvents, "batch size")."""

_UUID = "79b4f56e-95b1-4643-9700-2807f4e68189"
_ID = "9f81038d99ae71ef077185bbd306ef36"
_ARN = f"arn:aws:states:us-east-1:123456789012:execution:TaskrailRunsMachine0A1B2C3D-4E5F6a7b8c9d:{_ID}-1"
_NOW = 1_780_000_000_000
_DEPLOYMENT = "taskrail"

PLATFORM = (
    {
        "time": "2026-05-28T20:26:40.000Z",
        "type": "platform.start",
        "record": {"requestId": _UUID, "version": "$LATEST"},
    },
    {
        "time": "2026-05-28T20:26:40.020Z",
        "type": "platform.report",
        "record": {
            "requestId": _UUID,
            "metrics": {
                "durationMs": 17.421,
                "billedDurationMs": 18,
                "memorySizeMB": 1024,
                "maxMemoryUsedMB": 104,
            },
            "tracing": {
                "spanId": "a1b2c3d4e5f60718",
                "type": "X-Amzn-Trace-Id",
                "value": "Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=b7ad6b7169203331;Sampled=0",
            },
            "status": "success",
        },
    },
)
"""What Lambda itself logs of an invocation (Lambda Developer Guide, "Using Lambda advanced logging controls")."""

ACCESS = {
    "requestId": "JKJaXmPLvHcESHA=",
    "at": "1780000000000",
    "ip": "203.0.113.117",
    "method": "POST",
    "status": "200",
    "bytes": "512",
    "ms": "24",
    "functionMs": "21",
    "error": "-",
    "functionError": "-",
    "route": "POST /mcp",
    "authorizer": "-",
}
"""What API Gateway logs of a request, in the format of `infra/access_log.py`."""

EXECUTION = (
    "ExecutionStarted",
    "TaskStateEntered",
    "TaskScheduled",
    "TaskStarted",
    "TaskSucceeded",
    "TaskStateExited",
    "ExecutionSucceeded",
)
"""The events of an execution of the one-state machine; it is logged with all of them, without data."""


@cache
def request_line(method: str = "tasks/get") -> int:
    """Bytes of the line that the API function writes about a request."""
    lines: list[Line] = []
    Telemetry(lines.append, _DEPLOYMENT).request(
        now=_NOW,
        method=method,
        tool="count_words" if method == "tools/call" else None,
        status=200,
        error=None,
        duration_ms=17,
        task_id=_ID,
        owner=_ID,
        traceparent=f"00-{_ID}-b7ad6b7169203331-01",
    )
    return _bytes(lines)


@cache
def task_lines() -> tuple[int, int]:
    """Bytes of the lines that tell of a task's beginning and of its end."""
    made = Task(
        task_id=_ID,
        owner=_ID,
        tool="count_words",
        engine="step_functions",
        created_at=_NOW,
        updated_at=_NOW,
        ttl_ms=None,
        keep_ms=None,
        poll_ms=5_000,
        run_started_at=_NOW,
        run_deadline=_NOW,
        attempt=1,
        traceparent=f"00-{_ID}-b7ad6b7169203331-01",
    )
    ended = made.ended(Status.COMPLETED, _NOW + 60_000, message="Completed.")
    return (
        _told(lambda telemetry: telemetry.created(made, _NOW)),
        _told(lambda telemetry: telemetry.changed(made, ended, _NOW + 60_000)),
    )


def platform_lines() -> int:
    """Bytes of what Lambda logs of one invocation."""
    return _bytes(PLATFORM)


def access_line() -> int:
    """Bytes of what API Gateway logs of one request."""
    return _bytes([ACCESS])


def api_request(method: str = "tasks/get") -> int:
    """Bytes that one request leaves behind, all logs together."""
    return request_line(method) + platform_lines() + access_line()


def execution(events: int = len(EXECUTION)) -> int:
    """Bytes that an execution with that many events leaves behind."""
    line = {
        "id": "4",
        "type": "TaskStateEntered",
        "details": {"name": "Job", "resourceType": "lambda", "resource": "invoke"},
        "previous_event_id": "3",
        "event_timestamp": "1780000000000",
        "execution_arn": _ARN,
        "redrive_count": "0",
    }
    return events * _bytes([line])


def longest_line() -> int:
    """Most bytes that one line of the kit's log can have, an exception's trace included."""
    return JsonLines.LONGEST + OVERHEAD


@cache
def series(tools: int) -> int:
    """How many custom metrics a busy month of a deployment with that many task tools makes.

    Counted from the lines themselves: each metric with each set of values of its dimensions is one
    (CloudWatch User Guide, "Dimensions").

    Parameters
    ----------
    tools
        Task tools, each of whose tasks are made, tell progress and end completed, cancelled and failed.
    """
    lines: list[Line] = []
    telemetry = Telemetry(lines.append, _DEPLOYMENT)
    for method in ("server/discover", "tools/list", "tools/call", "tasks/get", "tasks/update", "tasks/cancel"):
        telemetry.request(
            now=_NOW,
            method=method,
            tool=None,
            status=200,
            error=None,
            duration_ms=1,
            task_id=None,
            owner=None,
            traceparent=None,
        )
    for number in range(tools):
        made = Task(_ID, _ID, f"tool-{number}", "batch", _NOW, _NOW, None, None, 5_000, _NOW, _NOW)
        telemetry.created(made, _NOW)
        for status in (Status.COMPLETED, Status.FAILED, Status.CANCELLED):
            telemetry.changed(made, made.ended(status, _NOW, message=""), _NOW)
    return len({key for line in lines for key in _series(line)})


def _series(line: Mapping[str, Any]) -> Iterable[tuple[str, ...]]:
    for directive in line["_aws"]["CloudWatchMetrics"]:
        for dimensions in directive["Dimensions"]:
            for metric in directive["Metrics"]:
                yield (metric["Name"], *(f"{name}={line[name]}" for name in dimensions))


def _told(tell: Callable[[Telemetry], None]) -> int:
    lines: list[Line] = []
    tell(Telemetry(lines.append, _DEPLOYMENT))
    return _bytes(lines)


def _bytes(lines: Iterable[Mapping[str, Any]]) -> int:
    return sum(len(json.dumps(line, separators=(",", ":")).encode()) + OVERHEAD for line in lines)
