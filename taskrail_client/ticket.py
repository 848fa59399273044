"""What a call came to: a result at once, or a task."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from mcp_types import CallToolResult

from taskrail_client.callbacks import OnProgress
from taskrail_client.questions import OnQuestion


@dataclass(frozen=True)
class Ticket:
    """What a call came to.

    Parameters
    ----------
    task_id
        The task, or None when the call was answered at once.
    result
        The result, if it was.
    follow
        Follows a task to its end.
    """

    task_id: str | None
    result: CallToolResult | None
    follow: Callable[[str, bool, OnProgress | None, OnQuestion | None], Awaitable[CallToolResult]]

    async def finish(
        self, *, on_progress: OnProgress | None = None, on_question: OnQuestion | None = None
    ) -> CallToolResult:
        """The result, once it is there; parameters and errors as for `TaskrailClient.resume`."""
        if self.task_id is None:
            assert self.result is not None
            return self.result
        return await self.follow(self.task_id, False, on_progress, on_question)
