"""Declaring tools: what a user of the kit writes.

A declaration that cannot work fails here, while the catalogue is imported, with the tool's name
and what to do about it.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Generic, Literal, ParamSpec, TypeVar

from taskrail.compute import Compute, Policy, policy
from taskrail.docstrings import docstring_of
from taskrail.errors import DeclarationError
from taskrail.hints import declaration_names
from taskrail.results import ResultError, returns_of, to_json
from taskrail.signature import hook_signature, signature_of
from taskrail.tools import Mode, Tool, check_annotations, check_icons, check_job, check_name

__all__ = ["DeclaredTask", "DeclaredTool", "Mode", "TaskServer", "Tool", "Toolset"]

P = ParamSpec("P")
R = TypeVar("R")
H = TypeVar("H", bound=Callable[..., Any])

_ENGINES = ("step_functions",)


class DeclaredTool(Generic[P, R]):
    """A declared function: it is called like the function itself, in tests for instance.

    Parameters
    ----------
    function
        The function.
    tool
        What was declared. Once a server has it, it is `closed` and does not change any more.
    """

    def __init__(self, function: Callable[P, R], tool: Tool) -> None:
        self.tool = tool
        self.closed = False
        self._function = function
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function as it stands, without any of the kit around it."""
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{self.tool.kind} tool {self.tool.name!r}>"


class DeclaredTask(DeclaredTool[P, R]):
    """A declared job; `before` adds what happens inside the request."""

    def before(self, hook: H) -> H:
        """Let a function run inside the request, before anything is stored or started.

        It may ask, raise `ToolError` or `ProtocolError` to refuse, or return to go on. It takes a
        `Call` and any of the job's parameters, by name, and runs again from its start whenever
        the client comes back with answers.

        Parameters
        ----------
        hook
            The function; it is returned as it is.

        Raises
        ------
        DeclarationError
            If the hook takes something that the job does not, or there is one already.
        """
        tool = self.tool
        if self.closed:
            raise DeclarationError(
                tool.name, "its server exists already; write the before hook where the tool is declared"
            )
        if tool.before is not None:
            raise DeclarationError(tool.name, "it has a before hook already; do both things in one")
        if inspect.isgeneratorfunction(hook) or inspect.isasyncgenfunction(hook):
            raise DeclarationError(tool.name, "its before hook yields; a hook returns")
        names = declaration_names(hook, 1)
        self.tool = replace(tool, before=hook, before_signature=hook_signature(tool.name, hook, tool.signature, names))
        return hook


D = TypeVar("D", bound=DeclaredTool[Any, Any])


class Toolset:
    """Tools that belong together, usually those of one module.

    Decorate functions with `tool` or `task`, and give the set to a `TaskServer`.
    """

    def __init__(self) -> None:
        self._declared: list[DeclaredTool[Any, Any]] = []
        self._closed = False

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools declared so far, in order."""
        return tuple(declared.tool for declared in self._declared)

    def close(self) -> None:
        """Let nothing change any more; the server calls it."""
        self._closed = True
        for declared in self._declared:
            declared.closed = True

    def tool(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        annotations: dict[str, Any] | None = None,
        icons: list[dict[str, Any]] | None = None,
        schema: dict[str, Any] | None = None,
        output_schema: dict[str, Any] | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Callable[[Callable[P, R]], DeclaredTool[P, R]]:
        """Declare a tool that is answered inside the request; it has seconds, not minutes.

        Parameters
        ----------
        name
            Name on the wire; the function's own by default.
        title
            Name for people.
        description
            What an agent reads; the docstring by default.
        annotations
            MCP hints such as ``{"readOnlyHint": True}``.
        icons
            MCP icons.
        schema
            Input schema by hand, sent unaltered; from the signature by default.
        output_schema
            Output schema by hand, sent unaltered; from the return annotation by default.
        meta
            ``_meta`` of the tool's entry.

        Returns
        -------
        Callable
            A decorator; what it returns is called like the function.

        Raises
        ------
        DeclarationError
            If the declaration cannot work.
        """
        _check_called(name)

        def declare(function: Callable[P, R]) -> DeclaredTool[P, R]:
            tool = _tool(
                function,
                kind="inline",
                mode="forbidden",
                name=name,
                description=description,
                schema=schema,
                output_schema=output_schema,
                names=declaration_names(function, 1),
                title=title,
                annotations=annotations,
                icons=icons,
                meta=meta,
            )
            return self._add(DeclaredTool(function, tool))

        return declare

    def task(
        self,
        name: str | None = None,
        *,
        runs_on: Compute,
        mode: Mode = "optional",
        keep_result: timedelta | None = timedelta(hours=24),
        answer_within: timedelta = timedelta(days=7),
        poll_interval: timedelta = timedelta(seconds=5),
        job: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: dict[str, Any] | None = None,
        icons: list[dict[str, Any]] | None = None,
        schema: dict[str, Any] | None = None,
        output_schema: dict[str, Any] | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Callable[[Callable[P, R]], DeclaredTask[P, R]]:
        """Declare a job: the client gets a ticket at once and the work runs elsewhere.

        Parameters
        ----------
        name
            Name on the wire; the function's own by default.
        runs_on
            Where it runs and how long one run may take, such as ``StepFunctions(timeout=minutes(10))``.
        mode
            ``optional``: a task for clients that know tasks, waited for on behalf of others;
            ``required``: only for clients that know tasks.
        keep_result
            How long the result is kept after the end; None for ever, which costs storage for ever.
        answer_within
            How long a question stays open.
        poll_interval
            Shortest interval that is suggested to clients between two reads.
        job
            Where the code of a heavy job lives: ``jobs.render_report`` holds a function with this
            one's name, ``jobs.render_report:run`` names another. The body here stays empty.
        title, description, annotations, icons, schema, output_schema, meta
            As for `tool`.

        Returns
        -------
        Callable
            A decorator; what it returns is called like the function and has `before`.

        Raises
        ------
        DeclarationError
            If the declaration cannot work.
        """
        _check_called(name)

        def declare(function: Callable[P, R]) -> DeclaredTask[P, R]:
            called = check_name(name if name is not None else function.__name__)
            _check_mode(called, mode)
            tool = _tool(
                function,
                kind="task",
                mode=mode,
                name=called,
                description=description,
                schema=schema,
                output_schema=output_schema,
                names=declaration_names(function, 1),
                title=title,
                annotations=annotations,
                icons=icons,
                meta=meta,
            )
            tool = replace(
                tool,
                runs_on=runs_on,
                policy=_policy(called, runs_on, keep_result, answer_within, poll_interval),
                job=check_job(called, job, function),
            )
            return self._add(DeclaredTask(function, tool))

        return declare

    def _add(self, declared: D) -> D:
        if self._closed:
            raise DeclarationError(
                declared.tool.name, "its toolset has a server already; declare tools before TaskServer"
            )
        if any(declared.tool.name == other.tool.name for other in self._declared):
            raise DeclarationError(declared.tool.name, "the name is taken in this toolset; give one of them name='...'")
        self._declared.append(declared)
        return declared


class TaskServer:
    """A server: its name and its tools. The catalogue holds one.

    Parameters
    ----------
    name
        Name of the server.
    version
        Version of the server, not of the protocol.
    tools
        The toolsets, in the order in which their tools are listed.
    instructions
        What an agent should know before it uses the tools.
    title
        Name for people.

    Raises
    ------
    DeclarationError
        If two tools share a name, or something that is no toolset is among the tools.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str,
        tools: Sequence[Toolset],
        instructions: str | None = None,
        title: str | None = None,
    ) -> None:
        for what, text in (("name", name), ("version", version)):
            if not isinstance(text, str) or not text.strip():
                raise DeclarationError(str(name), f"the server's {what} is a text that is not empty")
        for what, optional in (("instructions", instructions), ("title", title)):
            if optional is not None and not isinstance(optional, str):
                raise DeclarationError(name, f"the server's {what} is a text")
        self.name = name
        self.version = version
        self.instructions = instructions
        self.title = title
        toolsets = tuple(tools) if isinstance(tools, list | tuple) else (tools,)
        for toolset in toolsets:
            if not isinstance(toolset, Toolset):
                raise DeclarationError(
                    name, f"tools=[...] takes Toolset objects, not {type(toolset).__name__}; write reports.tools"
                )
        self._tools = _named(toolsets)

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by name, in the order in which they were declared."""
        return self._tools

    def get(self, name: str) -> Tool | None:
        """The tool of that name; None if there is none."""
        return self.tools.get(name)


def _named(toolsets: Sequence[Toolset]) -> Mapping[str, Tool]:
    """The tools of all sets by name; the sets are closed then, since a server never looks again."""
    named: dict[str, Tool] = {}
    for toolset in toolsets:
        for tool in toolset.tools:
            if tool.name in named:
                raise DeclarationError(tool.name, "two tools have this name; give one of them name='...'")
            named[tool.name] = tool
    for toolset in toolsets:
        toolset.close()
    return MappingProxyType(named)


def _tool(
    function: Callable[..., Any],
    *,
    kind: Literal["inline", "task"],
    mode: Mode,
    name: str | None,
    description: str | None,
    schema: dict[str, Any] | None,
    output_schema: dict[str, Any] | None,
    names: Mapping[str, Any],
    title: str | None,
    annotations: dict[str, Any] | None,
    icons: list[dict[str, Any]] | None,
    meta: dict[str, Any] | None,
) -> Tool:
    """What is common to both kinds of tool, checked."""
    called = check_name(name if name is not None else getattr(function, "__name__", None))
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise DeclarationError(called, "it yields; a tool returns its result, and reports progress through its task")
    if title is not None and (not isinstance(title, str) or not title.strip()):
        raise DeclarationError(called, "title is a text that is not empty")
    return Tool(
        name=called,
        description=_description(called, function, description),
        kind=kind,
        signature=signature_of(
            called,
            function,
            schema=schema,
            allowed=frozenset(("call",) if kind == "inline" else ("task",)),
            names=names,
        ),
        returns=returns_of(called, function, output_schema, names),
        mode=mode,
        function=function,
        title=title,
        annotations=check_annotations(called, annotations),
        icons=check_icons(called, icons),
        meta=_meta(called, meta),
        given_schema=schema,
        given_output_schema=output_schema,
    )


def _description(name: str, function: Callable[..., Any], given: str | None) -> str:
    """The description, or the docstring without its section about parameters."""
    text = given if given is not None else docstring_of(function).text
    if not isinstance(text, str) or not text.strip():
        raise DeclarationError(name, "it has no description for agents; write a docstring or give description='...'")
    return text.strip()


def _meta(name: str, meta: object) -> dict[str, Any] | None:
    """The ``_meta`` of a tool, if it is a JSON object."""
    if meta is None:
        return None
    if not isinstance(meta, dict):
        raise DeclarationError(name, "meta is a dict")
    try:
        to_json(meta)
    except ResultError:
        raise DeclarationError(name, "meta must be plain JSON") from None
    return meta


def _policy(
    name: str, runs_on: Any, keep_result: timedelta | None, answer_within: timedelta, poll_interval: timedelta
) -> Policy:
    """The durations, checked, with a warning for results that are kept for ever."""
    if getattr(runs_on, "engine", None) not in _ENGINES or isinstance(runs_on, type):
        raise DeclarationError(name, "runs_on is a place to run, such as StepFunctions(timeout=minutes(10))")
    try:
        checked = policy(runs_on, keep_result, answer_within, poll_interval)
    except ValueError as error:
        raise DeclarationError(name, str(error)) from None
    if keep_result is None:
        warnings.warn(
            f"tool {name!r}: keep_result=None keeps every ticket and result for ever, and they cost storage for ever",
            UserWarning,
            stacklevel=3,
        )
    return checked


def _check_mode(name: str, mode: object) -> None:
    if mode == "forbidden":
        raise DeclarationError(name, "a job that may not be a task makes no sense; declare it with @tools.tool()")
    if mode not in ("optional", "required"):
        raise DeclarationError(name, "mode is 'optional' or 'required'")


def _check_called(name: object) -> None:
    """Catch a decorator that was not called: its function would end up as the name."""
    if callable(name):
        raise DeclarationError(getattr(name, "__name__", "?"), "write the decorator with parentheses: @tools.tool()")
