"""Work that is no Python function of the kit's: state machines and containers, made for the tool or adopted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import Any, ClassVar

from taskrail.compute import checked_milliseconds

Tag = tuple[str, str]

_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_NAME = re.compile(r"[A-Za-z_]\w*")
_DEFINITION = re.compile(r"workflows/[\w./-]+\.json")
_REFERENCE = re.compile(r"Ref::([A-Za-z0-9_-]+)")
_STATE_MACHINE = re.compile(r"arn:aws[a-z-]*:states:[a-z0-9-]+:\d{12}:stateMachine:[^:\s]+")
_SUBSTITUTION = re.compile(r"\$\{([A-Za-z_]\w*)\}")
_MOST_LOG_LINES = 200
_EXAMPLES = {"command": "['sh', '-c', 'echo Ref::name']", "parameters": "('name',)"}
_RESERVED = ("AWS_BATCH", "TASKRAIL_")

QUEUE_MS = 60_000
"""Allowance for an execution to get going, in milliseconds."""


@dataclass(frozen=True)
class ExistingStateMachine:
    """A Standard state machine that is in the account already.

    Parameters
    ----------
    arn
        Its ARN; or
    tag
        a tag, key and value, that exactly one state machine of the account and region has.
    envelope
        False: an execution's input is the tool's arguments, as callers of the machine are used to. True: the
        input of the kit's own workflows, with a token for reports.

    Raises
    ------
    ValueError
        Neither or both are given, or the ARN is none of a state machine.
    """

    arn: str | None = None
    tag: Tag | None = None
    envelope: bool = False

    def __post_init__(self) -> None:
        if (self.arn is None) == (self.tag is None):
            raise ValueError("ExistingStateMachine takes arn='arn:aws:states:...' or tag=('key', 'value'), one of them")
        if self.arn is not None and (not isinstance(self.arn, str) or not _STATE_MACHINE.fullmatch(self.arn)):
            raise ValueError("ExistingStateMachine(arn=...) is the ARN of a state machine, without version or alias")
        if self.tag is not None:
            check_tag("ExistingStateMachine(tag=...)", self.tag)


@dataclass(frozen=True)
class ExistingJob:
    """A job queue and a job definition of AWS Batch that are in the account already.

    Parameters
    ----------
    queue, definition
        ARN or name of each; a definition's revision is optional; or
    queue_tag, definition_tag
        a tag, key and value, that exactly one of them in the account and region has.

    Raises
    ------
    ValueError
        One of the two is not named, or named twice.
    """

    queue: str | None = None
    definition: str | None = None
    queue_tag: Tag | None = None
    definition_tag: Tag | None = None

    def __post_init__(self) -> None:
        for what, name, tag in (
            ("queue", self.queue, self.queue_tag),
            ("definition", self.definition, self.definition_tag),
        ):
            if (name is None) == (tag is None):
                raise ValueError(f"ExistingJob takes {what}='ARN or name' or {what}_tag=('key', 'value'), one of them")
            if name is not None and (not isinstance(name, str) or not name.strip()):
                raise ValueError(f"ExistingJob({what}=...) is an ARN or a name")
            if tag is not None:
                check_tag(f"ExistingJob({what}_tag=...)", tag)


@dataclass(frozen=True)
class Workflow:
    """A state machine as a tool's work.

    Parameters
    ----------
    definition
        File of its definition in Amazon States Language, below ``functions/``: ``workflows/name.asl.json``.
        JSONPath or JSONata. ``${name}`` in it becomes the ARN of the function of that name in `functions`,
        ``${report}`` the ARN of the `report` function.
    functions
        Lambda handlers that its states invoke, ``package.module.function`` by a name of one's own.
    existing
        A state machine that is in the account already, in place of `definition`.
    timeout
        Longest time of the work, the waiting for answers not counted.

    Raises
    ------
    ValueError
        It cannot work as declared; the text says why.
    """

    definition: str | None = None
    functions: Mapping[str, str] = field(default_factory=dict)
    existing: ExistingStateMachine | None = None
    timeout: timedelta = timedelta(hours=1)

    engine: ClassVar[str] = "step_functions"
    queue_ms: ClassVar[int] = QUEUE_MS
    attempts: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if (self.definition is None) == (self.existing is None):
            raise ValueError("a workflow takes definition='workflows/name.asl.json' or existing=..., one of them")
        if self.definition is not None and (
            not isinstance(self.definition, str)
            or not _DEFINITION.fullmatch(self.definition)
            or ".." in self.definition.split("/")
        ):
            raise ValueError("definition is a JSON file below functions/workflows/, as 'workflows/name.asl.json'")
        if self.existing is not None and not isinstance(self.existing, ExistingStateMachine):
            raise ValueError("existing is an ExistingStateMachine(...)")
        if self.existing is not None and self.functions:
            raise ValueError("functions belong to a definition; an existing state machine has its own")
        if not isinstance(self.functions, Mapping):
            raise ValueError("functions is a dict such as {'plan': 'workflows.name.plan'}")
        for name, function in self.functions.items():
            if not isinstance(name, str) or not _NAME.fullmatch(name) or name == "report":
                raise ValueError(f"functions: {name!r} is no name for a substitution; 'report' is the kit's own")
            if not isinstance(function, str) or not _FUNCTION.fullmatch(function):
                raise ValueError(f"functions[{name!r}] names a function below functions/, as 'workflows.name.function'")
        checked_milliseconds("timeout", self.timeout)
        object.__setattr__(self, "functions", MappingProxyType(dict(self.functions)))

    @property
    def envelope(self) -> bool:
        """Whether executions get the kit's input with a token for reports; else the plain arguments."""
        return self.existing is None or self.existing.envelope


@dataclass(frozen=True)
class Container:
    """A container image as a tool's work, in any language.

    Parameters
    ----------
    image
        URI of the image. Not with `existing`.
    command
        What runs in it, ``Ref::name`` standing for the argument of that name.
    environment
        More variables, the same for every run.
    parameters
        Arguments that are handed to ``Ref::name`` placeholders: those in `command`, and with `existing` those of
        the job definition. Such arguments are text, numbers or truth values, and can be read in the job's description.
    log_lines
        How many of the last lines of its log a caller may read when it failed; 0 for none.
    existing
        A queue and a definition that are in the account already, in place of `image`.

    Raises
    ------
    ValueError
        It cannot work as declared; the text says why.
    """

    image: str | None = None
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    parameters: tuple[str, ...] = ()
    log_lines: int = 0
    existing: ExistingJob | None = None

    def __post_init__(self) -> None:
        if (self.image is None) == (self.existing is None):
            raise ValueError("a container takes image='URI' or existing=ExistingJob(...), one of them")
        if self.image is not None and (not isinstance(self.image, str) or not self.image.strip() or " " in self.image):
            raise ValueError("image is the URI of a container image")
        if self.existing is not None and not isinstance(self.existing, ExistingJob):
            raise ValueError("existing is an ExistingJob(...)")
        for what, texts in (("command", self.command), ("parameters", self.parameters)):
            if not isinstance(texts, list | tuple) or not all(isinstance(text, str) and text for text in texts):
                raise ValueError(f"{what} is a list of texts, such as {_EXAMPLES[what]}")
        if not isinstance(self.environment, Mapping):
            raise ValueError("environment is a dict of texts")
        for name, value in self.environment.items():
            if not isinstance(name, str) or not _NAME.fullmatch(name) or name.startswith(_RESERVED):
                raise ValueError(f"environment: {name!r} cannot be used; AWS_BATCH… and TASKRAIL_… are taken")
            if not isinstance(value, str):
                raise ValueError(f"environment[{name!r}] is a text")
        if isinstance(self.log_lines, bool) or not isinstance(self.log_lines, int):
            raise ValueError("log_lines is a whole number")
        if not 0 <= self.log_lines <= _MOST_LOG_LINES:
            raise ValueError(f"log_lines is 0 to {_MOST_LOG_LINES}")
        named = tuple(dict.fromkeys((*self.parameters, *references(self.command))))
        object.__setattr__(self, "command", tuple(self.command))
        object.__setattr__(self, "environment", MappingProxyType(dict(self.environment)))
        object.__setattr__(self, "parameters", named)


def references(command: Sequence[str]) -> tuple[str, ...]:
    """The names of the ``Ref::name`` placeholders in a command, in order."""
    return tuple(name for part in command for name in _REFERENCE.findall(part))


def check_tag(what: str, tag: object) -> None:
    """Refuse what is no tag.

    Raises
    ------
    ValueError
        It is not a pair of two texts with a key.
    """
    if not isinstance(tag, tuple) or len(tag) != 2 or not all(isinstance(part, str) for part in tag) or not tag[0]:
        raise ValueError(f"{what} is a pair of key and value, as ('team', 'reports')")


def definition_problems(definition: Mapping[str, Any], functions: Mapping[str, str]) -> tuple[str, ...]:
    """What keeps a state machine's definition from working with its declaration; empty if nothing does.

    A check for the moments at which the file is at hand (linting, synthesis, the local stack), of what the two
    have to agree on; whether every state is well formed is for a validator of the language.

    Parameters
    ----------
    definition
        The file's content, in Amazon States Language.
    functions
        The handlers of the declaration, by the names that the definition uses as ``${name}``.
    """
    found: list[str] = []
    states, start = definition.get("States"), definition.get("StartAt")
    if not isinstance(states, Mapping) or not states:
        found.append("it has no States")
    if not isinstance(start, str):
        found.append("it has no StartAt")
    elif isinstance(states, Mapping) and states and start not in states:
        found.append(f"StartAt names {start!r}, which is none of its States")
    used = {name for text in _texts(definition) for name in _SUBSTITUTION.findall(text)}
    found += [
        f"${{{name}}} is used, but functions={{...}} has no {name!r}" for name in sorted(used - {*functions, "report"})
    ]
    found += [f"functions={{...}} has {name!r}, but no state uses ${{{name}}}" for name in sorted({*functions} - used)]
    return tuple(found)


def _texts(value: Any) -> Iterator[str]:
    """Every text in a JSON value, names of members included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(name)
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
