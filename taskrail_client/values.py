"""From what is typed to JSON values, by a schema: ``key=value`` on the command line, and the fields of a form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

_INTEGER = re.compile(r"[+-]?\d{1,400}")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_YES = frozenset({"y", "yes", "true", "1", "on"})
_NO = frozenset({"n", "no", "false", "0", "off"})
_DEEPEST = 20


class BadValue(ValueError):
    """A text is no value of that kind; the message says what is wanted."""


def pairs(texts: Iterable[str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The object that ``key=value`` and ``key:=json`` spell; a list grows with each repetition of its key.

    Parameters
    ----------
    texts
        As typed.
    schema
        JSON Schema of the object: it says which texts are numbers, yes or no, or lists.

    Raises
    ------
    BadValue
        One of them cannot be read; the text names its key.
    """
    found: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        as_json = key.endswith(":")
        key = key.removesuffix(":")
        if not equals or not key:
            raise BadValue(f"{_short(text)} is no key=value (or key:=json)")
        properties = schema.get("properties", {})
        if key not in properties and schema.get("additionalProperties") is False:
            known = ", ".join(properties) or "none"
            raise BadValue(f"there is no {key!r}; there are: {known}")
        if as_json:
            found[key] = _json(key, value)
            continue
        field = resolved(properties.get(key, {}), schema)
        try:
            if "array" in types_of(field, schema) and not value.lstrip().startswith("["):
                found[key] = [*found.get(key, []), value_of(value, _items_of(field, schema), schema)]
            else:
                found[key] = value_of(value, field, schema)
        except BadValue as error:
            raise BadValue(f"{key}: {error}") from None
    return found


def value_of(text: str, field: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> Any:
    """The value that a text stands for.

    Parameters
    ----------
    text
        As typed.
    field
        Its schema.
    root
        The schema that references point into.

    Raises
    ------
    BadValue
        The text is no value of that kind.
    """
    kinds = types_of(field, root or {})
    bare = text.strip()
    if "null" in kinds and bare == "null":
        return None
    if "integer" in kinds and _INTEGER.fullmatch(bare):
        return int(bare)
    if "number" in kinds and _NUMBER.fullmatch(bare):
        return int(bare) if _INTEGER.fullmatch(bare) else float(bare)
    if "boolean" in kinds and bare.lower() in _YES | _NO:
        return bare.lower() in _YES
    if (kinds & {"array", "object"}) and bare[:1] in ("[", "{"):
        return _json("the value", bare)
    if not kinds or "string" in kinds:
        return text
    wanted = {"integer": "a whole number", "number": "a number", "boolean": "yes or no", "null": "null"}
    names = [wanted.get(kind, f"JSON ({kind})") for kind in sorted(kinds)]
    raise BadValue(f"{_short(text)} is not {' or '.join(names)}")


def types_of(field: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0) -> set[str]:
    """The JSON types that a schema allows; empty when it does not say."""
    field = resolved(field, root)
    kind = field.get("type")
    if kind is not None:
        return set(kind) if isinstance(kind, list) else {str(kind)}
    if "enum" in field or "const" in field:
        values = field.get("enum", [field.get("const")])
        return {_type(value) for value in values}
    branches = field.get("anyOf") or field.get("oneOf") or field.get("allOf") or ()
    if depth >= _DEEPEST:
        return set()
    return {kind for branch in branches for kind in types_of(branch, root, depth + 1)}


def resolved(field: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema with its reference into the whole one followed."""
    for _ in range(_DEEPEST):
        reference = field.get("$ref") if isinstance(field, Mapping) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        target: Any = root
        for part in reference[2:].split("/"):
            target = target.get(part, {}) if isinstance(target, Mapping) else {}
        field = target
    return field if isinstance(field, Mapping) else {}


def _items_of(field: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a list's items, be the list one of several choices."""
    for branch in (field, *field.get("anyOf", ()), *field.get("oneOf", ())):
        if "items" in (found := resolved(branch, root)):
            return resolved(found["items"], root)
    return {}


def _type(value: object) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _json(what: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadValue(f"{what} is no JSON ({error})") from None


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:37]}...")
