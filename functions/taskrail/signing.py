"""What the deployment signs for others to bring back: tokens for reports and for approvals.

A token names what it is for and until when; whoever changes a letter of it has none. Each purpose has a key
of its own, derived from the deployment's one secret.
"""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass

from taskrail.ids import is_task_id

_REPORT = b"taskrail report token 1"
_APPROVAL = b"taskrail approval token 1"
_FORM = re.compile(r"([0-9a-f]{32})\.([A-Za-z0-9_.-]{1,80})\.([0-9]{1,15})\.([A-Za-z0-9_-]{43})")


@dataclass(frozen=True)
class Grant:
    """What a token that could be believed says.

    Parameters
    ----------
    task_id
        The task.
    detail
        A run's number, or the key of a question.
    """

    task_id: str
    detail: str


class Signer:
    """Signs tokens and reads them.

    Parameters
    ----------
    secret
        Gives the deployment's secret; called at the first use only.
    """

    def __init__(self, secret: Callable[[], str]) -> None:
        self._secret = secret
        self._keys: dict[bytes, bytes] = {}

    def report_token(self, task_id: str, run: int, until: int) -> str:
        """A token with which the work of one run may report.

        Parameters
        ----------
        task_id, run
            Which run.
        until
            Moment after which it is refused, in milliseconds since the epoch.
        """
        return self._sign(_REPORT, task_id, str(run), until)

    def read_report_token(self, token: object, now: int) -> Grant | None:
        """What a report token says; None when it is none, not ours, or too old.

        Parameters
        ----------
        token
            What came in, whatever it is.
        now
            Milliseconds since the epoch.
        """
        return self._read(_REPORT, token, now)

    def approval_token(self, task_id: str, key: str, until: int) -> str:
        """A token with which whoever holds it may answer one question, as `report_token`."""
        return self._sign(_APPROVAL, task_id, key, until)

    def read_approval_token(self, token: object, now: int) -> Grant | None:
        """What an approval token says, as `read_report_token`."""
        return self._read(_APPROVAL, token, now)

    def _sign(self, purpose: bytes, task_id: str, detail: str, until: int) -> str:
        text = f"{task_id}.{detail}.{until}"
        return f"{text}.{self._signature(purpose, text)}"

    def _read(self, purpose: bytes, token: object, now: int) -> Grant | None:
        parts = _FORM.fullmatch(token) if isinstance(token, str) else None
        if parts is None:
            return None
        task_id, detail, until, signature = parts.groups()
        if not hmac.compare_digest(self._signature(purpose, f"{task_id}.{detail}.{until}"), signature):
            return None
        if now >= int(until) or not is_task_id(task_id):
            return None
        return Grant(task_id, detail)

    def _signature(self, purpose: bytes, text: str) -> str:
        key = self._keys.get(purpose)
        if key is None:
            key = self._keys[purpose] = hmac.digest(self._secret().encode(), purpose, "sha256")
        return base64.urlsafe_b64encode(hmac.digest(key, text.encode("ascii"), "sha256")).decode("ascii").rstrip("=")
