"""The SQLite file under the store: opened for several processes, made when missing, its errors in words."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from taskrail_client.errors import StoreError

VERSION = 1
"""Version of the schema, kept in ``PRAGMA user_version``."""

BUSY_SECONDS = 10.0
"""How long one process waits for another's write, in seconds."""

_SCHEMA = """
CREATE TABLE tasks (
    server TEXT NOT NULL, task_id TEXT NOT NULL, tool TEXT, call_key TEXT, call_digest TEXT,
    began_ms INTEGER NOT NULL, created_at TEXT, ttl_ms INTEGER, poll_interval_ms INTEGER,
    status TEXT NOT NULL, status_message TEXT, seen_ms INTEGER NOT NULL,
    is_error INTEGER NOT NULL DEFAULT 0, cancel_owed INTEGER NOT NULL DEFAULT 0, cancelling INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (server, task_id)
) WITHOUT ROWID;
CREATE INDEX tasks_by_key ON tasks (server, tool, call_key);
CREATE TABLE answers (
    server TEXT NOT NULL, task_id TEXT NOT NULL, key TEXT NOT NULL,
    response TEXT, answered_ms INTEGER NOT NULL, delivered INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (server, task_id, key)
) WITHOUT ROWID;
"""


class Database:
    """An open file.

    Parameters
    ----------
    path
        Where it is; made when missing, for this user only.

    Raises
    ------
    StoreError
        It cannot be opened, is no store, or was written by a newer version.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            self._db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from error
        self._db.row_factory = sqlite3.Row
        try:
            self._prepare()
        except BaseException:
            self._db.close()
            raise

    def run(self, statement: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        """Execute one statement.

        Raises
        ------
        StoreError
            It could not be: the disk is full, say.
        """
        try:
            return self._db.execute(statement, values)
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    @contextmanager
    def change(self) -> Iterator[None]:
        """Several statements that count together or not at all."""
        self.run("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.run("ROLLBACK")
            raise
        self.run("COMMIT")

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _prepare(self) -> None:
        # Turning to WAL does not wait for other processes by itself, unlike everything after it.
        until = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self.run("PRAGMA journal_mode = WAL")
                break
            except StoreError as error:
                if "locked" not in str(error) or time.monotonic() > until:
                    raise
                time.sleep(0.01)
        self.run("PRAGMA synchronous = FULL")
        with self.change():
            version = self.run("PRAGMA user_version").fetchone()[0]
            if version > VERSION:
                raise StoreError(f"The store {self._path} was written by a newer version of this client: update it.")
            if version == 0:
                for statement in _SCHEMA.split(";"):
                    self.run(statement)
                self.run(f"PRAGMA user_version = {VERSION}")

    def _unusable(self, error: Exception) -> StoreError:
        return StoreError(f"The store {self._path} cannot be used: {error}")
