"""What docs/migration.md shows works as it stands there: both clients come to the same result, and the tool runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from taskrail.settings import Settings
from taskrail.testing import BUCKET, TABLE, Kit, harness
from tests.functional import sample_tools

PAGE = Path(__file__).resolve().parents[2] / "docs" / "migration.md"
EXAMPLE = re.compile(r"^```python (\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
BLOCKS: dict[str, str] = dict(EXAMPLE.findall(PAGE.read_text(encoding="utf-8")))
SETTINGS = Settings(table=TABLE, bucket=BUCKET, secret="a secret for tests only", experimental_tasks=True)


def ran(title: str) -> dict[str, Any]:
    """The names that a block of the page makes."""
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(BLOCKS[title], f"{PAGE.name}: {title}", "exec"), names)
    return names


def post_to(kit: Kit) -> Callable[[str, dict[str, Any], dict[str, str]], Any]:
    """What the page calls `post`."""

    def post(method: str, params: dict[str, Any], headers: dict[str, str]) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        answer = json.loads(kit.post(body, {name.lower(): value for name, value in headers.items()})["body"])
        return answer["result"]

    return post


def test_the_page_has_these_examples() -> None:
    assert list(BLOCKS) == ["before", "after", "fastmcp", "taskrail"]


@pytest.mark.parametrize("title", ["before", "after"])
@pytest.mark.parametrize("experimental", [True, False])
def test_a_client_comes_to_its_result(title: str, experimental: bool) -> None:
    slept: list[float] = []
    with harness(sample_tools.server, settings=replace(SETTINGS, experimental_tasks=experimental)) as kit:

        def sleep(seconds: float) -> None:
            slept.append(seconds)
            kit.clock.sleep(round(seconds * 1000))

        def call() -> Any:
            return ran(title)["call_and_wait"](post_to(kit), sleep, "count", {"items": ["a", "b"]})

        if title == "before" and not experimental:
            with pytest.raises(KeyError, match="task"):
                call()
            return
        assert call()["structuredContent"] == {"words": 2, "share": 0.1}
        assert slept == [2.0]


def test_the_tool_renders_once_asks_and_publishes() -> None:
    rendered: list[int] = []
    names = ran("taskrail")
    names["render"] = lambda report, page: rendered.append(page)
    with harness(names["server"]) as kit:
        task = kit.call("render_report", report="sales", pages=3).run()
        assert task.poll()["_meta"]["io.taskrail/progress"] == {"done": 3, "total": 3}
        assert task.questions.keys() == {"approval"}
        task.answer(approval={"publish": True}).run()
        assert task.text == "3 pages published" and rendered == [0, 1, 2]


def test_what_it_replaces_is_python_and_asks_the_same() -> None:
    compile(BLOCKS["fastmcp"], "fastmcp", "exec")
    for shared in ('"""Render a report, and publish it once somebody agrees."""', '"Publish the report?"', "approval"):
        assert shared in BLOCKS["fastmcp"] and shared in BLOCKS["taskrail"]
