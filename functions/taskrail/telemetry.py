"""What a deployment tells of itself: one line of JSON per request and per turn of a task, which are its metrics too.

A line with an ``_aws`` member is read by CloudWatch as metrics (Embedded Metric Format), so that none of this is
a call of its own. A line names methods, tools, statuses, durations, task ids and a hash of the owner; it never
holds an argument, an answer, a result, a token or a claim.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from taskrail.clock import iso
from taskrail.task import Task

NAMESPACE = "Taskrail"

_log = logging.getLogger("taskrail.telemetry")

_LONGEST_ESCAPE = 12
"""Bytes that JSON in ASCII makes of one character at most."""

_LARGEST_CODE = 2**53 - 1
"""A tool chooses the code of its protocol errors, and Python's whole numbers know no end."""

Line = Mapping[str, Any]
Dimensions = tuple[tuple[str, ...], ...]
Described = tuple[list[dict[str, Any]], str]
"""What CloudWatch is told of the metrics of a line (Embedded Metric Format, "CloudWatchMetrics"), and the same as JSON:
most of a line, and alike in every line of a kind."""

_ALL: Dimensions = ((),)
_BY_METHOD: Dimensions = (("method",), ())
_BY_TOOL: Dimensions = (("tool",), ())
_BY_STATUS: Dimensions = (("tool", "taskStatus"), ("taskStatus",), ("tool",), ())
"""By what a line's metrics are told apart, besides the deployment."""

_DURATIONS = frozenset({"Duration", "TimeToEnd", "TimeToFirstProgress"})
"""Metrics in milliseconds; the others are counts."""

_ENCODER = json.JSONEncoder(separators=(",", ":"))


class JsonLines(logging.Formatter):
    """Formats log records as JSON, one line each; what is a line of JSON already stays as it is.

    A line has a bound, since the log is paid by the byte: an exception's text can be as long as what a caller sent.
    """

    LONGEST_MESSAGE = 2_000
    LONGEST_EXCEPTION = 12_000
    """Characters; of a longer text the middle is left out, so that the frames and the end of a trace remain."""

    LONGEST = _LONGEST_ESCAPE * (LONGEST_MESSAGE + LONGEST_EXCEPTION) + 500
    """Bytes of a line at most. CloudWatch Logs takes 256 KB."""

    def format(self, record: logging.LogRecord) -> str:
        """One line for a record."""
        if record.name == _log.name and not record.exc_info:
            return record.getMessage()
        told: dict[str, Any] = {
            "time": iso(int(record.created * 1_000)),
            "level": record.levelname,
            "logger": record.name,
            "message": _shortened(record.getMessage(), self.LONGEST_MESSAGE),
        }
        request_id = getattr(record, "aws_request_id", None)
        if request_id is not None:
            told["requestId"] = request_id
        if record.exc_info:
            told["exception"] = _shortened(self.formatException(record.exc_info), self.LONGEST_EXCEPTION)
        return json.dumps(told, separators=(",", ":"))


def configure() -> None:
    """Let a Lambda function log in JSON lines; called once, when its handler is made."""
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(logging.StreamHandler())
    for handler in root.handlers:
        handler.setFormatter(JsonLines())
    # A line tells none of where its call was made, by which thread and process: finding that out takes as long as
    # writing it (Python's Logging HOWTO, "Optimization").
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
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
        self._write = _to_the_log if write is None else _whole(write)
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
            "error": None if error is None else max(-_LARGEST_CODE, min(error, _LARGEST_CODE)),
            "taskId": task_id,
            "owner": None if owner is None else owner_mark(owner),
            "traceId": trace_id(traceparent),
        }
        metrics = {"Requests": 1, "RequestErrors": int(status >= 500), "Duration": duration_ms}
        self._line(now, told, metrics, _ALL if method is None else _BY_METHOD)

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
        self._line(now, told, metrics, _BY_STATUS if by_status else _BY_TOOL)

    def _line(self, now: int, told: Mapping[str, Any], metrics: Mapping[str, float], dimensions: Dimensions) -> None:
        line: dict[str, Any] = {"_aws": {"Timestamp": now}, **self._common}
        for name, value in told.items():
            if value is not None:
                line[name] = value
        line.update(metrics)
        self._write(line, _described((*self._common,), dimensions, (*metrics,)))


@lru_cache(maxsize=256)
def _described(common: tuple[str, ...], dimensions: Dimensions, metrics: tuple[str, ...]) -> Described:
    named = [{"Name": name, "Unit": "Milliseconds" if name in _DURATIONS else "Count"} for name in metrics]
    used = [[*common, *names] for names in dimensions]
    directives: list[dict[str, Any]] = [{"Namespace": NAMESPACE, "Dimensions": used, "Metrics": named}]
    return directives, _ENCODER.encode(directives)


def _shortened(text: str, most: int) -> str:
    """The text, or its beginning and its end with a note of what is left out between them."""
    if len(text) <= most:
        return text
    mark = f" … ({len(text) - most:,} characters left out) … "
    kept = (most - len(mark)) // 2
    return f"{text[:kept]}{mark}{text[-kept:]}"


def _to_the_log(line: dict[str, Any], metrics: Described) -> None:
    if _log.isEnabledFor(logging.INFO):
        moment = line.pop("_aws")["Timestamp"]
        rest = _ENCODER.encode(line)[1:]
        text = f'{{"_aws":{{"Timestamp":{moment},"CloudWatchMetrics":{metrics[1]}}},{rest}'
        _log.handle(_LineRecord(text, moment))


class _LineRecord(logging.LogRecord):
    """A record of a line: an ordinary one asks for the caller, the thread and the process, which no line tells."""

    def __init__(self, text: str, moment: int) -> None:
        # Not the base's own: that is what takes the time.
        vars(self).update(_BLANK)
        self.msg = text
        self.created, self.msecs = moment / 1_000, float(moment % 1_000)


_BLANK = vars(logging.LogRecord(_log.name, logging.INFO, __file__, 0, "", (), None))


def _whole(write: Callable[[Line], object]) -> Callable[[dict[str, Any], Described], object]:
    """What writes lines that are in one piece."""

    def written(line: dict[str, Any], metrics: Described) -> object:
        return write({**line, "_aws": {**line["_aws"], "CloudWatchMetrics": metrics[0]}})

    return written


@lru_cache(maxsize=1024)
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
