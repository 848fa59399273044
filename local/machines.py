"""State machines and functions of a catalogue's workflows: what a deployment would make of each, on this machine."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from local.stack import ACCOUNT, REGION
from taskrail.server import Tool
from taskrail.work import Workflow

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient

Function = Callable[[Any, Any], Any]

REPORT = "report"
"""Name of the function through which workflows report, and its name in definitions."""

ROLE = f"arn:aws:iam::{ACCOUNT}:role/local"

_SUBSTITUTION = re.compile(r"\$\{([A-Za-z_]\w*)\}")
_UNUSABLE = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 60


class Unusable(Exception):
    """A workflow cannot run on this machine; the message says why and what to do."""


@dataclass(frozen=True)
class Machine:
    """One state machine.

    Parameters
    ----------
    name
        Its name.
    definition
        In Amazon States Language, the functions' ARNs filled in.
    functions
        Its functions by their names, each as ``package.module.function``.
    """

    name: str
    definition: str
    functions: Mapping[str, str]


@dataclass(frozen=True)
class Registry:
    """Which state machines there are, and which there are not.

    Parameters
    ----------
    arns
        By the tool's name.
    unusable
        Why there is none, by the tool's name.
    """

    arns: dict[str, str] = field(default_factory=dict)
    unusable: dict[str, str] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Write it as a whole."""
        new = path.with_name(f"{path.name}.new")
        new.write_text(json.dumps(asdict(self)), encoding="utf-8")
        os.replace(new, path)

    @classmethod
    def load(cls, path: Path) -> Registry | None:
        """The registry that `save` wrote; None while there is none."""
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None


def workflows_of(tools: Iterable[Tool]) -> dict[str, Workflow]:
    """The workflows among tools, by the tool's name."""
    return {tool.name: tool.work for tool in tools if isinstance(tool.work, Workflow)}


def function_arn(name: str) -> str:
    """The ARN of a function of that name."""
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"


def machine_of(tool: str, workflow: Workflow) -> Machine:
    """The state machine of a workflow.

    Parameters
    ----------
    tool
        The tool's name.
    workflow
        What it declares.

    Raises
    ------
    Unusable
        It is not on this machine, or its definition cannot be used.
    """
    if workflow.definition is None:
        raise Unusable(f"{tool}: its state machine is in AWS (existing=...); this machine cannot run it")
    path = _found(workflow.definition)
    if path is None:
        raise Unusable(f"{tool}: there is no file {workflow.definition} below functions/")
    name = _name(tool)
    functions = {f"{name}-{key}": target for key, target in workflow.functions.items()}
    values = {key: function_arn(f"{name}-{key}") for key in workflow.functions} | {REPORT: function_arn(REPORT)}
    try:
        definition = filled(path.read_text(encoding="utf-8"), values)
        json.loads(definition)
    except KeyError as error:
        raise Unusable(f"{tool}: {workflow.definition} names ${{{error.args[0]}}}, which functions= lacks") from None
    except ValueError as error:
        raise Unusable(f"{tool}: {workflow.definition} is no JSON: {error}") from None
    return Machine(name, definition, functions)


def filled(definition: str, values: Mapping[str, str]) -> str:
    """A definition with its ``${name}`` substitutions filled in.

    Raises
    ------
    KeyError
        There is no value for a name.
    """
    return _SUBSTITUTION.sub(lambda found: values[found[1]], definition)


def function_of(target: str) -> Function:
    """The function that ``package.module.function`` names.

    Raises
    ------
    Unusable
        There is none, or its module cannot be imported.
    """
    module, _, name = target.rpartition(".")
    try:
        found: Function = getattr(importlib.import_module(module), name)
    except AttributeError:
        raise Unusable(f"there is no function {target}") from None
    except Exception as error:
        raise Unusable(f"{module} cannot be imported for {target}: {type(error).__name__}: {error}") from error
    return found


def create(client: SFNClient, machine: Machine) -> str:
    """Create a state machine, or bring the one of that name up to date; its ARN.

    Raises
    ------
    Unusable
        Its definition is refused.
    """
    try:
        # moto answers with the one that there is, whatever definition that has.
        arn = client.create_state_machine(name=machine.name, definition=machine.definition, roleArn=ROLE)
        client.update_state_machine(stateMachineArn=arn["stateMachineArn"], definition=machine.definition)
    except ClientError as error:
        raise Unusable(f"the definition of {machine.name} is refused: {str(error)[:500]}") from error
    return arn["stateMachineArn"]


def _found(definition: str) -> Path | None:
    """The file of a definition; looked for where modules are, so that it lies beside them."""
    paths = (Path(entry or ".") / definition for entry in sys.path)
    return next((path for path in paths if path.is_file()), None)


def _name(tool: str) -> str:
    """A name for the state machine of a tool, whose own name may be longer and have other characters."""
    if len(tool) <= _LONGEST_NAME and not _UNUSABLE.search(tool):
        return tool
    return f"{_UNUSABLE.sub('-', tool)[:_LONGEST_NAME]}-{hashlib.sha256(tool.encode()).hexdigest()[:8]}"
