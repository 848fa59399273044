"""From the context to a synthesized app."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk

from infra.bundling import ROOT, Target
from infra.code import Codes
from infra.configuration import Configuration
from infra.context import ConfigurationError
from infra.stack import TaskrailStack

if TYPE_CHECKING:
    from taskrail.server import TaskServer

DEPLOYMENT = "deployment.json"
"""What a clone chose for its deployment; it belongs to the clone, no upgrade touches it."""


def build(app: cdk.App, server: TaskServer, configuration: Configuration, name: str = "Taskrail") -> TaskrailStack:
    """The stack of a catalogue.

    Parameters
    ----------
    app, name
        Where it belongs, and what it is called there.
    server
        The catalogue.
    configuration
        What was chosen.

    Raises
    ------
    ConfigurationError
        The catalogue cannot be deployed like that; the message names the key and what is allowed.
    """
    target = Target(configuration.python, configuration.architecture, here=configuration.emulator)
    return TaskrailStack(
        app,
        name,
        stack_name=configuration.name,
        description=f"Taskrail: the tools of {server.name} as tasks over MCP",
        configuration=configuration,
        server=server,
        codes=Codes(target),
    )


def main() -> None:
    """Synthesize the catalogue in functions/; a wrong value ends it with one line."""
    from catalogue import server

    app = cdk.App()
    try:
        chosen = with_file(app.node.get_all_context(), ROOT)
        stack = build(app, server, Configuration.from_context(chosen))
    except ConfigurationError as error:
        sys.exit(f"Cannot synthesize: {error}")
    extend(stack)
    app.synth()


def with_file(context: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The context on top of what deployment.json says, which a clone may have; an emulator is told everything.

    Parameters
    ----------
    context
        Of the app. Its key ``deployment`` names another file, or none if it is empty.
    folder
        Where the file is.

    Raises
    ------
    ConfigurationError
        The file is missing although it was named, or is no JSON object.
    """
    given = dict(context)
    name = given.pop("deployment", None)
    path = folder / (name or DEPLOYMENT)
    if name == "" or given.get("emulator") in (True, "true") or (name is None and not path.exists()):
        return given
    try:
        chosen = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError("deployment", f"{path.name} cannot be read: {error}") from None
    if not isinstance(chosen, dict):
        raise ConfigurationError("deployment", f"{path.name} is no JSON object of keys and values")
    return {**chosen, **given}


def extend(stack: TaskrailStack) -> None:
    """Call `extend(stack)` of the user's own extensions.py, if there is one beside app.py.

    There they give tools what they need: ``stack.roles["render_report"].add_to_principal_policy(...)``.
    """
    if importlib.util.find_spec("extensions") is not None:
        importlib.import_module("extensions").extend(stack)
