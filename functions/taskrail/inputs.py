"""Arguments that name objects in S3: the type to declare them with, and where they are in a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from taskrail.schemas import path_text

KEYWORD = "x-taskrail-input"
SCHEME = "s3://"

_LONGEST_URI = 1200
_DESCRIPTION = (
    "An s3:// URI of a file under your own input prefix: upload it with the tool request_upload, where the server "
    "has it, and hand in the uri that it returned."
)


class _Marker:
    """Puts the keyword into the schema; pydantic calls it."""

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        schema: dict[str, Any] = dict(handler(core_schema))
        return {"description": _DESCRIPTION, **schema, "format": "uri", KEYWORD: True}


InputFile = Annotated[str, Field(pattern="^s3://[^/]+/.+", max_length=_LONGEST_URI), _Marker()]
"""The ``s3://`` URI of a file that the caller put under its own input prefix; any other is refused."""


class S3Uri(NamedTuple):
    """One argument that names an object in S3.

    Parameters
    ----------
    path
        Where it is, in words a caller can find: ``files[2].uri``.
    uri
        What it says.
    declared
        Whether its place was declared an `InputFile`.
    """

    path: str
    uri: str
    declared: bool


def s3_uris(arguments: Mapping[str, Any], schema: Mapping[str, Any] | None = None) -> list[S3Uri]:
    """Every text in the arguments that begins with ``s3://``, and every text in a place declared `InputFile`.

    Names of members are not looked at. Declared places are found through ``properties``, ``items``,
    ``prefixItems``, ``additionalProperties``, unions and references; not through ``patternProperties``,
    ``if`` and ``dependentSchemas``.

    Parameters
    ----------
    arguments
        Arguments that fit the schema.
    schema
        The tool's input schema; without one no place is declared.
    """
    root: Mapping[str, Any] = {} if schema is None else schema
    found: list[S3Uri] = []
    # A stack of our own: arguments may be nested deeper than Python's.
    waiting: list[tuple[tuple[str | int, ...], Any, list[Any]]] = [((), arguments, [root])]
    while waiting:
        path, value, schemas = waiting.pop()
        known = _meant(schemas, root)
        if isinstance(value, str):
            declared = any(inner.get(KEYWORD) is True for inner in known)
            if declared or value.startswith(SCHEME):
                found.append(S3Uri(path_text(path, "arguments"), value, declared))
        elif isinstance(value, Mapping):
            for name in reversed(value):
                waiting.append(((*path, name), value[name], [_member(inner, name) for inner in known]))
        elif isinstance(value, list):
            for index in reversed(range(len(value))):
                waiting.append(((*path, index), value[index], [_item(inner, index) for inner in known]))
    return found


def _meant(schemas: list[Any], root: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The schemas, and those that they refer to or are put together from."""
    meant: list[Mapping[str, Any]] = []
    waiting = list(schemas)
    seen: set[int] = set()
    while waiting:
        schema = waiting.pop()
        if not isinstance(schema, Mapping) or id(schema) in seen:
            continue
        seen.add(id(schema))
        meant.append(schema)
        if isinstance(schema.get("$ref"), str):
            waiting.append(_referred(schema["$ref"], root))
        for keyword in ("anyOf", "oneOf", "allOf"):
            if isinstance(schema.get(keyword), list):
                waiting.extend(schema[keyword])
    return meant


def _referred(reference: str, root: Mapping[str, Any]) -> Any:
    """What a reference inside the schema leads to; None if that is not plain to see."""
    place: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        place = place.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(place, Mapping) else None
    return place


def _member(schema: Mapping[str, Any], name: str) -> Any:
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and name in properties:
        return properties[name]
    return schema.get("additionalProperties")


def _item(schema: Mapping[str, Any], index: int) -> Any:
    first = schema.get("prefixItems")
    if isinstance(first, list) and index < len(first):
        return first[index]
    return schema.get("items")
