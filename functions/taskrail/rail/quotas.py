"""How many tasks one owner may have open with one tool: exact, however many calls come together."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping

from taskrail.errors import StoreUnavailable, TaskrailError
from taskrail.rail.changes import Changes
from taskrail.store import Limits, NewerLayout
from taskrail.task import Task

_PRUNED_AT_ONCE = 25
"""Tasks that a call which finds no place looks at: enough for many calls after it."""
_TRIES = 20

_log = logging.getLogger("taskrail")


class TooManyOpen(TaskrailError):
    """The caller has as many tasks of this tool open as it may.

    Parameters
    ----------
    most
        How many that is.
    """

    def __init__(self, most: int) -> None:
        super().__init__(
            f"You have {most} tasks of this tool open, the most allowed here. Wait until one of them has ended, or "
            "cancel one, and call again."
        )


class Quotas:
    """Gives tasks their places.

    Parameters
    ----------
    changes, limits
        Where tasks are read, and where places are kept.
    most
        How many tasks an owner may have open, by the tool's name; ``*`` for all tools that are not named.
    """

    def __init__(self, changes: Changes, limits: Limits, most: Mapping[str, int]) -> None:
        self._changes = changes
        self._limits = limits
        self._most = most

    def enter(self, task: Task) -> None:
        """Take a place for a task that is about to be stored.

        Raises
        ------
        TooManyOpen
            There is none.
        StoreUnavailable
            It may or may not have one; nothing was stored.
        """
        most = self._most.get(task.tool, self._most.get("*"))
        if most is None:
            return
        key = _key(task)
        for _ in range(_TRIES):
            holders = self._limits.enter(key, task.task_id, most)
            if holders is None:
                return
            over = self._over(task.owner, sorted(holders))
            if not over:
                raise TooManyOpen(most)
            self._limits.leave(key, over)
        raise StoreUnavailable("Places are taken faster than they can be given.")

    def leave(self, task: Task) -> None:
        """Give a place up at once: the task's start was refused, or its item is gone."""
        if "*" not in self._most and task.tool not in self._most:
            return
        try:
            self._limits.leave(_key(task), (task.task_id,))
        except StoreUnavailable as error:
            # Whoever finds no place looks whether this task is over.
            _log.warning("task %s: its place was not given up (%s)", task.task_id, error)

    def _over(self, owner: str, task_ids: Iterable[str]) -> list[str]:
        """Those of some tasks that are not open any more, as many as one call looks for."""
        over: list[str] = []
        now = self._changes.clock.now()
        for task_id in task_ids:
            try:
                task = self._changes.store.read(task_id)
            except NewerLayout:
                continue
            if task is None or not task.open or task.expired(now) or task.owner != owner:
                over.append(task_id)
            if len(over) == _PRUNED_AT_ONCE:
                break
        return over


def _key(task: Task) -> str:
    return hashlib.sha256(json.dumps([task.owner, task.tool]).encode()).hexdigest()
