"""What a worker tells about its run. Each report holds only while the run is still that worker's."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from taskrail.errors import StoreUnavailable, TaskNotFound, TaskrailError
from taskrail.payloads import SMALL, TOGETHER, Payloads
from taskrail.questions import Question
from taskrail.rail import leases
from taskrail.rail.changes import Changes, Move
from taskrail.store import Conflict
from taskrail.task import Progress, Task

_PATIENT = 8
"""Tries of a write that must not be lost; with their pauses they ride out some 20 s of outage."""


class RunLost(TaskrailError):
    """The run is no longer this worker's: the task has ended, or another run or attempt goes on."""


class Reports:
    """The worker's side of the rail.

    Parameters
    ----------
    changes, payloads
        How tasks change, and where large payloads are.
    budget_ms
        What the run after an answer may take, for a task, in milliseconds.
    """

    def __init__(self, changes: Changes, payloads: Payloads, budget_ms: Callable[[Task], int]) -> None:
        self.payloads = payloads
        self.clock = changes.clock
        self._changes = changes
        self._budget_ms = budget_ms

    def claim(self, task_id: str, run: int, run_id: str, attempt: int) -> Task | None:
        """Take up a run: the task with all that the work needs, or None when there is nothing to do.

        A higher attempt takes over from a lower one; an equal rival gets None, as does a worker
        whose run was superseded, cancelled, or has ended. A question that a lower attempt died
        holding its run open for is left to the next run.

        Parameters
        ----------
        run, run_id, attempt
            Which run, the engine's id of it, and which attempt of it this is, from 1.

        Raises
        ------
        StoreUnavailable
            It may or may not have been claimed.
        """
        nonce = self._changes.ids.nonce()
        for _ in range(_PATIENT):
            try:
                return self._claim(task_id, run, run_id, attempt, nonce)
            except Conflict as conflict:
                if not self._take_over_question(conflict.current, run, attempt):
                    return None
        return None

    def claim_by_lease(self, task_id: str, run: int, run_id: str, patience_ms: Callable[[], int]) -> Task | None:
        """Take up a run of an engine that tells no attempts: the task, or None when there is nothing to do.

        The first claim is the first attempt; a later delivery of the same event is the next one, once the lease of
        the one before is over. While that holds, this may be a delivery too many, or an attempt that follows one
        that has just died: the lease's end tells.

        Parameters
        ----------
        run, run_id
            Which run, and the engine's id of the event that came.
        patience_ms
            How long a lease may be waited for at most, in milliseconds, as of now.

        Raises
        ------
        StoreUnavailable
            It may or may not have been claimed.
        """
        nonce = self._changes.ids.nonce()
        attempt, waited = 1, False
        for _ in range(_PATIENT):
            try:
                return self._claim(task_id, run, run_id, attempt, nonce, leased=True)
            except Conflict as conflict:
                held = conflict.current
            now = self.clock.now()
            if held is None or not _comes_again(held, run, run_id) or held.expired(now):
                return None
            if leases.holds(held, now):
                left = (held.lease_until or now) - now
                if waited or left > patience_ms():
                    return None
                self.clock.sleep(left)
                waited = True
            attempt = held.attempt + 1
            if held.outstanding:
                self._take_over_question(held, run, attempt)
        return None

    def _claim(
        self, task_id: str, run: int, run_id: str, attempt: int, nonce: str, *, leased: bool = False
    ) -> Task | None:
        for tried in range(1, _PATIENT + 1):
            now = self.clock.now()
            lease_until = now + leases.LEASE_MS if leased else None
            try:
                task = self._changes.store.claim(
                    task_id,
                    run=run,
                    run_id=run_id,
                    attempt=attempt,
                    now=now,
                    nonce=nonce,
                    lease_until=lease_until,
                )
            except StoreUnavailable:
                if tried == _PATIENT:
                    raise
                self.clock.sleep(min(100 * 2**tried, 5_000))
            else:
                return task if task.open and not task.expired(now) else None
        raise AssertionError("unreachable")

    def _take_over_question(self, task: Task | None, run: int, attempt: int) -> bool:
        """Whether a run that was held open for its question can be claimed: its answer has just come."""
        if task is None or task.run != run or task.attempt >= attempt or not (task.outstanding and task.run_open):
            return False

        def let_go(current: Task) -> Task:
            theirs = current.run != run or current.attempt >= attempt or leases.holds(current, self.clock.now())
            return current if theirs else current.let_go()

        try:
            after = self._changes.apply(task, let_go, tries=_PATIENT)
        except TaskNotFound:
            return False
        return after.open and after.run == run and not after.outstanding

    def look(self, task: Task) -> Task:
        """The task as it stands, for a worker that has nothing to tell but wants to hear.

        Raises
        ------
        RunLost
            The run is no longer this worker's.
        StoreUnavailable
            No answer.
        """
        current = self._changes.store.read(task.task_id)
        if current is None or not _same_run(current, task):
            raise RunLost
        return current

    def hear(self, task: Task) -> Task:
        """As `look`, and the lease is renewed along when it is time.

        Raises
        ------
        RunLost, StoreUnavailable
            As in `look`.
        """
        now = self.clock.now()
        if not leases.wants_renewal(task, now):
            return self.look(task)
        # Written onto the revision that this worker knows: if that is not the last one, the newer comes back.
        return self._apply(task, lambda t: leases.renewed(t, now))

    def progress(self, task: Task, progress: Progress | None, message: str | None) -> Task:
        """Tell how far the run is; hear, in the same call, whether it is to stop.

        Raises
        ------
        RunLost, StoreUnavailable
            As in `look`.
        """
        return self._apply(task, lambda t: t.reported(progress, message, self.clock.now()))

    def step(self, task: Task, name: str, outcome: str) -> Task:
        """Remember a step's outcome (JSON text) for every later run and attempt.

        Raises
        ------
        RunLost, StoreUnavailable
            As in `look`.
        """
        inline = SMALL if sum(map(len, task.steps.values())) < TOGETHER else 0
        stored = self.payloads.keep(task, "step", outcome, inline)
        return self._apply(task, lambda t: t.stepped(name, stored), tries=_PATIENT)

    def ask(
        self,
        task: Task,
        questions: Mapping[str, Question],
        answer_within_ms: int,
        *,
        hold: bool,
        first: Move = lambda task: task,
    ) -> Task:
        """Open questions; the run ends with them unless it is held open.

        Parameters
        ----------
        first
            A move that goes along in the same write: progress that was still to be told.

        Raises
        ------
        RunLost, StoreUnavailable
            As in `look`.
        """
        budget = self._budget_ms(task)
        return self._apply(
            task,
            lambda t: first(t).asked(
                questions, self.clock.now(), answer_within_ms=answer_within_ms, budget_ms=budget, hold=hold
            ),
            tries=_PATIENT,
        )

    def let_go(self, task: Task) -> Task:
        """Stop holding the run open for an answer; when the answer has just come, the run goes on.

        Raises
        ------
        RunLost, StoreUnavailable
            As in `look`.
        """
        return self._apply(task, lambda t: t.let_go(), tries=_PATIENT)

    def finish(self, task: Task, move: Move) -> Task:
        """The terminal write of the run, repeated with patience: losing it would lose the work.

        Raises
        ------
        RunLost, StoreUnavailable
            As in `look`.
        """
        return self._apply(task, move, tries=_PATIENT)

    def _apply(self, task: Task, move: Move, tries: int = 1) -> Task:
        def fenced(current: Task) -> Task:
            if not _same_run(current, task):
                raise RunLost
            return leases.extended(current, move(current), self.clock.now())

        try:
            return self._changes.apply(task, fenced, tries=tries)
        except TaskNotFound as error:
            raise RunLost from error


def _same_run(current: Task, mine: Task) -> bool:
    """The fence: the run is open, and no later run or higher attempt has taken over."""
    return current.open and current.run_open and current.run == mine.run and current.claim == mine.claim


def _comes_again(held: Task, run: int, run_id: str) -> bool:
    """Whether the event that came is the one under which the current run was claimed."""
    return held.open and held.run == run and held.run_open and held.claimed and held.run_id == run_id
