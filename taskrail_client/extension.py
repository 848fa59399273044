"""The extension for an `mcp.Client` that is there already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mcp.client import ClientRequestContext
from mcp.client.extension import ClaimContext, ClientExtension, NotificationBinding, ResultClaim
from mcp.client.session import ClientSession
from mcp_types import CallToolResult, ErrorData, InputRequest

from taskrail_client.follow import Follower
from taskrail_client.listen import Listener
from taskrail_client.messages import EXTENSION, Handle, TaskNotice
from taskrail_client.pace import Pace
from taskrail_client.progress import Tell, silently
from taskrail_client.records import server_name
from taskrail_client.steady import Steady
from taskrail_client.store import Store
from taskrail_client.tasks import Tasks


class TaskrailTasks(ClientExtension):
    """Declares the tasks extension, remembers every ticket, and follows it to its result.

    Questions of a task go to the client's own callbacks. A connection that breaks ends the session of a client
    with the usual transport; give it `steady_transport(url)` in place of the URL.

    Parameters
    ----------
    server
        URL of the MCP endpoint: tasks are remembered under it.
    store
        What is remembered.
    tell
        Told of progress.
    listen
        Whether to listen when the server offers it.
    pace
        Pauses between requests.
    """

    identifier = EXTENSION

    def __init__(
        self, server: str, store: Store, *, tell: Tell = silently, listen: bool = True, pace: Pace | None = None
    ) -> None:
        pace = pace or Pace()
        self.listener = Listener(pace, store.now)
        self.tasks = Tasks(store, server_name(server), Steady(pace, store.now))
        self.follower = Follower(self.tasks, self.listener if listen else None)
        self._tell = tell

    def claims(self) -> Sequence[ResultClaim[Any]]:
        """One result shape: a task, in place of a result."""
        return (ResultClaim(result_type="task", model=Handle, resolve=self._resolve),)

    def notifications(self) -> Sequence[NotificationBinding[Any]]:
        """One notification: a task has changed."""
        return (
            NotificationBinding(method="notifications/tasks", params_type=TaskNotice, handler=self.listener.notice),
        )

    async def resume(self, session: ClientSession, task_id: str) -> CallToolResult:
        """Follow a task that was started before; errors as for `Follower.finish`.

        Parameters
        ----------
        session
            ``client.session``.
        task_id
            The task.
        """
        ask = asking(session)
        return await self.follower.finish(session, task_id, at_once=True, ask=ask, tell=self._tell)

    async def _resolve(self, handle: Handle, context: ClaimContext) -> CallToolResult:
        self.tasks.took(handle, context.tool_name)
        ask = asking(context.session)
        return await self.follower.finish(context.session, handle.task_id, at_once=False, ask=ask, tell=self._tell)


def asking(session: ClientSession) -> Callable[[str, InputRequest], Any]:
    """Puts questions to the callbacks of a client; one that it has no callback for is left open."""

    async def ask(key: str, request: InputRequest) -> dict[str, Any] | None:
        context = ClientRequestContext(session=session, request_id=key)
        response = await session.dispatch_input_request(context, request)
        if isinstance(response, ErrorData):
            return None
        return response.model_dump(by_alias=True, mode="json", exclude_none=True)

    return ask
