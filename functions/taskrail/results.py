"""What a tool returns: from the return annotation to ``outputSchema``, and from the value to a
``CallToolResult``."""

from __future__ import annotations

import json
import math
import sys
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from taskrail.errors import DeclarationError
from taskrail.hints import MISSING, hints_of
from taskrail.schemas import check_handwritten, problems, validator_for, without_made_up_titles
from taskrail.texts import ResultError, sendable

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from taskrail.content import Content, ToolResult

__all__ = [
    "ResultError",
    "Returns",
    "error_result",
    "returns_from",
    "returns_of",
    "text_result",
    "to_json",
]

_NONE = type(None)
_NOT_FINITE = "it holds NaN or infinity"
_TOO_DEEP = "it contains itself or is nested too deeply"

_MOST_LEVELS = 200
"""Levels of a result: whatever reads it after us, we ourselves at the next poll to begin with, must get to its end."""


@dataclass(frozen=True)
class Returns:
    """How the values that a tool returns become results.

    Parameters
    ----------
    output_schema
        The tool's ``outputSchema``; None if it has none.
    wrapped
        Whether values travel as ``{"result": value}``, since clients of earlier revisions take
        only objects.
    annotation
        The type that values are checked against; `MISSING` to send them as they are.
    handwritten
        Whether the schema was given by hand, so that values are checked against it.
    """

    output_schema: dict[str, Any] | None = None
    wrapped: bool = False
    annotation: Any = field(default=MISSING, repr=False)
    handwritten: bool = False

    def result(self, value: Any) -> dict[str, Any]:
        """The ``CallToolResult`` for a value.

        Parameters
        ----------
        value
            What the function returned.

        Returns
        -------
        dict
            With ``content``, ``isError`` and, for structured values, ``structuredContent``, which
            is repeated as a text block.

        Raises
        ------
        ResultError
            If JSON cannot carry the value or it does not fit the annotation or the schema.
        """
        from taskrail.content import ToolResult

        if isinstance(value, ToolResult):
            return self._assembled(value)
        if self.output_schema is None:
            blocks = _blocks(value)
            if blocks is not None:
                return _result(blocks)
        structured = self._plain(value)
        if self.output_schema is None and not isinstance(structured, dict):
            return text_result(to_json(structured))
        if self.wrapped:
            structured = {"result": structured}
        self._check(structured)
        # The value is read back from its text, so that both are the same JSON and nobody shares it.
        text = to_json(structured)
        return {**text_result(text), "structuredContent": json.loads(text)}

    def _assembled(self, value: ToolResult) -> dict[str, Any]:
        """The result for a value that was put together by hand."""
        blocks = [_block(item).to_wire() for item in value.content]
        result = _result(blocks, is_error=value.is_error)
        if value.structured is not None:
            structured = self._plain(value.structured, annotated=False)
            text = to_json(structured)
            if not any(block.get("text") == text for block in blocks):
                blocks.append({"type": "text", "text": text})
            if not value.is_error:
                self._check(structured)
                result["structuredContent"] = json.loads(text)
        elif self.output_schema is not None and not value.is_error:
            raise ResultError("the tool has an output schema, so its ToolResult needs structured=...")
        if value.meta:
            result["_meta"] = json.loads(to_json(value.meta))
        return result

    def _plain(self, value: Any, *, annotated: bool = True) -> Any:
        """The value as JSON types, by way of the annotation if there is one."""
        from pydantic import BaseModel, ValidationError
        from pydantic_core import PydanticSerializationError

        try:
            if annotated and self.annotation is not MISSING:
                valid = self._adapter.validate_python(value)
                plain = self._adapter.dump_python(valid, mode="json", by_alias=True, warnings="error")
                raw = self._adapter.dump_python(valid, by_alias=True, warnings="none")
            elif isinstance(value, BaseModel):
                plain = value.model_dump(mode="json", by_alias=True)
                raw = value.model_dump(by_alias=True, warnings="none")
            else:
                return value
            # pydantic writes null for NaN and infinity, whatever the type says.
            if not _all_finite(raw):
                raise _unwritable(_NOT_FINITE)
            return plain
        except ValidationError as error:
            faults = error.errors(include_input=False, include_context=False, include_url=False)
            places = sorted({".".join(str(part) for part in fault["loc"]) or "the value itself" for fault in faults})
            raise ResultError(
                f"the returned value does not fit the function's return annotation at: {', '.join(places)}"
            ) from None
        except (PydanticSerializationError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise _unwritable(_why(error)) from error

    def _check(self, structured: Any) -> None:
        """Hold a value to a schema that was given by hand."""
        if not self.handwritten or self.output_schema is None:
            return
        found = problems(validator_for(self.output_schema), structured, "the value itself")
        if found:
            raise ResultError(f"the returned value does not fit output_schema: {'; '.join(found)}")

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        from pydantic import TypeAdapter

        return TypeAdapter(self.annotation)


def to_json(value: Any) -> str:
    """The value as compact JSON.

    Raises
    ------
    ResultError
        If JSON cannot carry it: NaN, infinity, sets, bytes, cycles, objects.
    """
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise _unwritable(_why(error)) from error
    if text.count("[") + text.count("{") > _MOST_LEVELS and _deeper_than(value, _MOST_LEVELS):
        raise _unwritable(_TOO_DEEP)
    return sendable(text, "the returned value")


def _all_finite(value: Any) -> bool:
    """Whether no NaN and no infinity hides in what pydantic dumped."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Enum):
        return _all_finite(value.value)
    if isinstance(value, str | bytes | bytearray | memoryview):
        return True
    if isinstance(value, Mapping):
        return all(map(_all_finite, value.values()))
    return not isinstance(value, Collection) or all(map(_all_finite, value))


def _deeper_than(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        items = (item for one in level for item in (one.values() if isinstance(one, Mapping) else one))
        level = [item for item in items if isinstance(item, Mapping | list | tuple)]
        if not level:
            return False
    return True


def _unwritable(why: str) -> ResultError:
    return ResultError(f"the returned value cannot be written as JSON: {why}")


def _why(error: Exception) -> str:
    """What JSON cannot carry, without the value: some messages quote it."""
    if isinstance(error, TypeError):
        return f"{error}; return plain JSON values, or a model"
    if isinstance(error, UnicodeDecodeError):
        return "it holds bytes that are no text; return Image, Audio or Resource, or attach a file"
    if isinstance(error, RecursionError) or any(word in str(error) for word in ("Circular", "ecursion", "depth")):
        return _TOO_DEEP
    if "Out of range float" in str(error):
        return _NOT_FINITE
    if isinstance(error, OverflowError) or "integer string conversion" in str(error):
        return "it holds a number that is too long"
    return f"{type(error).__name__}; return plain JSON values, or a model"


def text_result(text: str) -> dict[str, Any]:
    """A ``CallToolResult`` of one text.

    Parameters
    ----------
    text
        The text.
    """
    return _result([{"type": "text", "text": sendable(text, "the text")}])


def error_result(text: str, extra: Sequence[str] = ()) -> dict[str, Any]:
    """A ``CallToolResult`` that tells of an error.

    Parameters
    ----------
    text
        What went wrong, for the caller.
    extra
        Further text blocks, such as a partial result.
    """
    # An error must get through: what UTF-8 cannot carry is replaced, not refused.
    texts = [part.encode("utf-8", "replace").decode("utf-8") for part in (text, *extra)]
    return _result([{"type": "text", "text": part} for part in texts], is_error=True)


def _result(blocks: list[dict[str, Any]], *, is_error: bool = False) -> dict[str, Any]:
    for block in blocks:
        if "annotations" in block:
            block["annotations"] = json.loads(to_json(block["annotations"]))
    return {"content": blocks, "isError": is_error}


def _block(item: Any) -> Content:
    from taskrail.content import Content, Text

    if isinstance(item, Content):
        return item
    if isinstance(item, str):
        return Text(item)
    raise ResultError(f"content holds texts and content blocks, not {type(item).__name__}")


def _blocks(value: Any) -> list[dict[str, Any]] | None:
    """Content blocks for a value that is content already; None if it is not."""
    from taskrail.content import Content

    if value is None:
        return []
    if isinstance(value, Content | str):
        return [_block(value).to_wire()]
    if isinstance(value, list | tuple) and any(isinstance(item, Content) for item in value):
        return [_block(item).to_wire() for item in value]
    return None


def returns_of(
    tool_name: str,
    function: Callable[..., Any],
    output_schema: dict[str, Any] | None = None,
    names: Mapping[str, Any] | None = None,
) -> Returns:
    """How a function's values become results, from its return annotation.

    Parameters
    ----------
    tool_name
        Name of the tool, for messages.
    function
        The function.
    output_schema
        A schema given by hand; it travels unaltered and values are checked against it.
    names
        Names from `hints.declaration_names`.

    Raises
    ------
    DeclarationError
        If the annotation cannot be told as JSON Schema, or the schema by hand is not valid.
    """
    annotation = MISSING if output_schema is not None else hints_of(tool_name, function, names).returns
    return returns_from(tool_name, annotation, output_schema)


def returns_from(tool_name: str, annotation: Any, output_schema: dict[str, Any] | None = None) -> Returns:
    """How values of a type become results.

    Parameters
    ----------
    tool_name
        Name of the tool, for messages.
    annotation
        The type; `MISSING` for whatever comes.
    output_schema
        A schema given by hand, in place of the type.

    Raises
    ------
    DeclarationError
        If the type cannot be told as JSON Schema, or the schema by hand is not valid.
    """
    if output_schema is not None:
        try:
            check_handwritten(output_schema, needs_object=False)
        except ValueError as error:
            raise DeclarationError(tool_name, f"output_schema: {error}") from None
        return Returns(output_schema=output_schema, handwritten=True)
    if annotation in (MISSING, None, _NONE, Any, object, str) or is_content(annotation):
        return Returns()
    if typing.get_origin(annotation) is Annotated and typing.get_args(annotation)[0] is str:
        return Returns()
    schema = _output_schema(tool_name, annotation)
    if _is_object(schema):
        # A recursive model's root is a reference; earlier clients look for the type beside it.
        return Returns({"type": "object", **schema}, annotation=annotation)
    definitions = {"$defs": schema.pop("$defs")} if "$defs" in schema else {}
    wrapper = {"type": "object", "properties": {"result": schema}, "required": ["result"], **definitions}
    return Returns(wrapper, wrapped=True, annotation=annotation)


def is_content(annotation: Any) -> bool:
    """Whether values of the annotation are content, or may be."""
    if isinstance(annotation, type):
        # Not loaded, it has no classes that an annotation could name; loading it would cost every cold start.
        content = sys.modules.get("taskrail.content")
        return content is not None and issubclass(annotation, content.Content | content.ToolResult)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return is_content(arguments[0])
    if origin in (typing.Union, types.UnionType, list, tuple, Sequence):
        return any(is_content(argument) for argument in arguments)
    return False


def _output_schema(tool_name: str, annotation: Any) -> dict[str, Any]:
    """The JSON Schema of what values of the annotation look like once written."""
    from taskrail.pydantic_schemas import SCHEMA_FAULTS, fault_text, type_schema

    if annotation in (bytes, bytearray, memoryview):
        raise DeclarationError(tool_name, "bytes are no JSON; return Image, Audio or Resource, or attach a file")
    try:
        schema = type_schema(annotation, "serialization")
    except SCHEMA_FAULTS as error:
        raise DeclarationError(
            tool_name,
            f"its return annotation cannot be told as JSON Schema ({fault_text(error)}); "
            "annotate a type that JSON can carry, a content class, or give output_schema=...",
        ) from None
    return dict(without_made_up_titles(schema, getattr(annotation, "__name__", None)))


def _is_object(schema: Mapping[str, Any]) -> bool:
    """Whether every value of the schema is an object."""
    seen: set[str] = set()
    current: Any = schema
    while isinstance(current, Mapping) and "$ref" in current and current["$ref"] not in seen:
        seen.add(current["$ref"])
        current = schema.get("$defs", {}).get(str(current["$ref"]).rsplit("/", 1)[-1])
    return isinstance(current, Mapping) and current.get("type") == "object"
