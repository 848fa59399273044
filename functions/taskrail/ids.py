"""Random names: passed in, so that tests can choose them."""

from __future__ import annotations

import re
import secrets
from typing import Protocol

_TASK_ID = re.compile(r"[0-9a-f]{32}")


class Ids(Protocol):
    """Where task ids and nonces come from."""

    def task_id(self) -> str:
        """A new task id: 32 hexadecimal characters, 128 unguessable bits."""
        ...

    def nonce(self) -> str:
        """A new name for one write."""
        ...


class RandomIds:
    """Ids from the operating system's randomness."""

    def task_id(self) -> str:
        """A new task id."""
        return secrets.token_hex(16)

    def nonce(self) -> str:
        """A new name for one write."""
        return secrets.token_hex(8)


def is_task_id(value: object) -> bool:
    """Whether a value from outside has the form of a task id and may become a key."""
    return isinstance(value, str) and _TASK_ID.fullmatch(value) is not None
