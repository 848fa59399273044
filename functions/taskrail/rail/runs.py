"""Runs: started by name, settled by their end, and repaired when a read finds them silent.

No sweeper and no schedule: only the holder of a ticket cares, so only what a holder does repairs.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from taskrail.engines import Engine, RunReport, RunState, run_name
from taskrail.errors import EngineUnavailable, StartRefused, StoreUnavailable
from taskrail.rail import endings
from taskrail.rail.changes import Changes, Move
from taskrail.server import TaskServer
from taskrail.settings import Settings
from taskrail.task import Status, Task

_log = logging.getLogger("taskrail")

_FORGOTTEN_TOOL_MS = 15 * 60_000
"""Budget of a run whose tool the catalogue no longer has."""


class Runs:
    """Starts, stops, settles and repairs the runs of tasks.

    Parameters
    ----------
    server
        The catalogue.
    engines
        By the name that `runs_on` gives them.
    changes, settings
        How tasks are changed, and when silence becomes suspicious.
    """

    def __init__(self, server: TaskServer, engines: Mapping[str, Engine], changes: Changes, settings: Settings) -> None:
        self._server = server
        self._engines = engines
        self._changes = changes
        self._settings = settings

    def budget_ms(self, task: Task) -> int:
        """What a run of this task may take, queueing included, in milliseconds."""
        tool = self._server.get(task.tool)
        return _FORGOTTEN_TOOL_MS if tool is None or tool.policy is None else tool.policy.run_budget_ms

    def start(self, task: Task) -> None:
        """Start the task's current run by its name; again is as good as once.

        Raises
        ------
        StartRefused
            Definitely not started.
        EngineUnavailable
            It may or may not have been started.
        """
        engine = self._engine(task)
        if engine is None:
            raise StartRefused(f"This deployment has no engine {task.engine!r}.")
        tool = self._server.get(task.tool)
        timeout_ms = _FORGOTTEN_TOOL_MS if tool is None or tool.policy is None else tool.policy.timeout_ms
        payload: dict[str, object] = {"taskId": task.task_id, "run": task.run}
        engine.start(task.tool, run_name(task.task_id, task.run), payload, timeout_ms)

    def start_next(self, task: Task) -> None:
        """Start the run after an answer. Whatever goes wrong, the answer is kept and repair will start it."""
        try:
            self.start(task)
        except (StartRefused, EngineUnavailable) as error:
            _log.warning("task %s: run %d is not started yet (%s)", task.task_id, task.run, error)

    def stop(self, task: Task) -> bool:
        """Stop the task's current run; True once it is known not to go on."""
        engine = self._engine(task)
        if engine is None:
            return True
        try:
            return engine.stop(task.tool, run_name(task.task_id, task.run))
        except EngineUnavailable as error:
            _log.warning("task %s: run %d may not have been stopped (%s)", task.task_id, task.run, error)
            return False

    def settle(self, task: Task, run: int, report: RunReport) -> Task:
        """Let the end of a run be known to its task.

        Raises
        ------
        TaskNotFound, StoreUnavailable
            The task is gone; or the outcome is unknown.
        """
        return self._changes.apply(task, endings.run_ended(report, run, self._changes.clock.now()))

    def repair(self, task: Task) -> Task:
        """The task after whatever its silence calls for; a fresh one comes back at once, without a call.

        Raises
        ------
        TaskNotFound
            It expired meanwhile.
        """
        if not task.open:
            return task
        now = self._changes.clock.now()
        try:
            if task.status is Status.INPUT_REQUIRED:
                return self._repair_question(task, now)
            if (
                task.cancel_requested_at is not None
                and now - task.cancel_requested_at >= self._settings.cancel_grace_ms
            ):
                return self._end_deaf_work(task, now)
            if now >= task.run_deadline:
                self.stop(task)
                return self._changes.apply(
                    task, _unless_moved_on(task, lambda t: endings.broken(t, endings.out_of_time(t), now))
                )
            if self._silent(task, now):
                return self._probe(task, now)
        except (StoreUnavailable, EngineUnavailable) as error:
            # A poll never fails because repair could not be done: the next one tries again.
            _log.warning("task %s: not repaired (%s)", task.task_id, error)
        return task

    def _repair_question(self, task: Task, now: int) -> Task:
        if task.answer_deadline is None or now < task.answer_deadline:
            # A run that died while it was held open for the answer would never take it up.
            return self._probe(task, now) if task.run_open and self._silent(task, now) else task
        if task.run_open:
            self.stop(task)
        return self._changes.apply(
            task, _unless_moved_on(task, lambda t: endings.broken(t, endings.nobody_answered(t), now))
        )

    def _silent(self, task: Task, now: int) -> bool:
        since = max(task.updated_at, task.run_started_at, task.probed_at or 0)
        return now - since >= (self._settings.missing_grace_ms if task.missing_since else self._settings.probe_after_ms)

    def _end_deaf_work(self, task: Task, now: int) -> Task:
        if not self.stop(task):
            return task
        return self._changes.apply(
            task, lambda t: endings.cancelled(t, now) if t.cancel_requested_at is not None else t
        )

    def _probe(self, task: Task, now: int) -> Task:
        engine = self._engine(task)
        if engine is None:
            gone = _unless_moved_on(task, lambda t: endings.orphaned(t, now, missing="engine"))
            return self._changes.apply(task, gone)
        report = engine.describe(task.tool, run_name(task.task_id, task.run))
        if report.ended:
            return self.settle(task, task.run, report)
        if report.state is RunState.RUNNING:
            return self._changes.apply(task, _unless_moved_on(task, lambda t: t.probed(now, missing=False)))
        if task.missing_since is None:
            return self._changes.apply(task, _unless_moved_on(task, lambda t: t.probed(now, missing=True)))
        if task.status is Status.INPUT_REQUIRED:
            return self._changes.apply(task, _unless_moved_on(task, lambda t: t.let_go()))
        if task.claimed:
            return self._changes.apply(task, _unless_moved_on(task, lambda t: endings.vanished(t, now)))
        tool = self._server.get(task.tool)
        if tool is None or tool.policy is None:
            return self._changes.apply(task, _unless_moved_on(task, lambda t: endings.orphaned(t, now, missing="tool")))
        _log.warning("task %s: run %d was never started; starting it", task.task_id, task.run)
        self.start_next(task)
        return self._changes.apply(task, _unless_moved_on(task, lambda t: t.probed(now, missing=False)))

    def _engine(self, task: Task) -> Engine | None:
        return self._engines.get(task.engine)


def _unless_moved_on(seen: Task, move: Move) -> Move:
    """The move, unless somebody has done something about this run since it was seen."""

    def guarded(task: Task) -> Task:
        if (task.run, task.attempt, task.status, task.updated_at) != (
            seen.run,
            seen.attempt,
            seen.status,
            seen.updated_at,
        ):
            return task
        return move(task)

    return guarded
