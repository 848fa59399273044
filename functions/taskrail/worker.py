"""Inside a job: one attempt of one run, from its claim to its end.

Whatever happens to the job's code, its task learns of it here, or, when this process dies, from the
engine (`taskrail.rail.runs`).
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Mapping
from typing import IO, Any

from taskrail.calling import call_through
from taskrail.context import JobCancelled, RunSuperseded, RunSuspended, TaskContext
from taskrail.errors import (
    ArgumentsError,
    DeclarationError,
    PayloadGone,
    ProtocolError,
    QuestionError,
    StoreUnavailable,
    ToolError,
)
from taskrail.payloads import RESULT, dump
from taskrail.questions import Question
from taskrail.rail import endings, links
from taskrail.rail.changes import Move
from taskrail.rail.reports import Reports, RunLost
from taskrail.results import ResultError, error_result
from taskrail.server import TaskServer, Tool
from taskrail.task import Progress, Task

_log = logging.getLogger("taskrail")

_LOOK_EVERY_MS = 2_000
"""How long a worker that tells nothing goes without looking for the cancel flag."""
_TICK_S = 0.25
_LAST_WORDS_MS = 5_000
"""Time kept before the worker's own end, for saying that the time ran out."""
_LARGEST_NUMBER = sys.float_info.max
"""Python's whole numbers know no end; whoever reads one as JSON does."""


class RunChannel:
    """The line from a job to its task, over the rail.

    Parameters
    ----------
    reports
        The worker's side of the rail.
    task
        The task as the claim brought it.
    answer_within_ms
        How long an answer may take, in milliseconds.
    """

    def __init__(self, reports: Reports, task: Task, answer_within_ms: int) -> None:
        self._reports = reports
        self._task = task
        self._answer_within_ms = answer_within_ms
        self._heard_at = reports.clock.now()
        self._tried_at = 0
        self._pending: tuple[Progress | None, str | None] | None = None
        # The ticker reports beside the job's own code: one write at a time, each onto the last.
        self._lock = threading.RLock()
        self.over = False

    @property
    def task(self) -> Task:
        """The task as the worker last saw it."""
        return self._task

    def check(self) -> None:
        """Leave the job if it was cancelled or superseded."""
        with self._lock:
            if self.over:
                raise RunSuperseded
            self._listen()
            if self._task.cancel_requested_at is not None:
                raise JobCancelled

    def progress(self, done: float | None, total: float | None, message: str | None) -> None:
        """Tell how far the job is; written when it is due."""
        numbers = (
            None
            if done is None
            else Progress(_number("done", done), None if total is None else _number("total", total))
        )
        if message is None and numbers is not None:
            message = f"{numbers.done:g}" if numbers.total is None else f"{numbers.done:g} of {numbers.total:g}"
        with self._lock:
            self._pending = (numbers, message)
            self.flush()
            self.check()

    def flush(self) -> None:
        """Write the last told progress once it is due."""
        with self._lock:
            now = self._reports.clock.now()
            since = max(self._task.updated_at, self._tried_at)
            if self._pending is None or now - since < self._task.poll_interval(now) // 2:
                return
            numbers, message = self._pending
            if self._tell(lambda: self._reports.progress(self._task, numbers, message), must=False):
                self._pending = None

    def tick(self) -> None:
        """What the ticker does: write what is due, and listen when nothing was."""
        with self._lock:
            if self.over:
                return
            try:
                self.flush()
                self._listen()
            except RunSuperseded:
                self.over = True

    def step(self, name: str, outcome: str) -> None:
        """Remember a step's outcome."""
        with self._lock:
            self._tell(lambda: self._reports.step(self._task, name, outcome))

    def ask(self, questions: Mapping[str, Question], wait_ms: int) -> None:
        """Open questions; comes back only if all of them are answered within `wait_ms`."""
        with self._lock:
            hold = wait_ms > 0
            within = self._answer_within_ms
            self._tell(lambda: self._reports.ask(self._task, questions, within, hold=hold, first=self._last_told))
            self._pending = None
            if self._task.cancel_requested_at is not None:
                raise JobCancelled
            if hold:
                self._wait_for(questions, wait_ms)
            if any(key not in self._task.answers for key in questions):
                self.over = True
                raise RunSuspended

    def load(self, stored: str) -> Any:
        """The value of a stored text."""
        return self._reports.payloads.load(stored)

    def put(self, data: bytes | IO[bytes], mime_type: str, label: str) -> str:
        """Store a file under a new key; its pointer comes back."""
        if isinstance(data, bytes):
            return self._reports.payloads.put_bytes(self._task, label, data, mime_type)
        return self._reports.payloads.put_file(self._task, label, data, mime_type)

    def open_input(self, uri: str) -> IO[bytes]:
        """A document under the caller's own input prefix."""
        return self._reports.payloads.open_input(uri, self._task.owner)

    def finish(self, move: Move) -> bool:
        """The terminal write; False when somebody else's had come first."""
        with self._lock:
            self.over = True
            try:
                self._task = self._reports.finish(self._task, lambda t: move(self._last_told(t)))
            except RunLost:
                return False
            return True

    def store_result(self, result: dict[str, Any]) -> str:
        """The stored text of a CallToolResult, its oversized parts put into the bucket."""
        fitted = links.fitted(result, self.put)
        return self._reports.payloads.keep(self._task, "result", dump(fitted), RESULT)

    def store_error(self, error: dict[str, Any]) -> str:
        """The stored text of a JSON-RPC error; of one that no answer could carry, the code and a text remain."""
        text = dump(error)
        if links.escaped_size(text) > links.LARGEST_RESULT:
            text = dump(endings.rpc_error(error["code"], "The tool's error is too large to be sent."))
        return self._reports.payloads.keep(self._task, "error", text, RESULT)

    def _last_told(self, task: Task) -> Task:
        """The task with the progress that was told but not due yet: the next write takes it along."""
        if self._pending is None:
            return task
        return task.reported(*self._pending, self._reports.clock.now())

    def _listen(self) -> None:
        """Look for the cancel flag when nothing was heard for a while."""
        if self._reports.clock.now() - max(self._heard_at, self._tried_at) >= _LOOK_EVERY_MS:
            self._tell(lambda: self._reports.look(self._task), must=False)

    def _wait_for(self, questions: Mapping[str, Question], wait_ms: int) -> None:
        until = self._reports.clock.now() + wait_ms
        while any(key not in self._task.answers for key in questions):
            left = until - self._reports.clock.now()
            if left <= 0:
                self._tell(lambda: self._reports.let_go(self._task))
                return
            self._reports.clock.sleep(min(left, 500))
            self._tell(lambda: self._reports.look(self._task), must=False)

    def _tell(self, report: Callable[[], Task], *, must: bool = True) -> bool:
        try:
            known, self._task = self._task, report()
            # A report that changed nothing made no call: nothing was heard.
            if self._task is not known:
                self._heard_at = self._reports.clock.now()
        except RunLost:
            self.over = True
            raise RunSuperseded from None
        except StoreUnavailable:
            # Progress and listening may fail for a while; what must be kept may not.
            if must:
                raise
            # A job that tells a lot must neither crowd a table in trouble nor wait for it every time.
            self._tried_at = self._reports.clock.now()
            return False
        return True


def run_attempt(
    reports: Reports,
    server: TaskServer,
    *,
    task_id: str,
    run: int,
    run_id: str,
    attempt: int,
    remaining_ms: Callable[[], int] | None = None,
    ticker: bool = True,
) -> str:
    """Do one attempt of a run, and settle its task.

    Parameters
    ----------
    reports, server
        The worker's side of the rail, and the catalogue.
    task_id, run, run_id, attempt
        Which run this is, the engine's id of it, and the number of the attempt, from 1.
    remaining_ms
        Milliseconds until this process is ended from outside, where that is known (Lambda).
    ticker
        Whether a thread writes late progress and listens while the job's code is busy.

    Returns
    -------
    str
        What became of it: a status, ``asked``, or ``nothing to do``.

    Raises
    ------
    StoreUnavailable
        The task could not be reached; the engine may try again.
    """
    task = reports.claim(task_id, run, run_id, attempt)
    if task is None:
        return "nothing to do"
    tool = server.get(task.tool)
    policy = None if tool is None else tool.policy
    channel = RunChannel(reports, task, 0 if policy is None else policy.answer_within_ms)
    if tool is None or policy is None:
        channel.finish(lambda t: endings.orphaned(t, reports.clock.now(), missing="tool"))
        return channel.task.status.value
    stop = threading.Event()
    thread = None
    if ticker:
        thread = threading.Thread(
            target=_tick, args=(channel, reports, stop, remaining_ms), daemon=True, name="taskrail-ticker"
        )
        thread.start()
    try:
        move = _do(tool, channel, reports)
    except RunSuspended:
        return "asked"
    except RunSuperseded:
        return "superseded"
    finally:
        stop.set()
        if thread is not None:
            thread.join(timeout=5)
    return channel.task.status.value if channel.finish(move) else "superseded"


def _do(tool: Tool, channel: RunChannel, reports: Reports) -> Move:
    """Run the job's code; the move that its ending calls for."""
    task_id = channel.task.task_id
    context = TaskContext(channel)

    def broken(text: str, *extra: str) -> Move:
        result = error_result(text, [*extra])
        result["content"] += [attachment.block() for attachment in context.attachments]
        stored = channel.store_result(result)
        return lambda t: endings.completed(t, stored, text[: endings.LONGEST_MESSAGE], reports.clock.now())

    try:
        value = _call(tool, channel, context)
        result = tool.returns.result(value)
        result["content"] = [*result["content"], *(attachment.block() for attachment in context.attachments)]
        stored = channel.store_result(result)
        message = "The tool reported an error." if result.get("isError") else "Completed."
        return lambda t: endings.completed(t, stored, message, reports.clock.now())
    except (RunSuspended, RunSuperseded, StoreUnavailable):
        # A task out of reach is no fault of the job: the engine may try again, and steps are remembered.
        raise
    except JobCancelled:
        return lambda t: endings.cancelled(t, reports.clock.now())
    except ToolError as error:
        return broken(error.message, *([] if error.structured is None else [_partial(error.structured)]))
    except ProtocolError as error:
        message = error.message
        kept = channel.store_error(endings.rpc_error(error.code, message, _carried(error.data)))
        return lambda t: endings.refused(t, kept, message, reports.clock.now())
    except (QuestionError, ResultError) as error:
        return broken(f"{error} Task {task_id}.")
    except ArgumentsError as error:
        return broken(
            f"The tool has changed since it was called, and its arguments no longer fit: {error}. Task {task_id}."
        )
    except PayloadGone:
        return broken(f"A stored part of the task is no longer there, so the job could not go on. Task {task_id}.")
    except DeclarationError:
        _log.exception("task %s: the job of %s cannot be loaded", task_id, tool.name)
        return lambda t: endings.failed(t, reports.clock.now(), message=f"The job could not be loaded. Task {task_id}.")
    except SystemExit as error:
        if channel.task.cancel_requested_at is not None:
            return lambda t: endings.cancelled(t, reports.clock.now())
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        return broken(f"The job ended without a result: exit code {code}. Task {task_id}.")
    except BaseException:
        _log.exception("task %s: the job of %s raised", task_id, tool.name)
        return broken(f"The job failed. Its log has the details under the task's id. Task {task_id}.")


def _call(tool: Tool, channel: RunChannel, context: TaskContext) -> Any:
    # An attempt after one that died may find that cancellation was requested meanwhile.
    channel.check()
    function = tool.load()
    bound = tool.signature.bind(channel.load(channel.task.arguments or "{}"))
    return call_through(function, tool.signature.keywords(bound, task=context))


def _tick(channel: RunChannel, reports: Reports, stop: threading.Event, remaining_ms: Callable[[], int] | None) -> None:
    while not stop.wait(_TICK_S):
        try:
            if remaining_ms is not None and remaining_ms() < _LAST_WORDS_MS:
                channel.finish(lambda t: endings.broken(t, endings.out_of_time(t), reports.clock.now()))
                return
            channel.tick()
        except Exception:
            # The ticker must outlive every fault: without it a job is deaf.
            _log.exception("task %s: the ticker failed once", channel.task.task_id)


def _number(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= _LARGEST_NUMBER:
        raise ToolError(f"progress: {name} must be a finite number.")
    return value


def _partial(value: Any) -> str:
    try:
        return dump(value)
    except (TypeError, ValueError, RecursionError):
        return "The partial result cannot be carried as JSON."


def _carried(data: Any) -> Any:
    try:
        dump(data)
    except (TypeError, ValueError, RecursionError):
        return None
    return data
