"""``x-mcp-header``: arguments that clients repeat in a ``Mcp-Param-*`` header.

A client must drop a tool whose annotations break the rules (specification 2026-07-28, server,
tools, x-mcp-header; basic, transports, streamable HTTP), so that they are checked at load.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from taskrail.schemas import every_schema

KEYWORD = "x-mcp-header"

# RFC 9110, section 5.6.2: token = 1*tchar.
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_TYPES = ("string", "integer", "boolean")


@dataclass(frozen=True)
class Header:
    """Marks a parameter whose value clients repeat in a header: ``Annotated[str, Header("Region")]``.

    Parameters
    ----------
    name
        The part of the header's name after ``Mcp-Param-``.
    """

    name: str

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        """Adds the annotation to the parameter's schema; pydantic calls it."""
        schema: dict[str, Any] = dict(handler(core_schema))
        schema[KEYWORD] = self.name
        return schema


@dataclass(frozen=True)
class HeaderParameter:
    """An argument that is repeated in a header.

    Parameters
    ----------
    name
        The part of the header's name after ``Mcp-Param-``, as declared.
    path
        Names of the properties that lead to the argument, from the root.
    type
        Its JSON type.
    """

    name: str
    path: tuple[str, ...]
    type: Literal["string", "integer", "boolean"]


def headers_of(schema: Mapping[str, Any]) -> tuple[HeaderParameter, ...]:
    """The annotated arguments of an input schema.

    Parameters
    ----------
    schema
        A tool's input schema.

    Raises
    ------
    ValueError
        If an annotation breaks a rule; the text names the property.
    """
    found: list[HeaderParameter] = []
    reachable: list[Mapping[str, Any]] = []
    _walk(schema, (), found, reachable)
    allowed = {id(inner) for inner in reachable}
    for inner in every_schema(schema):
        if KEYWORD in inner and id(inner) not in allowed:
            raise ValueError(
                f"{KEYWORD} {inner[KEYWORD]!r} stands where clients do not look: only a parameter, or a property "
                "of a nested object, can be repeated in a header, not what lists, unions and references hold"
            )
    names: dict[str, HeaderParameter] = {}
    for header in found:
        other = names.setdefault(header.name.lower(), header)
        if other is not header:
            raise ValueError(
                f"{KEYWORD} {header.name!r} is on both {'.'.join(other.path)} and {'.'.join(header.path)}; "
                "names must differ by more than upper and lower case"
            )
    return tuple(found)


def _walk(schema: Any, path: tuple[str, ...], found: list[HeaderParameter], reachable: list[Mapping[str, Any]]) -> None:
    """Collect annotations along chains of ``properties``."""
    if not isinstance(schema, Mapping):
        return
    if path:
        reachable.append(schema)
        if KEYWORD in schema:
            found.append(_parameter(schema, path))
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        for name, inner in properties.items():
            _walk(inner, (*path, str(name)), found, reachable)


def _parameter(schema: Mapping[str, Any], path: tuple[str, ...]) -> HeaderParameter:
    name, kind, where = schema[KEYWORD], schema.get("type"), ".".join(path)
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise ValueError(
            f"{KEYWORD} of {where} must be a header name: one or more letters, digits or any of !#$%&'*+.^_`|~-"
        )
    if not isinstance(kind, str) or kind not in _TYPES:
        raise ValueError(
            f"{KEYWORD} of {where}: only a plain string, integer or boolean can be repeated in a header; "
            "one that may be null makes clients drop the whole tool, so give it a default instead"
        )
    return HeaderParameter(name, path, cast('Literal["string", "integer", "boolean"]', kind))


def with_headers_in_place(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with references put in place wherever a header annotation hides behind one.

    pydantic describes nested models and enums by reference, and clients do not follow those when
    they look for annotations.

    Parameters
    ----------
    schema
        An input schema from pydantic.
    """
    definitions: dict[str, Any] = schema.get("$defs", {})
    if not any(KEYWORD in inner for inner in every_schema(schema)):
        return schema
    placed = _placed(schema, definitions, frozenset())
    placed.pop("$defs", None)
    used = set(re.findall(r'"#/\$defs/([^"]+)"', _references(placed)))
    while True:
        more = {
            name for key in used for name in re.findall(r'"#/\$defs/([^"]+)"', _references(definitions.get(key)))
        } - used
        if not more:
            break
        used |= more
    kept = {name: inner for name, inner in definitions.items() if name in used}
    return {**placed, "$defs": kept} if kept else placed


def _placed(schema: Mapping[str, Any], definitions: Mapping[str, Any], open_names: frozenset[str]) -> dict[str, Any]:
    """The schema with the references along its ``properties`` put in place where needed."""
    result = dict(schema)
    properties = result.get("properties")
    if isinstance(properties, Mapping):
        result["properties"] = {
            name: _placed_property(inner, definitions, open_names) for name, inner in properties.items()
        }
    return result


def _placed_property(inner: Any, definitions: Mapping[str, Any], open_names: frozenset[str]) -> Any:
    if not isinstance(inner, Mapping):
        return inner
    name = str(inner.get("$ref", "")).removeprefix("#/$defs/")
    target = definitions.get(name)
    if target is not None and name not in open_names and (KEYWORD in inner or _annotated(target, definitions, set())):
        siblings = {keyword: value for keyword, value in inner.items() if keyword != "$ref"}
        return _placed({**copy.deepcopy(target), **siblings}, definitions, open_names | {name})
    return _placed(inner, definitions, open_names)


def _annotated(schema: Any, definitions: Mapping[str, Any], seen: set[str]) -> bool:
    """Whether an annotation lies below the schema along ``properties`` and references."""
    if not isinstance(schema, Mapping):
        return False
    if KEYWORD in schema:
        return True
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    if name in definitions and name not in seen:
        seen.add(name)
        if _annotated(definitions[name], definitions, seen):
            return True
    properties = schema.get("properties")
    return isinstance(properties, Mapping) and any(
        _annotated(inner, definitions, seen) for inner in properties.values()
    )


def _references(schema: Any) -> str:
    """All references below a schema, in quotes."""
    return " ".join(f'"{inner["$ref"]}"' for inner in every_schema(schema) if isinstance(inner.get("$ref"), str))


__all__ = ["KEYWORD", "Header", "HeaderParameter", "headers_of", "with_headers_in_place"]
