"""Step Functions task → one attempt of a Python job.

The state machine hands over its input and what its context object says of the attempt::

    {"input": {"taskId": "…", "run": 1}, "retryCount": 0, "execution": "arn:aws:states:…"}
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from taskrail.engines import run_name
from taskrail.loading import made_late
from taskrail.worker import run_attempt

if TYPE_CHECKING:
    from taskrail.runtime import Runtime

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]


def bind(runtime: Runtime) -> Handler:
    """The handler over a given runtime.

    Parameters
    ----------
    runtime
        What the job reports to.
    """

    def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
        task_id, run = event["input"]["taskId"], event["input"]["run"]
        remaining = getattr(context, "get_remaining_time_in_millis", None)
        outcome = run_attempt(
            runtime.rail.reports,
            runtime.server,
            task_id=task_id,
            run=run,
            run_id=event.get("execution") or run_name(task_id, run),
            attempt=event.get("retryCount", 0) + 1,
            remaining_ms=remaining,
        )
        return {"taskId": task_id, "run": run, "outcome": outcome}

    return handle


def _handler() -> Handler:
    from catalogue import server
    from taskrail.runtime import worker_from_environment

    return bind(worker_from_environment(server))


__getattr__ = made_late(__name__, handler=_handler)
