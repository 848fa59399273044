"""JSON Schema out of pydantic, without the titles that it makes up for fields."""

from __future__ import annotations

import warnings
from typing import Any, Literal

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, PydanticJsonSchemaWarning
from pydantic_core import PydanticOmit, SchemaError

# What pydantic raises for a type that it cannot validate or describe.
SCHEMA_FAULTS: tuple[type[Exception], ...] = (
    PydanticUserError,
    SchemaError,
    PydanticOmit,
    TypeError,
    ValueError,
    NameError,
    AttributeError,
    RecursionError,
)


class PlainJsonSchema(GenerateJsonSchema):
    """Fields have the titles that were written for them, and no others."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Never: a title made from a field's name repeats it."""
        return False


def type_schema(annotation: Any, mode: Literal["validation", "serialization"]) -> dict[str, Any]:
    """The JSON Schema of a type.

    Parameters
    ----------
    annotation
        Any type that pydantic understands.
    mode
        What the schema describes: values that come in or values as they are written.

    Raises
    ------
    Exception
        One of `SCHEMA_FAULTS`, if there is no schema for it.
    """
    return without_warnings(TypeAdapter(annotation), mode)


def without_warnings(source: Any, mode: Literal["validation", "serialization"]) -> dict[str, Any]:
    """The JSON Schema of an adapter or a model; a default that JSON cannot carry is left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PydanticJsonSchemaWarning)
        if isinstance(source, TypeAdapter):
            return source.json_schema(mode=mode, schema_generator=PlainJsonSchema)
        schema: dict[str, Any] = source.model_json_schema(mode=mode, schema_generator=PlainJsonSchema)
        return schema


def fault_text(error: Exception) -> str:
    """What pydantic says about a type, in one line without its links."""
    text = getattr(error, "message", None) or str(error) or type(error).__name__
    return str(text).strip().splitlines()[0].rstrip(".")
