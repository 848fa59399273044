"""HTTP that a session survives.

The official client ends its whole session when a connection breaks, and cannot tell a throttled request from a
forbidden one. This transport turns every answer that is no JSON-RPC answer to the request into a JSON-RPC error
whose data says what happened; `taskrail_client.trouble` reads it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from taskrail_client.auth import AuthError, check_url
from taskrail_client.trouble import NO_ANSWER, Kind, Trouble

CONNECT_SECONDS = 10.0
READ_SECONDS = 40.0
"""API Gateway answers within 29 s or not at all; a stream that is held says something more often than this."""

LONGEST_RETRY_AFTER_MS = 300_000
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_REFUSED_BEFORE = frozenset({429})


class SteadyTransport(httpx2.AsyncBaseTransport):
    """Answers for whatever stands between here and the server, the making of credentials included.

    Parameters
    ----------
    inner
        Does the sending.
    """

    def __init__(self, inner: httpx2.AsyncClient) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; there is always an answer."""
        asked = _asked(request)
        if asked is None:
            return await self._inner.send(request, stream=True, follow_redirects=False)
        try:
            response = await self._inner.send(request, stream=True, follow_redirects=False)
            if response.status_code == 200 and _kind_of(response) == "text/event-stream":
                return response
            try:
                body = await response.aread()
            finally:
                await response.aclose()
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            return _instead(asked, Trouble(Kind.PASSING, "the server cannot be reached", never_arrived=True))
        except httpx2.TimeoutException:
            return _instead(asked, Trouble(Kind.PASSING, "no answer in time"))
        except (httpx2.TransportError, httpx2.DecodingError):
            return _instead(asked, Trouble(Kind.PASSING, "the connection broke"))
        except AuthError as error:
            return _instead(asked, Trouble(Kind.DENIED, str(error)))
        except Exception as error:
            # Whatever it is, the session must not end with it; its text may hold anything.
            return _instead(asked, Trouble(Kind.DOUBTFUL, f"the request could not be sent ({type(error).__name__})"))
        if response.has_redirect_location:
            if _stays(request.url, response.headers["location"]):
                return httpx2.Response(response.status_code, headers={"location": response.headers["location"]})
            return _instead(asked, Trouble(Kind.DOUBTFUL, "the server redirects to another one, which is not followed"))
        if _is_answer(body, asked):
            return httpx2.Response(
                response.status_code, headers={"content-type": "application/json"}, content=body, request=request
            )
        return _instead(asked, _trouble_in(response))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


@asynccontextmanager
async def steady_transport(
    url: str, *, auth: httpx2.Auth | None = None, transport: httpx2.AsyncBaseTransport | None = None
) -> AsyncIterator[Any]:
    """A transport for the official client: ``Client(steady_transport(url, auth=…), extensions=[…])``.

    Parameters
    ----------
    url
        The MCP endpoint.
    auth
        One of `taskrail_client.auth`, or any other of httpx2.
    transport
        What does the sending, if not httpx2's own.

    Raises
    ------
    AuthError
        Credentials may not be sent to that URL.
    """
    check_url(url, carries_credentials=auth is not None)
    timeout = httpx2.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    inner = httpx2.AsyncClient(transport=transport, auth=auth)
    async with httpx2.AsyncClient(transport=SteadyTransport(inner), timeout=timeout) as http:
        async with streamable_http_client(url, http_client=http) as streams:
            yield streams


def _asked(request: httpx2.Request) -> Any:
    """The id of the JSON-RPC request that is sent; None if it is none."""
    try:
        return json.loads(request.content).get("id")
    except (ValueError, AttributeError, httpx2.RequestNotRead):
        return None


def _stays(url: httpx2.URL, location: str) -> bool:
    """Whether a redirect leads to the same server; the official client follows such a one, and no other."""
    try:
        target = url.join(location)
    except (httpx2.InvalidURL, ValueError):
        return False
    return (target.scheme, target.host, target.port) == (url.scheme, url.host, url.port)


def _is_answer(body: bytes, asked: Any) -> bool:
    """Whether a body is a JSON-RPC answer to that request. An error may lack the id (JSON-RPC 2.0, section 5)."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return False
    if not isinstance(answer, dict) or answer.get("jsonrpc") != "2.0" or ("result" in answer) == ("error" in answer):
        return False
    if "error" in answer:
        error = answer["error"]
        named = isinstance(error, dict) and type(error.get("code")) is int and isinstance(error.get("message"), str)
        return named and answer.get("id") in (None, asked)
    return isinstance(answer["result"], dict) and answer.get("id") == asked


def _trouble_in(response: httpx2.Response) -> Trouble:
    status = response.status_code
    if status in (401, 403):
        return Trouble(
            Kind.DENIED, "the server wants other credentials" if status == 401 else "the server forbids it (HTTP 403)"
        )
    if status in _PASSING or status < 400:
        reason = "the answer was garbage" if status < 400 else f"the server answered HTTP {status}"
        return Trouble(Kind.PASSING, reason, _retry_after(response), never_arrived=status in _REFUSED_BEFORE)
    return Trouble(Kind.DOUBTFUL, f"the server answered HTTP {status}")


def _retry_after(response: httpx2.Response) -> int:
    value = response.headers.get("retry-after", "").strip()
    seconds = int(value) if value.isascii() and value.isdigit() and len(value) < 10 else 0
    return min(seconds * 1000, LONGEST_RETRY_AFTER_MS)


def _kind_of(response: httpx2.Response) -> str:
    kind: str = response.headers.get("content-type", "")
    return kind.partition(";")[0].strip().lower()


def _instead(asked: Any, trouble: Trouble) -> httpx2.Response:
    """The JSON-RPC error that the session gets."""
    error = {"code": NO_ANSWER, "message": trouble.reason, "data": trouble.data()}
    return httpx2.Response(200, json={"jsonrpc": "2.0", "id": asked, "error": error})
