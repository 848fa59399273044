"""Answers from outside the client: whoever holds an approval token may answer the one question that it names.

The token is made where a question is announced (an approver's own function), and travels in a link or a chat
button. The answer takes the same way as a client's: checked, kept, passed on, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taskrail.errors import TaskNotFound
from taskrail.questions import Question
from taskrail.rail.changes import Changes
from taskrail.rail.rail import Rail
from taskrail.signing import Grant, Signer
from taskrail.task import Task


class Approvals:
    """Makes approval tokens and takes answers with them.

    Parameters
    ----------
    rail, changes, signer
        Where answers go, where tasks are read, and who signs.
    """

    def __init__(self, rail: Rail, changes: Changes, signer: Signer) -> None:
        self._rail = rail
        self._changes = changes
        self._signer = signer

    def token(self, task_id: str, key: str, until: int) -> str:
        """A token for answering one question.

        Parameters
        ----------
        task_id, key
            The task, and the key of its question.
        until
            Moment after which it is refused, in milliseconds since the epoch.
        """
        return self._signer.approval_token(task_id, key, until)

    def question(self, token: object) -> Question | None:
        """The question of a token, while it is open; None when it is answered, over, or the token is no good.

        Raises
        ------
        StoreUnavailable
            No answer from the table.
        """
        found = self._find(token)
        return None if found is None else found[0].outstanding.get(found[1].detail)

    def answer(self, token: object, response: Mapping[str, Any]) -> bool:
        """Answer the question of a token; False when there is nothing to answer any more.

        Parameters
        ----------
        token
            An approval token.
        response
            ``{"action": "accept", "content": {...}}``, or ``decline``, or ``cancel``.

        Raises
        ------
        InvalidParams
            The answer does not fit the form; the question stays.
        StoreUnavailable
            The answer may not have been kept.
        """
        found = self._find(token)
        if found is None or found[1].detail not in found[0].outstanding:
            return False
        task, grant = found
        try:
            self._rail.update(task.owner, task.task_id, {grant.detail: response})
        except TaskNotFound:
            return False
        return True

    def _find(self, token: object) -> tuple[Task, Grant] | None:
        grant = self._signer.read_approval_token(token, self._changes.clock.now())
        if grant is None:
            return None
        task = self._changes.store.read(grant.task_id)
        if task is None or task.expired(self._changes.clock.now()):
            return None
        return task, grant
