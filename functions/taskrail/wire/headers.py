"""Headers that mirror the body: decoded strictly, compared exactly (streamable-http, "Server Validation")."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from taskrail.errors import HeaderMismatch

if TYPE_CHECKING:
    from taskrail.signature import HeaderParameter

_SENTINEL = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
_VISIBLE = re.compile(r"[\x20-\x7e\t]*")
_INTEGER = re.compile(r"([+-]?[0-9]{1,40})(?:\.0*)?")
_OPTIONAL_WHITE_SPACE = " \t"


def require(headers: Mapping[str, str], name: str, expected: str) -> None:
    """A header that must be there and say exactly what the body says.

    Raises
    ------
    HeaderMismatch
        It does not.
    """
    value = headers.get(name.lower())
    if value is None:
        raise HeaderMismatch(f"The header {name} is missing.")
    if value.strip(_OPTIONAL_WHITE_SPACE) != expected:
        raise HeaderMismatch(f"The header {name} does not say what the body says.")


def decoded(headers: Mapping[str, str], name: str) -> str | None:
    """The value of a header that may be encoded; None when the header is absent.

    Only ``Mcp-Name`` and ``Mcp-Param-*`` may be (streamable-http, "Value Encoding"). Python's own
    decoder skips what is not base64, which would let two spellings pass for one value.

    Raises
    ------
    HeaderMismatch
        The value has characters that no header may have, or its encoding is broken.
    """
    raw = headers.get(name.lower())
    if raw is None:
        return None
    value = raw.strip(_OPTIONAL_WHITE_SPACE)
    if _VISIBLE.fullmatch(value) is None:
        raise HeaderMismatch(f"The header {name} contains invalid characters.")
    encoded = _SENTINEL.fullmatch(value)
    if encoded is None:
        return value
    try:
        data = base64.b64decode(encoded[1], validate=True)
        if base64.b64encode(data).decode("ascii") != encoded[1]:
            raise ValueError("not canonical")
        return data.decode("utf-8")
    except (binascii.Error, ValueError):
        raise HeaderMismatch(f"The header {name} is not valid base64 of UTF-8.") from None


def match_name(headers: Mapping[str, str], expected: Any, *, required: bool) -> None:
    """``Mcp-Name`` must equal the name that the body gives.

    Parameters
    ----------
    headers
        The request's headers.
    expected
        The body's value, whatever its type.
    required
        Whether the header must be there.

    Raises
    ------
    HeaderMismatch
        It is not there, or not equal.
    """
    value = decoded(headers, "Mcp-Name")
    if value is None:
        if required:
            raise HeaderMismatch("The header Mcp-Name is missing.")
    elif value != expected:
        raise HeaderMismatch("The header Mcp-Name does not say what the body says.")


def match_parameters(
    headers: Mapping[str, str], parameters: Iterable[HeaderParameter], arguments: Mapping[str, Any]
) -> None:
    """Every annotated argument must agree with its ``Mcp-Param-*`` header, and both or none be there.

    Raises
    ------
    HeaderMismatch
        They disagree; the message names the header.
    """
    for parameter in parameters:
        name = f"Mcp-Param-{parameter.name}"
        header = decoded(headers, name)
        value = _at(arguments, parameter.path)
        if value is None and header is not None:
            raise HeaderMismatch(f"The header {name} is set, but the body has no value for it.")
        if value is not None and header is None:
            raise HeaderMismatch(f"The header {name} is missing, but the body has a value for it.")
        if value is not None and header is not None and not _equal(header, value):
            raise HeaderMismatch(f"The header {name} does not say what the body says.")


def _at(arguments: Mapping[str, Any], path: Iterable[str]) -> Any:
    value: Any = arguments
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _equal(header: str, value: Any) -> bool:
    if isinstance(value, bool):
        return header == ("true" if value else "false")
    if isinstance(value, str):
        return header == value
    if isinstance(value, int | float):
        number = _INTEGER.fullmatch(header)
        return number is not None and int(number[1]) == value
    # An object or a list cannot be annotated, so the argument itself is wrong: that answer says more.
    return True
