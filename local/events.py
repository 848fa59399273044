"""The local EventBridge, and Lambda's failure destination: tells `handlers.run_events` how each run ended.

A process of its own, so that neither the catalogue's code nor a slow table can hold up the
supervisor. What it has not passed on when it dies, its successor passes on: the supervisor's
records say what is due.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from local.child import Wiring, vanish, when_cut
from local.engine import Line, execution_arn
from local.http_event import Invocation
from local.invocations import record_of
from local.stack import ACCOUNT, REGION
from taskrail import clock
from taskrail.engines import RunState
from taskrail.engines.batch import STOPPED
from taskrail.errors import EngineUnavailable

TRIES = 5
"""Deliveries of one event; after that the next read of the task settles it."""

_STATUS = {
    RunState.SUCCEEDED: "SUCCEEDED",
    RunState.FAILED: "FAILED",
    RunState.TIMED_OUT: "TIMED_OUT",
    RunState.STOPPED: "ABORTED",
}

_REASON = {
    RunState.SUCCEEDED: "Essential container in task exited",
    RunState.FAILED: "Essential container in task exited",
    RunState.TIMED_OUT: "Job attempt duration exceeded timeout",
    RunState.STOPPED: STOPPED,
}

_LOST = "Host EC2 (instance i-00000000000000000) terminated."

log = logging.getLogger("taskrail.local")


def event_of(end: Mapping[str, Any]) -> dict[str, Any] | None:
    """What is told when a run ends: the event of Step Functions or of AWS Batch, or the record of Lambda.

    Parameters
    ----------
    end
        The supervisor's account of a run that is over.

    Returns
    -------
    dict or None
        None where nobody is told: Lambda tells only of invocations that it gave up.
    """
    if end["engine"] == "lambda":
        return record_of(end)
    return _job(end) if end["engine"] == "batch" else _execution(end)


def told(detail: Mapping[str, Any]) -> dict[str, Any]:
    """The event that an execution in the local AWS has ended.

    Parameters
    ----------
    detail
        Its ``detail``, from `local.moto_workflows`.
    """
    return _event("Step Functions Execution Status Change", detail["executionArn"], detail["stopDate"], detail)


def _event(kind: str, arn: str, at: int, detail: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "version": "0",
        "id": str(uuid4()),
        "detail-type": kind,
        "source": "aws.batch" if kind.startswith("Batch") else "aws.states",
        "account": ACCOUNT,
        "time": clock.iso(at),
        "region": REGION,
        "resources": [arn],
        "detail": dict(detail),
    }


def _execution(end: Mapping[str, Any]) -> dict[str, Any]:
    tool, name = end["tool"], end["name"]
    detail = {
        "executionArn": execution_arn(tool, name),
        "stateMachineArn": f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:{tool}",
        "name": name,
        "status": _STATUS[RunState(end["state"])],
        "startDate": end["startedAt"],
        "stopDate": end["endedAt"],
        "input": json.dumps(end["payload"], separators=(",", ":"), sort_keys=True),
        "output": None,
    }
    if end["reason"] is not None:
        detail |= {"error": end["reason"], "cause": f"The job process ended: {end['reason']}."}
    return told(detail)


def _job(end: Mapping[str, Any]) -> dict[str, Any]:
    """A "Batch Job State Change" (AWS Batch User Guide, "AWS Batch events"; DescribeJobs has the same fields)."""
    succeeded = RunState(end["state"]) is RunState.SUCCEEDED
    code = "0" if succeeded else str(end["reason"]).removeprefix("exit code ")
    exit_code = {"exitCode": int(code)} if code.isdecimal() else {}
    lost = RunState(end["state"]) is RunState.FAILED and not exit_code
    why = _LOST if lost else _REASON[RunState(end["state"])]
    seen = {"logStreamName": end["name"], "networkInterfaces": [], **exit_code}
    arn = f"arn:aws:batch:{REGION}:{ACCOUNT}:job/{end['runId']}"
    detail = {
        "jobArn": arn,
        "jobName": end["name"],
        "jobId": end["runId"],
        "jobQueue": f"arn:aws:batch:{REGION}:{ACCOUNT}:job-queue/local",
        "status": "SUCCEEDED" if succeeded else "FAILED",
        "attempts": [
            {
                "container": seen,
                "startedAt": end["attemptAt"],
                "stoppedAt": end["endedAt"],
                "statusReason": why,
            }
        ]
        * end["attempt"],
        "statusReason": why,
        "createdAt": end["startedAt"],
        "startedAt": end["attemptAt"],
        "stoppedAt": end["endedAt"],
        "retryStrategy": {"attempts": end["attempts"], "evaluateOnExit": []},
        "dependsOn": [],
        "jobDefinition": f"arn:aws:batch:{REGION}:{ACCOUNT}:job-definition/{end['tool']}:1",
        "parameters": {},
        "container": {
            "command": end["command"],
            "volumes": [],
            "environment": [],
            "mountPoints": [],
            "ulimits": [],
            "resourceRequirements": [],
            "secrets": [],
            **seen,
        },
        "timeout": {"attemptDurationSeconds": max(1, end["timeoutMs"] // 1000)},
        "tags": {},
        "propagateTags": False,
        "platformCapabilities": [],
        "eksAttempts": [],
    }
    return _event("Batch Job State Change", arn, end["endedAt"], detail)


class Deliveries:
    """Takes ends from the supervisor, one after the other, and delivers each.

    Parameters
    ----------
    engine
        The line to the supervisor.
    handler
        Takes an event and a context; what it raises makes the delivery fail.
    time
        The time.
    """

    def __init__(self, engine: Line, handler: Callable[[dict[str, Any], Any], Any], time: clock.Clock) -> None:
        self._engine = engine
        self._handler = handler
        self._time = time

    def one(self) -> bool:
        """Wait a while for an end and deliver it; whether there was one."""
        try:
            end = self._engine.ask({"do": "ended"}).get("ok")
        except EngineUnavailable:
            # The supervisor is being started again.
            self._time.sleep(100)
            return False
        if end is None:
            return False
        event = end.get("event") or event_of(end)
        if event is not None:
            self._deliver(event)
        try:
            self._engine.ask({"do": "reported", "name": end["name"]})
        except EngineUnavailable:
            # Delivered once more later, which EventBridge does too.
            return False
        return True

    def _deliver(self, event: dict[str, Any]) -> None:
        for attempt in range(TRIES):
            try:
                self._handler(event, Invocation(str(uuid4()), self._time))
                return
            except Exception:
                log.info("the end of a run could not be passed on", exc_info=True)
                self._time.sleep(200 * 2**attempt)
        log.warning("the end of a run was not passed on; the next read of its task settles it")


def main(argv: Sequence[str]) -> None:
    """Be the local EventBridge of a stack."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    wiring = Wiring.of(argv)
    stack = wiring.stack
    when_cut(wiring.lifeline, lambda: vanish(stack))
    logging.basicConfig(
        format="%(message)s", level=logging.INFO if stack.verbose else logging.WARNING, stream=sys.stderr
    )
    logging.getLogger("botocore").setLevel(logging.WARNING)
    from handlers.run_events import bind
    from local.assemble import runtime_of

    deliveries = Deliveries(Line(stack.socket, within=20.0), bind(runtime_of(stack)), clock.SystemClock())
    wiring.ready()
    while True:
        deliveries.one()


if __name__ == "__main__":
    main(sys.argv[1:])
