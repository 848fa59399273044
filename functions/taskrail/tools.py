"""One tool as it was declared: what the wire lists, what the rail starts, what a worker runs."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from taskrail.compute import Compute, Policy, checked_milliseconds, policy
from taskrail.errors import DeclarationError
from taskrail.results import ResultError, Returns, returns_of, to_json
from taskrail.schemas import without_descriptions
from taskrail.signature import Signature, signature_of
from taskrail.work import Container, Workflow

Mode = Literal["optional", "required", "forbidden"]
Kind = Literal["inline", "task", "workflow", "container"]

NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,256}")
JOB = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(:[A-Za-z_]\w*)?")

_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_ICON = ("src", "mimeType", "sizes", "theme")

# Instructions that a function without a body consists of, in the Pythons from 3.11 on.
_EMPTY = frozenset(
    (
        "CACHE",
        "CALL",
        "CALL_INTRINSIC_1",
        "LOAD_COMMON_CONSTANT",
        "LOAD_CONST",
        "LOAD_CONST_IMMORTAL",
        "LOAD_GLOBAL",
        "NOP",
        "NOT_TAKEN",
        "POP_TOP",
        "PRECALL",
        "PUSH_NULL",
        "RAISE_VARARGS",
        "RERAISE",
        "RESUME",
        "RETURN_CONST",
        "RETURN_GENERATOR",
        "RETURN_VALUE",
    )
)


@dataclass(frozen=True)
class Tool:
    """One tool of a server.

    Parameters
    ----------
    name
        Name on the wire.
    description
        What an agent reads.
    kind
        ``inline``: answered inside the request; ``task``: a job in Python; ``workflow``: a state machine;
        ``container``: an image on Batch.
    signature
        What it takes.
    returns
        What its results look like.
    mode
        Whether clients get it as a task: ``optional``, ``required`` or ``forbidden``.
    function
        The function that was declared.
    policy
        Its durations; None for inline tools.
    runs_on
        Where it runs; None for inline tools.
    work
        What runs there, where that is no Python function.
    dedupe_ms
        How long a call with the same arguments gets the same task, in milliseconds; None for never.
    job
        Where the code of a heavy job lives, as ``package.module`` or ``package.module:function``.
    before
        The hook that runs inside the request before the task is created.
    builtin
        What the kit does itself in place of a function: ``upload``.
    before_signature
        What the hook takes.
    scopes
        What a caller's token must allow for the tool to be listed and called.
    title, annotations, icons, meta
        As in ``tools/list``.
    """

    name: str
    description: str
    kind: Kind
    signature: Signature
    returns: Returns
    mode: Mode
    function: Callable[..., Any]
    policy: Policy | None = None
    runs_on: Compute | None = None
    work: Workflow | Container | None = None
    dedupe_ms: int | None = None
    job: str | None = None
    before: Callable[..., Any] | None = None
    before_signature: Signature | None = None
    builtin: Literal["upload"] | None = None
    scopes: tuple[str, ...] = ()
    title: str | None = None
    annotations: dict[str, Any] | None = None
    icons: list[dict[str, Any]] | None = None
    meta: dict[str, Any] | None = None
    given_output_schema: dict[str, Any] | None = field(default=None, repr=False)
    given_schema: dict[str, Any] | None = field(default=None, repr=False)

    def wire(self) -> dict[str, Any]:
        """The tool's entry in ``tools/list``."""
        entry: dict[str, Any] = {"name": self.name}
        if self.title is not None:
            entry["title"] = self.title
        entry["description"] = self.description
        entry["inputSchema"] = self.signature.input_schema
        for key, value in (
            ("outputSchema", self.returns.output_schema),
            ("annotations", self.annotations),
            ("icons", self.icons),
            ("_meta", self.meta),
        ):
            if value is not None:
                entry[key] = value
        return entry

    def stored_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What a task keeps as its arguments.

        Parameters
        ----------
        arguments
            Of the call, as they came or as a `before` hook changed them.

        Returns
        -------
        dict
            A Python job's arguments as they are, since they are bound again where it runs. For other work the
            checked arguments with their defaults, so that every path in a definition exists; a schema by hand
            fills nothing in.

        Raises
        ------
        ArgumentsError
            If they do not fit the schema.
        """
        return dict(arguments) if self.work is None else self.signature.written(arguments)

    def parameter_values(self, stored: Mapping[str, Any]) -> dict[str, str]:
        """The values of a container's ``Ref::name`` placeholders.

        Parameters
        ----------
        stored
            From `stored_arguments`.

        Returns
        -------
        dict
            Texts as they are, numbers and truth values as JSON writes them, without what is absent or null.
        """
        names = self.work.parameters if isinstance(self.work, Container) else ()
        values = {name: stored[name] for name in names if stored.get(name) is not None}
        return {name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items()}

    def load(self) -> Callable[..., Any]:
        """The function that does the work, imported if it lives elsewhere.

        Returns
        -------
        Callable
            The declared function, or the one that `job` names; ``async def`` functions as they are.

        Raises
        ------
        DeclarationError
            If there is no such function, or it takes or returns something else than declared.
        """
        if self.job is None:
            return self.function
        module_name, _, name = self.job.partition(":")
        name = name or self.function.__name__
        try:
            body = getattr(importlib.import_module(module_name), name, None)
        except ModuleNotFoundError as error:
            # What the job itself imports in vain is a fault of the job's.
            if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
                raise
            raise DeclarationError(self.name, f"job={self.job!r}: there is no module {error.name!r}") from None
        if not callable(body):
            raise DeclarationError(
                self.name,
                f"job={self.job!r} needs a function {name!r} in {module_name}; "
                "write it, or name another as 'module:function'",
            )
        taken = signature_of(self.name, body, schema=self.given_schema, allowed=frozenset(("task",)))
        same = without_descriptions(taken.input_schema) == without_descriptions(self.signature.input_schema)
        if not same or set(taken.parameters) != set(self.signature.parameters):
            raise DeclarationError(
                self.name, f"the function of job={self.job!r} takes other parameters than declared; make them the same"
            )
        if not self._injects_like(taken):
            raise DeclarationError(
                self.name,
                f"the function of job={self.job!r} and its declaration must call their TaskContext by the same name",
            )
        returned = returns_of(self.name, body, self.given_output_schema)
        if without_descriptions(returned.output_schema) != without_descriptions(self.returns.output_schema):
            raise DeclarationError(
                self.name, f"the function of job={self.job!r} returns another type than declared; make them the same"
            )
        loaded: Callable[..., Any] = body
        return loaded

    def _injects_like(self, other: Signature) -> bool:
        """Whether keywords made for the declaration also call the other function."""
        return dict(other.injected) == dict(self.signature.injected)


def check_name(name: object) -> str:
    """A tool's name, if the protocol allows it: 1 to 128 of ``A-Z a-z 0-9 _ . -``.

    Raises
    ------
    DeclarationError
        If it does not.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise DeclarationError(str(name), "a name is 1 to 128 letters, digits, '_', '.' or '-'; give name='...'")
    return name


def check_title(name: str, title: object) -> str | None:
    """A tool's name for people, if it is one."""
    if title is not None and (not isinstance(title, str) or not title.strip()):
        raise DeclarationError(name, "title is a text that is not empty")
    return title


def check_description(name: str, text: object) -> str:
    """A tool's description, if there is one."""
    if not isinstance(text, str) or not text.strip():
        raise DeclarationError(name, "it has no description for agents; write a docstring or give description='...'")
    return text.strip()


def check_mode(name: str, mode: object) -> Mode:
    """How a job may be called, if it makes sense for one."""
    if mode == "forbidden":
        raise DeclarationError(name, "a job that may not be a task makes no sense; declare it with @tools.tool()")
    if mode not in ("optional", "required"):
        raise DeclarationError(name, "mode is 'optional' or 'required'")
    return "optional" if mode == "optional" else "required"


def check_meta(name: str, meta: object) -> dict[str, Any] | None:
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


def check_dedupe(name: str, window: object) -> int | None:
    """How long equal calls get the same task, in milliseconds."""
    try:
        return None if window is None else checked_milliseconds("dedupe", window)
    except ValueError as error:
        raise DeclarationError(name, str(error)) from None


def check_scopes(name: str, scopes: object) -> tuple[str, ...]:
    """The scopes that a tool demands, if a token can have them (RFC 6749, section 3.3)."""
    if isinstance(scopes, str) or not isinstance(scopes, list | tuple | set | frozenset):
        raise DeclarationError(name, "scopes is a list of texts, as ['reports:write']")
    for scope in scopes:
        if not isinstance(scope, str) or not SCOPE.fullmatch(scope):
            raise DeclarationError(name, f"scopes: {scope!r} is no scope; a scope is a word without spaces and quotes")
    return tuple(dict.fromkeys(scopes))


def check_policy(
    name: str,
    runs_on: Compute,
    keep_result: timedelta | None,
    answer_within: timedelta,
    poll_interval: timedelta,
    *,
    depth: int,
) -> Policy:
    """The durations of a job, with a warning for results that are kept for ever.

    Parameters
    ----------
    name
        Name of the tool.
    runs_on, keep_result, answer_within, poll_interval
        As they were declared.
    depth
        How many calls away the declaration is, so that the warning names its line.

    Raises
    ------
    DeclarationError
        If one of them is zero, negative, too long or no duration.
    """
    try:
        checked = policy(runs_on, keep_result, answer_within, poll_interval)
    except ValueError as error:
        raise DeclarationError(name, str(error)) from None
    if keep_result is None:
        warnings.warn(
            f"tool {name!r}: keep_result=None keeps every ticket and result for ever, and they cost storage for ever",
            UserWarning,
            stacklevel=depth + 1,
        )
    return checked


def check_annotations(name: str, annotations: object) -> dict[str, Any] | None:
    """A tool's annotations, if they are ones that MCP knows."""
    if annotations is None:
        return None
    if not isinstance(annotations, dict):
        raise DeclarationError(name, "annotations is a dict such as {'readOnlyHint': True}")
    for key, value in annotations.items():
        if key == "title":
            if not isinstance(value, str):
                raise DeclarationError(name, "annotations: title is a text")
        elif key not in _HINTS:
            raise DeclarationError(name, f"annotations: {key!r} is unknown; there are title, {', '.join(_HINTS)}")
        elif not isinstance(value, bool):
            raise DeclarationError(name, f"annotations: {key} is True or False")
    return annotations


def check_icons(name: str, icons: object) -> list[dict[str, Any]] | None:
    """A tool's icons, if a client could show them."""
    if icons is None:
        return None
    if not isinstance(icons, list | tuple) or not all(isinstance(icon, dict) for icon in icons):
        raise DeclarationError(name, "icons is a list of dicts such as {'src': 'https://...', 'mimeType': 'image/png'}")
    for icon in icons:
        source = icon.get("src")
        if not isinstance(source, str) or not source.startswith(("https://", "http://", "data:")):
            raise DeclarationError(name, "icons: each needs a src that is an http(s) or data URI")
        unknown = [key for key in icon if key not in _ICON]
        if unknown:
            raise DeclarationError(name, f"icons: {unknown[0]!r} is unknown; there are {', '.join(_ICON)}")
    return [dict(icon) for icon in icons]


def check_job(name: str, job: object, function: Callable[..., Any]) -> str | None:
    """Where a heavy job lives, if it says so and leaves the body to it."""
    if job is None:
        return None
    if not isinstance(job, str) or not JOB.fullmatch(job):
        raise DeclarationError(name, "job names a module under functions/, such as 'jobs.render_report'")
    if not _has_empty_body(function):
        raise DeclarationError(
            name,
            f"it has a body here and job={job!r} as well; move the body there and leave a docstring "
            "(and `raise NotImplementedError`), or drop job=",
        )
    return job


def _has_empty_body(function: Callable[..., Any]) -> bool:
    """Whether a function consists of a docstring, ``pass``, ``...`` or ``raise NotImplementedError``."""
    import dis

    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return False
    for instruction in dis.get_instructions(code):
        if instruction.opname == "RAISE_VARARGS":
            return set(code.co_names) <= {"NotImplementedError"}
        if instruction.opname not in _EMPTY:
            return False
        if instruction.opname in ("RETURN_CONST", "RETURN_VALUE"):
            break
    return not code.co_names and all(
        constant in (None, Ellipsis, function.__doc__) or constant == code.co_consts[0] for constant in code.co_consts
    )
