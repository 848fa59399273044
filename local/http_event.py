"""HTTP requests as events of an API Gateway HTTP API (payload format 2.0), and what a function returns as responses."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Generator, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from local.stack import ACCOUNT, REGION
from taskrail import clock

INVOCATION_MS = 29_000
"""How long API Gateway waits for a function, in milliseconds."""


@dataclass(frozen=True)
class Incoming:
    """One HTTP request as the front read it.

    Parameters
    ----------
    method
        As sent.
    path, query
        Of the target, as sent, without the question mark.
    headers
        In the order in which they came.
    body
        Decoded from its transfer coding.
    protocol, peer
        ``HTTP/1.1``, and the address of the other side.
    """

    method: str
    path: str
    query: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    protocol: str
    peer: str


@dataclass(frozen=True)
class Outgoing:
    """One HTTP response.

    Parameters
    ----------
    status
        Status code.
    headers
        Names and values; without those about length and connection, which the front knows best.
    body
        Its bytes.
    parts
        The body as it comes, in place of `body`; an empty part is a moment for a look at the other side.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    parts: Generator[bytes, None, None] | None = None


class Unsendable(Exception):
    """A function returned what is no response; API Gateway answers 500 in that case."""


def event_of(request: Incoming, request_id: str, now: int) -> dict[str, Any]:
    """The event that API Gateway would invoke a function with.

    Parameters
    ----------
    request
        What came in.
    request_id
        A name for it.
    now
        Milliseconds since the epoch.
    """
    headers = _joined((name.lower(), value) for name, value in request.headers)
    cookies = headers.pop("cookie", None)
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": request.path,
        "rawQueryString": request.query,
        "headers": headers,
        "requestContext": {
            "accountId": ACCOUNT,
            "apiId": "local",
            "domainName": headers.get("host", ""),
            "domainPrefix": "local",
            "http": {
                "method": request.method,
                "path": request.path,
                "protocol": request.protocol,
                "sourceIp": request.peer,
                "userAgent": headers.get("user-agent", ""),
            },
            "requestId": request_id,
            "routeKey": "$default",
            "stage": "$default",
            "time": clock.iso(now),
            "timeEpoch": now,
        },
        "isBase64Encoded": False,
    }
    if cookies is not None:
        event["cookies"] = [cookie.strip() for cookie in cookies.split(";")]
    if request.query:
        event["queryStringParameters"] = _joined(parse_qsl(request.query, keep_blank_values=True))
    if request.body:
        try:
            event["body"] = request.body.decode("utf-8")
        except UnicodeDecodeError:
            event["body"] = base64.b64encode(request.body).decode("ascii")
            event["isBase64Encoded"] = True
    return event


def response_of(returned: Any) -> Outgoing:
    """The response in what a function returned.

    Parameters
    ----------
    returned
        ``statusCode``, ``headers``, ``cookies``, ``body``, ``isBase64Encoded``; anything else is
        the JSON of a 200, as payload format 2.0 has it. A ``body`` that is a generator of texts is a stream.

    Raises
    ------
    Unsendable
        It cannot be made into HTTP.
    """
    if not isinstance(returned, Mapping) or "statusCode" not in returned:
        returned = {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": json.dumps(returned)}
    status, body = returned["statusCode"], returned.get("body") or ""
    if isinstance(status, bool) or not isinstance(status, int) or not 200 <= status <= 599:
        raise Unsendable("statusCode is no status of a response.")
    if not isinstance(body, str | Generator):
        raise Unsendable("body is no text.")
    headers = [(str(name), str(value)) for name, value in (returned.get("headers") or {}).items()]
    headers += [("set-cookie", str(cookie)) for cookie in returned.get("cookies") or ()]
    for name, value in headers:
        if not _sendable(name) or ":" in name or not _sendable(value):
            raise Unsendable("A header cannot be sent.")
    kept = tuple((name, value) for name, value in headers if name.lower() not in _HOP_BY_HOP)
    if not isinstance(body, str):
        return Outgoing(status, kept, b"", _encoded(body))
    try:
        data = base64.b64decode(body, validate=True) if returned.get("isBase64Encoded") else body.encode("utf-8")
    except (binascii.Error, UnicodeEncodeError) as error:
        raise Unsendable("body cannot be encoded.") from error
    return Outgoing(status, kept, data)


class Invocation:
    """What a function sees of its invocation: the part of Lambda's context that handlers use.

    Parameters
    ----------
    request_id
        Name of the invocation.
    time
        A clock.
    within_ms
        How long it may take, in milliseconds.
    """

    function_name = "local"
    invoked_function_arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:local"
    memory_limit_in_mb = 512

    def __init__(self, request_id: str, time: clock.Clock, within_ms: int = INVOCATION_MS) -> None:
        self.aws_request_id = request_id
        self._time = time
        self._until = time.now() + within_ms

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the caller stops waiting."""
        return max(0, self._until - self._time.now())


_HOP_BY_HOP = frozenset({"connection", "content-length", "date", "keep-alive", "transfer-encoding"})


def _joined(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Repeated names with their values joined by commas, as API Gateway joins them."""
    together: dict[str, str] = {}
    for name, value in pairs:
        together[name] = f"{together[name]},{value}" if name in together else value
    return together


def _encoded(texts: Generator[str, None, None]) -> Generator[bytes, None, None]:
    with closing(texts):
        for text in texts:
            yield text.encode("utf-8")


def _sendable(text: str) -> bool:
    return all(" " <= character <= "~" or "\xa0" <= character <= "\xff" for character in text)
