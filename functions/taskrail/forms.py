"""Forms: from a pydantic model to the few shapes that a client can show, and back to a check.

The published rules: a flat object whose properties are strings (formats email, uri, date,
date-time), numbers, booleans, choices, or lists of choices (specification 2026-07-28, client,
elicitation, Requested Schema).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, NoReturn

from taskrail.errors import QuestionError
from taskrail.schemas import problems, validator_for

if TYPE_CHECKING:
    from jsonschema import FormatChecker
    from pydantic import BaseModel

_FORMATS = ("email", "uri", "date", "date-time")
_WORDS = frozenset(("title", "description", "default"))
_CARRIED = {
    "string": frozenset(("minLength", "maxLength", "format")),
    "number": frozenset(("minimum", "maximum")),
    "integer": frozenset(("minimum", "maximum")),
    "boolean": frozenset[str](),
}
_IGNORED = frozenset(("type", "examples", "deprecated", "readOnly", "writeOnly"))

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_DATE_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}.*")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")


def form_schema(key: str, model: type[BaseModel]) -> dict[str, Any]:
    """The ``requestedSchema`` of a form.

    Parameters
    ----------
    key
        Key of the question, for messages.
    model
        A pydantic model.

    Raises
    ------
    QuestionError
        If a field has a shape that no client could show.
    """
    from pydantic import BaseModel
    from pydantic.errors import PydanticUserError

    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise QuestionError(f"question {key!r}: a form is a pydantic model (a class that extends BaseModel)")
    try:
        whole = model.model_json_schema(mode="validation")
    except PydanticUserError as error:
        raise QuestionError(f"question {key!r}: {model.__name__} has no JSON Schema: {error.message}") from None
    return form_by_hand(key, whole)


def form_by_hand(key: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The ``requestedSchema`` of a form whose fields a JSON Schema describes.

    Parameters
    ----------
    key
        Key of the question, for messages.
    schema
        Of an object.

    Raises
    ------
    QuestionError
        If a field has a shape that no client could show, or it is no schema of an object.
    """
    if not isinstance(schema, Mapping) or not isinstance(schema.get("properties", {}), Mapping):
        raise QuestionError(f"question {key!r}: the schema of a form describes an object and its properties")
    definitions: dict[str, Any] = schema.get("$defs", {})
    try:
        whole = _resolved(schema, definitions)
        return _form(key, whole, definitions)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise QuestionError(f"question {key!r}: the schema of its form cannot be read") from error


def _form(key: str, whole: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    if whole.get("type") != "object":
        raise QuestionError(f"question {key!r}: the schema of a form describes an object (type: object)")
    required = list(whole.get("required", ()))
    properties: dict[str, Any] = {}
    for name, field in whole.get("properties", {}).items():
        shape, nullable = _shape(f"question {key!r}, field {name!r}", field, definitions)
        properties[name] = shape
        if nullable and name in required:
            required.remove(name)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if whole.get("additionalProperties") is False:
        schema["additionalProperties"] = False
    return schema


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with its reference, or its only ``allOf``, put in place; siblings win."""
    resolved = dict(schema)
    while True:
        if "$ref" in resolved:
            named = definitions[str(resolved.pop("$ref")).rsplit("/", 1)[-1]]
            # The name and the docstring of a class are not for the person who fills in the form.
            target = {word: value for word, value in named.items() if word not in ("title", "description")}
        elif len(resolved.get("allOf", ())) == 1:
            target = resolved.pop("allOf")[0]
        else:
            return resolved
        resolved = {**target, **resolved}


def _shape(where: str, field: Mapping[str, Any], definitions: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """A field as a client may get it, and whether it may be left empty."""
    resolved = _resolved(field, definitions)
    nullable = False
    if "anyOf" in resolved:
        branches = [_resolved(branch, definitions) for branch in resolved.pop("anyOf")]
        kept = [branch for branch in branches if branch.get("type") != "null"]
        nullable = len(kept) < len(branches)
        if len(kept) != 1:
            _refuse(where, "a form has no field for one of several types; choose one of them")
        resolved = {**kept[0], **resolved}
    words = {word: resolved[word] for word in ("title", "description", "default") if resolved.get(word) is not None}
    return {**_typed(where, resolved, definitions), **words}, nullable


def _typed(where: str, field: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """The field's type and limits, if a form can have them."""
    kind = field.get("type")
    if "enum" in field or "const" in field or "oneOf" in field:
        return {"type": "string", **_choices(where, field, "oneOf")}
    if kind == "array":
        items = _resolved(field.get("items", {}), definitions)
        if not {"enum", "const", "anyOf", "oneOf"} & items.keys():
            _refuse(where, "a list in a form is a list of choices; write list[Literal[...]] or a list of an Enum")
        chosen = _choices(where, items, "anyOf")
        limits = {word: field[word] for word in ("minItems", "maxItems") if word in field}
        inner = {"type": "string", **chosen} if "enum" in chosen else chosen
        return {"type": "array", "items": inner, **limits}
    if kind not in _CARRIED:
        _refuse(where, "a form is flat: text, number, yes or no, a choice or a list of choices")
    shape = {"type": kind, **_limits(where, str(kind), field)}
    if shape.get("format") not in (None, *_FORMATS):
        _refuse(where, f"a form knows no format {shape['format']!r}; use str and check the answer in the job")
    return shape


def _limits(where: str, kind: str, field: Mapping[str, Any]) -> dict[str, Any]:
    """The field's limits; one that would get lost on the way is refused."""
    limits: dict[str, Any] = {}
    for word, value in field.items():
        if word in _CARRIED[kind]:
            limits[word] = value
        elif word == "exclusiveMinimum" and kind == "integer":
            limits["minimum"] = int(value) + 1
        elif word == "exclusiveMaximum" and kind == "integer":
            limits["maximum"] = int(value) - 1
        elif word not in _IGNORED and word not in _WORDS and not word.startswith("x-"):
            _refuse(where, f"a form cannot carry {word!r}; check it in the job, where the answer arrives")
    return limits


def _choices(where: str, field: Mapping[str, Any], titled: str) -> dict[str, Any]:
    """The choices of a field: plain, or with titles as the protocol writes them."""
    options = field.get("oneOf", field.get("anyOf"))
    if options is not None:
        if not all(isinstance(option, Mapping) and isinstance(option.get("const"), str) for option in options):
            _refuse(where, "the choices of a form are texts")
        return {
            titled: [{"const": option["const"], "title": option.get("title", option["const"])} for option in options]
        }
    values = field["enum"] if "enum" in field else [field["const"]]
    if not all(isinstance(value, str) for value in values):
        _refuse(where, "the choices of a form are texts; write Literal or Enum of str")
    return {"enum": list(values)}


def _refuse(where: str, what_to_do: str) -> NoReturn:
    raise QuestionError(f"{where}: {what_to_do}")


def form_problem(schema: Mapping[str, Any], content: object) -> str | None:
    """What is wrong with a form that came back; None if nothing is.

    Parameters
    ----------
    schema
        The ``requestedSchema`` that was sent.
    content
        What came back. Left out, it counts as an empty form; null in a field that may be left
        empty counts as left empty.
    """
    if content is None:
        content = {}
    if not isinstance(content, Mapping):
        return "content must be an object"
    required = schema.get("required", [])
    properties = schema.get("properties", {})
    filled = {
        name: value
        for name, value in content.items()
        if value is not None or name in required or name not in properties
    }
    found = problems(validator_for(schema, _format_checker()), filled, "content")
    return "; ".join(found) or None


def _format_checker() -> FormatChecker:
    """A checker for the four formats that a form knows, as pydantic's types read them."""
    from jsonschema import FormatChecker

    checker = FormatChecker(formats=())
    checker.checkers.update(
        {
            "email": (lambda value: not isinstance(value, str) or bool(_EMAIL.fullmatch(value)), ()),
            "uri": (lambda value: not isinstance(value, str) or bool(_URI.fullmatch(value)), ()),
            "date": (_is_date, ValueError),
            "date-time": (_is_date_time, ValueError),
        }
    )
    return checker


def _is_date(value: object) -> bool:
    if not isinstance(value, str):
        return True
    date.fromisoformat(value)
    return bool(_DATE.fullmatch(value))


def _is_date_time(value: object) -> bool:
    if not isinstance(value, str):
        return True
    datetime.fromisoformat(value.upper())
    return bool(_DATE_TIME.fullmatch(value))
