"""Arguments described by a schema that a person wrote, and validated against it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from taskrail.errors import ArgumentsError, DeclarationError
from taskrail.schemas import check_handwritten, problems, validator_for

_EVERYTHING = "arguments"


def handwritten_binder(
    tool_name: str, schema: dict[str, Any], parameters: Sequence[inspect.Parameter], takes_more: bool
) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """What turns arguments into keyword arguments of a function, by a schema given by hand.

    Parameters
    ----------
    tool_name
        Name of the tool, for messages.
    schema
        The schema.
    parameters
        The function's parameters that take arguments: named like the schema's properties, or
        one named ``arguments`` that takes them all as a dict.
    takes_more
        Whether the function has ``**kwargs``.

    Raises
    ------
    DeclarationError
        If the schema is not valid, or the function does not fit it.
    """
    try:
        check_handwritten(schema, needs_object=True)
    except ValueError as error:
        raise DeclarationError(tool_name, str(error)) from None
    properties = schema.get("properties", {})
    whole = [parameter.name for parameter in parameters] == [_EVERYTHING] and _EVERYTHING not in properties
    if not whole:
        _check_fit(tool_name, schema, parameters, takes_more)
    names = frozenset(parameter.name for parameter in parameters)
    validator = validator_for(schema)

    def bind(arguments: Mapping[str, Any]) -> dict[str, Any]:
        try:
            found = problems(validator, arguments, "arguments")
        except RecursionError:
            found = ("arguments: nested too deeply",)
        if found:
            raise ArgumentsError(found)
        if whole:
            return {_EVERYTHING: dict(arguments)}
        return {name: value for name, value in arguments.items() if takes_more or name in names}

    return bind


def _check_fit(
    tool_name: str, schema: Mapping[str, Any], parameters: Sequence[inspect.Parameter], takes_more: bool
) -> None:
    """Refuse a function that some arguments of the schema cannot call."""
    properties = set(schema.get("properties", {}))
    required = set(schema.get("required", ()))
    names = {parameter.name for parameter in parameters}
    advice = f"name it so, take **kwargs, or take one dict parameter named {_EVERYTHING!r}"
    unheard = sorted(properties - names)
    if unheard and not takes_more:
        raise DeclarationError(tool_name, f"the function has no parameter for {unheard[0]!r} of its schema; {advice}")
    for parameter in parameters:
        if parameter.default is inspect.Parameter.empty and parameter.name not in required:
            raise DeclarationError(
                tool_name,
                f"parameter {parameter.name!r} has no default, but the schema does not require it; "
                "give it a default or list it under required",
            )
