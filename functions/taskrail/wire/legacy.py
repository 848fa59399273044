"""Requests of earlier revisions, served statelessly: 2025-11-25, 2025-06-18 and 2025-03-26.

They open with a handshake that leaves nothing behind here: every request is judged by itself, so that a client
that came by `initialize` after a slow start is served the modern wire as soon as it speaks it. A session id is
never given out, and nothing is ever pushed to such a client: what a job asks it is asked through tickets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from taskrail.call import ClientInfo
from taskrail.errors import InvalidParams, MethodNotFound, MissingCapability
from taskrail.results import error_result
from taskrail.wire import protocol
from taskrail.wire.envelope import Reply, sendable
from taskrail.wire.http import JSON, HttpResponse
from taskrail.wire.jsonrpc import Message, RequestId, dumps
from taskrail.wire.ladder import Route, unsupported

if TYPE_CHECKING:
    from taskrail.server import Tool

INITIALIZE = "initialize"
PING = "ping"
LATEST = "2025-11-25"
WITHOUT_HEADER = "2025-03-26"
"""What a request without a version header speaks (2025-06-18, basic/transports, "Protocol Version Header")."""
BATCHES = "2025-03-26"
"""The one revision whose clients may send batches."""

_METHODS = (protocol.TOOLS_LIST, protocol.TOOLS_CALL)
_MODERN_ONLY = ("resultType", "ttlMs", "cacheScope")

Answer = Callable[[Route], Reply]
"""What the modern methods answer to a route."""


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


class Legacy:
    """Answers such requests by the modern methods.

    Parameters
    ----------
    server_info, instructions
        What `initialize` tells of the server.
    find_tool
        The catalogue's tool of a name, if any.
    """

    def __init__(
        self,
        server_info: Mapping[str, Any],
        instructions: str | None,
        find_tool: Callable[[str], Tool | None],
    ) -> None:
        self._server_info = dict(server_info)
        self._instructions = instructions
        self._find_tool = find_tool

    def answer(self, request_id: RequestId, message: Message, headers: Mapping[str, str], modern: Answer) -> Any:
        """The JSON-RPC result of a request.

        Parameters
        ----------
        request_id, message, headers
            The request.
        modern
            What the modern methods answer.

        Raises
        ------
        RpcError
            The answer is an error.
        """
        if message.method == INITIALIZE:
            return self._initialize(message.params)
        _check_version(headers)
        if message.method == PING:
            return {}
        if message.method not in _METHODS:
            raise MethodNotFound("This server has no such method.")
        name = message.params.get("name")
        tool = self._find_tool(name) if message.method == protocol.TOOLS_CALL and isinstance(name, str) else None
        if tool is not None and tool.mode == "required":
            raise InvalidParams("This tool is only for clients that know the Tasks extension.")
        params = {key: value for key, value in message.params.items() if key in ("name", "arguments", "cursor")}
        try:
            reply = modern(Route(request_id, message.method, params, ClientInfo(), tool))
        except MissingCapability:
            asks = "This tool has to ask something before it starts; clients of this revision cannot be asked here."
            reply = Reply(error_result(asks))
        return {key: value for key, value in reply.fields.items() if key not in _MODERN_ONLY}

    def _initialize(self, params: Mapping[str, Any]) -> dict[str, Any]:
        requested = params.get("protocolVersion")
        if not isinstance(requested, str):
            raise InvalidParams("params.protocolVersion must be a string.")
        answer: dict[str, Any] = {
            "protocolVersion": requested if requested in protocol.SERVED_LEGACY else LATEST,
            "capabilities": {"tools": {"listChanged": False}},
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
