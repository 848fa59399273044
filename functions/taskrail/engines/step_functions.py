"""Step Functions as an engine: one execution of a Standard state machine per run."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from botocore.exceptions import BotoCoreError, ClientError

from taskrail.engines import RunOrder, RunReport, RunState
from taskrail.engines.adopted import Adopted
from taskrail.errors import EngineUnavailable, StartRefused
from taskrail.telemetry import xray_header

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient

_log = logging.getLogger("taskrail")

_STATES: Mapping[str, RunState] = {
    "RUNNING": RunState.RUNNING,
    "PENDING_REDRIVE": RunState.RUNNING,
    "SUCCEEDED": RunState.SUCCEEDED,
    "FAILED": RunState.FAILED,
    "TIMED_OUT": RunState.TIMED_OUT,
    "ABORTED": RunState.STOPPED,
}

_THROTTLES = frozenset({"KmsThrottlingException", "ThrottlingException"})
"""Refusals that say nothing of an earlier try of the same call, whose answer may have got lost."""

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

_WAITS_NO_MORE = frozenset({"TaskTimedOut", "TaskDoesNotExist", "InvalidToken", "InvalidOutput"})
"""Errors of SendTaskSuccess after which nothing would be different another time."""

_TOLD = "ToolError"
"""Name of the error whose cause is meant for the caller."""


class StepFunctions:
    """Runs as executions.

    Parameters
    ----------
    client
        A boto3 Step Functions client.
    state_machines
        By the tool's name its state machine: an ARN, or ``tag:key=value``.
    adopted
        Looks tags up; not needed where all are ARNs.
    """

    records_ids: ClassVar[bool] = False
    stops_gently: ClassVar[bool] = False
    by_lease: ClassVar[bool] = False

    def __init__(self, client: SFNClient, state_machines: Mapping[str, str], adopted: Adopted | None = None) -> None:
        self._client = client
        self._state_machines = state_machines
        self._adopted = adopted

    def start(self, order: RunOrder) -> str:
        """Start the execution; its time-out stands in the state machine's definition.

        The same name and input while it runs answers with the same execution; a closed one of that
        name answers ExecutionAlreadyExists, which is as good: it was started (API reference,
        StartExecution, idempotence).

        Raises
        ------
        StartRefused, EngineUnavailable
            As in `Engine.start`.
        """
        try:
            machine = self._machine(order.tool)
        except EngineUnavailable as error:
            raise StartRefused(str(error)) from error
        if machine is None:
            raise StartRefused(f"No state machine is configured for the tool {order.tool!r}.")
        body = json.dumps(order.input, separators=(",", ":"), sort_keys=True)
        trace = xray_header(order.traceparent)
        more: Any = {} if trace is None else {"traceHeader": trace}
        try:
            started = self._client.start_execution(stateMachineArn=machine, name=order.name, input=body, **more)
            return started["executionArn"]
        except ClientError as error:
            code = _code(error)
            if code == "ExecutionAlreadyExists":
                return _execution_arn(machine, order.name)
            if code in _REFUSALS and not (code in _THROTTLES and _was_repeated(error)):
                raise StartRefused(code) from error
            raise EngineUnavailable(code) from error
        except BotoCoreError as error:
            raise EngineUnavailable(type(error).__name__) from error

    def stop(self, tool: str, name: str, run_id: str | None) -> bool:
        """Stop the execution. A Lambda that it invoked goes on until it looks for the flag.

        Raises
        ------
        EngineUnavailable
            It may or may not have been stopped.
        """
        execution = self._execution(tool, name, run_id)
        if execution is None:
            return True
        try:
            self._client.stop_execution(executionArn=execution, error="Taskrail.Stopped")
        except ClientError as error:
            if _code(error) in ("ExecutionDoesNotExist", "InvalidArn"):
                return True
            raise EngineUnavailable(_code(error)) from error
        except BotoCoreError as error:
            raise EngineUnavailable(type(error).__name__) from error
        return True

    def describe(self, tool: str, name: str, run_id: str | None) -> RunReport:
        """How the execution stands. DescribeExecution is eventually consistent.

        Raises
        ------
        EngineUnavailable
            No clear answer.
        """
        execution = self._execution(tool, name, run_id)
        if execution is None:
            return RunReport(RunState.NOT_FOUND)
        try:
            answer: Any = self._client.describe_execution(executionArn=execution)
        except ClientError as error:
            if _code(error) in ("ExecutionDoesNotExist", "InvalidArn"):
                return RunReport(RunState.NOT_FOUND)
            raise EngineUnavailable(_code(error)) from error
        except BotoCoreError as error:
            raise EngineUnavailable(type(error).__name__) from error
        return report_of_event(answer)

    def resume(self, token: str, output: str) -> None:
        """End the wait of a state that was given a task token (SendTaskSuccess).

        Raises
        ------
        EngineUnavailable
            It may or may not have been ended.
        """
        try:
            self._client.send_task_success(taskToken=token, output=output)
        except ClientError as error:
            if _code(error) not in _WAITS_NO_MORE:
                raise EngineUnavailable(_code(error)) from error
            _log.info("a state no longer waits for the answer that came (%s)", _code(error))
        except BotoCoreError as error:
            raise EngineUnavailable(type(error).__name__) from error

    def log_tail(self, tool: str, log: str, lines: int) -> tuple[str, ...]:
        """Nothing: executions have no log of their own."""
        return ()

    def _machine(self, tool: str) -> str | None:
        reference = self._state_machines.get(tool)
        return reference if reference is None or self._adopted is None else self._adopted.state_machine(reference)

    def _execution(self, tool: str, name: str, run_id: str | None) -> str | None:
        """The ARN of a run's execution. One that is known stays right whatever a tag says by now."""
        if run_id is not None and ":execution:" in run_id and run_id.endswith(f":{name}"):
            return run_id
        try:
            machine = self._machine(tool)
        except StartRefused as error:
            raise EngineUnavailable(str(error)) from error
        return None if machine is None else _execution_arn(machine, name)


def report_of_event(detail: Mapping[str, Any]) -> RunReport:
    """The account in the detail of a "Step Functions Execution Status Change" event.

    Parameters
    ----------
    detail
        The event's ``detail``, as EventBridge delivers it, or the answer of DescribeExecution, which has the
        same fields. Its ``cause`` is left alone, as it carries traces, unless the error says that it is told.
    """
    state = _STATES.get(str(detail.get("status")), RunState.RUNNING)
    error = _text(detail.get("error"))
    output = _text(detail.get("output"))
    included = (detail.get("outputDetails") or {}).get("included", True)
    return RunReport(
        state,
        error,
        run_id=_text(detail.get("executionArn")),
        output=output if included else None,
        whole=bool(included) or state is not RunState.SUCCEEDED,
        told=_told(_text(detail.get("cause"))) if error == _TOLD else None,
    )


def _told(cause: str | None) -> str | None:
    """The text of a cause; a function's has it as ``errorMessage``, among its trace."""
    try:
        parsed = json.loads(cause or "")
    except (ValueError, RecursionError):
        return cause
    if not isinstance(parsed, dict) or not {"errorMessage", "stackTrace"} & parsed.keys():
        return cause
    return _text(parsed.get("errorMessage"))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _execution_arn(machine: str, name: str) -> str:
    return f"{machine.replace(':stateMachine:', ':execution:', 1)}:{name}"


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", "Unknown"))


def _was_repeated(error: ClientError) -> bool:
    metadata: Any = error.response.get("ResponseMetadata", {})
    return bool(metadata.get("RetryAttempts", 0))
