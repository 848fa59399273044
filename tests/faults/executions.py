"""Step Functions as the wire sees it: executions run when a test says so.

The kit's own run over the queue of `taskrail.testing`. Those of workflows are kept here, with the state in them
that waits for an answer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from botocore.awsrequest import AWSResponse

from taskrail.engines import RunOrder, RunState
from taskrail.testing import QueueEngine
from tests.faults import catalogue
from tests.faults.faults import answer

MACHINE = "arn:aws:states:eu-central-1:123456789012:stateMachine:"
"""What the ARN of a tool's state machine begins with; the tool's name follows."""

_STATUS = {
    RunState.RUNNING: "RUNNING",
    RunState.SUCCEEDED: "SUCCEEDED",
    RunState.FAILED: "FAILED",
    RunState.TIMED_OUT: "TIMED_OUT",
    RunState.STOPPED: "ABORTED",
}


@dataclass
class Flow:
    """An execution of a workflow.

    Parameters
    ----------
    name, tool, input
        Its name, its machine's, and what it was started with.
    status, error, cause, output
        How it stands, and what it ended with.
    waits
        The task token of the state that it is in; None until that state has asked.
    entered
        How often that state was entered: every time it has a new token.
    answers
        What the waiting state was handed; more than one would be a state that moved twice.
    """

    name: str
    tool: str
    input: dict[str, Any]
    status: str = "RUNNING"
    error: str | None = None
    cause: str | None = None
    output: str | None = None
    waits: str | None = None
    entered: int = 0
    answers: list[str] = field(default_factory=list)

    @property
    def living(self) -> bool:
        """Whether it is not over."""
        return self.status == "RUNNING"

    def enter(self) -> str:
        """The state is entered, or retried: its new token."""
        self.entered += 1
        self.waits = f"token-{self.name}-{self.entered}"
        return self.waits

    def end(self, output: Any = None, *, error: str | None = None, cause: str | None = None) -> None:
        """It is over."""
        self.status = "SUCCEEDED" if error is None else "FAILED"
        self.error, self.cause = error, cause
        self.output = json.dumps(output) if error is None else None

    def detail(self) -> dict[str, Any]:
        """As DescribeExecution and the status change events have it."""
        told = {"output": self.output, "error": self.error, "cause": self.cause}
        return {
            "executionArn": _arn(self.tool, self.name),
            "stateMachineArn": MACHINE + self.tool,
            "name": self.name,
            "status": self.status,
            "startDate": 1_780_000_000,
            **{name: text for name, text in told.items() if text is not None},
        }


class Executions:
    """Answers Start-, Stop- and DescribeExecution and SendTaskSuccess as their API reference has it.

    Parameters
    ----------
    queue
        Keeps the runs of the kit's own jobs.
    """

    def __init__(self, queue: QueueEngine) -> None:
        self._queue = queue
        self.inputs: dict[str, str] = {}
        self.flows: dict[str, Flow] = {}

    def __call__(self, event_name: str, request: Any) -> AWSResponse:
        """Perform a request."""
        parameters = json.loads(request.body)
        status, body = getattr(self, "_" + event_name.rpartition(".")[2])(parameters)
        return answer(request.url, status, json.dumps(body))

    def living(self) -> list[Flow]:
        """The workflows that are not over."""
        return [flow for flow in self.flows.values() if flow.living]

    def _StartExecution(self, parameters: dict[str, str]) -> tuple[int, dict[str, Any]]:
        name, tool = parameters["name"], parameters["stateMachineArn"].removeprefix(MACHINE)
        if self._queue.refuse:
            return _error("AccessDeniedException")
        known = name in self.inputs
        ended = name in self.flows and not self.flows[name].living
        ended = ended or (name in self._queue.states and self._queue.states[name].ended)
        if known and (ended or self.inputs[name] != parameters["input"]):
            return _error("ExecutionAlreadyExists")
        self.inputs[name] = parameters["input"]
        if catalogue.server.tools[tool].work is None:
            self._queue.start(RunOrder(tool, name, {}))
        elif not known:
            self.flows[name] = Flow(name, tool, json.loads(parameters["input"]))
        return 200, {"executionArn": _arn(tool, name), "startDate": 1_780_000_000}

    def _StopExecution(self, parameters: dict[str, str]) -> tuple[int, dict[str, Any]]:
        name = parameters["executionArn"].rpartition(":")[2]
        if name not in self.inputs:
            return _error("ExecutionDoesNotExist")
        flow = self.flows.get(name)
        if flow is None:
            self._queue.stop("", name, None)
        elif flow.living:
            flow.status, flow.error = "ABORTED", parameters.get("error")
        return 200, {"stopDate": 1_780_000_000}

    def _DescribeExecution(self, parameters: dict[str, str]) -> tuple[int, dict[str, Any]]:
        name = parameters["executionArn"].rpartition(":")[2]
        if name in self.flows:
            return 200, self.flows[name].detail()
        report = self._queue.states.get(name)
        if report is None:
            return _error("ExecutionDoesNotExist")
        body = {
            "executionArn": parameters["executionArn"],
            "stateMachineArn": MACHINE,
            "name": name,
            "status": _STATUS[report.state],
            "startDate": 1_780_000_000,
        }
        return 200, body if report.reason is None else {**body, "error": report.reason}

    def _SendTaskSuccess(self, parameters: dict[str, str]) -> tuple[int, dict[str, Any]]:
        for flow in self.living():
            if flow.waits == parameters["taskToken"]:
                flow.waits = None
                flow.answers.append(parameters["output"])
                return 200, {}
        return _error("TaskTimedOut")


def _arn(tool: str, name: str) -> str:
    return f"{MACHINE.replace(':stateMachine:', ':execution:')}{tool}:{name}"


def _error(code: str) -> tuple[int, dict[str, Any]]:
    return 400, {"__type": code, "message": "secret-detail-of-aws"}
