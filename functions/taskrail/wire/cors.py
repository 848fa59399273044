"""Browsers: whose pages may call, and what a preflight is told.

A page of a foreign origin must not reach a server through its visitor's browser (DNS rebinding,
basic/transports/streamable-http, "Security & Endpoint"). Requests without ``Origin`` come from no page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

ANY = "*"

_ORIGIN = re.compile(r"(https?)://([a-z0-9._~-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}

_REQUEST_HEADERS = (
    "content-type",
    "accept",
    "authorization",
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
    "last-event-id",
    "mcp-session-id",
    "traceparent",
    "tracestate",
)
_PREFLIGHT_SECONDS = "7200"
"""The longest that browsers keep the answer to a preflight (Chromium's cap)."""


class Cors:
    """Which origins are allowed, and the headers that say so.

    Parameters
    ----------
    allowed_origins
        ``https://host`` each, or ``"*"`` for every page of the web. The API's own host always may.
    header_parameters
        Names of the ``Mcp-Param-*`` headers that the catalogue asks for, without the prefix. A
        preflight names each: ``*`` would not cover ``authorization``, and old browsers know no ``*``.
    """

    def __init__(self, allowed_origins: Iterable[str], header_parameters: Iterable[str]) -> None:
        self._allowed = {origin.rstrip("/").lower() for origin in allowed_origins}
        parameters = sorted({f"mcp-param-{name.lower()}" for name in header_parameters})
        self._allow_headers = ", ".join((*_REQUEST_HEADERS, *parameters))

    def allows(self, headers: Mapping[str, str]) -> bool:
        """Whether the request may have come from where its ``Origin`` says; it may have none."""
        origin = headers.get("origin")
        if origin is None or ANY in self._allowed:
            return True
        origin = origin.strip(" \t").lower()
        return origin in self._allowed or _same_host(origin, headers.get("host", ""))

    def answer_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """What a response to an allowed request carries; caches keep one per origin."""
        answer = {"Vary": "Origin"}
        origin = headers.get("origin")
        if origin is not None:
            answer["Access-Control-Allow-Origin"] = ANY if ANY in self._allowed else origin.strip(" \t")
        return answer

    def preflight_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """The answer to a browser that asks before it posts."""
        return {
            **self.answer_headers(headers),
            "Allow": "POST, OPTIONS",
            "Access-Control-Allow-Methods": "POST, OPTIONS",
            "Access-Control-Allow-Headers": self._allow_headers,
            "Access-Control-Max-Age": _PREFLIGHT_SECONDS,
        }


def _same_host(origin: str, host: str) -> bool:
    parts = _ORIGIN.fullmatch(origin)
    if parts is None:
        return False
    default = _DEFAULT_PORTS[parts[1]]
    return (parts[2] + (parts[3] or "")).removesuffix(default) == host.strip(" \t").lower().removesuffix(default)
