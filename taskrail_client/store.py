"""What the client remembers: one SQLite file, safe for several processes and for a kill at any moment.

It holds ids, times, states and answers that are on their way. It never holds a credential, an argument or a
result, and an answer's content only until the task is over.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from taskrail_client.database import Database
from taskrail_client.errors import StoreError
from taskrail_client.messages import ENDED
from taskrail_client.records import GONE, Record, default_path

KEEP_MS = 7 * 24 * 3_600_000
"""How long an ended or expired task stays in the list, in milliseconds."""


class Store:
    """The file.

    Parameters
    ----------
    path
        Where it is; by default the user's own. Made when missing, for this user only.
    now
        Milliseconds since the epoch.

    Raises
    ------
    StoreError
        It cannot be opened, is no store, or was written by a newer version. Every other method raises it when the
        file cannot be read or written.
    """

    def __init__(self, path: Path | str | None = None, *, now: Callable[[], int] | None = None) -> None:
        self.path = Path(path) if path is not None else default_path()
        self._now = now or (lambda: time.time_ns() // 1_000_000)
        self._db = Database(self.path)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def now(self) -> int:
        """Milliseconds since the epoch."""
        return self._now()

    def begin(
        self,
        server: str,
        task_id: str,
        *,
        tool: str | None = None,
        call_key: str | None = None,
        call_digest: str | None = None,
    ) -> Record:
        """Remember a task; one that is remembered already stays as it is."""
        now = self.now()
        self._db.run(
            "INSERT INTO tasks (server, task_id, tool, call_key, call_digest, began_ms, status, seen_ms)"
            " VALUES (?, ?, ?, ?, ?, ?, 'working', ?) ON CONFLICT DO UPDATE SET"
            " tool = coalesce(tool, excluded.tool), call_key = coalesce(call_key, excluded.call_key),"
            " call_digest = coalesce(call_digest, excluded.call_digest)",
            (server, task_id, tool, call_key, call_digest, now, now),
        )
        return self._found(server, task_id)

    def saw(
        self,
        server: str,
        task_id: str,
        *,
        status: str,
        status_message: str | None,
        created_at: str | None,
        ttl_ms: int | None,
        poll_interval_ms: int | None,
        is_error: bool = False,
    ) -> Record:
        """Remember how a task stands. The first end that was seen stays; it takes the answers' contents along."""
        told = (status, status_message, created_at, ttl_ms, poll_interval_ms)
        known = self._found(server, task_id)
        if known.ended or told == known.told:
            return known
        with self._db.change():
            self._db.run(
                "UPDATE tasks SET status = ?, status_message = ?, created_at = ?, ttl_ms = ?, poll_interval_ms = ?,"
                " is_error = ?, seen_ms = ? WHERE server = ? AND task_id = ?"
                " AND status NOT IN ('completed', 'failed', 'cancelled')",
                (*told, is_error, self.now(), server, task_id),
            )
            if status in ENDED:
                self._db.run("UPDATE answers SET response = NULL WHERE server = ? AND task_id = ?", (server, task_id))
        return self._found(server, task_id)

    def gone(self, server: str, task_id: str) -> None:
        """Remember that the server does not know a task: asked with other credentials, it may. A mere id is dropped."""
        with self._db.change():
            which = "WHERE server = ? AND task_id = ?"
            self._db.run(f"DELETE FROM tasks {which} AND created_at IS NULL", (server, task_id))
            self._db.run(
                f"UPDATE tasks SET status = ?, seen_ms = ? {which} AND status NOT IN"
                " ('completed', 'failed', 'cancelled')",
                (GONE, self.now(), server, task_id),
            )

    def find(self, server: str, task_id: str) -> Record | None:
        """A task, if it is remembered."""
        return self._one("SELECT * FROM tasks WHERE server = ? AND task_id = ?", server, task_id)

    def find_call(self, server: str, tool: str, call_key: str) -> Record | None:
        """The newest task of the calls of a tool with that idempotency key."""
        return self._one(
            "SELECT * FROM tasks WHERE server = ? AND tool = ? AND call_key = ? ORDER BY began_ms DESC LIMIT 1",
            server,
            tool,
            call_key,
        )

    def list(self, server: str) -> list[Record]:
        """Every task of a server, newest first; those that ended or expired long ago are dropped."""
        old = self.now() - KEEP_MS
        with self._db.change():
            self._db.run(
                "DELETE FROM tasks WHERE seen_ms < ? AND (status IN ('completed', 'failed', 'cancelled', 'gone')"
                " OR began_ms + ttl_ms < ?)",
                (old, old),
            )
            self._db.run(
                "DELETE FROM answers WHERE NOT EXISTS (SELECT 1 FROM tasks"
                " WHERE tasks.server = answers.server AND tasks.task_id = answers.task_id)"
            )
        rows = self._db.run("SELECT * FROM tasks WHERE server = ? ORDER BY began_ms DESC, task_id", (server,))
        return [_record(row) for row in rows]

    def cancel(self, server: str, task_id: str, *, acknowledged: bool) -> None:
        """Remember that a cancellation was asked for, or that the server has acknowledged it."""
        self._db.run(
            "UPDATE tasks SET cancelling = 1, cancel_owed = ? WHERE server = ? AND task_id = ?",
            (not acknowledged, server, task_id),
        )

    def answer(self, server: str, task_id: str, key: str, response: Mapping[str, Any]) -> dict[str, Any]:
        """Remember an answer before it is sent; the answer that counts comes back: the first one, whoever gave it."""
        self._db.run(
            "INSERT INTO answers (server, task_id, key, response, answered_ms) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            (server, task_id, key, json.dumps(response), self.now()),
        )
        return self.answers(server, task_id).get(key, dict(response))

    def answers(self, server: str, task_id: str) -> dict[str, dict[str, Any]]:
        """The answers of a task that is not over, by key."""
        rows = self._db.run(
            "SELECT key, response FROM answers WHERE server = ? AND task_id = ? AND response IS NOT NULL",
            (server, task_id),
        )
        return {row["key"]: json.loads(row["response"]) for row in rows}

    def delivered(self, server: str, task_id: str, key: str) -> None:
        """Remember that the server has acknowledged an answer."""
        self._db.run(
            "UPDATE answers SET delivered = 1 WHERE server = ? AND task_id = ? AND key = ?", (server, task_id, key)
        )

    def take_back(self, server: str, task_id: str, key: str) -> None:
        """Forget an answer that the server refused, so that the question may be answered again."""
        self._db.run(
            "DELETE FROM answers WHERE server = ? AND task_id = ? AND key = ? AND NOT delivered", (server, task_id, key)
        )

    def _one(self, statement: str, *values: object) -> Record | None:
        row = self._db.run(statement, values).fetchone()
        return None if row is None else _record(row)

    def _found(self, server: str, task_id: str) -> Record:
        record = self.find(server, task_id)
        if record is None:
            raise StoreError(f"The store {self.path} lost task {task_id}: another process forgot it.")
        return record


def _record(row: sqlite3.Row) -> Record:
    flags = {name: bool(row[name]) for name in ("is_error", "cancel_owed", "cancelling")}
    return Record(**{**dict(row), **flags})
