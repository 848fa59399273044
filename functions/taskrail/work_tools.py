"""Tools whose work is no Python function: what their declarations have in common, checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, TypedDict

from taskrail.compute import Compute
from taskrail.docstrings import docstring_of
from taskrail.errors import DeclarationError
from taskrail.results import Returns, is_content, returns_from
from taskrail.signature import signature_from
from taskrail.tools import (
    Mode,
    Tool,
    check_annotations,
    check_dedupe,
    check_description,
    check_icons,
    check_meta,
    check_mode,
    check_policy,
    check_scopes,
    check_title,
)
from taskrail.work import Container, ExistingJob, ExistingStateMachine, Workflow

_SCALARS = ("string", "number", "integer", "boolean", "null")


class JobOptions(TypedDict, total=False):
    """What can be said about every workflow and container, with the meaning and the defaults of ``Toolset.task``.

    The description is required unless `input` is a model with a docstring of its own.
    """

    description: str | None
    title: str | None
    mode: Mode
    keep_result: timedelta | None
    answer_within: timedelta
    poll_interval: timedelta
    dedupe: timedelta | None
    scopes: Sequence[str]
    annotations: dict[str, Any] | None
    icons: list[dict[str, Any]] | None
    meta: dict[str, Any] | None


def workflow_work(
    name: str,
    definition: str | None,
    functions: Mapping[str, str] | None,
    existing: ExistingStateMachine | None,
    timeout: timedelta,
) -> Workflow:
    """The work of a workflow.

    Raises
    ------
    DeclarationError
        If it cannot work as declared.
    """
    try:
        return Workflow(definition, {} if functions is None else functions, existing, timeout)
    except ValueError as error:
        raise DeclarationError(name, str(error)) from None


def container_work(
    name: str,
    image: str | None,
    command: Sequence[str],
    environment: Mapping[str, str] | None,
    parameters: Sequence[str],
    log_lines: int,
    existing: ExistingJob | None,
) -> Container:
    """The work of a container.

    Raises
    ------
    DeclarationError
        If it cannot work as declared.
    """
    variables = {} if environment is None else environment
    try:
        # The spec refuses lists that are none, and makes tuples of those that are.
        return Container(image, command, variables, parameters, log_lines, existing)  # type: ignore[arg-type]
    except ValueError as error:
        raise DeclarationError(name, str(error)) from None


def work_tool(
    name: str,
    kind: Literal["workflow", "container"],
    work: Workflow | Container,
    runs_on: Compute,
    given: Any,
    output: Any,
    options: JobOptions,
) -> Tool:
    """A tool of such work, called by a method of the toolset.

    Parameters
    ----------
    name, kind
        Of the tool.
    work, runs_on
        What runs, and where.
    given, output
        What it takes and returns, as declared.
    options
        The rest.

    Raises
    ------
    DeclarationError
        If the declaration cannot work.
    """
    unknown = sorted(set(options) - set(JobOptions.__annotations__))
    if unknown:
        raise DeclarationError(name, f"{unknown[0]!r} is unknown; there are {', '.join(JobOptions.__annotations__)}")
    signature = signature_from(name, given)
    for parameter in work.parameters if isinstance(work, Container) else ():
        _check_parameter(name, parameter, signature.input_schema)
    return Tool(
        name=name,
        description=_description(name, given, options.get("description")),
        kind=kind,
        signature=signature,
        returns=_returns(name, output),
        mode=check_mode(name, options.get("mode", "optional")),
        function=_not_here(name),
        policy=check_policy(
            name,
            runs_on,
            options.get("keep_result", timedelta(hours=24)),
            options.get("answer_within", timedelta(days=7)),
            options.get("poll_interval", timedelta(seconds=5)),
            depth=3,
        ),
        runs_on=runs_on,
        work=work,
        dedupe_ms=check_dedupe(name, options.get("dedupe")),
        scopes=check_scopes(name, options.get("scopes", ())),
        title=check_title(name, options.get("title")),
        annotations=check_annotations(name, options.get("annotations")),
        icons=check_icons(name, options.get("icons")),
        meta=check_meta(name, options.get("meta")),
        given_schema=given if isinstance(given, dict) else None,
        given_output_schema=output if isinstance(output, dict) else None,
    )


def _description(name: str, given: Any, description: object) -> str:
    if description is not None:
        return check_description(name, description)
    text = docstring_of(given).text if isinstance(given, type) else ""
    if not text:
        raise DeclarationError(
            name, "it has no description for agents; give description='...', or its input model a docstring"
        )
    return text


def _returns(name: str, output: Any) -> Returns:
    if isinstance(output, dict):
        return returns_from(name, None, output)
    if is_content(output):
        raise DeclarationError(name, "output is a type that JSON can carry; content classes are for functions")
    return returns_from(name, output)


def _not_here(name: str) -> Callable[..., Any]:
    def work(**arguments: Any) -> Any:
        raise NotImplementedError(f"the work of {name!r} is no Python function")

    work.__name__ = work.__qualname__ = name
    return work


def _check_parameter(tool_name: str, name: str, schema: Mapping[str, Any]) -> None:
    """Refuse a placeholder that no argument, or none that is one word, can fill."""
    properties = schema.get("properties", {})
    if name not in properties:
        known = ", ".join(properties) or "none"
        raise DeclarationError(tool_name, f"parameters: its input has no {name!r}; there are {known}")
    if not _is_scalar(properties[name], schema):
        raise DeclarationError(
            tool_name,
            f"parameters: {name!r} is not a text, a number or a truth value; read it from the arguments instead",
        )


def _is_scalar(inner: Any, root: Mapping[str, Any], depth: int = 0) -> bool:
    """Whether every value of a schema is a text, a number, a truth value or null."""
    if not isinstance(inner, Mapping) or depth > 20:
        return False
    if isinstance(inner.get("$ref"), str):
        section, _, name = inner["$ref"].removeprefix("#/").partition("/")
        return _is_scalar(root.get(section, {}).get(name), root, depth + 1)
    for keyword in ("anyOf", "oneOf"):
        if keyword in inner:
            return all(_is_scalar(branch, root, depth + 1) for branch in inner[keyword])
    if "allOf" in inner:
        return any(_is_scalar(branch, root, depth + 1) for branch in inner["allOf"])
    if "enum" in inner or "const" in inner:
        return all(
            value is None or isinstance(value, str | int | float) for value in inner.get("enum", [inner.get("const")])
        )
    types = inner.get("type")
    return isinstance(types, str | list) and set([types] if isinstance(types, str) else types) <= set(_SCALARS)
