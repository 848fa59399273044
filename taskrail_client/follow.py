"""Following a task to its end: polls, answers what it asks, and passes on how it stands."""

from __future__ import annotations

from contextlib import suppress

import anyio
from mcp.client.session import ClientSession
from mcp_types import CallToolResult, InputRequest

from taskrail_client.errors import NoAnswer, TaskCancelled, TaskFailed
from taskrail_client.listen import SAFETY_POLL_MS, Bell, Listener, rest
from taskrail_client.messages import ENDED, State
from taskrail_client.progress import Ask, Progress, Tell, progress_of, silently
from taskrail_client.questions import AnswersNeeded, question_of
from taskrail_client.tasks import Tasks


class Follower:
    """Follows tasks.

    Parameters
    ----------
    tasks
        The tasks of one server.
    listener
        Hears of changes; None to poll only.
    """

    def __init__(self, tasks: Tasks, listener: Listener | None = None) -> None:
        self._tasks = tasks
        self._listener = listener

    async def finish(
        self, session: ClientSession, task_id: str, *, at_once: bool, ask: Ask, tell: Tell = silently
    ) -> CallToolResult:
        """Follow a task to its end.

        Parameters
        ----------
        session
            The connection.
        task_id
            The task.
        at_once
            Whether to look before the first pause, since it may have gone on while nobody looked.
        ask
            Answers questions.
        tell
            Told of progress.

        Raises
        ------
        AnswersNeeded
            It waits for an answer, and there is none now.
        TaskFailed, TaskCancelled, TaskGone
            It ended without a result.
        Refused
            As for `look`.
        """
        if self._listener is None or not self._listener.offered:
            return await self._follow(session, task_id, at_once, ask, tell, None)
        failure: Exception | None = None
        result: CallToolResult | None = None
        async with anyio.create_task_group() as ears:
            ears.start_soon(self._listener.keep, session, task_id)
            try:
                result = await self._follow(session, task_id, at_once, ask, tell, self._listener.bell(task_id))
            except Exception as error:
                # Leaving the group with it would wrap it.
                failure = error
            ears.cancel_scope.cancel()
        if failure is not None:
            raise failure
        assert result is not None
        return result

    async def _follow(
        self, session: ClientSession, task_id: str, at_once: bool, ask: Ask, tell: Tell, bell: Bell | None
    ) -> CallToolResult:
        record = self._tasks.record(task_id)
        if not at_once:
            await tell(Progress(task_id, record.tool, record.shown, record.status_message))
        while True:
            if not at_once:
                interval = record.poll_interval_ms
                if bell is not None:
                    bell.trusted = bell.heard
                    interval = max(interval or 0, SAFETY_POLL_MS) if bell.trusted else interval
                await rest(self._tasks.steady.pace.sleep, self._tasks.steady.pace.between_polls(interval), bell)
            at_once = False
            state = await self._tasks.look(session, task_id, tell)
            record = self._tasks.record(task_id)
            await tell(progress_of(state, record))
            if state.status in ENDED:
                return _outcome(state)
            # What gets no acknowledgement now stays owed, and is sent again after the next look.
            with suppress(NoAnswer):
                if record.cancel_owed:
                    await self._tasks.send_cancel(session, task_id)
                elif state.input_requests and not record.cancelling:
                    await self._attend(session, task_id, state.input_requests, ask)

    async def _attend(self, session: ClientSession, task_id: str, open_now: dict[str, InputRequest], ask: Ask) -> None:
        """Answer each question once: what was answered before is sent again, and not asked again."""
        left = []
        for key, request in open_now.items():
            if key not in self._tasks.answers(task_id):
                response = await ask(key, request)
                if response is None:
                    left.append(question_of(key, request, task_id))
                    continue
                self._tasks.answer(task_id, key, response)
            await self._tasks.deliver(session, task_id, key)
        if left:
            raise AnswersNeeded(task_id, left)


def _outcome(state: State) -> CallToolResult:
    if state.result is not None:
        return state.result
    if state.error is not None:
        raise TaskFailed(state.task_id, state.error.code, state.error.message)
    raise TaskCancelled(state.task_id)
