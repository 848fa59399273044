"""Lambda as an engine: one asynchronous invocation of the tool's function per run.

Lambda keeps an accepted event in a queue of its own, invokes the function, and again when it dies. It can neither be
asked how that stands nor be told to stop: a worker that is at work renews a lease on its task, and the function's
failure destination tells of what died (`report_of_record`). An event may come twice, and a run may be invoked twice:
whoever claims the run first does it, and everything else finds nothing to do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from botocore.exceptions import BotoCoreError, ClientError

from taskrail.engines import RunOrder, RunReport, RunState, run_name
from taskrail.errors import EngineUnavailable, StartRefused

_THROTTLES = frozenset({"ThrottlingException", "TooManyRequestsException"})
"""Refusals that say nothing of an earlier try of the same call, whose answer may have got lost."""

_REFUSALS = frozenset(
    {
        "AccessDeniedException",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidParameterValueException",
        "InvalidRequestContentException",
        "InvalidSignatureException",
        "KMSAccessDeniedException",
        "KMSDisabledException",
        "KMSInvalidStateException",
        "KMSNotFoundException",
        "MissingAuthenticationTokenException",
        "OptInRequired",
        "RecursiveInvocationException",
        "RequestExpired",
        "RequestTooLargeException",
        "ResourceConflictException",
        "ResourceNotFoundException",
        "ResourceNotReadyException",
        "SerializedRequestEntityTooLargeException",
        "ThrottlingException",
        "TooManyRequestsException",
        "UnrecognizedClientException",
        "UnsupportedMediaTypeException",
        "ValidationException",
    }
)
"""Errors of Invoke after which no event is queued (API reference, Invoke, Errors, and Common Error Types)."""

_EXHAUSTED = "RetriesExhausted"
_DROPPED: Mapping[str, str] = {
    "EventAgeExceeded": "its event grew too old in Lambda's queue",
    "ZeroReservedConcurrency": "its function may not run at all: its reserved concurrency is zero",
}
"""Conditions of a failure record under which Lambda invoked nothing more, and what is told of them (Lambda Developer
Guide, "Capturing records of Lambda asynchronous invocations")."""

_TIMED_OUT = "Sandbox.Timedout"
_TIMED_OUT_TEXT = re.compile(r".{0,200}\bTask timed out after [0-9.]{1,20} seconds")
"""How Lambda's own message says so, where a record has no type. Its text goes nowhere."""
_TYPE = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,99}")
_REQUEST_ID = re.compile(r"[A-Za-z0-9-]{1,64}")
_TASK_ID = re.compile(r"[0-9a-f]{32}")
_MOST_RUNS = 999_999
_MOST_ATTEMPTS = 100


class Invocations:
    """What holds of asynchronous invocations wherever they run: only their task tells of them."""

    records_ids: ClassVar[bool] = False
    stops_gently: ClassVar[bool] = False
    by_lease: ClassVar[bool] = True

    def stop(self, tool: str, name: str, run_id: str | None) -> bool:
        """False: an invocation cannot be stopped. Its worker hears of a cancellation from its task."""
        return False

    def describe(self, tool: str, name: str, run_id: str | None) -> RunReport:
        """Nothing: an invocation cannot be asked for."""
        return RunReport(RunState.NOT_FOUND)

    def resume(self, token: str, output: str) -> None:
        """Nothing: no function waits with a task token."""

    def log_tail(self, tool: str, log: str, lines: int) -> tuple[str, ...]:
        """Nothing: a function's log belongs to all of its runs."""
        return ()


class LambdaFunctions(Invocations):
    """Runs as asynchronous invocations.

    Parameters
    ----------
    client
        A boto3 Lambda client.
    functions
        By the tool's name the ARN of its function.
    """

    def __init__(self, client: Any, functions: Mapping[str, str]) -> None:
        self._client = client
        self._functions = functions

    def start(self, order: RunOrder) -> str:
        """Have the run's event queued; once more is one invocation that finds nothing to do.

        Raises
        ------
        StartRefused, EngineUnavailable
            As in `Engine.start`.
        """
        function = self._functions.get(order.tool)
        if function is None:
            raise StartRefused(f"No function is configured for the tool {order.tool!r}.")
        body = json.dumps(order.input, separators=(",", ":"), sort_keys=True).encode()
        try:
            answer = self._client.invoke(FunctionName=function, InvocationType="Event", Payload=body)
            # There is nothing to read; what was read to its end gives its connection back.
            answer["Payload"].read()
        except ClientError as error:
            repeated = error.response.get("ResponseMetadata", {}).get("RetryAttempts", 0)
            code = str(error.response.get("Error", {}).get("Code", "Unknown"))
            # What an earlier try may have queued finds no task once its ticket is taken back.
            if code in _REFUSALS and not (code in _THROTTLES and repeated):
                raise StartRefused(code) from error
            raise EngineUnavailable(code) from error
        except BotoCoreError as error:
            raise EngineUnavailable(type(error).__name__) from error
        if answer["StatusCode"] != 202:
            raise EngineUnavailable(f"Invoke answered {answer['StatusCode']}")
        return order.name


def report_of_record(record: Mapping[str, Any]) -> tuple[str, RunReport] | None:
    """The name of a run, and the account of its end, in what Lambda sends to a function's failure destination.

    Parameters
    ----------
    record
        As Lambda sends it. Of what the function answered, only the error's type is taken: its message and its trace
        are the job's own.

    Returns
    -------
    tuple or None
        None for what is no such record, or none of a run of the kit's.
    """
    context, payload = _mapping(record.get("requestContext")), _mapping(record.get("requestPayload"))
    condition, request_id = context.get("condition"), context.get("requestId")
    task_id, run = payload.get("taskId"), payload.get("run")
    if not isinstance(condition, str) or (condition != _EXHAUSTED and condition not in _DROPPED):
        return None
    if not _matches(_REQUEST_ID, request_id) or not _matches(_TASK_ID, task_id):
        return None
    if not _number(run, _MOST_RUNS) or not run:
        return None
    name, run_id = run_name(str(task_id), run), str(request_id)
    if condition in _DROPPED:
        return name, RunReport(RunState.FAILED, _DROPPED[condition], run_id=run_id, attempt=0)
    count, answer = context.get("approximateInvokeCount"), _mapping(record.get("responsePayload"))
    kind = answer.get("errorType")
    reason = kind if _matches(_TYPE, kind) else None
    timed_out = reason == _TIMED_OUT or (reason is None and _matches(_TIMED_OUT_TEXT, answer.get("errorMessage")))
    attempt = count if _number(count, _MOST_ATTEMPTS) else 1
    return name, RunReport(RunState.TIMED_OUT if timed_out else RunState.FAILED, reason, run_id=run_id, attempt=attempt)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _number(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most
