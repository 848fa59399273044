"""What an engine tells of a run → its task: the second line, beside the worker's own report.

Takes "Step Functions Execution Status Change" events, which are best effort, "Batch Job State Change" events, which
are durable, and the records of Lambda functions whose invocation came to nothing. All of them come late, twice and in
any order; the rail lets whatever no longer matters fall off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from taskrail.engines import RunReport, parse_run_name
from taskrail.engines.batch import report_of_job
from taskrail.engines.lambda_functions import report_of_record
from taskrail.engines.step_functions import report_of_event
from taskrail.loading import made_late

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
        told = _told(event)
        if told is None:
            return
        engine, name, report = told
        run = parse_run_name(name)
        if run is not None:
            runtime.rail.run_heard(*run, report, engine)

    return handle


def _told(event: Mapping[str, Any]) -> tuple[str, str, RunReport] | None:
    """An engine, the name of a run, and what is said of it; None for what is no run."""
    kind, detail = event.get("detail-type"), event.get("detail")
    if "requestContext" in event and kind is None:
        # Sent straight to this function, not by way of EventBridge.
        told = report_of_record(event)
        return None if told is None else ("lambda", *told)
    if not isinstance(detail, Mapping):
        return None
    if kind == _EXECUTION:
        report = report_of_event(detail)
        # That an execution began is no news: only its end is.
        return ("step_functions", str(detail.get("name", "")), report) if report.ended else None
    if kind == _JOB:
        job = report_of_job(detail)
        return None if job is None else ("batch", str(detail.get("jobName", "")), job)
    return None


def _handler() -> Handler:
    from catalogue import server
    from taskrail.runtime import from_environment

    return bind(from_environment(server))


__getattr__ = made_late(__name__, handler=_handler)
