"""Requests of earlier revisions, served statelessly: 2025-11-25, 2025-06-18 and 2025-03-26.

They open with a handshake that leaves nothing behind here: every request is judged by itself, so that a client
that came by `initialize` after a slow start is served the modern wire as soon as it speaks it. A session id is
never given out, and nothing is ever pushed to such a client: what a job asks it is asked through tickets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taskrail.call import ClientInfo
from taskrail.errors import InvalidParams, InvalidRequest, MethodNotFound, MissingCapability
from taskrail.results import error_result
from taskrail.wire import protocol
from taskrail.wire.envelope import Reply, sendable
from taskrail.wire.http import JSON, HttpResponse
from taskrail.wire.jsonrpc import Message, RequestId, dumps
from taskrail.wire.ladder import Route, unsupported

if TYPE_CHECKING:
    from taskrail.caller import Caller
    from taskrail.server import Tool
    from taskrail.wire.experimental import Experimental

INITIALIZE = "initialize"
PING = "ping"
LATEST = "2025-11-25"
WITHOUT_HEADER = "2025-03-26"
"""What a request without a version header speaks (2025-06-18, basic/transports, "Protocol Version Header")."""
BATCHES = "2025-03-26"
"""The one revision whose clients may send batches."""
MOST_BATCHED = 100
"""Messages of a batch. Each is as much work, and as much log, as a request, and only one request is counted."""

_METHODS = (protocol.TOOLS_LIST, protocol.TOOLS_CALL)
_MODERN_ONLY = ("resultType", "ttlMs", "cacheScope")

Answer = Callable[[Route], Reply]
"""What the modern methods answer to a route."""


@dataclass(frozen=True)
class Request:
    """A request, and what it takes to answer it.

    Parameters
    ----------
    id, message, headers
        As it came.
    modern
        What the modern methods answer.
    caller
        Tells whose request it is, when it is about tasks.
    deadline
        Moment at which the answer must be on its way, in milliseconds since the epoch.
    """

    id: RequestId
    message: Message
    headers: Mapping[str, str]
    modern: Answer
    caller: Callable[[Route], Caller]
    deadline: int


def is_legacy(message: Message, headers: Mapping[str, str]) -> bool:
    """Whether a request speaks an earlier revision: it has no modern metadata, and no modern header either.

    Parameters
    ----------
    message
        The request.
    headers
        Its headers.
    """
    meta = message.params.get("_meta")
    if isinstance(meta, dict) and not protocol.MODERN_KEYS.isdisjoint(meta):
        return False
    version = version_of(headers)
    if version is None:
        # What no earlier revision has was meant for this one, and its answer says what is missing.
        return message.method not in protocol.METHODS or message.method in _METHODS
    return message.method == INITIALIZE or version in protocol.LEGACY_VERSIONS


def version_of(headers: Mapping[str, str]) -> str | None:
    """What the version header says; None without one."""
    return headers.get("mcp-protocol-version", "").strip(" \t") or None


def may_batch(headers: Mapping[str, str]) -> bool:
    """Whether a list of messages is served (2025-03-26, basic, "Batching")."""
    return (version_of(headers) or WITHOUT_HEADER) == BATCHES


def check_batch(messages: Sequence[Any]) -> None:
    """Refuse more messages at once than are served.

    Raises
    ------
    InvalidRequest
        There are too many.
    """
    if len(messages) > MOST_BATCHED:
        raise InvalidRequest(f"A batch has at most {MOST_BATCHED} messages here: send the others in another POST.")


class Legacy:
    """Answers such requests by the modern methods.

    Parameters
    ----------
    server_info, instructions
        What `initialize` tells of the server.
    find_tool
        The catalogue's tool of a name, if any.
    tasks
        The experimental tasks of 2025-11-25; None where they are not served.
    """

    def __init__(
        self,
        server_info: Mapping[str, Any],
        instructions: str | None,
        find_tool: Callable[[str], Tool | None],
        tasks: Experimental | None = None,
    ) -> None:
        self._server_info = dict(server_info)
        self._instructions = instructions
        self._find_tool = find_tool
        self._tasks = tasks

    def answer(self, request: Request) -> dict[str, Any]:
        """The JSON-RPC result of a request.

        Raises
        ------
        RpcError, ProtocolError
            The answer is an error.
        """
        method, params = request.message.method, request.message.params
        if method == INITIALIZE:
            return self._initialize(request)
        _check_version(request.headers)
        if method == PING:
            return {}
        tasks = self._tasks if version_of(request.headers) == protocol.EXPERIMENTAL else None
        if tasks is not None and method in protocol.EXPERIMENTAL_METHODS:
            route = Route(request.id, method, params, ClientInfo())
            return tasks.answer(route, request.caller(route), request.deadline)
        if method not in _METHODS:
            raise MethodNotFound("This server has no such method.")
        name = params.get("name")
        tool = self._find_tool(name) if method == protocol.TOOLS_CALL and isinstance(name, str) else None
        known = {key: value for key, value in params.items() if key in ("name", "arguments", "cursor")}
        route = Route(request.id, method, known, ClientInfo(), tool)
        if tasks is not None and method == protocol.TOOLS_CALL and "task" in params:
            return tasks.create(route, params["task"], lambda: request.caller(route), request.modern)
        try:
            reply = request.modern(route)
        except MissingCapability as missing:
            if "extensions" in missing.data["requiredCapabilities"]:
                if tasks is not None:
                    raise MethodNotFound("This tool can only be called as a task: call it with params.task.") from None
                raise InvalidParams("This tool is only for clients that know the Tasks extension.") from None
            asks = "This tool has to ask something before it starts; clients of this revision cannot be asked here."
            reply = Reply(error_result(asks))
        answer = {key: value for key, value in reply.fields.items() if key not in _MODERN_ONLY}
        if tasks is not None and method == protocol.TOOLS_LIST:
            answer["tools"] = [tasks.described(entry) for entry in answer["tools"]]
        return answer

    def _initialize(self, request: Request) -> dict[str, Any]:
        requested = request.message.params.get("protocolVersion")
        if not isinstance(requested, str):
            raise InvalidParams("params.protocolVersion must be a string.")
        version = requested if requested in protocol.SERVED_LEGACY else LATEST
        capabilities: dict[str, Any] = {"tools": {"listChanged": False}}
        if self._tasks is not None and version == protocol.EXPERIMENTAL:
            route = Route(request.id, INITIALIZE, {}, ClientInfo())
            capabilities["tasks"] = self._tasks.capability(lambda: request.caller(route))
        answer: dict[str, Any] = {
            "protocolVersion": version,
            "capabilities": capabilities,
            "serverInfo": self._server_info,
        }
        return answer if self._instructions is None else {**answer, "instructions": self._instructions}


def success(request_id: RequestId, result: Any) -> dict[str, Any]:
    """A result's message."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def error(request_id: RequestId | None, code: int, message: str, data: Any) -> dict[str, Any]:
    """An error's message."""
    told: dict[str, Any] = {"code": sendable(code), "message": message}
    if data is not None:
        told["data"] = data
    return {"jsonrpc": "2.0", "id": request_id, "error": told}


def response(body: Any) -> HttpResponse:
    """A message, or a batch of them, as these revisions get it: errors of the protocol's travel with 200."""
    return HttpResponse(200, {"Content-Type": JSON, "Cache-Control": "no-store"}, dumps(body))


def _check_version(headers: Mapping[str, str]) -> None:
    version = version_of(headers) or WITHOUT_HEADER
    if version not in protocol.SERVED_LEGACY:
        raise unsupported(version)
