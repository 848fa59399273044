"""Requests about tasks, by their ids. Everything is remembered before it is acted on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp import MCPError
from mcp.client.session import ClientSession
from mcp_types import INVALID_PARAMS

from taskrail_client.errors import InvalidAnswer, Refused, StoreError, TaskGone
from taskrail_client.messages import (
    Acknowledgement,
    CancelTask,
    GetTask,
    Handle,
    State,
    TaskParams,
    UpdateParams,
    UpdateTask,
)
from taskrail_client.progress import Progress, Tell, progress_of, silently
from taskrail_client.questions import Answer, answer_of, question_of
from taskrail_client.records import Record
from taskrail_client.steady import Steady
from taskrail_client.store import Store
from taskrail_client.trouble import NO_ANSWER, Kind, Trouble

REQUEST_SECONDS = 60.0
"""How long one request may take, whatever it is answered with, in seconds."""

PATIENCE_MS = 120_000
"""How long an update and a cancel are tried, in milliseconds. What was not acknowledged is owed: `resume` sends it."""


class Tasks:
    """The tasks of one server.

    Parameters
    ----------
    store
        What is remembered.
    server
        The name that the server's tasks are remembered under.
    steady
        Repeats requests.
    """

    def __init__(self, store: Store, server: str, steady: Steady) -> None:
        self.store = store
        self.server = server
        self.steady = steady

    def record(self, task_id: str) -> Record:
        """What is remembered of a task; from now on, if nothing was."""
        return self.store.find(self.server, task_id) or self.store.begin(self.server, task_id)

    def took(self, handle: Handle, tool: str, *, call_key: str | None = None, call_digest: str | None = None) -> Record:
        """Remember a ticket. This comes before anything else is done with it.

        Raises
        ------
        StoreError
            It cannot be remembered; the message carries the id.
        """
        try:
            self.store.begin(self.server, handle.task_id, tool=tool, call_key=call_key, call_digest=call_digest)
            return self._saw(handle)
        except StoreError as error:
            raise StoreError(f"{error} The call has become task {handle.task_id}, which goes on.") from error

    def answers(self, task_id: str) -> dict[str, dict[str, Any]]:
        """The answers of a task that were given, by key."""
        return self.store.answers(self.server, task_id)

    def answer(self, task_id: str, key: str, response: Mapping[str, Any]) -> dict[str, Any]:
        """Remember an answer; the one that counts comes back, which is the first one."""
        return self.store.answer(self.server, task_id, key, response)

    async def look(
        self, session: ClientSession, task_id: str, tell: Tell = silently, *, patience_ms: int | None = None
    ) -> State:
        """How a task stands. Passing trouble is ridden out: by default for as long as it takes.

        Raises
        ------
        TaskGone
            The server does not know it; believed at once when its time is over, otherwise when it is repeated.
        Refused
            The server does not answer such questions, or not to this caller.
        NoAnswer
            Patience is over.
        """
        record = self.record(task_id)

        async def send() -> State:
            state = await session.send_request(
                GetTask(params=TaskParams(task_id=task_id)), State, request_read_timeout_seconds=REQUEST_SECONDS
            )
            return _whole(state, task_id)

        async def told(trouble: Trouble, seconds: float) -> None:
            note = f"{trouble.reason}; next try in {seconds:.0f} s"
            await tell(Progress(task_id, record.tool, record.shown, record.status_message, note=note))

        try:
            state = await self.steady.ask(
                send,
                interval_ms=record.poll_interval_ms,
                patience_ms=patience_ms,
                sure=lambda: record.expired(self.store.now()),
                on_trouble=told,
            )
        except Refused as error:
            raise self._gone(task_id, error) from None
        self._saw(state)
        return state

    async def give(self, session: ClientSession, task_id: str, key: str, reply: Answer | Mapping[str, Any]) -> bool:
        """Answer a question; whether this answer counts. Errors as for `TaskrailClient.answer`."""
        state = await self.look(session, task_id)
        known = self.answers(task_id).get(key)
        request = (state.input_requests or {}).get(key)
        if known is None and request is None:
            names = ", ".join(state.input_requests or {}) or "none"
            raise InvalidAnswer(f"Task {task_id} has no open question {key!r}; open: {names}.")
        counts = known is None
        if known is None and request is not None:
            wanted = answer_of(question_of(key, request, task_id), reply).response()
            counts = self.answer(task_id, key, wanted) == wanted
        await self.deliver(session, task_id, key)
        return counts

    async def deliver(self, session: ClientSession, task_id: str, key: str) -> None:
        """Send the answer that is remembered under that key until it is acknowledged.

        Raises
        ------
        InvalidAnswer
            The server refused the answer; the question is open again.
        NoAnswer
            There was no acknowledgement for too long; the answer stays remembered, and `resume` sends it.
        TaskGone, Refused
            As for `look`.
        """
        response = self.answers(task_id).get(key)
        if response is None:
            return
        record = self.record(task_id)
        update = UpdateTask(params=UpdateParams(task_id=task_id, input_responses={key: response}))
        try:
            await self.steady.ask(
                lambda: session.send_request(update, Acknowledgement, request_read_timeout_seconds=REQUEST_SECONDS),
                interval_ms=record.poll_interval_ms,
                patience_ms=PATIENCE_MS,
            )
        except Refused as error:
            if error.code != INVALID_PARAMS:
                raise
            # The same code says that the task is unknown, which a look finds out.
            state = await self.look(session, task_id)
            if key in (state.input_requests or {}):
                self.store.take_back(self.server, task_id, key)
                raise InvalidAnswer(f"The answer to {key!r} was refused. {error}") from None
        else:
            self.store.delivered(self.server, task_id, key)

    async def cancel(self, session: ClientSession, task_id: str) -> Progress:
        """Ask for a task's cancellation; how it stands then. It is "cancelling" until the work has stopped.

        Raises
        ------
        NoAnswer
            There was no acknowledgement for too long; the cancellation is owed, and `resume` sends it.
        TaskGone, Refused
            As for `look`.
        """
        self.record(task_id)
        self.store.cancel(self.server, task_id, acknowledged=False)
        await self.send_cancel(session, task_id)
        return progress_of(await self.look(session, task_id), self.record(task_id))

    async def send_cancel(self, session: ClientSession, task_id: str) -> None:
        """Send the cancellation that is owed, until it is acknowledged; errors as for `cancel`."""
        record = self.record(task_id)
        request = CancelTask(params=TaskParams(task_id=task_id))
        try:
            await self.steady.ask(
                lambda: session.send_request(request, Acknowledgement, request_read_timeout_seconds=REQUEST_SECONDS),
                interval_ms=record.poll_interval_ms,
                patience_ms=PATIENCE_MS,
                sure=lambda: record.expired(self.store.now()),
            )
        except Refused as error:
            raise self._gone(task_id, error) from None
        self.store.cancel(self.server, task_id, acknowledged=True)

    def _gone(self, task_id: str, error: Refused) -> Exception:
        if error.code != INVALID_PARAMS:
            return error
        self.store.gone(self.server, task_id)
        return TaskGone(task_id)

    def _saw(self, state: State | Handle) -> Record:
        return self.store.saw(
            self.server,
            state.task_id,
            status=state.status,
            status_message=state.status_message,
            created_at=state.created_at,
            ttl_ms=state.ttl_ms,
            poll_interval_ms=state.poll_interval_ms,
            is_error=isinstance(state, State) and state.result is not None and state.result.is_error,
        )


def _whole(state: State, task_id: str) -> State:
    """The state, if it is one of that task and has what belongs to it; otherwise it counts as garbage."""
    missing = (state.status == "completed" and state.result is None) or (
        state.status == "failed" and state.error is None
    )
    if state.task_id != task_id or missing:
        trouble = Trouble(Kind.PASSING, "the answer was garbage")
        raise MCPError(NO_ANSWER, trouble.reason, trouble.data())
    return state
