"""Arguments described and validated by pydantic, from the parameters of a function."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import new_class
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, PydanticUndefined

from taskrail.errors import ArgumentsError, DeclarationError
from taskrail.pydantic_schemas import SCHEMA_FAULTS, fault_text, without_warnings
from taskrail.schema_headers import with_headers_in_place
from taskrail.schemas import every_schema, path_text, problems, validator_for, without_made_up_titles

# Messages of pydantic that quote what was sent, and what is said instead.
_QUOTING = {
    "union_tag_invalid": "Input has a tag that none of the allowed forms has",
    "uuid_parsing": "Input should be a valid UUID",
    "bytes_invalid_encoding": "Input should be encoded as the schema says",
    "timezone_offset": "Input should have the time zone offset that the schema says",
    "json_invalid": "Input should be JSON that can be read: valid Unicode, not nested too deeply",
}
_MOST_PROBLEMS = 20
_MOST_FAULTS = 10_000
"""Faults that are looked at: pydantic tells each of them at length, however many there are."""


@dataclass(frozen=True)
class ArgumentsModel:
    """A pydantic model of a function's arguments.

    Parameters
    ----------
    model
        The model. Its fields have names of their own, since parameters may be called like
        methods of a model; the arguments' names are their aliases.
    fields
        Python names of the parameters, by the model's fields.
    schema
        JSON Schema of the arguments.
    look_alikes
        Types of the choices in the schema that Python takes for one another: 1 and True.
    """

    model: type[BaseModel]
    fields: Mapping[str, str]
    schema: dict[str, Any]
    look_alikes: frozenset[type] | None = None

    def bind(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The function's keyword arguments.

        Raises
        ------
        ArgumentsError
            If they do not fit.
        """
        valid = self._checked(arguments)
        return {name: getattr(valid, field) for field, name in self.fields.items()}

    def written(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as plain JSON under their names on the wire, with the defaults of what was left out.

        Raises
        ------
        ArgumentsError
            If they do not fit.
        """
        valid = self._checked(arguments)
        try:
            return valid.model_dump(mode="json", by_alias=True, warnings="error")
        except (PydanticSerializationError, ValueError, RecursionError):
            raise ArgumentsError(("arguments: they hold something that JSON cannot carry",)) from None

    def _checked(self, arguments: Mapping[str, Any]) -> BaseModel:
        try:
            valid = self._valid(arguments)
        except ValidationError as error:
            if error.error_count() > _MOST_FAULTS:
                told = f"arguments: more than {_MOST_FAULTS} values do not fit, too many to be named"
                raise ArgumentsError((told,)) from None
            raise ArgumentsError(_sentences(error, arguments)) from None
        if self.look_alikes is not None and (bool in self.look_alikes or _has_truth_value(arguments)):
            self._tell_truth_from_numbers(arguments)
        return valid

    def _tell_truth_from_numbers(self, arguments: Mapping[str, Any]) -> None:
        # pydantic looks choices up in a dict, where True finds 1; JSON Schema tells them apart.
        found = problems(validator_for(self.schema), arguments, "arguments")
        if found:
            raise ArgumentsError(found)

    def _valid(self, arguments: Mapping[str, Any]) -> BaseModel:
        # Read as JSON and strictly: "5" is no number and true is no 1, but a date is a string.
        text = _json(arguments)
        try:
            return self.model.model_validate_json(text, strict=True)
        except ValidationError as error:
            # JSON Schema counts 5.0 among the integers, pydantic does not.
            many = error.error_count() > _MOST_FAULTS
            if not many and not any(fault["type"] == "int_type" for fault in _faults(error)):
                raise
            return self.model.model_validate_json(_json(_with_plain_integers(arguments)), strict=True)


def arguments_model(
    tool_name: str,
    parameters: Sequence[inspect.Parameter],
    types: Mapping[str, Any],
    descriptions: Mapping[str, str],
) -> ArgumentsModel:
    """A model of a function's arguments.

    Parameters
    ----------
    tool_name
        Name of the tool, for messages.
    parameters
        The parameters that take arguments.
    types
        Their types by name.
    descriptions
        What the docstring says about them; what `Field` says wins.

    Raises
    ------
    DeclarationError
        If JSON Schema cannot describe a parameter; the text names it.
    """
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    wire_names: dict[str, str] = {}
    for number, parameter in enumerate(parameters):
        annotation, default = types[parameter.name], parameter.default
        if default is inspect.Parameter.empty:
            default = PydanticUndefined
        info = _field_info(tool_name, parameter.name, annotation, default)
        wire_name = _wire_name(tool_name, parameter.name, info)
        other = wire_names.setdefault(wire_name, parameter.name)
        if other != parameter.name:
            raise DeclarationError(
                tool_name, f"parameters {other!r} and {parameter.name!r} share the alias {wire_name!r}"
            )
        said = info.description or descriptions.get(parameter.name)
        extra = Field(validation_alias=wire_name, description=said) if said else Field(validation_alias=wire_name)
        fields[f"p{number}"] = (Annotated[annotation, extra], ... if default is PydanticUndefined else default)
        names[f"p{number}"] = parameter.name
    try:
        model: type[BaseModel] = create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)
        schema = without_warnings(model, "validation")
    except SCHEMA_FAULTS as error:
        raise _undescribable(tool_name, fields, names, error) from None
    tidy = _tidy(tool_name, schema)
    return ArgumentsModel(model, names, tidy, _look_alikes(tidy))


def given_model(tool_name: str, model: type[BaseModel], descriptions: Mapping[str, str]) -> ArgumentsModel:
    """A person's own model as the description of arguments.

    Arguments that it does not have are refused, as they are for functions, unless its config says otherwise.

    Parameters
    ----------
    tool_name
        Name of the tool, for messages.
    model
        The model.
    descriptions
        What its docstring says about the fields; what `Field` says wins.

    Raises
    ------
    DeclarationError
        If it is no model of an object, JSON Schema cannot describe it, or a field is not called the same on
        the way in and on the way out.
    """
    if issubclass(model, RootModel):
        raise DeclarationError(tool_name, "input is a model with fields, not a RootModel; arguments have names")
    for name, info in model.model_fields.items():
        _wire_name(tool_name, name, info)
    try:
        config = ConfigDict() if "extra" in model.model_config else ConfigDict(extra="forbid")
        strict = cast(
            "type[BaseModel]",
            new_class(
                "Arguments", (model,), exec_body=lambda body: body.update(__module__=__name__, model_config=config)
            ),
        )
        schema = without_warnings(strict, "validation")
        written = without_warnings(strict, "serialization")
    except SCHEMA_FAULTS as error:
        raise DeclarationError(
            tool_name,
            f"input={model.__name__} cannot be told as JSON Schema ({fault_text(error)}); "
            "take types that JSON can carry",
        ) from None
    lost = sorted(_names(schema) - _names(written))
    if lost:
        raise DeclarationError(
            tool_name,
            f"input: {lost[0]!r} is not called the same once it is written as JSON; the work reads what is written, "
            "so give one alias=... for both and exclude nothing",
        )
    tidy = _tidy(tool_name, schema)
    for name, info in model.model_fields.items():
        inner = tidy["properties"].get(_wire_name(tool_name, name, info))
        if name in descriptions and isinstance(inner, dict):
            inner.setdefault("description", descriptions[name])
    return ArgumentsModel(strict, {name: name for name in model.model_fields}, tidy, _look_alikes(tidy))


def _names(schema: Mapping[str, Any]) -> set[str]:
    """Names of all properties in a schema."""
    return {name for inner in every_schema(schema) for name in inner.get("properties", ())}


def _field_info(tool_name: str, name: str, annotation: Any, default: Any) -> FieldInfo:
    """What `Field` says about a parameter, in its annotation or as its default."""
    try:
        if default is PydanticUndefined:
            return FieldInfo.from_annotation(annotation)
        return FieldInfo.from_annotated_attribute(annotation, default)
    except SCHEMA_FAULTS as error:
        raise DeclarationError(tool_name, f"parameter {name!r} cannot be described: {fault_text(error)}") from None


def _wire_name(tool_name: str, name: str, info: FieldInfo) -> str:
    """The name of the argument: the parameter's, or its alias."""
    alias = info.validation_alias if info.validation_alias is not None else info.alias
    if alias is None:
        return name
    if not isinstance(alias, str) or not alias:
        raise DeclarationError(
            tool_name, f"parameter {name!r} has several aliases or a path; an argument has one name, so give one string"
        )
    return alias


def _undescribable(
    tool_name: str, fields: Mapping[str, Any], names: Mapping[str, str], error: Exception
) -> DeclarationError:
    """Find the parameter that pydantic stumbled over, and say what to do."""
    for field, definition in fields.items():
        try:
            alone: type[BaseModel] = create_model("Arguments", **{field: definition})
            without_warnings(alone, "validation")
        except SCHEMA_FAULTS as fault:
            return DeclarationError(
                tool_name,
                f"parameter {names[field]!r} cannot be told as JSON Schema ({fault_text(fault)}); "
                "take a type that JSON can carry, such as a pydantic model",
            )
    return DeclarationError(tool_name, f"its parameters cannot be told as JSON Schema: {fault_text(error)}")


def _tidy(tool_name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The schema in the order that people read it, with the kit's own touches."""
    plain = without_made_up_titles(schema, "Arguments")
    for name, inner in plain.get("properties", {}).items():
        if "default" in inner and inner["default"] is None and inner.get("type", "null") != "null":
            raise DeclarationError(
                tool_name, f"parameter {name!r} defaults to None, which its type does not allow; write '... | None'"
            )
    ordered: dict[str, Any] = {"type": "object", "properties": plain.get("properties", {})}
    if plain.get("required"):
        ordered["required"] = plain["required"]
    if "additionalProperties" in plain:
        ordered["additionalProperties"] = plain["additionalProperties"]
    if plain.get("$defs"):
        ordered["$defs"] = plain["$defs"]
    return with_headers_in_place(ordered)


def _look_alikes(schema: Mapping[str, Any]) -> frozenset[type] | None:
    """Types of choices that are numbers or truth values; None if there are none."""
    types: set[type] = set()
    for inner in every_schema(schema):
        choices = [*inner.get("enum", ()), *((inner["const"],) if "const" in inner else ())]
        types.update(type(choice) for choice in choices if isinstance(choice, int | float))
    return frozenset(types) or None


def _has_truth_value(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_truth_value, value.values()))
    if isinstance(value, list):
        return any(map(_has_truth_value, value))
    return isinstance(value, bool)


def _json(arguments: Any) -> str:
    try:
        return json.dumps(arguments)
    except (TypeError, ValueError, RecursionError):
        raise ArgumentsError(("arguments: nested too deeply, or a number too long",)) from None


def _faults(error: ValidationError) -> list[Any]:
    return list(error.errors(include_url=False, include_context=False, include_input=False))


def _sentences(error: ValidationError, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """One sentence for each place that something is wrong with, never quoting what was sent."""
    reasons: dict[str, list[str]] = {}
    for fault in _faults(error):
        path = path_text(_real_path(fault["loc"], fault["type"], arguments), "arguments")
        reason = _QUOTING.get(fault["type"], fault["msg"])
        if reason not in reasons.setdefault(path, []):
            reasons[path].append(reason)
    sentences = [f"{path}: {' or '.join(why)}" for path, why in reasons.items()]
    return tuple(sentences[:_MOST_PROBLEMS])


def _real_path(loc: Sequence[str | int], kind: str, arguments: Any) -> list[str | int]:
    """The part of pydantic's location that exists in the arguments.

    Its locations also name the branches of unions, which a caller cannot look up.
    """
    path: list[str | int] = []
    place = arguments
    for number, part in enumerate(loc):
        in_object = isinstance(place, Mapping) and part in place
        if in_object or (isinstance(place, list) and isinstance(part, int) and 0 <= part < len(place)):
            path.append(part)
            place = place[part]
        elif kind == "missing" and number == len(loc) - 1:
            path.append(part)
    return path


def _with_plain_integers(value: Any) -> Any:
    """The value with floats that are whole numbers written as integers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _with_plain_integers(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_with_plain_integers(inner) for inner in value]
    return value
