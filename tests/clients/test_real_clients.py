"""Three clients that we did not write finish a task, a question, a cancel and an error against the local stack."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stack import ROOT, local_stack

pytestmark = [pytest.mark.clients, pytest.mark.timeout(180)]

HERE = Path(__file__).parent
DRIVERS = {
    "mcp": (Path(sys.executable), HERE / "official.py"),
    "fastmcp": (ROOT / ".venv-fastmcp" / "bin" / "python", HERE / "fastmcp_driver.py"),
    "strands": (ROOT / ".venv-strands" / "bin" / "python", HERE / "strands_driver.py"),
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """One stack for all clients."""
    with local_stack("tests.clients.catalogue") as address:
        yield address


@pytest.fixture(scope="module", params=list(DRIVERS))
def story(request: pytest.FixtureRequest, url: str) -> dict[str, Any]:
    """What one client lived through."""
    python, driver = DRIVERS[request.param]
    if not python.exists():
        pytest.fail(f"{python.parent.parent.name} is missing: run the tests as `make test-clients`.")
    done = subprocess.run([python, driver, url], capture_output=True, text=True, timeout=150, cwd=HERE, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_lists_every_tool(story: dict[str, Any]) -> None:
    """No client drops a tool for its schema."""
    assert story["tools"] == [
        "add",
        "measure_words",
        "publish",
        "wait_long",
        "break_down",
        "stumble",
        "guarded",
    ]


def test_gets_a_quick_answer(story: dict[str, Any]) -> None:
    """An inline tool answers inside the request."""
    assert story["inline"] == {"result": 5}


def test_finishes_a_task(story: dict[str, Any]) -> None:
    """The structured result of a task arrives, and fits its schema in the client's eyes."""
    assert story["task"] == {"longest": "fourteen", "total": 16}


def test_answers_a_question_once(story: dict[str, Any]) -> None:
    """The job's question reaches the client once, and the answer reaches the job."""
    assert story["asked"] == ["Publish “Rails”?"]
    assert story["answered"] == ["“Rails” is published."]


def test_cancels_a_task(story: dict[str, Any]) -> None:
    """A task that is cancelled ends as cancelled."""
    assert story["cancelled"] == "cancelled"


def test_reads_the_tools_error(story: dict[str, Any]) -> None:
    """A ToolError is a result with isError and the tool's own words."""
    assert story["error"] == {"isError": True, "texts": ["The machine is out of paper."]}


def test_never_reads_a_trace(story: dict[str, Any]) -> None:
    """Any other exception is a neutral text."""
    assert story["stumbled"]["isError"] is True
    assert "hunter2" not in str(story["stumbled"]["texts"])
    assert story["stumbled"]["texts"]


def test_answers_a_question_before_the_task(story: dict[str, Any]) -> None:
    """A pre-flight question comes from the call itself, and the retry starts the task."""
    assert story["asked_before"] == ["Start it?"]
    assert story["guarded"] == ["“Rails” was started."]
