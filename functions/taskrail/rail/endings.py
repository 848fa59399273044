"""How a run's end becomes a task's: the table of endings, in one place.

A run may end without its worker's report: killed, out of time, never placed. What the caller then
reads names the exit code, the error or the limit, never a message or a trace of the job.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from taskrail.engines import RunReport, RunState
from taskrail.errors import INTERNAL_ERROR
from taskrail.payloads import dump
from taskrail.results import error_result
from taskrail.task import Status, Task

LONGEST_MESSAGE = 500
"""Characters of a status message: it travels with every poll and stays in the item."""


@dataclass(frozen=True)
class Outcome:
    """What work that is none of the kit's left behind at its end.

    Parameters
    ----------
    result
        Stored text of the call's result.
    message
        The task's last status message.
    """

    result: str
    message: str


def completed(task: Task, stored_result: str, message: str, now: int) -> Task:
    """The call has a result, stored already."""
    return task.ended(Status.COMPLETED, now, message=message, result=stored_result)


def broken(task: Task, text: str, now: int) -> Task:
    """The call has a result that says what went wrong with the work."""
    return task.ended(Status.COMPLETED, now, message=text, result=dump(error_result(text)))


def rpc_error(code: int, message: str, data: Any = None) -> dict[str, Any]:
    """A JSON-RPC error; `data` is left out when None."""
    plain: dict[str, Any] = {"code": code, "message": message}
    return plain if data is None else {**plain, "data": data}


def failed(task: Task, now: int, *, code: int = INTERNAL_ERROR, message: str, data: Any = None) -> Task:
    """The call ended in a JSON-RPC error."""
    return refused(task, dump(rpc_error(code, message, data)), message, now)


def refused(task: Task, stored_error: str, message: str, now: int) -> Task:
    """The call ended in a JSON-RPC error, stored already."""
    return task.ended(Status.FAILED, now, message=message[:LONGEST_MESSAGE], error=stored_error)


def cancelled(task: Task, now: int) -> Task:
    """The work has stopped because the caller wanted it."""
    return task.ended(Status.CANCELLED, now, message="Cancelled.")


def run_ended(
    report: RunReport, run: int, now: int, *, goes_on: bool = True, outcome: Outcome | None = None
) -> Callable[[Task], Task]:
    """The move for a run of which the engine says that it is over.

    A run that its worker has settled, or that a later one has followed, changes nothing. A run that
    ended while its question is open leaves the question open: the answer starts the next run.

    Parameters
    ----------
    report
        The engine's account; it must be an ended one.
    run
        Number of the run that ended.
    now
        Milliseconds since the epoch.
    goes_on
        Whether an answer starts another run; a state machine or a container ends for good.
    outcome
        What the work left behind, if anything.
    """

    def move(task: Task) -> Task:
        if not task.open or task.run != run or not task.run_open:
            return task
        if report.run_id is not None and task.run_id is not None and report.run_id != task.run_id:
            return task
        if task.status is Status.INPUT_REQUIRED and goes_on:
            return task.let_go()
        if outcome is not None and report.state is RunState.SUCCEEDED:
            return completed(task, outcome.result, outcome.message, now)
        if task.cancel_requested_at is not None:
            return cancelled(task, now)
        if outcome is not None:
            return completed(task, outcome.result, outcome.message, now)
        if report.state is RunState.TIMED_OUT:
            return broken(task, out_of_time(task), now)
        if report.state is RunState.STOPPED:
            return broken(task, f"The job was stopped from outside. Task {task.task_id}.", now)
        if report.state is RunState.FAILED and report.reason and _began(task, report, goes_on):
            return broken(task, f"The job ended without a result: {report.reason}. Task {task.task_id}.", now)
        return failed(task, now, message=_lost(task, report, goes_on))

    return move


def _began(task: Task, report: RunReport, claims: bool) -> bool:
    """Whether the work had begun: a claim says so, or the engine where nothing claims."""
    if claims or report.attempt is not None:
        return task.claimed or bool(report.attempt)
    return True


def out_of_time(task: Task) -> str:
    """What the caller reads when a run's time ran out."""
    limit = (task.run_deadline - task.run_started_at) // 1000
    return f"The job ran out of time; it had {limit} s, queueing included. Task {task.task_id}."


def nobody_answered(task: Task) -> str:
    """What the caller reads when a question's time ran out."""
    return f"Nobody answered in time, so the job was ended. Task {task.task_id}."


def orphaned(task: Task, now: int, *, missing: str) -> Task:
    """The deployment no longer has what the task needs: the tool, or its engine."""
    text = f"The {missing} of this task no longer exists in this deployment. Task {task.task_id}."
    return failed(task, now, message=text)


def vanished(task: Task, now: int) -> Task:
    """The engine no longer knows a run that a worker had taken up."""
    return failed(task, now, message=f"The run of the job has vanished. Task {task.task_id}.")


def _lost(task: Task, report: RunReport, claims: bool) -> str:
    if _began(task, report, claims):
        return f"The run of the job ended without a report. Task {task.task_id}."
    reason = f" ({report.reason})" if report.reason else ""
    return f"The job could not be placed{reason}. Task {task.task_id}."
