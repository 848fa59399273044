"""JSON and the JSON-RPC envelope, read strictly; and JSON text that always can be sent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from taskrail.errors import InvalidRequest, ParseError

RequestId = str | int

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_INFINITE = (float("inf"), float("-inf"))

_LONGEST_ID = 1_024
"""Characters of a request's id: it comes back in every answer, whose size has a limit of its own."""


class BodyTooLarge(InvalidRequest):
    """The body is larger than this server reads."""

    http_status = 413


@dataclass(frozen=True)
class Message:
    """A request, or a notification when it has no id.

    Parameters
    ----------
    id
        The request's id in its own type; None for a notification.
    method
        What is asked for.
    params
        Its parameters; empty when there are none.
    """

    id: RequestId | None
    method: str
    params: dict[str, Any]


def loads(body: bytes | None, *, max_bytes: int, max_depth: int, max_values: int) -> Any:
    """The value that a request's body holds.

    Lone surrogates, which JavaScript writes when it cuts an emoji in two, become U+FFFD as in a
    browser's own encoder: nothing behind the wire could store them. The request's id stays as it is.

    Parameters
    ----------
    body
        The bytes; None when they could not be had.
    max_bytes
        Longest body that is read, in bytes.
    max_depth
        Deepest nesting that is read.
    max_values
        Most values that are read.

    Raises
    ------
    ParseError
        It is not JSON.
    InvalidRequest
        It is too long, nested too deeply, or holds too many values.
    """
    if body is None:
        raise ParseError("The body is marked as base64 but is not base64.")
    if len(body) > max_bytes:
        raise BodyTooLarge(f"The body is longer than the {max_bytes} bytes that this server reads.")
    try:
        text = body.decode("utf-8")
        value = _DECODER.decode(text)
    except RecursionError:
        raise _too_deep(max_depth) from None
    except ValueError:
        # Also what a number with more digits than Python converts ends in.
        raise ParseError("The body is not JSON.") from None
    containers = text.count("{") + text.count("[")
    if containers > max_depth and _deeper_than(value, max_depth):
        raise _too_deep(max_depth)
    # Every value but the first of a list or an object follows a comma.
    if text.count(",") + containers > max_values and _more_than(value, max_values):
        raise BodyTooLarge(f"The body holds more than the {max_values} values that this server reads.")
    if "\\u" not in text or _SURROGATE_ESCAPE.search(text) is None:
        return value
    repaired = _repaired(value)
    if isinstance(value, dict) and "id" in value:
        repaired["id"] = value["id"]
    return repaired


def readable_id(value: Any) -> RequestId | None:
    """The id that an answer to this value can carry; None when there is none to be read."""
    candidate = value.get("id") if isinstance(value, dict) else None
    if isinstance(candidate, str):
        return candidate if len(candidate) <= _LONGEST_ID else None
    return candidate if isinstance(candidate, int) and not isinstance(candidate, bool) else None


def message(value: Any) -> Message:
    """The request or notification that a JSON value is (basic/index, "Messages").

    Raises
    ------
    InvalidRequest
        It is neither; the message says why.
    """
    if isinstance(value, list):
        raise InvalidRequest("Batches are not part of this revision: send one request per POST.")
    if not isinstance(value, dict):
        raise InvalidRequest("The body must be a JSON object.")
    request_id = readable_id(value)
    if request_id is None and "id" in value:
        raise InvalidRequest(f"'id' must be an integer, or a string of at most {_LONGEST_ID} characters.")
    if value.get("jsonrpc") != "2.0":
        raise InvalidRequest("'jsonrpc' must be \"2.0\".")
    method = value.get("method")
    if not isinstance(method, str):
        raise InvalidRequest("'method' must be a string.")
    params = value.get("params", {})
    if not isinstance(params, dict):
        raise InvalidRequest("'params' must be an object.")
    return Message(request_id, method, params)


def dumps(value: Any) -> str:
    """JSON text that encodes to UTF-8 whatever strings it holds.

    Raises
    ------
    ValueError
        A number is not finite.
    """
    text = _ENCODER.encode(value)
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def canonical(value: Any) -> bytes:
    """The one spelling of a JSON value, for digests and signatures."""
    return json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":")).encode("ascii")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _finite(text: str) -> float:
    number = float(text)
    if number in _INFINITE:
        raise ValueError("number out of range")
    return number


# Made once: `json.loads` and `json.dumps` make theirs anew for every call with options.
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _too_deep(max_depth: int) -> InvalidRequest:
    return InvalidRequest(f"The body is nested deeper than the {max_depth} levels that this server reads.")


def _deeper_than(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [item for container in level for item in _items(container) if isinstance(item, dict | list)]
        if not level:
            return False
    return True


def _more_than(value: Any, limit: int) -> bool:
    """Whether there are more values than that in it; its nesting is known to end."""
    level, count = [value], 0
    while level:
        items = [item for container in level for item in _items(container)]
        count += len(items)
        if count > limit:
            return True
        level = [item for item in items if isinstance(item, dict | list)]
    return False


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _repaired(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_repaired(item) for item in value]
    if isinstance(value, dict):
        return {_repaired(key): _repaired(item) for key, item in value.items()}
    return value
