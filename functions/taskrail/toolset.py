"""Declaring tools: what a user of the kit writes.

A declaration that cannot work fails here, while the catalogue is imported, with the tool's name
and what to do about it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Generic, Literal, ParamSpec, TypeVar, Unpack

from taskrail.compute import Batch, Compute
from taskrail.docstrings import docstring_of
from taskrail.errors import DeclarationError
from taskrail.hints import declaration_names
from taskrail.results import returns_of
from taskrail.signature import hook_signature, signature_of
from taskrail.tools import (
    Mode,
    Tool,
    check_annotations,
    check_dedupe,
    check_description,
    check_icons,
    check_job,
    check_meta,
    check_mode,
    check_name,
    check_policy,
    check_scopes,
    check_title,
)
from taskrail.work import ExistingJob, ExistingStateMachine, Workflow
from taskrail.work_tools import JobOptions, container_work, work_tool, workflow_work

__all__ = ["DeclaredTask", "DeclaredTool", "Mode", "Tool", "Toolset"]

P = ParamSpec("P")
R = TypeVar("R")
H = TypeVar("H", bound=Callable[..., Any])

_BATCH = Batch()
_ENGINES = ("step_functions", "lambda", "batch")


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
        scopes: Sequence[str] = (),
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
        scopes
            What a caller's token must allow for the tool to be listed and called.
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
                scopes=scopes,
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
        dedupe: timedelta | None = None,
        scopes: Sequence[str] = (),
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
            Where it runs and how long one run may take, such as ``StepFunctions(timeout=minutes(10))``,
            ``Lambda(timeout=minutes(10))`` or ``Batch(timeout=hours(2))``.
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
        dedupe
            How long the same caller's calls with the same arguments, or the same idempotency key, get the same
            task; None for a task each. It needs callers that are told apart.
        scopes, title, description, annotations, icons, schema, output_schema, meta
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
            check_mode(called, mode)
            _check_runs_on(called, runs_on)
            tool = _tool(
                function,
                kind="task",
                mode=mode,
                name=called,
                description=description,
                schema=schema,
                output_schema=output_schema,
                names=declaration_names(function, 1),
                scopes=scopes,
                title=title,
                annotations=annotations,
                icons=icons,
                meta=meta,
            )
            tool = replace(
                tool,
                runs_on=runs_on,
                policy=check_policy(called, runs_on, keep_result, answer_within, poll_interval, depth=2),
                dedupe_ms=check_dedupe(called, dedupe),
                job=check_job(called, job, function),
            )
            return self._add(DeclaredTask(function, tool))

        return declare

    def workflow(
        self,
        name: str,
        *,
        input: Any,
        output: Any = None,
        definition: str | None = None,
        functions: Mapping[str, str] | None = None,
        existing: ExistingStateMachine | None = None,
        timeout: timedelta = timedelta(hours=1),
        **options: Unpack[JobOptions],
    ) -> DeclaredTask[..., Any]:
        """Declare a job that is a state machine: one that is made for it, or one that is there already.

        Parameters
        ----------
        name
            Name on the wire.
        input
            What it takes: a pydantic model, a JSON Schema by hand, or None for no arguments.
        output
            What its executions return: a type, a JSON Schema by hand, or None for whatever comes.
        definition
            File of the definition below ``functions/``, as ``workflows/name.asl.json``.
        functions
            Handlers that the definition invokes as ``${key}``: ``{"plan": "workflows.name.plan"}``.
        existing
            A state machine of the account, in place of `definition`.
        timeout
            Longest time of one execution; the waiting for answers does not count.
        options
            `JobOptions`.

        Returns
        -------
        DeclaredTask
            It has `before`; calling it raises `NotImplementedError`.

        Raises
        ------
        DeclarationError
            If the declaration cannot work.
        """
        called = check_name(name)
        work = workflow_work(called, definition, functions, existing, timeout)
        tool = work_tool(called, "workflow", work, work, input, output, options)
        return self._add(DeclaredTask(tool.function, tool))

    def container(
        self,
        name: str,
        *,
        input: Any,
        output: Any = None,
        image: str | None = None,
        command: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        parameters: Sequence[str] = (),
        log_lines: int = 0,
        runs_on: Batch = _BATCH,
        existing: ExistingJob | None = None,
        **options: Unpack[JobOptions],
    ) -> DeclaredTask[..., Any]:
        """Declare a job that is a container image, in any language, on AWS Batch.

        Parameters
        ----------
        name
            Name on the wire.
        input, output
            As for `workflow`.
        image
            URI of the image.
        command
            What runs in it; ``Ref::name`` stands for the argument of that name.
        environment
            More variables, the same for every run.
        parameters
            More arguments for ``Ref::name`` placeholders: those of an existing job definition.
        log_lines
            How many of the last lines of its log a caller gets when it failed.
        runs_on
            Its size and time. With `existing` the sizes are the definition's own; the time and the attempts count.
        existing
            A queue and a definition of the account, in place of `image`.
        options
            `JobOptions`.

        Returns
        -------
        DeclaredTask
            It has `before`; calling it raises `NotImplementedError`.

        Raises
        ------
        DeclarationError
            If the declaration cannot work.
        """
        called = check_name(name)
        if not isinstance(runs_on, Batch):
            raise DeclarationError(called, "runs_on of a container is Batch(...)")
        work = container_work(called, image, command, environment, parameters, log_lines, existing)
        tool = work_tool(called, "container", work, runs_on, input, output, options)
        return self._add(DeclaredTask(tool.function, tool))

    def _add(self, declared: D) -> D:
        if self._closed:
            raise DeclarationError(
                declared.tool.name, "its toolset has a server already; declare tools before TaskServer"
            )
        if any(declared.tool.name == other.tool.name for other in self._declared):
            raise DeclarationError(declared.tool.name, "the name is taken in this toolset; give one of them name='...'")
        self._declared.append(declared)
        return declared


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
    scopes: Sequence[str],
    title: str | None,
    annotations: dict[str, Any] | None,
    icons: list[dict[str, Any]] | None,
    meta: dict[str, Any] | None,
) -> Tool:
    """What is common to both kinds of tool, checked."""
    called = check_name(name if name is not None else getattr(function, "__name__", None))
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise DeclarationError(called, "it yields; a tool returns its result, and reports progress through its task")
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
        scopes=check_scopes(called, scopes),
        title=check_title(called, title),
        annotations=check_annotations(called, annotations),
        icons=check_icons(called, icons),
        meta=check_meta(called, meta),
        given_schema=schema,
        given_output_schema=output_schema,
    )


def _description(name: str, function: Callable[..., Any], given: str | None) -> str:
    """The description, or the docstring without its section about parameters."""
    text = given if given is not None else docstring_of(function).text
    return check_description(name, text)


def _check_runs_on(name: str, runs_on: object) -> None:
    """Refuse what is no place to run, as a class that was not called is none."""
    if isinstance(runs_on, type | Workflow) or getattr(runs_on, "engine", None) not in _ENGINES:
        raise DeclarationError(name, "runs_on is a place to run, such as StepFunctions(timeout=minutes(10)) or Batch()")


def _check_called(name: object) -> None:
    """Catch a decorator that was not called: its function would end up as the name."""
    if callable(name):
        raise DeclarationError(getattr(name, "__name__", "?"), "write the decorator with parentheses: @tools.tool()")
