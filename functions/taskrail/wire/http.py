"""API Gateway's events, of REST and HTTP APIs, to a request; and a response back to what it expects."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

JSON = "application/json"
EVENT_STREAM = "text/event-stream"

LARGEST_ANSWER = 5_000_000
"""Largest body, in bytes as Lambda counts them: escaped once more, inside its own JSON. It takes 6 MB."""

_LONGEST_ESCAPE = 6
"""Bytes that a character of the body takes at worst when it is escaped."""


@dataclass(frozen=True)
class HttpRequest:
    """One HTTP request.

    Parameters
    ----------
    method
        In upper case.
    path
        Without the query; it may begin with a stage or a base path.
    headers
        By lower-case name. The values of a repeated header are joined by ``", "``, so that a second
        value of a mirrored header cannot hide behind the first.
    body
        The bytes of the body; None when the event claims base64 but carries something else.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes | None

    @classmethod
    def from_event(cls, event: Any) -> HttpRequest:
        """Read an event of either payload format; whatever is missing is empty, nothing raises.

        Parameters
        ----------
        event
            Payload format 1.0 (REST API, HTTP API) or 2.0 (HTTP API, function URL).
        """
        event = _mapping(event)
        if "rawPath" in event or event.get("version") == "2.0":
            method = _mapping(_mapping(event.get("requestContext")).get("http")).get("method")
            path = event.get("rawPath")
        else:
            method, path = event.get("httpMethod"), event.get("path")
        return cls(
            method=_text(method).upper(),
            path=_text(path) or "/",
            headers=_headers(event),
            body=_body(event),
        )

    @property
    def at_endpoint(self) -> bool:
        """Whether the path is ``/mcp``: one segment (a stage, a base path) may precede, a slash may follow."""
        segments = [segment for segment in self.path.split("/") if segment]
        return segments[-1:] == ["mcp"] and len(segments) <= 2


@dataclass(frozen=True)
class HttpResponse:
    """One HTTP response.

    Parameters
    ----------
    status
        HTTP status code.
    headers
        As they go out.
    body
        Text; empty for none.
    stream
        The body's parts as they come, in place of `body`, for a door that can send them so. An empty part is a
        moment at which whoever sends may look whether anybody still listens.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    stream: Generator[str, None, None] | None = None

    def to_event(self) -> dict[str, Any]:
        """What a proxy integration returns; both payload formats take this form, but for the body of a stream."""
        body = self.body if self.stream is None else self.stream
        return {"statusCode": self.status, "headers": dict(self.headers), "body": body, "isBase64Encoded": False}


def escaped_size(text: str) -> int:
    """Bytes of a part of a body as Lambda counts them."""
    return len(json.dumps(text))


def fits(body: str) -> bool:
    """Whether Lambda takes an answer with this body."""
    return len(body) * _LONGEST_ESCAPE <= LARGEST_ANSWER or escaped_size(body) <= LARGEST_ANSWER


@lru_cache(maxsize=64)
def accepts_answer(accept: str | None) -> bool:
    """Whether an ``Accept`` header leaves room for JSON or for an event stream.

    Clients must list both (basic/transports/streamable-http), but one that lists less is served all
    the same: only a header that rules out both is refused.

    Parameters
    ----------
    accept
        The header's value; None or blank accepts everything.
    """
    if accept is None or not accept.strip(" \t,"):
        return True
    ranges = dict(_ranges(accept))
    for media_type in (JSON, EVENT_STREAM):
        candidates = (media_type, media_type.split("/")[0] + "/*", "*/*")
        if next((ranges[name] for name in candidates if name in ranges), False):
            return True
    return False


def _ranges(accept: str) -> Iterator[tuple[str, bool]]:
    for item in accept.lower().split(","):
        name, *parameters = (part.strip() for part in item.split(";"))
        if name:
            yield name, not any(_rules_out(parameter) for parameter in parameters)


def _rules_out(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    if name.strip() != "q":
        return False
    try:
        return float(value) <= 0
    except ValueError:
        return False


def _headers(event: Mapping[str, Any]) -> dict[str, str]:
    given = _mapping(event.get("headers"))
    texts = [(name.lower(), value) for name, value in given.items() if isinstance(name, str) and isinstance(value, str)]
    headers = dict(texts)
    if len(headers) < len(texts):
        headers = {name: ", ".join(value for other, value in texts if other == name) for name in headers}
    if not event.get("multiValueHeaders"):
        return headers
    repeated: dict[str, list[str]] = {}
    for name, several in _mapping(event.get("multiValueHeaders")).items():
        if isinstance(name, str) and isinstance(several, list):
            repeated.setdefault(name.lower(), []).extend(value for value in several if isinstance(value, str))
    headers.update({name: ", ".join(several) for name, several in repeated.items() if several})
    return headers


def _body(event: Mapping[str, Any]) -> bytes | None:
    body = event.get("body")
    if not isinstance(body, str):
        return b""
    data = body.encode("utf-8", "surrogatepass")
    if event.get("isBase64Encoded") is not True:
        return data
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error:
        return None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, (dict, Mapping)) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
