"""Repeated calls: within a tool's window the same call of the same owner gets the same task.

A reservation says which task a call has; whoever comes first creates it, whichever of them that is. A task
that ended in an error or was cancelled gives its place to the next call.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taskrail.errors import InvalidParams, PayloadGone, StoreUnavailable
from taskrail.payloads import Payloads
from taskrail.rail.changes import Changes
from taskrail.store import Reservation, Reservations
from taskrail.task import Status, Task

_TRIES = 10


@dataclass(frozen=True)
class Held:
    """What a call's reservation stands for.

    Parameters
    ----------
    key
        Key of the reservation.
    task_id
        The id that the call's task has, or is to get.
    existing
        The task, if it is there and answers this call.
    """

    key: str
    task_id: str
    existing: Task | None


class Repeats:
    """Finds the task of an earlier call.

    Parameters
    ----------
    changes, reservations, payloads
        Where tasks, reservations and large results are.
    """

    def __init__(self, changes: Changes, reservations: Reservations, payloads: Payloads) -> None:
        self._changes = changes
        self._reservations = reservations
        self._payloads = payloads

    def find(self, task: Task, arguments: Mapping[str, Any], idempotency_key: str | None, window_ms: int) -> Held:
        """The task that answers a call, or the id under which this call is to create it.

        Parameters
        ----------
        task
            The task as this call would create it.
        arguments
            Its arguments.
        idempotency_key
            The caller's own name for the call; without one the arguments name it.
        window_ms
            How long a reservation lasts, in milliseconds.

        Raises
        ------
        InvalidParams
            The idempotency key was used with other arguments.
        StoreUnavailable
            The reservation may or may not have been made; nothing was created.
        """
        now = self._changes.clock.now()
        digest = _digest(json.dumps(arguments, sort_keys=True))
        named = ["arguments", digest] if idempotency_key is None else ["key", idempotency_key]
        key = _digest(json.dumps([task.owner, task.tool, *named]))
        wanted = Reservation(key, task.task_id, digest, now + window_ms)
        instead_of: str | None = None
        for _ in range(_TRIES):
            held = self._reservations.take(wanted, now, instead_of=instead_of)
            if held.task_id == task.task_id:
                return Held(key, task.task_id, None)
            if held.digest != digest:
                raise InvalidParams("The idempotency key was used with other arguments: give this call another key.")
            existing = self._changes.store.read(held.task_id)
            if existing is None:
                # Its caller has not got to it yet, or never will, or its start was refused: whoever puts it first, it
                # is one task. To free the reservation after a refusal would take it from whoever comes in between.
                return Held(key, held.task_id, None)
            if existing.owner == task.owner and not existing.expired(now) and not self._ended_badly(existing):
                return Held(key, held.task_id, existing)
            instead_of = held.task_id
        raise StoreUnavailable("The reservation changes faster than it can be taken.")

    def free(self, task: Task) -> None:
        """Let the next call have a task of its own, since this one is gone for good.

        Raises
        ------
        StoreUnavailable
            Its reservation may still stand.
        """
        if task.reservation is not None:
            self._reservations.free(task.reservation, task.task_id)

    def _ended_badly(self, task: Task) -> bool:
        if task.status in (Status.CANCELLED, Status.FAILED):
            return True
        if task.status is not Status.COMPLETED:
            return False
        try:
            return bool(self._payloads.load(task.result or "{}").get("isError"))
        except PayloadGone:
            return True


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
