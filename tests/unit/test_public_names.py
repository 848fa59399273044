"""The package's door: every public name, and nothing imported that nobody asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import taskrail

FUNCTIONS = Path(__file__).resolve().parents[2] / "functions"

CATALOGUE = """
from __future__ import annotations
from typing import Annotated
from pydantic import BaseModel, Field
from taskrail import Call, ExistingStateMachine, Header, StepFunctions, TaskServer, ToolError, Toolset, minutes
{extra}
tools = Toolset()

class Page(BaseModel):
    number: int

@tools.tool()
def count(region: Annotated[str, Header("Region")], pages: list[Page], call: Call) -> int:
    "Count."
    return 1

@tools.task(runs_on=StepFunctions(timeout=minutes(5)))
def render(task: TaskContext, pages: Annotated[int, Field(ge=1)]) -> Page:
    "Render."

tools.workflow("move", input=Page, existing=ExistingStateMachine(tag=("team", "a")), description="Move.")
tools.container("convert", input=Page, image="image", parameters=("number",), description="Convert.")

server = TaskServer("s", version="1", tools=[tools], uploads=True)
for tool in server.tools.values():
    tool.wire()
server.tools["count"].signature.bind({{"region": "eu", "pages": [{{"number": 1}}]}})
server.tools["count"].returns.result(3)
"""


def imported_by(code: str) -> set[str]:
    """The modules that a fresh interpreter has after running the code."""
    shown = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", shown],
        env={"PYTHONPATH": str(FUNCTIONS), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(run.stdout))


def test_importing_the_package_imports_nothing_else() -> None:
    brought = imported_by("import taskrail")
    assert {name for name in brought if name.startswith("taskrail")} == {"taskrail"}
    assert not brought & {"pydantic", "inspect"}


def test_durations_cost_no_pydantic() -> None:
    brought = imported_by(
        "from taskrail import Batch, ExistingJob, ExistingStateMachine, StepFunctions, ToolError, minutes"
    )
    assert "pydantic" not in brought
    assert "inspect" not in brought - imported_by("import dataclasses")


@pytest.mark.parametrize("extra", ["", "from taskrail import TaskContext"], ids=["by name", "imported"])
def test_a_catalogue_costs_pydantic_and_the_standard_library(extra: str) -> None:
    brought = imported_by(CATALOGUE.format(extra=extra))
    assert not brought & {"jsonschema", "referencing", "boto3", "botocore", "asyncio", "moto"}
    ours = {name for name in brought if name.startswith("taskrail.")}
    assert not {name for name in ours if name.startswith(("taskrail.rail", "taskrail.wire", "taskrail.store"))}


@pytest.mark.parametrize("name", taskrail.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(taskrail, name) is not None
    assert name in dir(taskrail)


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match="module 'taskrail' has no attribute 'Fleet'"):
        taskrail.Fleet  # noqa: B018
