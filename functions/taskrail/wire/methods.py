"""The methods of this server, and the table from their names to what they do."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from taskrail.clock import Clock
from taskrail.errors import TASKS_EXTENSION, InvalidParams, TaskNotFound
from taskrail.ids import is_task_id
from taskrail.wire import protocol
from taskrail.wire.envelope import Reply, sendable_task
from taskrail.wire.ladder import Route

if TYPE_CHECKING:
    from taskrail.caller import Caller
    from taskrail.rail.rail import Rail
    from taskrail.server import TaskServer, Tool
    from taskrail.wire.calls import Calls
    from taskrail.wire.listen import Listening

_CACHE = {"ttlMs": protocol.CACHE_MS, "cacheScope": "public"}
"""The discovery never depends on who asks, the list only where tools are guarded."""


class Methods:
    """Answers requests that passed the ladder. What polls do without is loaded when it is first asked for.

    Parameters
    ----------
    server
        The catalogue.
    rail
        The tasks.
    clock
        Time, and its passing.
    secret
        Gives the key that signs what a question's retry brings back.
    listens
        What `subscriptions/listen` does: ``off``, ``hold`` or ``stream``.
    listens_ms
        How long a request that listens lasts at most, in milliseconds.
    """

    def __init__(
        self,
        server: TaskServer,
        rail: Rail,
        clock: Clock,
        secret: Callable[[], str],
        listens: str,
        listens_ms: int,
    ) -> None:
        self._rail = rail
        self._server = server
        self._clock = clock
        self._secret = secret
        self._listens = listens
        self._listens_ms = listens_ms
        self._entries = {name: tool.wire() for name, tool in server.tools.items()}
        self._private = server.guarded or server.tickets
        self._discovery = _discovery(server)
        self._owned = {
            protocol.TOOLS_CALL: self._call,
            protocol.TASKS_GET: self._get,
            protocol.TASKS_UPDATE: self._update,
            protocol.TASKS_CANCEL: self._cancel,
        }

    def needs_caller(self, route: Route) -> bool:
        """Whether a request reads or makes what belongs to somebody; discovery must not fail for want of one.

        Raises
        ------
        InvalidParams
            The request does not say, because its parameters are malformed.
        """
        if route.method == protocol.LISTEN:
            return self._listening.needs_caller(route)
        return route.method in self._owned or (route.method == protocol.TOOLS_LIST and self._server.guarded)

    def answer(self, route: Route, caller: Caller | None, deadline: int) -> Reply:
        """What the method answers.

        Parameters
        ----------
        route
            The request; it passed the ladder.
        caller
            Who is calling; needed where `needs_caller` says so.
        deadline
            Moment at which the answer must be on its way, in milliseconds since the epoch.

        Raises
        ------
        RpcError, ProtocolError
            The answer is an error.
        """
        if route.method == protocol.TOOLS_LIST:
            return self._list(route, caller)
        if route.method == protocol.LISTEN:
            return self._listening.listen(route, caller, deadline)
        if caller is None:
            return Reply(self._discovery)
        return self._owned[route.method](route, caller, deadline)

    def _list(self, route: Route, caller: Caller | None) -> Reply:
        tools = self._server.tools.items()
        listed = [self._entries[name] for name, tool in tools if caller is None or self._may_know(caller, tool)]
        if self._server.tickets and not route.client.tasks:
            from taskrail.wire.tickets import ENTRIES

            listed = [*map(self._for_ticket_holders, listed), *ENTRIES]
        cursor = route.params.get("cursor")
        start = 0 if cursor is None else _position(cursor, len(listed))
        end = start + protocol.PAGE_SIZE
        # What depends on the caller or on what it declared must not be kept for others (server/utilities/caching).
        scope = {"cacheScope": "private"} if self._private else {}
        fields: dict[str, Any] = {"tools": listed[start:end], **_CACHE, **scope}
        if end < len(listed):
            fields["nextCursor"] = _cursor(end)
        return Reply(fields)

    def _for_ticket_holders(self, entry: dict[str, Any]) -> dict[str, Any]:
        """A task tool without its output schema: a ticket is a result of it as well, and no error."""
        if self._server.tools[entry["name"]].policy is None:
            return entry
        return {key: value for key, value in entry.items() if key != "outputSchema"}

    def _may_know(self, caller: Caller, tool: Tool) -> bool:
        return caller.scopes.issuperset(tool.scopes) and self._server.admits(caller, tool)

    @cached_property
    def _calls(self) -> Calls:
        from taskrail.wire.calls import Calls
        from taskrail.wire.seal import Sealer

        return Calls(self._server, self._rail, self._clock, Sealer(self._secret))

    @cached_property
    def _listening(self) -> Listening:
        from taskrail.wire.listen import Listening

        return Listening(self._rail, self._clock, self._listens, self._listens_ms)

    def _call(self, route: Route, caller: Caller, deadline: int) -> Reply:
        return self._calls.call(route, caller, deadline)

    def _get(self, route: Route, caller: Caller, deadline: int) -> Reply:
        return Reply(sendable_task(self._rail.detail(self._rail.read(caller.owner, _task_id(route.params)))))

    def _update(self, route: Route, caller: Caller, deadline: int) -> Reply:
        task_id = _task_id(route.params)
        responses = route.params.get("inputResponses")
        if not isinstance(responses, dict):
            raise InvalidParams("params.inputResponses must be an object.")
        self._rail.update(caller.owner, task_id, responses)
        return Reply({})

    def _cancel(self, route: Route, caller: Caller, deadline: int) -> Reply:
        self._rail.cancel(caller.owner, _task_id(route.params))
        return Reply({})


def server_info(server: TaskServer) -> dict[str, Any]:
    """The server as it describes itself on every result (basic/index, "Implementation").

    Parameters
    ----------
    server
        The catalogue.
    """
    info = {"name": server.name, "version": server.version}
    return info if server.title is None else {**info, "title": server.title}


def _discovery(server: TaskServer) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "supportedVersions": list(protocol.SUPPORTED_VERSIONS),
        "capabilities": {"tools": {}, "extensions": {TASKS_EXTENSION: {}}},
    }
    if server.instructions is not None:
        fields["instructions"] = server.instructions
    return {**fields, **_CACHE}


def _task_id(params: Mapping[str, Any]) -> str:
    task_id = params.get("taskId")
    if not is_task_id(task_id):
        raise TaskNotFound
    return str(task_id)


def _cursor(position: int) -> str:
    return base64.urlsafe_b64encode(f"tools:{position}".encode("ascii")).decode("ascii").rstrip("=")


def _position(cursor: Any, count: int) -> int:
    """The place where a page begins; only a cursor that this list gives out is one."""
    pages = range(protocol.PAGE_SIZE, count, protocol.PAGE_SIZE)
    for position in pages:
        if cursor == _cursor(position):
            return position
    raise InvalidParams("params.cursor is not one that this list gave: list again without it.")
