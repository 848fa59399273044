"""Credentials for the API: a bearer token, an API key, or AWS Signature Version 4.

They live in memory only. Nothing here is stored, logged, or put into a message.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator
from typing import Any
from urllib.parse import urlsplit

import httpx2

from taskrail_client.errors import TaskrailError

TOKEN_VARIABLE = "TASKRAIL_TOKEN"
"""Environment variable that the command reads a bearer token from."""

API_KEY_VARIABLE = "TASKRAIL_API_KEY"
"""Environment variable that the command reads an API key from."""

_EXECUTE_API = re.compile(r"\.execute-api\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class AuthError(TaskrailError):
    """The credentials cannot be used."""


class BearerAuth(httpx2.Auth):
    """``Authorization: Bearer …``.

    Parameters
    ----------
    token
        The token, or a function that returns the one that is good now.

    Raises
    ------
    AuthError
        It is no token.
    """

    def __init__(self, token: str | Callable[[], str]) -> None:
        self._token: str | Callable[[], str] = _checked(token, "The bearer token") if isinstance(token, str) else token

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Add the header."""
        token = self._token if isinstance(self._token, str) else _checked(self._token(), "The bearer token")
        request.headers["Authorization"] = f"Bearer {token}"
        yield request


class ApiKeyAuth(httpx2.Auth):
    """``x-api-key: …``, as API Gateway's usage plans want it.

    Parameters
    ----------
    key
        The key.

    Raises
    ------
    AuthError
        It is no key.
    """

    def __init__(self, key: str) -> None:
        self._key = _checked(key, "The API key")

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Add the header."""
        request.headers["x-api-key"] = self._key
        yield request


class SigV4Auth(httpx2.Auth):
    """Signs each request with the AWS credentials of the environment; needs `botocore`.

    Parameters
    ----------
    service
        Name of the service that is signed for: ``execute-api`` for API Gateway, ``lambda`` for a function URL.
    region
        Region; by default that of the URL, or of the environment.
    session
        A `botocore.session.Session`, if not the default one.

    Raises
    ------
    AuthError
        `botocore` is not installed, or there are no credentials.
    """

    requires_request_body = True

    def __init__(self, service: str = "execute-api", region: str | None = None, session: Any = None) -> None:
        try:
            from botocore.session import Session
        except ImportError:
            raise AuthError("SigV4 needs botocore: pip install botocore") from None
        self._session: Any = session or Session()
        self._service = service
        self._region = region
        self._credentials: Any = self._session.get_credentials()
        if self._credentials is None:
            raise AuthError("SigV4 needs AWS credentials, and found none (environment, profile or role).")

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Sign the request as it is now: at every try, with credentials that are good now."""
        from botocore.auth import SigV4Auth as Signer
        from botocore.awsrequest import AWSRequest

        # Only what no proxy changes is signed: host, content type and the x-amz- headers.
        signed = AWSRequest(
            method=request.method,
            url=str(request.url),
            data=request.content,
            headers={"Content-Type": request.headers.get("content-type", "application/json")},
        )
        credentials = self._credentials.get_frozen_credentials()
        Signer(credentials, self._service, self._region_for(request.url)).add_auth(signed)
        for name in ("Authorization", "X-Amz-Date", "X-Amz-Security-Token"):
            if name in signed.headers:
                request.headers[name] = signed.headers[name]
        yield request

    def _region_for(self, url: httpx2.URL) -> str:
        found = _EXECUTE_API.search(url.host)
        region = self._region or (found.group(1) if found else None) or self._session.get_config_variable("region")
        region = region or os.environ.get("AWS_REGION")
        if not region:
            raise AuthError("SigV4 needs a region: give --region, or set AWS_REGION.")
        return str(region)


def check_url(url: str, *, carries_credentials: bool) -> str:
    """The URL, if credentials may be sent there.

    Parameters
    ----------
    url
        The MCP endpoint.
    carries_credentials
        Whether requests will carry any.

    Raises
    ------
    AuthError
        It is no URL of HTTP, has credentials in it, or would show them to the network.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        host = None
    if host is None or parts.scheme not in ("http", "https"):
        raise AuthError("The URL of the server begins with https:// (or http:// on this machine) and names a host.")
    if parts.username is not None or parts.password is not None:
        raise AuthError("The URL must not carry credentials: give them as a token, an API key or SigV4.")
    if carries_credentials and parts.scheme == "http" and host not in _LOOPBACK:
        raise AuthError("Credentials are not sent over plain http to another machine: use https.")
    return url


def _checked(value: object, what: str) -> str:
    if not isinstance(value, str) or not value or not value.isascii() or not value.isprintable() or " " in value:
        raise AuthError(f"{what} is empty, or has characters that no header can carry.")
    return value
