"""From the functions that a user of the client gives, plain or async, to those that its parts call."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from mcp.client import ClientRequestContext
from mcp_types import ElicitRequestParams, ErrorData, InputRequest

from taskrail_client.progress import Ask, Progress, Tell
from taskrail_client.questions import OnQuestion, answer_of, question_of

OnProgress = Callable[[Progress], Awaitable[None] | None]


async def answered_elsewhere(context: ClientRequestContext, params: ElicitRequestParams) -> ErrorData:
    """Declares that questions can be put; they are put where it is known whose they are."""
    return ErrorData(code=-32600, message="Questions are answered with the call or the task that asks them.")


def ask_with(on_question: OnQuestion | None, task_id: str | None = None) -> Ask:
    """Puts questions to `on_question`; an answer that does not fit its form is an `InvalidAnswer`."""

    async def ask(key: str, request: InputRequest) -> dict[str, Any] | None:
        if on_question is None:
            return None
        question = question_of(key, request, task_id)
        reply = on_question(question)
        reply = await reply if inspect.isawaitable(reply) else reply
        return None if reply is None else answer_of(question, reply).response()

    return ask


def tell_with(on_progress: OnProgress | None) -> Tell:
    """Passes progress to `on_progress`."""

    async def tell(progress: Progress) -> None:
        if on_progress is not None:
            told = on_progress(progress)
            if inspect.isawaitable(told):
                await told

    return tell
