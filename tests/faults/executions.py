"""Step Functions as the wire sees it, over the queue of `taskrail.testing`: executions run when a test says so."""

from __future__ import annotations

import json
from typing import Any

from botocore.awsrequest import AWSResponse

from taskrail.engines import RunState
from taskrail.testing import QueueEngine
from tests.faults.faults import answer

MACHINE = "arn:aws:states:eu-central-1:123456789012:stateMachine:jobs"

_STATUS = {
    RunState.RUNNING: "RUNNING",
    RunState.SUCCEEDED: "SUCCEEDED",
    RunState.FAILED: "FAILED",
    RunState.TIMED_OUT: "TIMED_OUT",
    RunState.STOPPED: "ABORTED",
}


class Executions:
    """Answers StartExecution, StopExecution and DescribeExecution as their API reference has it.

    Parameters
    ----------
    queue
        Keeps the runs.
    """

    def __init__(self, queue: QueueEngine) -> None:
        self._queue = queue
        self.inputs: dict[str, str] = {}

    def __call__(self, event_name: str, request: Any) -> AWSResponse:
        """Perform a request."""
        parameters = json.loads(request.body)
        status, body = getattr(self, "_" + event_name.rpartition(".")[2])(parameters)
        return answer(request.url, status, json.dumps(body))

    def _StartExecution(self, parameters: dict[str, str]) -> tuple[int, dict[str, Any]]:
        name = parameters["name"]
        if self._queue.refuse:
            return _error("AccessDeniedException")
        known = self._queue.states.get(name)
        if known is not None and (known.ended or self.inputs[name] != parameters["input"]):
            return _error("ExecutionAlreadyExists")
        self.inputs[name] = parameters["input"]
        self._queue.start("", name, {}, 0)
        return 200, {"executionArn": _arn(name), "startDate": 1_780_000_000}

    def _StopExecution(self, parameters: dict[str, str]) -> tuple[int, dict[str, Any]]:
        name = parameters["executionArn"].rpartition(":")[2]
        if name not in self._queue.states:
            return _error("ExecutionDoesNotExist")
        self._queue.stop("", name)
        return 200, {"stopDate": 1_780_000_000}

    def _DescribeExecution(self, parameters: dict[str, str]) -> tuple[int, dict[str, Any]]:
        name = parameters["executionArn"].rpartition(":")[2]
        report = self._queue.states.get(name)
        if report is None:
            return _error("ExecutionDoesNotExist")
        body = {
            "executionArn": _arn(name),
            "stateMachineArn": MACHINE,
            "name": name,
            "status": _STATUS[report.state],
            "startDate": 1_780_000_000,
        }
        return 200, body if report.reason is None else {**body, "error": report.reason}


def _arn(name: str) -> str:
    return f"{MACHINE.replace(':stateMachine:', ':execution:')}:{name}"


def _error(code: str) -> tuple[int, dict[str, Any]]:
    return 400, {"__type": code, "message": "secret-detail-of-aws"}
