"""What the documents offer to copy, as files that can be executed: states, state machines, scripts of containers."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "functions" / "workflows" / "README.md"

DOCUMENT = ROOT / "docs" / "tools.md"

# Node comes with the machine, or with the environment of the tests.
PATH = os.pathsep.join((os.environ.get("PATH", ""), str(Path(sys.executable).parent)))
HAS_NODE = shutil.which("node", path=PATH) is not None

LANGUAGES = ("jsonpath", "jsonata")

# What whoever copies the states has of their own around them.
ENDS: dict[str, dict[str, Any]] = {
    "jsonpath": {"Go on": {"Type": "Pass", "OutputPath": "$.arguments", "End": True}},
    "jsonata": {"Go on": {"Type": "Pass", "Output": "{% $states.input.arguments %}", "End": True}},
}
REFUSED = {"Do not go on": {"Type": "Fail", "Error": "ToolError", "Cause": "Not approved."}}


def _blocks(path: Path, info: str) -> list[str]:
    """The fenced blocks of a document with that info string."""
    text = path.read_text(encoding="utf-8")
    return re.findall(rf"^```{re.escape(info)}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def _block(info: str) -> str:
    (block,) = _blocks(DOCUMENT, info)
    return block


SCRIPTS = {"container.sh": _block("sh container.sh"), "container.mjs": _block("js container.mjs")}
"""The containers of docs/tools.md."""


def states(language: str) -> dict[str, Any]:
    """All states that the README shows in a query language."""
    found: dict[str, Any] = {}
    for block in _blocks(README, f"json {language}"):
        found |= json.loads(block)
    return found


def machine(language: str) -> dict[str, Any]:
    """A state machine of those states."""
    return {
        "QueryLanguage": {"jsonpath": "JSONPath", "jsonata": "JSONata"}[language],
        "StartAt": "Tell progress",
        "States": {**states(language), **ENDS[language], **REFUSED},
    }


def write(directory: Path) -> None:
    """Write the definitions and functions that `tests.workflows.catalogue` names below a directory."""
    folder = directory / "workflows"
    folder.mkdir(parents=True, exist_ok=True)
    definitions = {f"snippets_{language}.asl.json": json.dumps(machine(language)) for language in LANGUAGES}
    definitions |= {name: _block(f"json {name}") for name in ("print_book.asl.json", "ask_both.asl.json")}
    definitions["no_machine.asl.json"] = '{"StartAt": "Nowhere", "States": {"A": {"Type": "No such type"}}}'
    for name, text in definitions.items():
        (folder / name).write_text(text, encoding="utf-8")
    (functions,) = [
        block for block in _blocks(DOCUMENT, "python") if block.startswith("# functions/workflows/print_book.py")
    ]
    (directory / "print_book.py").write_text(functions, encoding="utf-8")
