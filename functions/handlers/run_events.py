"""EventBridge → the end of a run: the second line, beside the worker's own report.

Takes "Step Functions Execution Status Change" events. They are best effort, come late, twice and in
any order; the rail lets whatever no longer matters fall off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from taskrail.engines import parse_run_name
from taskrail.engines.step_functions import report_of_event

if TYPE_CHECKING:
    from taskrail.runtime import Runtime

Handler = Callable[[dict[str, Any], Any], None]


def bind(runtime: Runtime) -> Handler:
    """The handler over a given runtime.

    Parameters
    ----------
    runtime
        Whose tasks are settled.
    """

    def handle(event: dict[str, Any], context: Any) -> None:
        detail = event.get("detail")
        if event.get("detail-type") != "Step Functions Execution Status Change" or not isinstance(detail, dict):
            return
        run = parse_run_name(str(detail.get("name", "")))
        if run is not None:
            runtime.rail.run_ended(*run, report_of_event(detail))

    return handle


def __getattr__(name: str) -> Handler:
    """`handler`, for Lambda: made when Lambda looks for it, so that others can import `bind` anywhere."""
    if name != "handler":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from catalogue import server
    from taskrail.runtime import from_environment

    made = globals()["handler"] = bind(from_environment(server))
    return made
