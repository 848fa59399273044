"""One way to change a task: compute a move from a revision, write it onto that revision, else look again."""

from __future__ import annotations

from collections.abc import Callable

from taskrail.clock import Clock
from taskrail.errors import StoreUnavailable, TaskNotFound
from taskrail.ids import Ids
from taskrail.store import Conflict, NewerLayout, Store
from taskrail.task import Task
from taskrail.telemetry import Telemetry

Move = Callable[[Task], Task]

_TRIES = 100
"""Every refusal means that somebody else's write landed, so this bound is never near."""


class Changes:
    """Reads tasks for their owners and applies moves to them.

    Parameters
    ----------
    store, clock, ids
        Where tasks live, what time it is, and where nonces come from.
    telemetry
        Told of every change that took effect.
    """

    def __init__(self, store: Store, clock: Clock, ids: Ids, telemetry: Telemetry | None = None) -> None:
        self.telemetry = telemetry or Telemetry()
        self.store = store
        self.clock = clock
        self.ids = ids

    def read(self, owner: str, task_id: str) -> Task:
        """The caller's task as it stands.

        Raises
        ------
        TaskNotFound
            It is unknown, expired or somebody else's: all the same.
        StoreUnavailable
            No answer from the table.
        """
        try:
            task = self.store.read(task_id)
        except NewerLayout as error:
            if error.owner != owner:
                raise TaskNotFound from None
            raise
        return self.visible(task, owner)

    def visible(self, task: Task | None, owner: str) -> Task:
        """The task, if this owner may know of it.

        Raises
        ------
        TaskNotFound
            It may not.
        """
        if task is None or task.owner != owner or task.expired(self.clock.now()):
            raise TaskNotFound
        return task

    def apply(self, task: Task, move: Move, *, tries: int = 1) -> Task:
        """The task after the move, or as it is when the move finds nothing to change: `change` without its sign."""
        return self.change(task, move, tries=tries)[0]

    def change(self, task: Task, move: Move, *, tries: int = 1) -> tuple[Task, bool]:
        """The task after the move, and whether this very call changed it.

        A write whose outcome is unknown may be repeated (`tries`): it keeps its nonce, so that a
        repetition recognises itself.

        Parameters
        ----------
        task
            The task as the caller last saw it.
        move
            Returns a new value, or the same one; called again for every newer revision.
        tries
            How often to write before an unknown outcome is passed on.

        Raises
        ------
        TaskNotFound
            The task is gone or expired meanwhile.
        StoreUnavailable
            The outcome of the write is unknown.
        """
        owner = task.owner
        for _ in range(_TRIES):
            wanted = move(task)
            if wanted is task:
                return task, False
            try:
                after = self._write(task, wanted, tries)
                self.telemetry.changed(task, wanted, self.clock.now())
                return after, True
            except Conflict as conflict:
                task = self.visible(conflict.current, owner)
        raise StoreUnavailable("The task is changed by others faster than it can be written.")

    def _write(self, old: Task, new: Task, tries: int) -> Task:
        nonce = self.ids.nonce()
        for attempt in range(1, tries + 1):
            try:
                return self.store.write(old, new, self.clock.now(), nonce)
            except StoreUnavailable:
                if attempt == tries:
                    raise
                self.clock.sleep(min(100 * 2**attempt, 5_000))
        raise AssertionError("unreachable")
