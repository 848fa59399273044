"""Runs: started by name, settled by their end, and repaired when a read finds them silent.

No sweeper and no schedule: only the holder of a ticket cares, so only what a holder does repairs.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from taskrail.engines import Engine, RunReport, RunState, run_name
from taskrail.errors import EngineUnavailable, StartRefused, StoreUnavailable, TaskNotFound
from taskrail.payloads import dump
from taskrail.rail import endings, leases
from taskrail.rail.changes import Changes, Move
from taskrail.rail.orders import Orders
from taskrail.rail.outcomes import Outcomes
from taskrail.server import TaskServer, Tool
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
    orders, outcomes
        What engines are told about a run, and what the end of one means that nothing of the kit's reported.
    """

    def __init__(
        self,
        server: TaskServer,
        engines: Mapping[str, Engine],
        changes: Changes,
        settings: Settings,
        orders: Orders,
        outcomes: Outcomes,
    ) -> None:
        self._server = server
        self._engines = engines
        self._changes = changes
        self._settings = settings
        self._orders = orders
        self._outcomes = outcomes

    def budget_ms(self, task: Task) -> int:
        """What a run of this task may take, queueing included, in milliseconds."""
        tool = self._server.get(task.tool)
        return _FORGOTTEN_TOOL_MS if tool is None or tool.policy is None else tool.policy.run_budget_ms

    def start(self, task: Task) -> Task:
        """Start the task's current run by its name; the task, with the engine's id of the run where that is needed.

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
        try:
            order = self._orders.order(task, tool, timeout_ms)
        except StoreUnavailable as error:
            raise EngineUnavailable("The arguments cannot be read just now.") from error
        run_id = engine.start(order)
        return self._record(task, engine, run_id) if engine.records_ids else task

    def start_next(self, task: Task) -> Task:
        """Start the run after an answer. Whatever goes wrong, the answer is kept and repair will start it."""
        try:
            return self.start(task)
        except (StartRefused, EngineUnavailable) as error:
            _log.warning("task %s: run %d is not started yet (%s)", task.task_id, task.run, error)
            return task

    def start_again(self, task: Task) -> Task:
        """Start a run of which it is not known whether it was started.

        A name that an engine has had once is no second run there; where names mean nothing (Batch), the engine is
        asked first.
        """
        engine = self._engine(task)
        if engine is not None and engine.records_ids:
            if task.run_id is not None:
                return task
            try:
                known = engine.describe(task.tool, run_name(task.task_id, task.run), None)
            except EngineUnavailable as error:
                _log.warning("task %s: run %d is not found yet (%s)", task.task_id, task.run, error)
                return task
            if known.run_id is not None:
                return self._record(task, engine, known.run_id)
        return self.start_next(task)

    def repeats_start(self, task: Task) -> bool:
        """Whether an equal call is to start the task's run again. Where each start is one more event, few do."""
        engine = self._engine(task)
        if engine is None or not engine.by_lease or task.probed_at is None:
            return True
        return leases.asks_for_another(task, self._changes.clock.now(), after_ms=self._settings.probe_after_ms)

    def _record(self, task: Task, engine: Engine, run_id: str) -> Task:
        """Keep the engine's id of a run. Without it the engine's events, or a look by name, will find the run."""
        try:
            after = self._changes.apply(task, lambda t: t.launched(task.run, run_id))
        except (StoreUnavailable, TaskNotFound) as error:
            _log.warning("task %s: the id of run %d is not recorded (%s)", task.task_id, task.run, error)
            return task
        try:
            self._end_double(after, task.run, run_id, engine)
        except EngineUnavailable as error:
            _log.warning("task %s: job %s may go on (%s)", task.task_id, run_id, error)
        return after

    def _end_double(self, task: Task, run: int, run_id: str, engine: Engine) -> None:
        """Stop a container that is not the recorded one: nothing in it would end it. A worker ends itself.

        Raises
        ------
        EngineUnavailable
            It may go on.
        """
        current = task.open and task.run == run
        if self.claims(task) or (current and task.run_id in (None, run_id)):
            return
        _log.warning("task %s: job %s is not the one that counts; stopping it", task.task_id, run_id)
        engine.stop(task.tool, run_name(task.task_id, run), run_id)

    def claims(self, task: Task) -> bool:
        """Whether a worker of the kit's claims the task's runs; nothing does in a state machine or a container."""
        tool = self._server.get(task.tool)
        return tool is None or tool.work is None

    def stop(self, task: Task) -> bool:
        """Stop the task's current run; True once it is known not to go on."""
        engine = self._engine(task)
        if engine is None:
            return True
        if engine.by_lease:
            return False
        try:
            return engine.stop(task.tool, run_name(task.task_id, task.run), task.run_id)
        except EngineUnavailable as error:
            _log.warning("task %s: run %d may not have been stopped (%s)", task.task_id, task.run, error)
            return False

    def stop_removed(self, task: Task) -> bool:
        """Stop the run of a task whose item is gone; True once that is done, or on its way where a stop takes time."""
        engine = self._engine(task)
        # Where nothing can be stopped, the worker misses its task at its next look.
        if engine is None or engine.by_lease:
            return True
        try:
            stopped = engine.stop(task.tool, run_name(task.task_id, task.run), task.run_id)
        except EngineUnavailable as error:
            _log.warning("task %s: its run may go on after its end (%s)", task.task_id, error)
            return False
        return stopped or engine.stops_gently

    def come_back(self, task: Task) -> bool:
        """Whether a task whose item was removed has been created again, under its own id.

        Raises
        ------
        StoreUnavailable
            No answer from the table.
        """
        return self._changes.store.read(task.task_id) is not None

    def stops_gently(self, task: Task) -> bool:
        """Whether stopping the task's run tells the work and leaves it time to clean up."""
        engine = self._engine(task)
        return engine is not None and engine.stops_gently

    def pass_on(self, task: Task) -> Task:
        """Hand answers to the states that wait for them. Whatever goes wrong, repair will do it.

        Raises
        ------
        TaskNotFound
            It expired meanwhile.
        """
        due, engine = task.due, self._engine(task)
        if not due or engine is None:
            return task
        try:
            for key, token in due.items():
                engine.resume(token, dump(self._orders.answer(task, key)))
            return self._changes.apply(task, lambda t: t.passed_on(due))
        except (EngineUnavailable, StoreUnavailable) as error:
            _log.warning("task %s: an answer is not passed on yet (%s)", task.task_id, error)
            return task

    def settle(self, task: Task, run: int, report: RunReport) -> Task:
        """Let the end of a run be known to its task.

        Raises
        ------
        TaskNotFound, StoreUnavailable, EngineUnavailable
            The task is gone; or the outcome is unknown.
        """
        tool, engine = self._server.get(task.tool), self._engine(task)
        if engine is None or not (engine.records_ids or engine.by_lease):
            # Names are ids there: however a worker called its run, there is no other of that name.
            report = replace(report, run_id=None)
        outcome = None
        if tool is not None and tool.work is not None and _concerns(task, run, report):
            outcome = self._outcome(task, tool, report)
        now = self._changes.clock.now()
        goes_on = self.claims(task)
        return self._changes.apply(task, endings.run_ended(report, run, now, goes_on=goes_on, outcome=outcome))

    def heard(self, task: Task, run: int, report: RunReport) -> Task:
        """Let an engine's news of a run be known to its task: its id, its end, or that it is one too many.

        Raises
        ------
        TaskNotFound, StoreUnavailable, EngineUnavailable
            As in `settle`.
        """
        engine = self._engine(task)
        if engine is not None and engine.records_ids and report.run_id is not None:
            run_id = report.run_id
            task = self._changes.apply(task, lambda t: t.launched(run, run_id))
            if not report.ended:
                self._end_double(task, run, run_id, engine)
        return self.settle(task, run, report) if report.ended else task

    def _outcome(self, task: Task, tool: Tool, report: RunReport) -> endings.Outcome | None:
        engine = self._engine(task)
        return None if engine is None else self._outcomes.outcome(task, tool, report, engine)

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
            if task.due and now - task.updated_at >= self._settings.missing_grace_ms:
                # Whoever recorded the answer died before it was handed over.
                self._repaired(task, now, "passed_on")
                task = self.pass_on(task)
            if task.status is Status.INPUT_REQUIRED:
                return self._repair_question(task, now)
            engine = self._engine(task)
            if engine is not None and engine.by_lease:
                return self._repair_leased(task, now)
            if (
                task.cancel_requested_at is not None
                and now - task.cancel_requested_at >= self._settings.cancel_grace_ms
            ):
                return self._end_deaf_work(task, now)
            if now >= task.run_deadline:
                self._repaired(task, now, "stopped")
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
            engine = self._engine(task)
            if engine is not None and engine.by_lease:
                over = not leases.holds(task, now - self._settings.missing_grace_ms)
                return self._changes.apply(task, _while_silent(task, lambda t: t.let_go())) if over else task
            return self._probe(task, now) if task.run_open and self._silent(task, now) else task
        if task.run_open:
            self.stop(task)
        return self._changes.apply(
            task, _unless_moved_on(task, lambda t: endings.broken(t, endings.nobody_answered(t), now))
        )

    def _repair_leased(self, task: Task, now: int) -> Task:
        """What the silence of a run calls for whose engine cannot be asked: its worker's lease tells."""
        cancelled = task.cancel_requested_at is not None
        grace_ms = self._settings.missing_grace_ms
        tool = self._server.get(task.tool)
        policy = None if tool is None else tool.policy
        if now >= task.run_deadline:
            self._repaired(task, now, "stopped")
            return self._changes.apply(
                task,
                _unless_moved_on(
                    task,
                    lambda t: (
                        endings.cancelled(t, now) if cancelled else endings.broken(t, endings.out_of_time(t), now)
                    ),
                ),
            )
        if task.claimed:
            attempts = 1 if policy is None else policy.attempts
            if not leases.given_up(task, now, attempts=attempts, grace_ms=grace_ms):
                return task
            self._repaired(task, now, "settled")
            end = endings.cancelled if cancelled else endings.vanished
            return self._changes.apply(task, _while_silent(task, lambda t: end(t, now)))
        if not leases.asks_for_another(task, now, after_ms=self._settings.probe_after_ms):
            return task
        if policy is None:
            return self._changes.apply(task, _unless_moved_on(task, lambda t: endings.orphaned(t, now, missing="tool")))
        # The write comes first, so that of several readers one invokes.
        task, ours = self._changes.change(task, _while_silent(task, lambda t: t.probed(now, missing=False)))
        if ours:
            _log.warning("task %s: run %d is not taken up yet; invoking once more", task.task_id, task.run)
            self._repaired(task, now, "started")
            task = self.start_next(task)
        return task

    def _silent(self, task: Task, now: int) -> bool:
        since = max(task.updated_at, task.run_started_at, task.probed_at or 0)
        return now - since >= (self._settings.missing_grace_ms if task.missing_since else self._settings.probe_after_ms)

    def _repaired(self, task: Task, now: int, what: str) -> None:
        self._changes.telemetry.repaired(task, now, what)

    def _end_deaf_work(self, task: Task, now: int) -> Task:
        self._repaired(task, now, "stopped")
        return self.end_cancelled(task) if self.stop(task) else task

    def end_cancelled(self, task: Task) -> Task:
        """Settle a task whose cancelled work is known not to go on.

        Raises
        ------
        TaskNotFound, StoreUnavailable
            As in `settle`.
        """
        now = self._changes.clock.now()
        return self._changes.apply(
            task, lambda t: endings.cancelled(t, now) if t.cancel_requested_at is not None else t
        )

    def _probe(self, task: Task, now: int) -> Task:
        engine = self._engine(task)
        if engine is None:
            gone = _unless_moved_on(task, lambda t: endings.orphaned(t, now, missing="engine"))
            return self._changes.apply(task, gone)
        report = engine.describe(task.tool, run_name(task.task_id, task.run), task.run_id)
        if report.ended:
            self._repaired(task, now, "settled")
            return self.settle(task, task.run, report)
        if report.state is RunState.RUNNING:
            return self._changes.apply(task, _unless_moved_on(task, lambda t: _found(t, report, now, engine)))
        if task.missing_since is None:
            return self._changes.apply(task, _unless_moved_on(task, lambda t: t.probed(now, missing=True)))
        if task.status is Status.INPUT_REQUIRED:
            return self._changes.apply(task, _unless_moved_on(task, lambda t: t.let_go()))
        if task.claimed or task.run_id is not None:
            return self._changes.apply(task, _unless_moved_on(task, lambda t: endings.vanished(t, now)))
        tool = self._server.get(task.tool)
        if tool is None or tool.policy is None:
            return self._changes.apply(task, _unless_moved_on(task, lambda t: endings.orphaned(t, now, missing="tool")))
        _log.warning("task %s: run %d was never started; starting it", task.task_id, task.run)
        self._repaired(task, now, "started")
        task = self.start_next(task)
        return self._changes.apply(task, _unless_moved_on(task, lambda t: t.probed(now, missing=False)))

    def _engine(self, task: Task) -> Engine | None:
        return self._engines.get(task.engine)


def _concerns(task: Task, run: int, report: RunReport) -> bool:
    """Whether an ended run is the task's current one, so that what it left behind is worth a look."""
    known = report.run_id is None or task.run_id in (None, report.run_id)
    return task.open and task.run == run and task.run_open and known


def _found(task: Task, report: RunReport, now: int, engine: Engine) -> Task:
    found = task.probed(now, missing=False)
    if engine.records_ids and report.run_id is not None:
        return found.launched(found.run, report.run_id)
    return found


def _while_silent(seen: Task, move: Move) -> Move:
    """The move, while neither the run's worker nor another reader has been heard since it was seen."""

    def guarded(task: Task) -> Task:
        same = (task.lease_until, task.probed_at) == (seen.lease_until, seen.probed_at)
        return move(task) if same else task

    return _unless_moved_on(seen, guarded)


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
