"""How a task stands, for whoever waits for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from mcp_types import InputRequest

from taskrail_client.messages import PROGRESS_KEY, State
from taskrail_client.records import Record


@dataclass(frozen=True)
class Progress:
    """How a task stands, for whoever waits for it.

    Parameters
    ----------
    task_id, tool
        Which task.
    status
        ``working``, ``input_required``, ``cancelling``, ``completed``, ``failed``, ``cancelled``.
    message
        The task's own words.
    done, total
        Units of its own; None while it tells none.
    note
        Trouble on the way, and when the next try is.
    """

    task_id: str
    tool: str | None
    status: str
    message: str | None = None
    done: float | None = None
    total: float | None = None
    note: str | None = None


Ask = Callable[[str, InputRequest], Awaitable[dict[str, Any] | None]]
"""Puts one question to whoever answers; the response, or None for "not now"."""

Tell = Callable[[Progress], Awaitable[None]]
"""Told of progress."""


async def silently(progress: Progress) -> None:
    """Tell nobody."""


def progress_of(state: State, record: Record) -> Progress:
    """How a task stands, from what the server said and what is remembered."""
    told = (state.meta or {}).get(PROGRESS_KEY)
    numbers = told if isinstance(told, dict) else {}
    done, total = (
        value if isinstance(value, int | float) and not isinstance(value, bool) else None
        for value in (numbers.get("done"), numbers.get("total"))
    )
    return Progress(state.task_id, record.tool, record.shown, state.status_message, done, total)
