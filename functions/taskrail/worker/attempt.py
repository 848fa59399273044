"""One attempt of one run, from its claim to its end.

Whatever happens to the job's code, its task learns of it here, or, when this process dies, from the
engine (`taskrail.rail.runs`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from taskrail.calling import call_through
from taskrail.context import JobCancelled, RunInterrupted, RunSuperseded, RunSuspended, TaskContext
from taskrail.errors import (
    ArgumentsError,
    DeclarationError,
    PayloadGone,
    ProtocolError,
    QuestionError,
    StoreUnavailable,
    ToolError,
)
from taskrail.payloads import dump
from taskrail.rail import endings
from taskrail.rail.changes import Move
from taskrail.rail.leases import LEASE_MS
from taskrail.rail.reports import Reports
from taskrail.results import ResultError, error_result
from taskrail.server import TaskServer, Tool
from taskrail.worker.channel import RunChannel
from taskrail.worker.notice import HEAR_WITHIN_MS, Notice

_log = logging.getLogger("taskrail")

_TICK_S = 0.25
_LAST_WORDS_MS = 5_000
"""Time kept before the worker's own end, for saying that the time ran out."""


def run_attempt(
    reports: Reports,
    server: TaskServer,
    *,
    task_id: str,
    run: int,
    run_id: str,
    attempt: int | None,
    remaining_ms: Callable[[], int] | None = None,
    began_at: int | None = None,
    notice: Notice | None = None,
    ticker: bool = True,
) -> str:
    """Do one attempt of a run, and settle its task.

    Parameters
    ----------
    reports, server
        The worker's side of the rail, and the catalogue.
    task_id, run, run_id, attempt
        Which run this is, the engine's id of it, and the number of the attempt, from 1; None where the engine tells
        none, so that a lease on the run decides.
    remaining_ms
        Milliseconds until this process is ended from outside, where that is known (Lambda).
    began_at
        When the attempt began, in milliseconds since the epoch, where its tool's own time-out counts from then.
    notice
        The order to end that this process may get; it listens already. Its job then has to run in the main thread.
    ticker
        Whether a thread writes late progress and listens while the job's code is busy.

    Returns
    -------
    str
        What became of it: a status, ``asked``, ``superseded``, ``interrupted`` (another attempt has to go on),
        or ``nothing to do``.

    Raises
    ------
    StoreUnavailable
        The task could not be reached; the engine may try again.
    RunInterrupted
        The order to end came before anything had begun.
    """
    notice = notice or Notice()
    if attempt is None:
        task = reports.claim_by_lease(task_id, run, run_id, lambda: _patience_ms(remaining_ms))
    else:
        task = reports.claim(task_id, run, run_id, attempt)
    if task is None:
        return "nothing to do"
    notice.begin()
    tool = server.get(task.tool)
    policy = None if tool is None else tool.policy
    channel = RunChannel(reports, task, 0 if policy is None else policy.answer_within_ms, notice)
    if tool is None or policy is None:
        channel.finish(lambda t: endings.orphaned(t, reports.clock.now(), missing="tool"))
        return channel.task.status.value
    if remaining_ms is None and began_at is not None:
        ends_at = began_at + policy.timeout_ms + _LAST_WORDS_MS
        remaining_ms = lambda: ends_at - reports.clock.now()  # noqa: E731
    stop = threading.Event()
    thread = None
    if ticker:
        thread = threading.Thread(
            target=_tick, args=(channel, reports, stop, remaining_ms, notice), daemon=True, name="taskrail-ticker"
        )
        thread.start()
    try:
        move = _do(tool, channel, reports, notice)
    except RunSuspended:
        return "asked"
    except RunSuperseded:
        return "superseded"
    except RunInterrupted:
        return "interrupted"
    finally:
        stop.set()
        if thread is not None:
            thread.join(timeout=5)
    return channel.task.status.value if channel.finish(move) else "superseded"


def _patience_ms(remaining_ms: Callable[[], int] | None) -> int:
    """How long a lease may be waited for: whoever takes a run over needs some of its time."""
    return LEASE_MS if remaining_ms is None else remaining_ms() - 2 * _LAST_WORDS_MS


def _do(tool: Tool, channel: RunChannel, reports: Reports, notice: Notice) -> Move:
    """Run the job's code; the move that its ending calls for."""
    task_id = channel.task.task_id
    context = TaskContext(channel)

    def broken(text: str, *extra: str) -> Move:
        result = error_result(text, [*extra])
        result["content"] += [attachment.block() for attachment in context.attachments]
        stored = channel.store_result(result)
        return lambda t: endings.completed(t, stored, text[: endings.LONGEST_MESSAGE], reports.clock.now())

    try:
        value = _call(tool, channel, context, notice)
        result = tool.returns.result(value)
        result["content"] = [*result["content"], *(attachment.block() for attachment in context.attachments)]
        stored = channel.store_result(result)
        message = "The tool reported an error." if result.get("isError") else "Completed."
        return lambda t: endings.completed(t, stored, message, reports.clock.now())
    except (RunSuspended, RunSuperseded, RunInterrupted, StoreUnavailable):
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


def _call(tool: Tool, channel: RunChannel, context: TaskContext, notice: Notice) -> Any:
    # An attempt after one that died may find that cancellation was requested meanwhile.
    channel.check()
    with notice.job():
        function = tool.load()
        bound = tool.signature.bind(channel.load(channel.task.arguments or "{}"))
        return call_through(function, tool.signature.keywords(bound, task=context))


def _tick(
    channel: RunChannel,
    reports: Reports,
    stop: threading.Event,
    remaining_ms: Callable[[], int] | None,
    notice: Notice,
) -> None:
    ordered_at: int | None = None
    while not stop.wait(_TICK_S):
        try:
            if remaining_ms is not None and remaining_ms() < _LAST_WORDS_MS:
                channel.finish(lambda t: endings.broken(t, endings.out_of_time(t), reports.clock.now()))
                notice.leave(RunSuperseded)
                return
            if notice.given:
                ordered_at = reports.clock.now() if ordered_at is None else ordered_at
                _heed(channel, notice, late=reports.clock.now() - ordered_at >= HEAR_WITHIN_MS)
            channel.tick()
        except Exception:
            # The ticker must outlive every fault: without it a job is deaf.
            _log.exception("task %s: the ticker failed once", channel.task.task_id)


def _heed(channel: RunChannel, notice: Notice, *, late: bool) -> None:
    """Have the job's code left once it is known why; one that was cancelled gets the time to look by itself."""
    way = channel.why_end()
    if late or way in (RunInterrupted, RunSuperseded):
        notice.leave(way or RunInterrupted)


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
