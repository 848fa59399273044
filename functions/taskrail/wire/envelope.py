"""The one owner of an answer's envelope: results with their marks, errors with their codes and statuses."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from taskrail.errors import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
)
from taskrail.wire import protocol
from taskrail.wire.http import EVENT_STREAM, JSON, HttpResponse
from taskrail.wire.jsonrpc import RequestId, dumps

COMPLETE = "complete"
INPUT_REQUIRED = "input_required"
TASK = "task"

_STATUS_OF = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    METHOD_NOT_FOUND: 404,
    INVALID_PARAMS: 400,
    INTERNAL_ERROR: 500,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
}
"""HTTP status of each code that the protocol defines; an error of a tool's own travels with 200."""

_RESERVED = range(-32768, -31999)

_log = logging.getLogger("taskrail")

Event = Mapping[str, Any] | str
"""A notification; or what a stream says as it stands: a comment, or nothing for a moment without news."""


@dataclass(frozen=True)
class Reply:
    """What a method answers, before it is dressed.

    Parameters
    ----------
    fields
        The result's own fields; ``_meta`` among them is kept.
    kind
        The result's ``resultType``.
    notifications
        For a stream: what is sent before the result; None for an answer in one piece.
    live
        For a stream that goes out as it comes about: what is sent after those notifications and before the result.
    """

    fields: Mapping[str, Any]
    kind: str = COMPLETE
    notifications: tuple[Mapping[str, Any], ...] | None = None
    live: Iterator[Event] | None = None


class Envelope:
    """Dresses replies and errors.

    Parameters
    ----------
    server_info
        Name and version of the server, for every result's ``_meta`` (basic/index, "_meta").
    """

    def __init__(self, server_info: Mapping[str, Any]) -> None:
        self._server_info = dict(server_info)

    def success(self, request_id: RequestId, reply: Reply) -> HttpResponse:
        """A result: one JSON object, or a stream that ends with it, whole or as it comes about.

        Raises
        ------
        ValueError
            The result holds what JSON cannot carry.
        """
        result = {"resultType": reply.kind, **reply.fields}
        result["_meta"] = {**(result.pop("_meta", None) or {}), protocol.SERVER_KEY: self._server_info}
        answer = {"jsonrpc": "2.0", "id": request_id, "result": result}
        if reply.notifications is None:
            return HttpResponse(200, {"Content-Type": JSON, "Cache-Control": "no-store"}, dumps(answer))
        body = "".join(_frame({"jsonrpc": "2.0", **notification}) for notification in reply.notifications)
        # Without the second header a proxy may hold the stream back until it is long enough.
        headers = {"Content-Type": EVENT_STREAM, "X-Accel-Buffering": "no", "Cache-Control": "no-store"}
        if reply.live is None:
            return HttpResponse(200, headers, body + _frame(answer))
        return HttpResponse(200, headers, stream=_frames(body, reply.live, answer))


def _frames(first: str, live: Iterator[Event], answer: Mapping[str, Any]) -> Generator[str, None, None]:
    """A stream's parts. The status has gone out: what fails now is told by the stream's own last word."""
    yield first
    try:
        for event in live:
            yield event if isinstance(event, str) else _frame({"jsonrpc": "2.0", **event})
        yield _frame(answer)
    except Exception:
        _log.exception("a stream broke off")
        error = {"code": INTERNAL_ERROR, "message": "Internal error."}
        yield _frame({"jsonrpc": "2.0", "id": answer["id"], "error": error})


def _frame(message: Mapping[str, Any]) -> str:
    """A message as a server-sent event."""
    return f"data: {dumps(message)}\n\n"


def failure(
    request_id: RequestId | None, code: int, message: str, data: Any = None, *, status: int | None = None
) -> HttpResponse:
    """An error; without an id when none could be read.

    Parameters
    ----------
    request_id
        Id of the request in its own type.
    code, message, data
        The JSON-RPC error; `data` is left out when None.
    status
        HTTP status, where it is not the one that the code has.
    """
    code = sendable(code)
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    answer: dict[str, Any] = {"jsonrpc": "2.0", "error": error}
    if request_id is not None:
        answer["id"] = request_id
    headers = {"Content-Type": JSON, "Cache-Control": "no-store"}
    return HttpResponse(status or _STATUS_OF.get(code, 200), headers, dumps(answer))


def sendable_task(detail: Mapping[str, Any]) -> dict[str, Any]:
    """A task as `tasks/get` tells it; its error, if it has one, with a code that may be sent."""
    error = detail.get("error")
    if not isinstance(error, Mapping):
        return dict(detail)
    return {**detail, "error": {**error, "code": sendable(error["code"])}}


def sendable(code: int) -> int:
    """The code, or -32603 for one that nobody may send.

    The range -32768 to -32000 belongs to JSON-RPC and MCP; codes in it that they do not define must
    not be emitted (basic/index, "Error Codes"). A tool that raises one still gets its text across.
    """
    return INTERNAL_ERROR if code in _RESERVED and code not in _STATUS_OF else code
