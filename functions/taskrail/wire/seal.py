"""Request state: what a question's retry brings back, signed so that it can be believed.

The state travels through the client (basic/patterns/mrtr): whoever holds it may read it, nobody may
change it, use it for another call, or use it late. It carries the answers so far and the id that the
task will have, so that a retry sent twice starts one task.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from taskrail.errors import InvalidParams
from taskrail.ids import is_task_id
from taskrail.wire.jsonrpc import canonical

LIFE_MS = 3_600_000
"""How long a state can be brought back, in milliseconds."""

_VERSION = 1
_PURPOSE = b"taskrail request state 1"
_FORM = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{43})")


@dataclass(frozen=True)
class State:
    """What is carried from one round of a call to the next.

    Parameters
    ----------
    expires_at
        Moment after which it is refused, in milliseconds since the epoch.
    answers
        Responses that were usable, by the key of their question.
    task_id
        Id of the task that the call will make, or has made; None for an inline tool.
    started
        Whether that task exists already: the questions are the running job's.
    """

    expires_at: int
    answers: Mapping[str, Any] = field(default_factory=dict)
    task_id: str | None = None
    started: bool = False


@dataclass(frozen=True)
class Subject:
    """The call that a state belongs to; on any other it is refused.

    Parameters
    ----------
    owner
        Opaque key of the caller.
    tool
        Name of the tool.
    arguments
        As the client sent them.
    """

    owner: str
    tool: str
    arguments: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """What goes along in the state: it tells nothing about the call."""
        return _encode(hashlib.sha256(canonical([self.owner, self.tool, self.arguments])).digest())


class Sealer:
    """Signs states and takes them back.

    Parameters
    ----------
    secret
        Gives the deployment's secret, from which the key that signs is derived; called at the first use only.
    """

    def __init__(self, secret: Callable[[], str]) -> None:
        self._secret = secret

    def seal(self, state: State, subject: Subject) -> str:
        """The text that a client carries.

        Parameters
        ----------
        state
            What to carry.
        subject
            The call that it belongs to.
        """
        payload = {
            "v": _VERSION,
            "call": subject.digest,
            "answers": state.answers,
            "task": state.task_id,
            "started": state.started,
            "until": state.expires_at,
        }
        text = _encode(canonical(payload))
        return f"{text}.{self._signature(text)}"

    def open(self, text: Any, subject: Subject, now: int) -> State:
        """The state that a client brought back, if it is ours, for this call, and in time.

        Parameters
        ----------
        text
            What the client sent, whatever it is.
        subject
            The call that it came with.
        now
            Milliseconds since the epoch.

        Raises
        ------
        InvalidParams
            It fails in any way. Which way is told only where it helps and gives nothing away.
        """
        parts = _FORM.fullmatch(text) if isinstance(text, str) else None
        # The signature is compared as text: a decoder would let several texts pass for one signature.
        if parts is None or not hmac.compare_digest(self._signature(parts[1]), parts[2]):
            raise InvalidParams("requestState is not one that this server gave: call again without it.")
        payload = _payload(parts[1])
        if payload.get("v") != _VERSION or payload.get("call") != subject.digest:
            raise InvalidParams("requestState belongs to another call: call again without it.")
        if now >= payload["until"]:
            raise InvalidParams("requestState has expired: call again without it.")
        task_id = payload["task"]
        return State(
            expires_at=payload["until"],
            answers=payload["answers"],
            task_id=task_id if is_task_id(task_id) else None,
            started=payload["started"],
        )

    @cached_property
    def _key(self) -> bytes:
        return hmac.digest(self._secret().encode("utf-8"), _PURPOSE, "sha256")

    def _signature(self, text: str) -> str:
        return _encode(hmac.digest(self._key, text.encode("ascii"), "sha256"))


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")


def _payload(text: str) -> dict[str, Any]:
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        if _encode(data) != text:
            raise ValueError("not canonical")
        payload = json.loads(data)
    except (binascii.Error, ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict):
        raise InvalidParams("requestState cannot be read: call again without it.")
    return payload
