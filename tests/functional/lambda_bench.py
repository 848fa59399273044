"""What the tests of tasks on Lambda share: an invocation's context, a worker that works on, and failure records."""

from __future__ import annotations

from typing import Any

from handlers import run_events
from taskrail import seconds
from taskrail.engines import run_name
from taskrail.questions import form_question
from taskrail.rail.leases import LEASE_MS
from taskrail.task import Task
from taskrail.testing import Called, Kit
from tests.functional import lambda_tools

LEASE = seconds(LEASE_MS / 1_000)
GRACE = seconds(10)
QUESTION = {"approval": form_question("approval", "Publish Q3?", lambda_tools.Approval)}


class Context:
    """What Lambda hands to a handler."""

    def __init__(self, request_id: str, left_ms: int = 300_000) -> None:
        self.aws_request_id = request_id
        self._left_ms = left_ms

    def get_remaining_time_in_millis(self) -> int:
        """As Lambda has it."""
        return self._left_ms


def name_of(task: Called, run: int = 1) -> str:
    """The name of a task's run."""
    return run_name(task.task_id, run)


def taken_up(kit: Kit, task: Called) -> Task:
    """The task as its worker holds it, which works on."""
    kit.functions.waiting.remove(name_of(task))
    claimed = kit.runtime.rail.reports.claim_by_lease(task.task_id, 1, kit.functions.ids[name_of(task)], lambda: 0)
    assert claimed is not None
    return claimed


def stored(kit: Kit, task: Called) -> Task:
    """The task as the table holds it."""
    found = kit.runtime.rail.reports._changes.store.read(task.task_id)
    assert found is not None
    return found


def record(kit: Kit, task: Called, run: int = 1, **changes: Any) -> dict[str, Any]:
    """What Lambda sends to the failure destination of a function that died at its last attempt."""
    made: dict[str, Any] = {
        "version": "1.0",
        "timestamp": "2026-05-28T20:27:00.000Z",
        "requestContext": {
            "requestId": kit.functions.ids[name_of(task, run)],
            "functionArn": "arn:aws:lambda:us-east-1:123456789012:function:once:$LATEST",
            "condition": "RetriesExhausted",
            "approximateInvokeCount": 1,
        },
        "requestPayload": {"taskId": task.task_id, "run": run},
        "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
        "responsePayload": {"errorMessage": "secret of the job", "errorType": "Runtime.ExitError"},
    }
    for key, value in changes.items():
        part = "responsePayload" if key.startswith("error") else "requestContext"
        made[part][key] = value
    return made


def tell(kit: Kit, event: dict[str, Any]) -> None:
    """Have the failure destination take a record."""
    run_events.bind(kit.runtime)(event, None)
