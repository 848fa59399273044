"""The client that survives: calls tools, follows their tasks, and takes them up again after whatever happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx2
from mcp import Client
from mcp_types import CallToolResult, Implementation, Tool

from taskrail_client.auth import check_url
from taskrail_client.callbacks import OnProgress, answered_elsewhere, ask_with, tell_with
from taskrail_client.calling import Caller
from taskrail_client.errors import NoAnswer, Refused, TaskGone
from taskrail_client.extension import TaskrailTasks
from taskrail_client.pace import Pace
from taskrail_client.progress import Progress, progress_of
from taskrail_client.questions import Answer, OnQuestion, Question, question_of
from taskrail_client.records import Record, server_name
from taskrail_client.store import Store
from taskrail_client.tasks import REQUEST_SECONDS
from taskrail_client.ticket import Ticket
from taskrail_client.transport import steady_transport

PROTOCOL = "2026-07-28"
VERSION = "1.0.0"


class TaskrailClient:
    """One server, and the tasks that this user has there.

    Parameters
    ----------
    url
        The MCP endpoint.
    auth
        Credentials: `BearerAuth`, `ApiKeyAuth`, `SigV4Auth`, or any other of httpx2. Never stored.
    store
        What is remembered: a `Store`, or the path of one; by default the user's own.
    listen
        Whether to listen for changes when the server offers it.
    pace
        Pauses between requests.
    transport
        What sends HTTP, if not httpx2's own.

    Raises
    ------
    AuthError
        Credentials may not be sent to that URL.
    StoreError
        The store cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        auth: httpx2.Auth | None = None,
        store: Store | Path | str | None = None,
        listen: bool = True,
        pace: Pace | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        check_url(url, carries_credentials=auth is not None)
        self.store = store if isinstance(store, Store) else Store(store)
        self._owns_store = not isinstance(store, Store)
        self._server = server_name(url)
        self._extension = TaskrailTasks(url, self.store, listen=listen, pace=pace)
        self._tasks = self._extension.tasks
        self._client = Client(
            steady_transport(url, auth=auth, transport=transport),
            mode=PROTOCOL,
            extensions=[self._extension],
            elicitation_callback=answered_elsewhere,
            read_timeout_seconds=REQUEST_SECONDS,
            client_info=Implementation(name="taskrail_client", version=VERSION),
        )
        self._caller = Caller(self._client, self._tasks)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Be ready; nothing is sent yet."""
        await self._stack.enter_async_context(self._client)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Hang up. Tasks go on."""
        try:
            await self._stack.aclose()
        finally:
            if self._owns_store:
                self.store.close()

    async def tools(self) -> list[Tool]:
        """The tools of the server."""
        return await self._caller.tools()

    async def start(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        on_question: OnQuestion | None = None,
        idempotency_key: str | None = None,
    ) -> Ticket:
        """Call a tool, and do not wait for a task's end.

        Parameters
        ----------
        tool, arguments
            What to call, and with what.
        on_question
            Answers questions that come before there is a task.
        idempotency_key
            A name for this call, of your own choosing: repeated with the same name, it finds its task again, and
            a call that got no answer is repeated by itself. The tool must be declared with ``dedupe=``.

        Raises
        ------
        CallUnanswered
            Whether the server took the call is unknown.
        Refused, UnknownTool, InvalidArguments
            The server does not take it.
        AnswersNeeded
            It asks, and `on_question` does not answer.
        """
        taken = await self._caller.call(tool, dict(arguments or {}), ask_with(on_question), idempotency_key)
        if isinstance(taken, CallToolResult):
            return Ticket(None, taken, self._follow)
        return Ticket(taken, None, self._follow)

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        on_progress: OnProgress | None = None,
        on_question: OnQuestion | None = None,
        idempotency_key: str | None = None,
    ) -> CallToolResult:
        """Call a tool and follow its task, if it becomes one, to its result; as `start` and `resume` together."""
        ticket = await self.start(tool, arguments, on_question=on_question, idempotency_key=idempotency_key)
        return await ticket.finish(on_progress=on_progress, on_question=on_question)

    async def resume(
        self, task_id: str, *, on_progress: OnProgress | None = None, on_question: OnQuestion | None = None
    ) -> CallToolResult:
        """Follow a task that was started before, here or anywhere, to its result.

        Parameters
        ----------
        task_id
            The task.
        on_progress
            Told how it stands after each look, and of trouble on the way.
        on_question
            Returns an `Answer`, the fields of an accepted form, or None to leave the question open. It is called
            once per question, whatever happens to the answer on its way.

        Raises
        ------
        AnswersNeeded
            The task waits for an answer that `on_question` does not give.
        TaskFailed, TaskCancelled, TaskGone
            It ended without a result.
        Refused
            The server does not serve this caller. The task is not touched by that.
        """
        return await self._follow(task_id, True, on_progress, on_question)

    async def _follow(
        self, task_id: str, at_once: bool, on_progress: OnProgress | None, on_question: OnQuestion | None
    ) -> CallToolResult:
        follower, ask, tell = self._extension.follower, ask_with(on_question, task_id), tell_with(on_progress)
        return await follower.finish(self._client.session, task_id, at_once=at_once, ask=ask, tell=tell)

    async def look(self, task_id: str, *, on_progress: OnProgress | None = None) -> Progress:
        """How a task stands now; errors as for `resume`."""
        state = await self._tasks.look(self._client.session, task_id, tell_with(on_progress))
        return progress_of(state, self._tasks.record(task_id))

    async def try_look(self, task_id: str) -> None:
        """Bring what is remembered of a task up to date, once; trouble leaves it as it is."""
        with suppress(Refused, TaskGone, NoAnswer):
            await self._tasks.look(self._client.session, task_id, patience_ms=0)

    async def questions(self, task_id: str) -> Sequence[Question]:
        """The questions of a task that are open and were not answered from here; errors as for `resume`."""
        state = await self._tasks.look(self._client.session, task_id)
        known = self._tasks.answers(task_id)
        asked = (state.input_requests or {}).items()
        return [question_of(key, request, task_id) for key, request in asked if key not in known]

    def list(self) -> list[Record]:
        """The tasks that are remembered, newest first, with their last known state. Nothing is sent."""
        return self.store.list(self._server)

    async def answer(self, task_id: str, key: str, reply: Answer | Mapping[str, Any]) -> bool:
        """Answer a question of a task.

        Parameters
        ----------
        task_id, key
            Which question.
        reply
            An `Answer`, or the fields of an accepted form.

        Returns
        -------
        bool
            Whether this answer counts; False when the question had been answered before.

        Raises
        ------
        InvalidAnswer
            It does not fit the form, or no such question is open.
        NoAnswer, TaskGone, Refused
            As for `cancel`.
        """
        return await self._tasks.give(self._client.session, task_id, key, reply)

    async def cancel(self, task_id: str) -> Progress:
        """Ask for a task's cancellation; how it stands then. It is "cancelling" until its work has stopped.

        Raises
        ------
        NoAnswer
            The server did not acknowledge it for two minutes; `resume` sends it again.
        TaskGone, Refused
            As for `resume`.
        """
        return await self._tasks.cancel(self._client.session, task_id)
