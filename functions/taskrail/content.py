"""Content blocks: what a tool's result can show besides plain text."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from taskrail.texts import ResultError, sendable

_MIME = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(\s*;.*)?")


@dataclass(frozen=True)
class Content:
    """Base of the content blocks; use one of its kinds."""

    def to_wire(self) -> dict[str, Any]:
        """The block as MCP writes it."""
        raise NotImplementedError


@dataclass(frozen=True)
class Text(Content):
    """A text block.

    Parameters
    ----------
    text
        The text.
    annotations
        MCP annotations: ``audience``, ``priority``, ``lastModified``.
    """

    text: str
    annotations: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        sendable(self.text, "Text.text")

    def to_wire(self) -> dict[str, Any]:
        """The block as MCP writes it."""
        return _annotated({"type": "text", "text": self.text}, self.annotations)


@dataclass(frozen=True)
class Image(Content):
    """An image block.

    Parameters
    ----------
    data
        The bytes of the image file.
    mime_type
        Such as ``image/png``.
    annotations
        MCP annotations: ``audience``, ``priority``, ``lastModified``.
    """

    data: bytes
    mime_type: str
    annotations: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        _check_binary("Image", self.data, self.mime_type, "image/")

    def to_wire(self) -> dict[str, Any]:
        """The block as MCP writes it."""
        return _annotated({"type": "image", "data": _base64(self.data), "mimeType": self.mime_type}, self.annotations)


@dataclass(frozen=True)
class Audio(Content):
    """A sound block.

    Parameters
    ----------
    data
        The bytes of the sound file.
    mime_type
        Such as ``audio/wav``.
    annotations
        MCP annotations: ``audience``, ``priority``, ``lastModified``.
    """

    data: bytes
    mime_type: str
    annotations: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        _check_binary("Audio", self.data, self.mime_type, "audio/")

    def to_wire(self) -> dict[str, Any]:
        """The block as MCP writes it."""
        return _annotated({"type": "audio", "data": _base64(self.data), "mimeType": self.mime_type}, self.annotations)


@dataclass(frozen=True)
class Resource(Content):
    """A document that travels inside the result.

    Parameters
    ----------
    uri
        Name of the document as a URI.
    text
        Its text; give either this or `blob`.
    blob
        Its bytes.
    mime_type
        Such as ``text/csv``.
    annotations
        MCP annotations: ``audience``, ``priority``, ``lastModified``.
    """

    uri: str
    text: str | None = None
    blob: bytes | None = None
    mime_type: str | None = None
    annotations: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        _check_uri("Resource", self.uri)
        if (self.text is None) == (self.blob is None):
            raise ResultError("Resource needs either text or blob, and not both")
        if self.text is not None:
            sendable(self.text, "Resource.text")
        elif not isinstance(self.blob, bytes | bytearray | memoryview):
            raise ResultError("Resource.blob must be bytes")
        if self.mime_type is not None:
            _check_mime("Resource", self.mime_type, "")

    def to_wire(self) -> dict[str, Any]:
        """The block as MCP writes it."""
        resource: dict[str, Any] = {"uri": self.uri}
        if self.mime_type is not None:
            resource["mimeType"] = self.mime_type
        if self.text is not None:
            resource["text"] = self.text
        elif self.blob is not None:
            resource["blob"] = _base64(self.blob)
        return _annotated({"type": "resource", "resource": resource}, self.annotations)


@dataclass(frozen=True)
class Link(Content):
    """A document that the client can fetch.

    Parameters
    ----------
    uri
        Where it is.
    name
        What it is called.
    mime_type
        Such as ``application/pdf``.
    description
        What it holds.
    size
        Its size in bytes.
    annotations
        MCP annotations: ``audience``, ``priority``, ``lastModified``.
    """

    uri: str
    name: str
    mime_type: str | None = None
    description: str | None = None
    size: int | None = None
    annotations: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        _check_uri("Link", self.uri)
        if not sendable(self.name, "Link.name"):
            raise ResultError("Link.name must not be empty")
        if self.description is not None:
            sendable(self.description, "Link.description")
        if self.mime_type is not None:
            _check_mime("Link", self.mime_type, "")
        if self.size is not None and (isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 0):
            raise ResultError("Link.size must be a whole number of bytes")

    def to_wire(self) -> dict[str, Any]:
        """The block as MCP writes it."""
        link: dict[str, Any] = {"type": "resource_link", "uri": self.uri, "name": self.name}
        for key, value in (("description", self.description), ("mimeType", self.mime_type), ("size", self.size)):
            if value is not None:
                link[key] = value
        return _annotated(link, self.annotations)


@dataclass(frozen=True)
class ToolResult:
    """A result put together by hand.

    Parameters
    ----------
    content
        Content blocks; a plain string stands for a text block.
    structured
        JSON value for ``structuredContent``; left out when None.
    is_error
        Whether the result tells of an error. An error carries no ``structuredContent``: its
        `structured` goes along as text.
    meta
        The result's ``_meta``.
    """

    content: Sequence[Content | str] = ()
    structured: Any = None
    is_error: bool = False
    meta: dict[str, Any] | None = None


def _annotated(block: dict[str, Any], annotations: dict[str, Any] | None) -> dict[str, Any]:
    return {**block, "annotations": annotations} if annotations else block


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _check_binary(kind: str, data: object, mime_type: object, prefix: str) -> None:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise ResultError(f"{kind}.data must be bytes, not {type(data).__name__}")
    _check_mime(kind, mime_type, prefix)


def _check_mime(kind: str, mime_type: object, prefix: str) -> None:
    if not isinstance(mime_type, str) or not _MIME.fullmatch(mime_type) or not mime_type.startswith(prefix):
        raise ResultError(f"{kind}.mime_type must be a MIME type such as {prefix or 'text/'}...")


def _check_uri(kind: str, uri: object) -> None:
    if not isinstance(uri, str) or not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", uri):
        raise ResultError(f"{kind}.uri must be a URI with a scheme, such as https: or file:")
    sendable(uri, f"{kind}.uri")
