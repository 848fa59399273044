"""Step Functions as an engine: one execution of a Standard state machine per run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from taskrail.engines import RunReport, RunState
from taskrail.errors import EngineUnavailable, StartRefused

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient

_STATES: Mapping[str, RunState] = {
    "RUNNING": RunState.RUNNING,
    "PENDING_REDRIVE": RunState.RUNNING,
    "SUCCEEDED": RunState.SUCCEEDED,
    "FAILED": RunState.FAILED,
    "TIMED_OUT": RunState.TIMED_OUT,
    "ABORTED": RunState.STOPPED,
}

_REFUSALS = frozenset(
    {
        "AccessDeniedException",
        "ExecutionLimitExceeded",
        "InvalidArn",
        "InvalidExecutionInput",
        "InvalidName",
        "KmsAccessDeniedException",
        "KmsInvalidStateException",
        "KmsThrottlingException",
        "StateMachineDeleting",
        "StateMachineDoesNotExist",
        "ThrottlingException",
        "ValidationException",
    }
)
"""Errors of StartExecution that say for certain that no execution exists (API reference, StartExecution, Errors)."""


class StepFunctions:
    """Runs as executions.

    Parameters
    ----------
    client
        A boto3 Step Functions client.
    state_machines
        ARN of each tool's state machine, by the tool's name.
    """

    def __init__(self, client: SFNClient, state_machines: Mapping[str, str]) -> None:
        self._client = client
        self._state_machines = state_machines

    def start(self, tool: str, name: str, payload: dict[str, object], timeout_ms: int) -> str:
        """Start the execution `name`; its time-out stands in the state machine's definition.

        The same name and input while it runs answers with the same execution; a closed one of that
        name answers ExecutionAlreadyExists, which is as good: it was started (API reference,
        StartExecution, idempotence).

        Raises
        ------
        StartRefused, EngineUnavailable
            As in `Engine.start`.
        """
        machine = self._state_machines.get(tool)
        if machine is None:
            raise StartRefused(f"No state machine is configured for the tool {tool!r}.")
        body = json.dumps(payload, separators=(",", ":"), sort_keys=True)
        try:
            return self._client.start_execution(stateMachineArn=machine, name=name, input=body)["executionArn"]
        except ClientError as error:
            code = _code(error)
            if code == "ExecutionAlreadyExists":
                return _execution_arn(machine, name)
            if code in _REFUSALS:
                raise StartRefused(code) from error
            raise EngineUnavailable(code) from error
        except BotoCoreError as error:
            raise EngineUnavailable(type(error).__name__) from error

    def stop(self, tool: str, name: str) -> bool:
        """Stop the execution `name`. A Lambda that it invoked goes on until it looks for the flag.

        Raises
        ------
        EngineUnavailable
            It may or may not have been stopped.
        """
        machine = self._state_machines.get(tool)
        if machine is None:
            return True
        try:
            self._client.stop_execution(executionArn=_execution_arn(machine, name), error="Taskrail.Stopped")
        except ClientError as error:
            if _code(error) in ("ExecutionDoesNotExist", "InvalidArn"):
                return True
            raise EngineUnavailable(_code(error)) from error
        except BotoCoreError as error:
            raise EngineUnavailable(type(error).__name__) from error
        return True

    def describe(self, tool: str, name: str) -> RunReport:
        """How the execution `name` stands. DescribeExecution is eventually consistent.

        Raises
        ------
        EngineUnavailable
            No clear answer.
        """
        machine = self._state_machines.get(tool)
        if machine is None:
            return RunReport(RunState.NOT_FOUND)
        try:
            answer: Any = self._client.describe_execution(executionArn=_execution_arn(machine, name))
        except ClientError as error:
            if _code(error) in ("ExecutionDoesNotExist", "InvalidArn"):
                return RunReport(RunState.NOT_FOUND)
            raise EngineUnavailable(_code(error)) from error
        except BotoCoreError as error:
            raise EngineUnavailable(type(error).__name__) from error
        return RunReport(_STATES.get(answer["status"], RunState.RUNNING), answer.get("error"))


def report_of_event(detail: Mapping[str, Any]) -> RunReport:
    """The account in the detail of a "Step Functions Execution Status Change" event.

    Parameters
    ----------
    detail
        The event's ``detail``, as EventBridge delivers it. Its ``cause`` is left alone: it carries traces.
    """
    error = detail.get("error")
    return RunReport(
        _STATES.get(str(detail.get("status")), RunState.RUNNING), error if isinstance(error, str) else None
    )


def _execution_arn(machine: str, name: str) -> str:
    return f"{machine.replace(':stateMachine:', ':execution:', 1)}:{name}"


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", "Unknown"))
