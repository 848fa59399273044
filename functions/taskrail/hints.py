"""The annotations of a function as types, wherever and however it was written.

Annotations are strings in modules that use ``from __future__ import annotations``, and may name
things that exist only where the function stands: inside a test, inside another function.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from taskrail.errors import DeclarationError

# The objects that the kit hands to a function by the type of its parameter. They are known by
# name, since their modules stand further up and import this one.
_INJECTED = {("taskrail.context", "TaskContext"): "task", ("taskrail.call", "Call"): "call"}


class Missing:
    """Stands for an annotation that is not there."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing()


@dataclass(frozen=True)
class Hints:
    """A function's parameters and the types of what it takes and returns.

    Parameters
    ----------
    parameters
        Its parameters in order.
    types
        Types by parameter; a parameter without an annotation is left out.
    injected
        Parameters that the kit fills in itself, with their kind: ``task`` or ``call``.
    returns
        The return type; `MISSING` without an annotation.
    """

    parameters: tuple[inspect.Parameter, ...]
    types: Mapping[str, Any]
    injected: Mapping[str, str]
    returns: Any


def declaration_names(function: Callable[..., Any], depth: int) -> dict[str, Any]:
    """Names that the function's annotations may refer to and that its module does not have.

    Parameters
    ----------
    function
        The function that is being declared.
    depth
        How many frames above the caller its declaration stands.

    Returns
    -------
    dict
        Local names of the functions around the declaration, inner ones first.
    """
    plain = inspect.unwrap(function)
    qualified = getattr(plain, "__qualname__", "")
    if "." not in qualified:
        return {}
    module = getattr(plain, "__globals__", {})
    names: dict[str, Any] = {}
    frame = inspect.currentframe()
    try:
        for _ in range(depth + 1):
            frame = frame.f_back if frame is not None else None
        while frame is not None:
            # Only what stands around the function in the source: a caller further up may use the
            # same names for other things.
            if frame.f_globals is module and qualified.startswith(f"{frame.f_code.co_qualname}."):
                for name, value in frame.f_locals.items():
                    names.setdefault(name, value)
            frame = frame.f_back
    finally:
        # A frame that refers to itself would keep everything in it alive.
        del frame
    return names


def hints_of(tool_name: str, function: Callable[..., Any], names: Mapping[str, Any] | None = None) -> Hints:
    """The parameters of a function with their types.

    Parameters
    ----------
    tool_name
        Name of the tool, for messages.
    function
        Any function; decorators that use `functools.wraps` are looked through.
    names
        Names from `declaration_names`.

    Raises
    ------
    DeclarationError
        If an annotation names something that does not exist when the catalogue is imported.
    """
    plain = inspect.unwrap(function)
    local = {**_closure(plain), **(names or {})}
    module = getattr(plain, "__globals__", {})
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError, NameError):
        raise DeclarationError(tool_name, "a tool is a function with annotated parameters") from None
    types: dict[str, Any] = {}
    injected: dict[str, str] = {}
    for name, parameter in signature.parameters.items():
        if parameter.annotation is inspect.Parameter.empty:
            continue
        kind = _kind_by_name(parameter.annotation)
        try:
            annotation = _resolved(parameter.annotation, module, local)
        except Exception as error:
            if kind is None:
                raise _unresolved(tool_name, f"parameter {name!r}", error) from None
            # Imported for type checkers only, as many people do: its name says enough.
            injected[name] = kind
            continue
        kind = _kind(annotation)
        if kind is None:
            types[name] = annotation
        else:
            injected[name] = kind
    returns: Any = MISSING
    if signature.return_annotation is not inspect.Signature.empty:
        try:
            returns = _resolved(signature.return_annotation, module, local)
        except Exception as error:
            raise _unresolved(tool_name, "the return annotation", error) from None
    return Hints(tuple(signature.parameters.values()), types, injected, returns)


def _resolved(annotation: Any, module: dict[str, Any], local: dict[str, Any]) -> Any:
    """The annotation with the names in its strings looked up."""
    holder = SimpleNamespace(__annotations__={"it": annotation})
    return typing.get_type_hints(holder, module, local, include_extras=True)["it"]


def _closure(function: Callable[..., Any]) -> dict[str, Any]:
    """Names that the function takes from functions around it."""
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None) or ()
    names: dict[str, Any] = {}
    for name, cell in zip(code.co_freevars if code is not None else (), cells, strict=False):
        try:
            names[name] = cell.cell_contents
        except ValueError:
            continue
    return names


def _kind(annotation: Any) -> str | None:
    """The kind of object to hand in, from the type of a parameter."""
    if typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    if not isinstance(annotation, type):
        return None
    for base in annotation.__mro__:
        kind = _INJECTED.get((base.__module__, base.__name__))
        if kind is not None:
            return kind
    return None


def _kind_by_name(annotation: Any) -> str | None:
    """The same from an annotation that is still a string."""
    if not isinstance(annotation, str):
        return None
    last = annotation.strip().strip("'\"").rsplit(".", 1)[-1]
    return next((kind for (_, name), kind in _INJECTED.items() if name == last), None)


def _unresolved(tool_name: str, where: str, error: Exception) -> DeclarationError:
    name = getattr(error, "name", None)
    what = f"names {name!r}, which does not exist" if name else f"cannot be read ({type(error).__name__})"
    return DeclarationError(
        tool_name,
        f"{where} {what} when the catalogue is imported; import it for real, not under TYPE_CHECKING",
    )
