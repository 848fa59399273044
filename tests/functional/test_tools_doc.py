"""What docs/tools.md shows works as it stands there: its files are imported, its tests pass, its definitions fit."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from taskrail.server import TaskServer
from taskrail.testing import harness
from taskrail.wire.calls import IDEMPOTENCY_KEY
from taskrail.work import Container, Workflow, definition_problems

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tools.md"
TEXT = PAGE.read_text(encoding="utf-8")
CODE = re.compile(r"^```(\w*) ?([\w.-]*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
HEADER = re.compile(r"# (?:functions/)?([\w/]+?)(?:/__init__)?\.py(, continued)?\n")


class Block(NamedTuple):
    """A fenced block: its language, its title, its text."""

    language: str
    title: str
    text: str


BLOCKS = [Block(*found) for found in CODE.findall(TEXT)]


def of(language: str) -> list[Block]:
    """The blocks in a language, in order."""
    return [block for block in BLOCKS if block.language == language]


def titled(title: str) -> str:
    """The text of the one block with a title."""
    (found,) = (block.text for block in BLOCKS if block.title == title)
    return found


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """The Python files of the page, by module name, run in the order of the page."""
    made: dict[str, ModuleType] = {}
    for block in of("python"):
        header = HEADER.match(block.text)
        assert header, f"a block does not say which file it is: {block.text[:60]!r}"
        name = header[1].replace("/", ".")
        assert bool(header[2]) == (name in made), f"{name}: is it continued or not?"
        module = made.setdefault(name, ModuleType(name))
        monkeypatch.setitem(sys.modules, name, module)
        package, _, last = name.rpartition(".")
        if package and package != "tests":
            monkeypatch.setattr(importlib.import_module(package), last, module, raising=False)
        exec(compile(block.text, f"{PAGE.name}: {name}", "exec"), vars(module))
    return made


@pytest.fixture
def server(modules: dict[str, ModuleType]) -> TaskServer:
    """The server of the page's catalogue."""
    made: TaskServer = modules["catalogue"].server
    return made


def test_every_block_is_of_a_kind_that_is_tested_here_or_run_as_a_process() -> None:
    kinds = [(block.language, block.title) for block in BLOCKS if block.language != "python"]
    assert kinds == [
        ("sh", "container.sh"),
        ("js", "container.mjs"),
        ("json", "print_book.asl.json"),
        ("json", "ask_both.asl.json"),
        ("json", ""),
    ]


def test_the_catalogue_has_every_tool_of_the_page(server: TaskServer) -> None:
    assert {name: tool.kind for name, tool in server.tools.items()} == {
        "count_words": "inline",
        "send_letters": "task",
        "train_model": "task",
        "count_scenes": "container",
        "render_film": "container",
        "print_book": "workflow",
        "sales_report": "workflow",
        "request_upload": "inline",
    }
    for tool in server.tools.values():
        assert tool.wire()["description"]
        tool.load()


def shown_tests(modules: dict[str, ModuleType]) -> Iterator[tuple[str, Any]]:
    """The tests that the page shows."""
    for name, module in modules.items():
        if name.startswith("tests."):
            yield from ((key, value) for key, value in vars(module).items() if key.startswith("test_"))


def test_the_tests_that_are_shown_pass(modules: dict[str, ModuleType]) -> None:
    shown = dict(shown_tests(modules))
    assert list(shown) == [
        "test_sending_asks_first",
        "test_a_second_attempt_goes_on",
        "test_what_is_given_up_says_of_what_it_died",
        "test_counting",
    ]
    for test in shown.values():
        test()


def test_the_hook_refuses_and_the_job_takes_no_for_an_answer(server: TaskServer) -> None:
    with harness(server) as kit:
        assert kit.call("send_letters", names=[]).text == "There is nobody to write to."
        task = kit.call("send_letters", names=["Ada"]).run().answer(approval={"send": False}).run()
        assert (task.is_error, task.text) == (True, "The letters were not approved.")


def test_the_heavy_job_reads_what_its_caller_uploaded_and_repeats_no_round(server: TaskServer) -> None:
    with harness(server) as kit:
        kit.owner = "ada"
        prefix = f"inputs/{kit.owner}/"
        kit.s3.put_object(Bucket=kit.runtime.settings.bucket, Key=f"{prefix}sales.csv", Body=b"a\nb\nc\n")
        table = f"s3://{kit.runtime.settings.bucket}/{prefix}sales.csv"
        task = kit.call("train_model", table=table, rounds=2)
        again = kit.call("train_model", table=table, rounds=2)
        assert again.task_id == task.task_id
        assert task.run().structured == {"rows": 3, "rounds": 2}


def test_the_call_that_is_shown_fits_its_tool(server: TaskServer) -> None:
    call = json.loads(next(block.text for block in of("json") if not block.title))
    tool = server.tools[call["name"]]
    assert tool.signature.bind(call["arguments"])["rounds"] == 10
    assert tool.dedupe_ms == 3_600_000
    assert list(call["_meta"]) == [IDEMPOTENCY_KEY]


def test_definitions_fit_their_declarations(server: TaskServer, modules: dict[str, ModuleType]) -> None:
    work = server.tools["print_book"].work
    assert isinstance(work, Workflow)
    assert work.definition == "workflows/print_book.asl.json"
    assert definition_problems(json.loads(titled("print_book.asl.json")), work.functions) == ()
    for handler in work.functions.values():
        module, _, name = handler.rpartition(".")
        assert callable(getattr(modules[module], name))
    assert definition_problems(json.loads(titled("ask_both.asl.json")), {}) == ()


def test_the_handlers_take_what_the_definition_hands_them(server: TaskServer, modules: dict[str, ModuleType]) -> None:
    handlers = modules["workflows.print_book"]
    arguments = server.tools["print_book"].stored_arguments({"chapters": ["One", "Two"]})
    planned = handlers.plan(arguments, None)
    output = handlers.press(planned, None)
    assert server.tools["print_book"].returns.result(output)["structuredContent"] == {"pages": 2}


def test_containers_get_what_their_commands_name(server: TaskServer) -> None:
    tool = server.tools["count_scenes"]
    assert isinstance(tool.work, Container)
    assert tool.work.command == ("sh", "/work/container.sh", "Ref::scenes")
    assert tool.parameter_values(tool.stored_arguments({})) == {"scenes": "3"}
    adopted = server.tools["render_film"]
    assert adopted.parameter_values(adopted.stored_arguments({"source": "a"})) == {"source": "a"}


def test_links_within_the_page_lead_somewhere() -> None:
    headings = {
        re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", CODE.sub("", TEXT), re.MULTILINE)
    }
    assert set(re.findall(r"\]\(#([^)]+)\)", TEXT)) <= headings
