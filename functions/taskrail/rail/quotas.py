"""How many tasks one owner may have open with one tool: exact, however many calls come together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from taskrail.errors import StoreUnavailable, TaskrailError
from taskrail.rail.changes import Changes
from taskrail.store import Limits, NewerLayout
from taskrail.task import Task

_PRUNED_AT_ONCE = 25
"""Tasks that a call which finds no place looks at: enough for many calls after it."""
_LONGEST_REQUEST_MS = 60_000
"""Longer than any request lives: API Gateway gives one 30 s."""
_TRIES = 20


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
            now = self._changes.clock.now()
            holders = self._limits.enter(key, task.task_id, most, now)
            if holders is None:
                return
            if len(holders) < most:
                continue
            over = self._over(task.owner, holders, now)
            if not over:
                raise TooManyOpen(most)
            self._limits.leave(key, over)
        raise StoreUnavailable("Places are taken faster than they can be given.")

    def _over(self, owner: str, holders: Mapping[str, int], now: int) -> dict[str, int]:
        """Those of the holders whose tasks are not open any more, as many as one call looks for."""
        over: dict[str, int] = {}
        for task_id, since in sorted(holders.items(), key=lambda place: place[1]):
            try:
                task = self._changes.store.read(task_id)
            except NewerLayout:
                continue
            # Between its place and its item, a call is on its way: it has no longer than a request has.
            gone = task is None and now - since >= _LONGEST_REQUEST_MS
            if gone or (task is not None and (not task.open or task.expired(now) or task.owner != owner)):
                over[task_id] = since
            if len(over) == _PRUNED_AT_ONCE:
                break
        return over


def _key(task: Task) -> str:
    return hashlib.sha256(json.dumps([task.owner, task.tool]).encode()).hexdigest()
