"""Requests of earlier revisions: the place where they will be served.

Until then each is told which versions are spoken. Such clients cannot fall forward by themselves,
so this text may be all that their users see (basic/versioning, "Backward Compatibility").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from taskrail.errors import UnsupportedVersion
from taskrail.wire import protocol
from taskrail.wire.jsonrpc import Message

INITIALIZE = "initialize"

_LONGEST_VERSION = 64
"""Characters of what a client takes for a version that it is told again."""


def is_legacy(message: Message, headers: Mapping[str, str]) -> bool:
    """Whether a request speaks an earlier revision: it opens with a handshake, or its header says so.

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
    return message.method == INITIALIZE or _header(headers) in protocol.LEGACY_VERSIONS


def answer(message: Message, headers: Mapping[str, str]) -> NoReturn:
    """Refuse the request, naming the versions that this server speaks.

    Raises
    ------
    UnsupportedVersion
        Always.
    """
    requested = message.params.get("protocolVersion") if message.method == INITIALIZE else _header(headers)
    raise unsupported(requested if isinstance(requested, str) else "")


def unsupported(requested: str) -> UnsupportedVersion:
    """The error for a version that this server does not speak."""
    supported = ", ".join(protocol.SUPPORTED_VERSIONS)
    return UnsupportedVersion(
        f"Unsupported protocol version. This server speaks {supported}, declared on every request and without a "
        "handshake: please update the client.",
        {"supported": list(protocol.SUPPORTED_VERSIONS), "requested": requested[:_LONGEST_VERSION]},
    )


def _header(headers: Mapping[str, str]) -> str:
    return headers.get("mcp-protocol-version", "").strip(" \t")
