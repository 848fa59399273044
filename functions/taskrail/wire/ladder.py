"""The checks that every request passes, in their order; the first that fails answers.

The order is that of the kit's wire rules: metadata, headers, version, method, name, annotated
arguments, capabilities. What remains (the parameters' own meaning) is up to the method. Nothing here
looks at the clock, the store or the caller.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taskrail.call import ClientInfo
from taskrail.errors import TASKS_EXTENSION, InvalidParams, MethodNotFound, MissingCapability, UnsupportedVersion
from taskrail.wire import headers as mirrored
from taskrail.wire import protocol
from taskrail.wire.jsonrpc import Message, RequestId

if TYPE_CHECKING:
    from taskrail.server import Tool

_LONGEST_VERSION = 64
"""Characters of what a client takes for a version that it is told again."""

_TRACEPARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(frozen=True)
class Route:
    """A request that passed: where it goes and what goes with it.

    Parameters
    ----------
    id
        Id of the request, for its answer.
    method
        A method that this server has.
    params
        Its parameters; their own meaning is not checked yet.
    client
        Who says it is asking, and what it declared on this request.
    tool
        For `tools/call`: the tool, or None when there is none of that name.
    traceparent
        W3C trace context of the caller; None when absent or malformed.
    """

    id: RequestId
    method: str
    params: dict[str, Any]
    client: ClientInfo
    tool: Tool | None = None
    traceparent: str | None = None


def climb(
    request_id: RequestId, message: Message, headers: Mapping[str, str], find_tool: Callable[[str], Tool | None]
) -> Route:
    """Check a request of this revision, rung by rung.

    Parameters
    ----------
    request_id
        Id of the request.
    message
        The request.
    headers
        Its headers, by lower-case name.
    find_tool
        The catalogue's tool of that name, if any.

    Returns
    -------
    Route
        Where the request goes.

    Raises
    ------
    RpcError
        The answer to a request that does not pass.
    """
    method, params = message.method, message.params
    version, client, traceparent = _metadata(params)
    mirrored.require(headers, "MCP-Protocol-Version", version)
    mirrored.require(headers, "Mcp-Method", method)
    if version not in protocol.SUPPORTED_VERSIONS:
        raise unsupported(version)
    if method not in protocol.METHODS:
        raise MethodNotFound("This server has no such method.")
    tool = None
    if method == protocol.TOOLS_CALL:
        name = params.get("name")
        mirrored.match_name(headers, name, required=True)
        tool = find_tool(name) if isinstance(name, str) else None
        arguments = params.get("arguments", {})
        if tool is not None and isinstance(arguments, dict):
            mirrored.match_parameters(headers, tool.signature.headers, arguments)
    elif method in protocol.TASK_METHODS:
        mirrored.match_name(headers, params.get("taskId"), required=False)
    if not client.tasks and _needs_tasks(method, params):
        raise MissingCapability({"extensions": {TASKS_EXTENSION: {}}})
    return Route(request_id, method, params, client, tool, traceparent)


def unsupported(requested: str) -> UnsupportedVersion:
    """The error for a version that this server does not speak."""
    supported = ", ".join(protocol.SUPPORTED_VERSIONS)
    return UnsupportedVersion(
        f"Unsupported protocol version. This server speaks {supported}, declared on every request and without a "
        f"handshake, and {', '.join(protocol.SERVED_LEGACY)} with one.",
        {"supported": list(protocol.SUPPORTED_VERSIONS), "requested": requested[:_LONGEST_VERSION]},
    )


def _metadata(params: Mapping[str, Any]) -> tuple[str, ClientInfo, str | None]:
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        raise InvalidParams(
            "params._meta must be an object: every request carries "
            f"{protocol.VERSION_KEY!r} (here {', '.join(protocol.SUPPORTED_VERSIONS)}) and "
            f"{protocol.CAPABILITIES_KEY!r} in it."
        )
    version = meta.get(protocol.VERSION_KEY)
    if not isinstance(version, str):
        raise InvalidParams(f"params._meta[{protocol.VERSION_KEY!r}] must be a string.")
    capabilities = meta.get(protocol.CAPABILITIES_KEY)
    if not isinstance(capabilities, dict):
        raise InvalidParams(f"params._meta[{protocol.CAPABILITIES_KEY!r}] must be an object.")
    # Optional and self-reported: nothing may depend on it, so nothing is refused for it either.
    info = meta.get(protocol.CLIENT_KEY)
    name, release = (info.get("name"), info.get("version")) if isinstance(info, dict) else (None, None)
    client = ClientInfo(
        name=name if isinstance(name, str) else None,
        version=release if isinstance(release, str) else None,
        capabilities=capabilities,
    )
    trace = meta.get("traceparent")
    return version, client, trace if isinstance(trace, str) and _TRACEPARENT.fullmatch(trace) else None


def _needs_tasks(method: str, params: Mapping[str, Any]) -> bool:
    # Whether a tool needs them is told only to callers who may know of the tool (`Calls`).
    if method in protocol.TASK_METHODS:
        return True
    wanted = params.get("notifications") if method == protocol.LISTEN else None
    return isinstance(wanted, dict) and wanted.get("taskIds") is not None
