"""JSON Schemas that people write and schemas that pydantic makes: checks, validation, tidying.

The library `jsonschema` is imported inside functions only: most catalogues never need it, and
those that do need it for schemas written by hand and for answers to questions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema import FormatChecker
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

DIALECT_2020_12 = "https://json-schema.org/draft/2020-12/schema"
DIALECT_07 = "http://json-schema.org/draft-07/schema"

# Where a keyword's value is a schema, a list of schemas, or an object whose values are schemas.
_ONE = frozenset(
    (
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    )
)
_LIST = frozenset(("allOf", "anyOf", "items", "oneOf", "prefixItems"))
_MAP = frozenset(("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"))

_LONGEST_NAME = 64
_LONGEST_LIST = 12


def subschemas(schema: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every schema directly inside a schema, with the keywords and names that lead to it.

    Values that only look like schemas (defaults, examples, enum members) are not among them.
    """
    for keyword, value in schema.items():
        if keyword in _MAP and isinstance(value, Mapping):
            for name, inner in value.items():
                yield (keyword, str(name)), inner
        elif keyword in _LIST and isinstance(value, list):
            for index, inner in enumerate(value):
                yield (keyword, str(index)), inner
        elif keyword in _ONE:
            yield (keyword,), value


def every_schema(schema: Any) -> Iterator[Mapping[str, Any]]:
    """The schema and all schemas inside it that are objects."""
    if isinstance(schema, Mapping):
        yield schema
        for _, inner in subschemas(schema):
            yield from every_schema(inner)


def check_handwritten(schema: Any, *, needs_object: bool) -> None:
    """Check a schema that a person wrote, once, when the catalogue is loaded.

    Parameters
    ----------
    schema
        The schema.
    needs_object
        Whether the root must say ``"type": "object"``, as the root of arguments must.

    Raises
    ------
    ValueError
        If it is no object, speaks an unknown dialect, is not valid in its dialect, or refers to
        something outside itself. The protocol forbids fetching references from the network
        (specification 2026-07-28, basic, JSON Schema Usage).
    """
    if not isinstance(schema, dict):
        raise ValueError("a schema is an object (a dict)")
    if needs_object and schema.get("type") != "object":
        raise ValueError('the root of the schema must say "type": "object"')
    for inner in every_schema(schema):
        if "$schema" in inner and _dialect(inner["$schema"]) is None:
            raise ValueError(
                f"the schema's dialect is unknown; write {DIALECT_2020_12!r} or '{DIALECT_07}#', or leave $schema out"
            )
    from jsonschema.exceptions import SchemaError

    validator = validator_for(schema)
    try:
        validator.check_schema(schema)
    except SchemaError as error:
        where = "/".join(str(part) for part in error.absolute_path) or "its root"
        raise ValueError(f"the schema is not valid at {where}: {error.message}") from None
    _check_references(schema)


def _dialect(declared: object) -> str | None:
    """The dialect that a ``$schema`` names, without its empty fragment; None if it is unknown."""
    if not isinstance(declared, str):
        return None
    plain = declared.removesuffix("#")
    return plain if plain in (DIALECT_2020_12, DIALECT_07) else None


def _check_references(schema: dict[str, Any]) -> None:
    """Refuse a reference that does not lead to a place inside the schema."""
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT7, DRAFT202012, EMPTY_REGISTRY

    draft = DRAFT7 if _dialect(schema.get("$schema")) == DIALECT_07 else DRAFT202012
    root: Resource[Any] = draft.create_resource(schema)
    identifier = root.id() or ""
    registry: Registry[Any] = EMPTY_REGISTRY.with_resource(identifier, root)

    def follow(resource: Resource[Any], resolver: Any) -> None:
        contents = resource.contents
        if isinstance(contents, Mapping):
            for keyword in ("$ref", "$dynamicRef"):
                reference = contents.get(keyword)
                if not isinstance(reference, str):
                    continue
                try:
                    resolver.lookup(reference)
                except Unresolvable:
                    raise ValueError(
                        f"the schema's {keyword} {reference!r} leads out of it; references are never fetched, "
                        "so put what it means under $defs"
                    ) from None
        for inner in resource.subresources():
            follow(inner, resolver.in_subresource(inner))

    follow(root, registry.resolver(identifier))


def validator_for(schema: Mapping[str, Any], formats: FormatChecker | None = None) -> Validator:
    """A validator of the schema's dialect that never fetches anything.

    Parameters
    ----------
    schema
        A checked schema.
    formats
        Checker for ``format``; without one, formats are annotations only.
    """
    from jsonschema import Draft7Validator, Draft202012Validator
    from referencing.jsonschema import EMPTY_REGISTRY

    chosen: Any = Draft7Validator if _dialect(schema.get("$schema")) == DIALECT_07 else Draft202012Validator
    validator: Validator = chosen(schema, registry=EMPTY_REGISTRY, format_checker=formats)
    return validator


def problems(validator: Validator, value: Any, root: str) -> tuple[str, ...]:
    """What is wrong with a value, one sentence per fault; empty if nothing is.

    Parameters
    ----------
    validator
        From `validator_for`.
    value
        A JSON value. None of it appears in the sentences, only names of places in it.
    root
        What the value itself is called when the fault lies at its root.
    """
    found: list[str] = []
    for error in validator.iter_errors(value):
        sentence = f"{path_text(error.absolute_path, root)}: {_reason(error)}"
        if sentence not in found:
            found.append(sentence)
        if len(found) == _LONGEST_LIST:
            break
    return tuple(found)


def path_text(path: Iterable[str | int], root: str) -> str:
    """A place inside arguments, in words a caller can find: ``items[2].name``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{shown_name(part)}" if text else shown_name(part)
    return text or root


def shown_name(name: str) -> str:
    """A name as it may appear in a message: shortened, and escaped if it would disturb the text."""
    short = name if len(name) <= _LONGEST_NAME else name[:_LONGEST_NAME] + "…"
    return short if short.isprintable() and short else ascii(short)


def _reason(error: ValidationError) -> str:
    """Why a value does not fit, told from the schema alone: the library's own texts quote values."""
    keyword: Any = error.validator
    wanted: Any = error.validator_value
    found: Any = error.instance
    if keyword == "type":
        kinds = [wanted] if isinstance(wanted, str) else list(wanted)
        return f"must be of type {' or '.join(kinds)}"
    if keyword == "required":
        missing = [name for name in wanted if isinstance(found, Mapping) and name not in found]
        return f"required but missing: {', '.join(shown_name(name) for name in missing)}"
    if keyword in ("additionalProperties", "unevaluatedProperties") and isinstance(found, Mapping):
        known = error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
        patterns = error.schema.get("patternProperties", {}) if isinstance(error.schema, Mapping) else {}
        extra = [
            shown_name(str(name))
            for name in found
            if name not in known and not any(re.search(pattern, str(name)) for pattern in patterns)
        ]
        return f"not expected here: {', '.join(extra[:_LONGEST_LIST])}"
    if keyword in ("enum", "const"):
        allowed = wanted if keyword == "enum" else [wanted]
        return f"must be one of {', '.join(json.dumps(item) for item in allowed[:_LONGEST_LIST])}"
    if keyword in ("anyOf", "oneOf") and error.context:
        branches = [_branch_reason(branch) for branch in error.context]
        return " or ".join(dict.fromkeys(branches[:_LONGEST_LIST]))
    if keyword in ("anyOf", "oneOf", "not", "if", "contains", "dependentSchemas"):
        return f"does not fit what the schema says under {keyword}"
    if isinstance(wanted, str | int | float) and not isinstance(wanted, bool):
        return f"must satisfy {keyword} {wanted}"
    return f"must satisfy {keyword}" if isinstance(keyword, str) else "nothing is allowed here"


def _branch_reason(error: ValidationError) -> str:
    """Why one branch of a union does not fit, with the place if that lies deeper."""
    path = path_text(error.relative_path, "")
    return f"{path}: {_reason(error)}" if path else _reason(error)


def without_made_up_titles(schema: Any, root_title: str | None = None) -> Any:
    """The schema without the titles that pydantic takes from the names of classes.

    They repeat names and cost a reader tokens; titles that somebody wrote stay.

    Parameters
    ----------
    schema
        A schema from pydantic.
    root_title
        Name of the class that the root stands for, if it does.
    """
    if not isinstance(schema, dict):
        return schema
    tidy = dict(schema)
    if root_title is not None and tidy.get("title") == root_title:
        del tidy["title"]
    if isinstance(tidy.get("$defs"), dict):
        tidy["$defs"] = {key: _untitled(key, inner) for key, inner in tidy["$defs"].items()}
    return tidy


def _untitled(key: str, schema: Any) -> Any:
    """A definition without its title, if the title is the class's name.

    The key of a definition is that name, made safe, and longer where two classes share it.
    """
    if not isinstance(schema, dict) or not isinstance(schema.get("title"), str):
        return schema
    safe = re.sub(r"[^a-zA-Z0-9.\-_]", "_", schema["title"])
    made_up = key == safe or key.endswith(f"__{safe}") or key.rsplit("-", 1)[0].endswith(safe)
    return {name: value for name, value in schema.items() if name != "title"} if made_up else schema


def without_descriptions(schema: Any) -> Any:
    """The schema without its descriptions, titles and examples: what it demands, and no words."""
    if isinstance(schema, list):
        return [without_descriptions(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    bare: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in ("description", "title", "examples"):
            continue
        if keyword in _MAP and isinstance(value, Mapping):
            bare[keyword] = {name: without_descriptions(inner) for name, inner in value.items()}
        elif keyword in _ONE or keyword in _LIST:
            bare[keyword] = without_descriptions(value)
        else:
            bare[keyword] = value
    return bare
