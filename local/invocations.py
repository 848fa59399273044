"""Lambda on this machine: a job that is invoked without a state machine is a process, tried again as Lambda would.

What differs from Lambda: there is no queue, so that a run begins at once; the pause before another attempt is as
long as a worker's lease in place of one minute and two; and a run that is invoked once more stays the one process.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from local.engine import Jobs
from local.stack import ACCOUNT, REGION
from taskrail import clock
from taskrail.engines import RunOrder, RunState
from taskrail.engines.lambda_functions import Invocations
from taskrail.server import Tool

_ERROR_TYPES = {RunState.FAILED: "Runtime.ExitError", RunState.TIMED_OUT: "Sandbox.Timedout"}

log = logging.getLogger("taskrail.local")


def request_id(name: str) -> str:
    """The id of the invocation that does a run: every attempt of it has the same."""
    return str(uuid5(NAMESPACE_URL, f"request:{name}"))


class LocalLambda(Invocations):
    """Lambda without a state machine, on this machine: each run is a process under the supervisor.

    As in AWS, nobody can ask how an invocation stands, and nobody can stop one.

    Parameters
    ----------
    jobs
        Where the processes are.
    tools
        By name.
    """

    def __init__(self, jobs: Jobs, tools: Mapping[str, Tool]) -> None:
        self._jobs = jobs
        self._tools = tools

    def start(self, order: RunOrder) -> str:
        """Invoke the tool's job, as `Engine.start`; the same name is the same invocation.

        Raises
        ------
        StartRefused, EngineUnavailable
            As there.
        """
        tool = self._tools.get(order.tool)
        attempts = 1 if tool is None or tool.runs_on is None else tool.runs_on.attempts
        self._jobs.start(order, request_id(order.name), engine="lambda", attempts=attempts)
        return order.name


def record_of(end: Mapping[str, Any]) -> dict[str, Any] | None:
    """What Lambda sends to a function's failure destination when it gives an invocation up.

    Its form is the one in the Lambda Developer Guide, "Capturing records of Lambda asynchronous invocations".

    Parameters
    ----------
    end
        The supervisor's account of a run that is over.

    Returns
    -------
    dict or None
        None for a run that ended well, or with the stack: nobody is told of those.
    """
    error_type = _ERROR_TYPES.get(RunState(end["state"]))
    if error_type is None:
        return None
    function = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{end['tool']}:$LATEST"
    said = end["reason"] or "its process vanished"
    return {
        "version": "1.0",
        "timestamp": clock.iso(end["endedAt"]),
        "requestContext": {
            "requestId": end["runId"],
            "functionArn": function,
            "condition": "RetriesExhausted",
            "approximateInvokeCount": end["attempt"],
        },
        "requestPayload": dict(end["payload"]),
        "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
        "responsePayload": {
            "errorType": error_type,
            "errorMessage": f"RequestId: {end['runId']} Error: Runtime exited with error: {said}",
        },
    }
