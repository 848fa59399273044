"""What the README shows works as it stands there."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tools
from taskrail import TaskServer
from taskrail.testing import harness

README = Path(__file__).resolve().parents[2] / "README.md"
TOOL, CATALOGUE, HEAVY, TEST = re.findall(
    r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The server of the README's catalogue, which has the README's tools."""
    module = ModuleType("tools.reports")
    monkeypatch.setitem(sys.modules, "tools.reports", module)
    monkeypatch.setattr(tools, "reports", module, raising=False)
    exec(compile(TOOL, "README.md", "exec"), vars(module))
    names: dict[str, Any] = {}
    exec(compile(CATALOGUE, "README.md", "exec"), names)
    return names["server"]


def test_the_quick_tool_answers_at_once(server: Any) -> None:
    with harness(server) as kit:
        assert kit.call("word_count", text="one two three").structured == {"result": 3}


def test_the_long_tool_renders_once_and_asks(server: Any) -> None:
    with harness(server) as kit:
        task = kit.call("publish_report", title="A & B", sections=["one", "<two>"]).run()
        assert task.questions["approval"]["params"]["message"] == "Publish 2 pages?"
        task.answer(approval={"publish": True}).run()
        assert task.text.startswith("2 pages published")
        assert task.attachment("report.html") == b"<h1>A &amp; B</h1>one&lt;two&gt;"


def test_the_long_tool_takes_no_for_an_answer(server: Any) -> None:
    with harness(server) as kit:
        task = kit.call("publish_report", title="A", sections=[]).run().answer(approval={"publish": False}).run()
        assert task.is_error
        assert task.text == "The report was not approved."


def test_heavy_work_is_declared_as_shown() -> None:
    names: dict[str, Any] = {"__name__": "heavy"}
    exec(compile(HEAVY, "README.md", "exec", dont_inherit=True), names)
    server = TaskServer("heavy", version="1", tools=[names["tools"]])
    assert {name: tool.kind for name, tool in server.tools.items()} == {
        "train": "task",
        "transcode": "container",
        "close_books": "workflow",
        "nightly": "workflow",
    }
    with harness(server) as kit:
        uri = kit.upload("data.csv", b"12345")
        assert kit.call("train", dataset=uri).run().text == "trained on 5 bytes"
        assert kit.call("transcode", film=uri).order.parameters == {"film": uri}


def test_the_test_that_is_shown_passes() -> None:
    names: dict[str, Any] = {}
    exec(compile(TEST, "README.md", "exec"), names)
    shown = [value for name, value in names.items() if name.startswith("test_")]
    assert len(shown) == 1
    shown[0]()
