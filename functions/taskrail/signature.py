"""From a function's signature to its input schema, and from arguments to its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from taskrail.docstrings import docstring_of
from taskrail.errors import DeclarationError
from taskrail.hints import Hints, hints_of
from taskrail.schema_headers import Header, HeaderParameter, headers_of

if TYPE_CHECKING:
    from taskrail.inputs import S3Uri

__all__ = ["EVERYTHING", "Header", "HeaderParameter", "Kind", "Signature", "signature_from", "signature_of"]

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
    fills_in
        Whether arguments that a caller left out get their defaults; else they stay away.
    binder, writer
        What `bind` and `written` do.
    """

    input_schema: dict[str, Any]
    headers: tuple[HeaderParameter, ...]
    injected: tuple[tuple[str, Kind], ...]
    parameters: tuple[str, ...] = ()
    takes_more: bool = False
    fills_in: bool = True
    binder: Callable[[Mapping[str, Any]], dict[str, Any]] = field(default=dict, repr=False, compare=False)
    writer: Callable[[Mapping[str, Any]], dict[str, Any]] = field(default=dict, repr=False, compare=False)

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

    def written(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as JSON for work that is no Python function: checked, and with defaults if `fills_in`.

        Parameters
        ----------
        arguments
            As they came: a JSON object.

        Raises
        ------
        ArgumentsError
            If they do not fit the schema.
        """
        return self.writer(arguments)

    def input_files(self, arguments: Mapping[str, Any]) -> list[S3Uri]:
        """The arguments that name objects in S3, wherever they are; `inputs.s3_uris` has the details."""
        from taskrail.inputs import s3_uris

        return s3_uris(arguments, self.input_schema)

    def always_has(self, name: str) -> bool:
        """Whether `bind` gives this parameter a value whatever the arguments are."""
        whole = name == EVERYTHING and EVERYTHING not in self.input_schema.get("properties", ())
        return self.fills_in or whole or name in self.input_schema.get("required", ())

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
    return Signature(
        input_schema,
        _headers(tool_name, input_schema),
        injected,
        tuple(parameter.name for parameter in plain),
        takes_more,
        fills_in=schema is None,
        binder=binder,
    )


def signature_from(tool_name: str, given: Any) -> Signature:
    """What work that is no Python function takes.

    Parameters
    ----------
    tool_name
        Name of the tool, for messages.
    given
        A pydantic model, whose fields a `before` hook takes by their names; a JSON Schema by hand, a dict;
        or None for no arguments at all.

    Raises
    ------
    DeclarationError
        If it is none of these, or cannot describe arguments.
    """
    if isinstance(given, dict):
        from taskrail.handwritten import handwritten_binder

        binder = handwritten_binder(tool_name, given, (), takes_more=True)
        open_ended = given.get("additionalProperties", True) is not False or "patternProperties" in given
        return Signature(
            given,
            _headers(tool_name, given),
            (),
            tuple(given.get("properties", ())),
            takes_more=open_ended,
            fills_in=False,
            binder=binder,
            writer=binder,
        )
    from pydantic import BaseModel

    from taskrail.arguments import arguments_model, given_model

    if given is None:
        model = arguments_model(tool_name, (), {}, {})
    elif isinstance(given, type) and issubclass(given, BaseModel):
        model = given_model(tool_name, given, docstring_of(given).parameters)
    else:
        raise DeclarationError(
            tool_name, "input is a pydantic model, a JSON Schema (a dict), or None for no arguments at all"
        )
    headers = _headers(tool_name, model.schema)
    return Signature(model.schema, headers, (), tuple(model.fields.values()), binder=model.bind, writer=model.written)


def _headers(tool_name: str, schema: Mapping[str, Any]) -> tuple[HeaderParameter, ...]:
    try:
        return headers_of(schema)
    except ValueError as error:
        raise DeclarationError(tool_name, str(error)) from None


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
        if known and parameter.default is inspect.Parameter.empty and not tool.always_has(parameter.name):
            raise DeclarationError(
                tool_name,
                f"its before hook takes {parameter.name!r}, which callers may leave out; give it a default there",
            )
        wanted.append(parameter.name)
    return Signature(tool.input_schema, tool.headers, injected, tuple(wanted), takes_more, binder=tool.bind)


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
