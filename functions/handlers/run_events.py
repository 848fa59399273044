"""EventBridge → what an engine tells of a run: the second line, beside the worker's own report.

Takes "Step Functions Execution Status Change" events, which are best effort, and "Batch Job State Change" events,
which are durable. Both come late, twice and in any order; the rail lets whatever no longer matters fall off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from taskrail.engines import RunReport, parse_run_name
from taskrail.engines.batch import report_of_job
from taskrail.engines.step_functions import report_of_event

if TYPE_CHECKING:
    from taskrail.runtime import Runtime

Handler = Callable[[dict[str, Any], Any], None]

_EXECUTION = "Step Functions Execution Status Change"
_JOB = "Batch Job State Change"


def bind(runtime: Runtime) -> Handler:
    """The handler over a given runtime.

    Parameters
    ----------
    runtime
        Whose tasks are told.
    """

    def handle(event: dict[str, Any], context: Any) -> None:
        detail = event.get("detail")
        if not isinstance(detail, Mapping):
            return
        told = _told(event.get("detail-type"), detail)
        if told is None:
            return
        run = parse_run_name(told[0])
        if run is not None:
            runtime.rail.run_heard(*run, told[1])

    return handle


def _told(kind: object, detail: Mapping[str, Any]) -> tuple[str, RunReport] | None:
    """The name of a run, and what its engine says of it; None for what is no run."""
    if kind == _EXECUTION:
        report: RunReport | None = report_of_event(detail)
        # That an execution began is no news: only its end is.
        return (str(detail.get("name", "")), report) if report is not None and report.ended else None
    if kind == _JOB:
        report = report_of_job(detail)
        return None if report is None else (str(detail.get("jobName", "")), report)
    return None


def __getattr__(name: str) -> Handler:
    """`handler`, for Lambda: made when Lambda looks for it, so that others can import `bind` anywhere."""
    if name != "handler":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from catalogue import server
    from taskrail.runtime import from_environment

    made = globals()["handler"] = bind(from_environment(server))
    return made
