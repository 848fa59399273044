"""Asynchronous invocation → one attempt of a Python job.

The event is what the engine put into Lambda's queue::

    {"taskId": "…", "run": 1}

An attempt that cannot reach its task raises, so that Lambda tries again as often as the function is configured to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

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
        task_id, run = event["taskId"], event["run"]
        # Every delivery of an event has its id; what is invoked once more has another.
        outcome = run_attempt(
            runtime.rail.reports,
            runtime.server,
            task_id=task_id,
            run=run,
            run_id=context.aws_request_id,
            attempt=None,
            remaining_ms=context.get_remaining_time_in_millis,
        )
        return {"taskId": task_id, "run": run, "outcome": outcome}

    return handle


def _handler() -> Handler:
    from catalogue import server
    from taskrail.runtime import worker_from_environment

    return bind(worker_from_environment(server))


__getattr__ = made_late(__name__, handler=_handler)
