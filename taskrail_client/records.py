"""What is remembered of one task, and the names that it is remembered under."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from taskrail_client.messages import ENDED

STORE_VARIABLE = "TASKRAIL_STORE"
"""Environment variable that names the file."""

GONE = "gone"
"""Status, of this client's own, of a task that the server said it does not know."""


@dataclass(frozen=True)
class Record:
    """What is remembered of one task.

    Parameters
    ----------
    server, task_id
        Whose task, and which.
    tool
        What was called, if known here.
    call_key, call_digest
        The idempotency key of the call, if it had one, and a digest of the arguments that it came with.
    began_ms, created_at, ttl_ms, poll_interval_ms
        When it was first seen by this machine's clock (milliseconds since the epoch), and the server's own words.
    status, status_message, seen_ms
        The last known state, and when it was seen.
    is_error
        Whether it is known to have completed with an error of the tool.
    cancel_owed, cancelling
        Whether a cancellation still has to be acknowledged, and whether one was ever asked for.
    """

    server: str
    task_id: str
    tool: str | None
    call_key: str | None
    call_digest: str | None
    began_ms: int
    created_at: str | None
    ttl_ms: int | None
    poll_interval_ms: int | None
    status: str
    status_message: str | None
    seen_ms: int
    is_error: bool
    cancel_owed: bool
    cancelling: bool

    @property
    def ended(self) -> bool:
        """Whether its last known state never changes again."""
        return self.status in ENDED

    @property
    def told(self) -> tuple[str, str | None, str | None, int | None, int | None]:
        """What the server said of it last."""
        return self.status, self.status_message, self.created_at, self.ttl_ms, self.poll_interval_ms

    @property
    def shown(self) -> str:
        """The status for a person: a cancelled task is "cancelling" until it has stopped."""
        return "cancelling" if self.cancelling and not self.ended else self.status

    def expired(self, now_ms: int) -> bool:
        """Whether the server has promised to remember it only until before now."""
        return self.ttl_ms is not None and self.began_ms + self.ttl_ms < now_ms


def default_path() -> Path:
    """Where the store is unless told otherwise: `TASKRAIL_STORE`, or the user's folder for state."""
    if named := os.environ.get(STORE_VARIABLE):
        return Path(named)
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "taskrail" / "tasks.sqlite3"


def server_name(url: str) -> str:
    """The name under which a server's tasks are remembered: its URL, the query as a digest since it may be secret.

    Parameters
    ----------
    url
        The MCP endpoint.
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    default = {"http": 80, "https": 443}.get(parts.scheme)
    port = f":{parts.port}" if parts.port not in (None, default) else ""
    query = f"?{hashlib.sha256(parts.query.encode()).hexdigest()[:16]}" if parts.query else ""
    return f"{parts.scheme}://{host}{port}{parts.path or '/'}{query}"


def digest_of(arguments: Mapping[str, Any]) -> str:
    """What tells the arguments of one call from those of another, and does not tell them to a reader."""
    return hashlib.sha256(json.dumps(arguments, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()
