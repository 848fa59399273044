"""From a function's signature to its input schema, and from arguments to its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from taskrail.docstrings import docstring_of
from taskrail.errors import DeclarationError
from taskrail.hints import Hints, hints_of
from taskrail.schema_headers import Header, HeaderParameter, headers_of

__all__ = ["EVERYTHING", "Header", "HeaderParameter", "Kind", "Signature", "signature_of"]

Kind = Literal["task", "call"]

# The name of the one parameter that takes the arguments as they are, where a schema is given by hand.
EVERYTHING = "arguments"

_WRONG_PLACE = {
    "task": "takes a TaskContext, which only the function of @tools.task(...) gets; declare it so, or take a Call",
    "call": "takes a Call, which only an inline tool and a `before` hook get; a job asks through its TaskContext",
}


@dataclass(frozen=True)
class Signature:
    """What a tool takes.

    Parameters
    ----------
    input_schema
        JSON Schema of its arguments.
    headers
        Arguments that clients repeat in headers.
    injected
        Parameters that the kit fills in, with their kind.
    parameters
        Parameters of the function that take arguments, by their Python names.
    takes_more
        Whether the function has ``**kwargs``.
    """

    input_schema: dict[str, Any]
    headers: tuple[HeaderParameter, ...]
    injected: tuple[tuple[str, Kind], ...]
    parameters: tuple[str, ...] = ()
    takes_more: bool = False
    binder: Callable[[Mapping[str, Any]], dict[str, Any]] = field(default=dict, repr=False, compare=False)

    def bind(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The function's keyword arguments for the arguments of a call.

        Parameters
        ----------
        arguments
            As they came: a JSON object.

        Returns
        -------
        dict
            Values by Python name of the parameter, defaults included; without what is injected.

        Raises
        ------
        ArgumentsError
            If they do not fit the schema.
        """
        return self.binder(arguments)

    def keywords(self, bound: Mapping[str, Any], **objects: Any) -> dict[str, Any]:
        """What to call this signature's function with.

        Parameters
        ----------
        bound
            From `bind`, of this signature or, for a `before` hook, of its tool's.
        objects
            What to inject, by kind: ``task=`` or ``call=``.
        """
        taken = dict(bound) if self.takes_more else {name: bound[name] for name in self.parameters if name in bound}
        return {**taken, **{name: objects[kind] for name, kind in self.injected}}


def signature_of(
    tool_name: str,
    function: Callable[..., Any],
    *,
    schema: dict[str, Any] | None = None,
    allowed: frozenset[str] = frozenset(),
    names: Mapping[str, Any] | None = None,
) -> Signature:
    """What a function takes, checked.

    Parameters
    ----------
    tool_name
        Name of the tool, for messages.
    function
        The function.
    schema
        Input schema given by hand; it travels unaltered.
    allowed
        Kinds of object that may be injected here: ``task``, ``call``.
    names
        Names from `hints.declaration_names`.

    Raises
    ------
    DeclarationError
        If the function cannot be called with JSON arguments, or the schema is not valid.
    """
    hints = hints_of(tool_name, function, names)
    takes_more = _check_parameters(tool_name, hints, by_hand=schema is not None)
    injected = _injected(tool_name, hints, allowed)
    plain = tuple(
        parameter
        for parameter in hints.parameters
        if parameter.name not in hints.injected and parameter.kind is not inspect.Parameter.VAR_KEYWORD
    )
    binder: Callable[[Mapping[str, Any]], dict[str, Any]]
    if schema is not None:
        from taskrail.handwritten import handwritten_binder

        binder = handwritten_binder(tool_name, schema, plain, takes_more)
        input_schema = schema
    else:
        from taskrail.arguments import arguments_model

        model = arguments_model(tool_name, plain, hints.types, docstring_of(function).parameters)
        binder, input_schema = model.bind, model.schema
    try:
        headers = headers_of(input_schema)
    except ValueError as error:
        raise DeclarationError(tool_name, str(error)) from None
    return Signature(input_schema, headers, injected, tuple(parameter.name for parameter in plain), takes_more, binder)


def hook_signature(
    tool_name: str,
    hook: Callable[..., Any],
    tool: Signature,
    names: Mapping[str, Any] | None = None,
) -> Signature:
    """What a `before` hook takes: a `Call` and any of its tool's parameters, by name.

    Parameters
    ----------
    tool_name
        Name of the tool, for messages.
    hook
        The hook.
    tool
        The signature of its tool, which binds the arguments for both.
    names
        Names from `hints.declaration_names`.

    Raises
    ------
    DeclarationError
        If the hook wants something that the tool does not take.
    """
    hints = hints_of(tool_name, hook, names)
    takes_more = _check_parameters(tool_name, hints, by_hand=True)
    injected = _injected(tool_name, hints, frozenset(("call",)))
    wanted: list[str] = []
    for parameter in hints.parameters:
        if parameter.name in hints.injected or parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        known = parameter.name in tool.parameters or tool.takes_more
        if not known and parameter.default is inspect.Parameter.empty:
            raise DeclarationError(
                tool_name,
                f"its before hook takes {parameter.name!r}, which the tool does not; a hook takes a Call "
                f"(annotated so) and any of: {', '.join(tool.parameters) or 'nothing else'}",
            )
        wanted.append(parameter.name)
    return Signature(tool.input_schema, tool.headers, injected, tuple(wanted), takes_more, tool.bind)


def _check_parameters(tool_name: str, hints: Hints, *, by_hand: bool) -> bool:
    """Refuse parameters that a call by name cannot fill; returns whether there is ``**kwargs``."""
    takes_more = False
    for parameter in hints.parameters:
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            raise DeclarationError(tool_name, f"*{parameter.name} cannot be called by name; take a list instead")
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise DeclarationError(
                tool_name, f"parameter {parameter.name!r} is positional only; arguments come by name, so drop the '/'"
            )
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            if not by_hand:
                raise DeclarationError(
                    tool_name, f"**{parameter.name} has no schema; name the parameters, or give schema=... by hand"
                )
            takes_more = True
        elif not by_hand and parameter.name not in hints.types and parameter.name not in hints.injected:
            raise DeclarationError(
                tool_name, f"parameter {parameter.name!r} has no annotation; annotate it with the type it takes"
            )
    return takes_more


def _injected(tool_name: str, hints: Hints, allowed: frozenset[str]) -> tuple[tuple[str, Kind], ...]:
    """The injected parameters, each at most once of its kind and in its place."""
    seen: dict[str, str] = {}
    for name, kind in hints.injected.items():
        if kind not in allowed:
            raise DeclarationError(tool_name, f"parameter {name!r} {_WRONG_PLACE[kind]}")
        if kind in seen.values():
            raise DeclarationError(tool_name, f"parameter {name!r} is a second one of its kind; one is enough")
        seen[name] = kind
    return tuple((name, cast("Kind", kind)) for name, kind in seen.items())
