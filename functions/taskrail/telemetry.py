"""What a deployment tells of itself: one line of JSON per request and per turn of a task, which are its metrics too.

A line with an ``_aws`` member is read by CloudWatch as metrics (Embedded Metric Format), so that none of this is
a call of its own. A line names methods, tools, statuses, durations, task ids and a hash of the owner; it never
holds an argument, an answer, a result, a token or a claim.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from taskrail.clock import iso
from taskrail.task import Task

NAMESPACE = "Taskrail"

_log = logging.getLogger("taskrail.telemetry")

Line = Mapping[str, Any]


class JsonLines(logging.Formatter):
    """Formats log records as JSON, one line each; what is a line of JSON already stays as it is."""

    def format(self, record: logging.LogRecord) -> str:
        """One line for a record."""
        if record.name == _log.name and not record.exc_info:
            return record.getMessage()
        told: dict[str, Any] = {
            "time": iso(int(record.created * 1_000)),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        request_id = getattr(record, "aws_request_id", None)
        if request_id is not None:
            told["requestId"] = request_id
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps(told, separators=(",", ":"))


def configure() -> None:
    """Let a Lambda function log in JSON lines; called once, when its handler is made."""
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(logging.StreamHandler())
    for handler in root.handlers:
        handler.setFormatter(JsonLines())
    logging.getLogger("taskrail").setLevel(logging.INFO)
    # The SDK tells of requests and their parameters where it is asked for more.
    logging.getLogger("botocore").setLevel(logging.WARNING)


class Telemetry:
    """Writes lines.

    Parameters
    ----------
    write
        Takes a line; the log when left out.
    deployment
        Name of the deployment, a dimension of every metric: an account may have several.
    """

    def __init__(self, write: Callable[[Line], object] | None = None, deployment: str | None = None) -> None:
        self._write = write or _to_the_log
        self._common = {} if deployment is None else {"deployment": deployment}

    def request(
        self,
        *,
        now: int,
        method: str | None,
        tool: str | None,
        status: int,
        error: int | None,
        duration_ms: int,
        task_id: str | None,
        owner: str | None,
        traceparent: str | None,
    ) -> None:
        """One request was answered.

        Parameters
        ----------
        now
            Milliseconds since the epoch.
        method, tool
            What was asked for, as far as it was understood.
        status, error
            HTTP status, and the code of a JSON-RPC error.
        duration_ms
            How long it took, in milliseconds.
        task_id, owner, traceparent
            Which task it was about, whose, and the caller's trace.
        """
        told: dict[str, Any] = {
            "event": "request",
            "method": method,
            "tool": tool,
            "status": status,
            "error": error,
            "taskId": task_id,
            "owner": None if owner is None else owner_mark(owner),
            "traceId": trace_id(traceparent),
        }
        metrics = {"Requests": 1, "RequestErrors": int(status >= 500), "Duration": duration_ms}
        self._line(now, told, metrics, (("method",), ()), {"Duration": "Milliseconds"})

    def created(self, task: Task, now: int) -> None:
        """A task was made."""
        self._task(task, now, "created", {"TasksCreated": 1})

    def changed(self, old: Task, new: Task, now: int) -> None:
        """A task was changed; only its turns are told: a first progress, a question, an answer, its end.

        Parameters
        ----------
        old, new
            Before and after.
        now
            Milliseconds since the epoch.
        """
        waited, waits = old.outstanding, new.outstanding
        opened = len(waits.keys() - waited.keys())
        closed = waited.keys() - waits.keys()
        if opened:
            self._task(new, now, "asked", {"QuestionsOpened": opened})
        if closed:
            turn = "answered" if closed <= new.answers.keys() else "unanswered"
            self._task(new, now, turn, {"QuestionsClosed": len(closed)})
        if old.progress is None and new.progress is not None and new.open:
            self._task(new, now, "progress", {"TimeToFirstProgress": now - new.created_at})
        if old.open and not new.open:
            self._task(new, now, "ended", {"TasksEnded": 1, "TimeToEnd": now - new.created_at}, by_status=True)

    def repaired(self, task: Task, now: int, what: str) -> None:
        """A read had to make up for something that got lost.

        Parameters
        ----------
        task, now
            Which task, and when.
        what
            ``started``, ``settled``, ``stopped`` or ``passed_on``.
        """
        self._task(task, now, f"repair_{what}", {"Repairs": 1})

    def _task(self, task: Task, now: int, turn: str, metrics: Mapping[str, float], *, by_status: bool = False) -> None:
        told = {
            "event": f"task_{turn}",
            "taskId": task.task_id,
            "tool": task.tool,
            "engine": task.engine,
            "taskStatus": task.status.value,
            "run": task.run,
            "attempt": task.attempt,
            "owner": owner_mark(task.owner),
            "traceId": trace_id(task.traceparent),
        }
        dimensions: tuple[tuple[str, ...], ...] = (("tool",), ())
        if by_status:
            dimensions = (("tool", "taskStatus"), ("taskStatus",), *dimensions)
        units = {name: "Milliseconds" for name in metrics if name.startswith("TimeTo")}
        self._line(now, told, metrics, dimensions, units)

    def _line(
        self,
        now: int,
        told: Mapping[str, Any],
        metrics: Mapping[str, float],
        dimensions: Sequence[Sequence[str]],
        units: Mapping[str, str],
    ) -> None:
        known = {**self._common, **{name: value for name, value in told.items() if value is not None}}
        usable = [[*self._common, *names] for names in dimensions if all(name in known for name in names)]
        directive = {
            "Namespace": NAMESPACE,
            "Dimensions": usable,
            "Metrics": [{"Name": name, "Unit": units.get(name, "Count")} for name in metrics],
        }
        self._write({"_aws": {"Timestamp": now, "CloudWatchMetrics": [directive]}, **known, **metrics})


def _to_the_log(line: Line) -> None:
    if _log.isEnabledFor(logging.INFO):
        _log.info("%s", json.dumps(line, separators=(",", ":")))


def owner_mark(owner: str) -> str:
    """What stands for an owner in a log: enough to tell callers apart, not to name one."""
    return hashlib.sha256(owner.encode()).hexdigest()[:12]


def trace_id(traceparent: str | None) -> str | None:
    """The trace that a W3C ``traceparent`` belongs to."""
    return None if traceparent is None else traceparent.split("-")[1]


def xray_header(traceparent: str | None) -> str | None:
    """The same trace as AWS X-Ray writes it, so that an execution's trace joins the caller's.

    Parameters
    ----------
    traceparent
        Well formed (the wire refuses others); None for none.

    Returns
    -------
    str or None
        ``Root=1-…;Parent=…;Sampled=…`` (X-Ray developer guide, "Tracing header").
    """
    if traceparent is None:
        return None
    _, trace, parent, flags = traceparent.split("-")
    return f"Root=1-{trace[:8]}-{trace[8:]};Parent={parent};Sampled={int(flags, 16) & 1}"
