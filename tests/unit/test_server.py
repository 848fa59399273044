"""Declaring tools: what is listed, what is loaded, and what fails while the catalogue is imported."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from taskrail import Call, StepFunctions, TaskContext, TaskServer, Toolset, hours, minutes, seconds
from taskrail.calling import call_through
from taskrail.compute import Policy
from taskrail.errors import DeclarationError
from taskrail.server import Tool


class Summary(BaseModel):
    words: int


def example() -> tuple[Toolset, Any, Any]:
    tools = Toolset()

    @tools.tool(title="Page count", annotations={"readOnlyHint": True}, meta={"com.example/x": 1})
    def page_count(report: str, factor: int = 1) -> int:
        """How many pages a report has.

        Parameters
        ----------
        report
            Which one.
        """
        return len(report) * factor

    @tools.task(runs_on=StepFunctions(timeout=minutes(5)), keep_result=hours(1), poll_interval=seconds(2))
    async def render(task: TaskContext, report: str) -> Summary:
        """Render a report."""
        return Summary(words=len(report))

    return tools, page_count, render


def only(tools: Toolset) -> Tool:
    return tools.tools[0]


def test_declared_functions_are_called_like_plain_ones() -> None:
    _, page_count, render = example()
    assert page_count("abc") == 3
    assert page_count(report="abc", factor=2) == 6
    assert call_through(render, {"task": None, "report": "ab"}) == Summary(words=2)
    assert page_count.__name__ == "page_count"
    assert list(inspect.signature(page_count).parameters) == ["report", "factor"]
    with pytest.raises(TypeError):
        page_count()


def test_the_entry_of_an_inline_tool() -> None:
    _, page_count, _ = example()
    assert page_count.tool.wire() == {
        "name": "page_count",
        "title": "Page count",
        "description": "How many pages a report has.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "report": {"type": "string", "description": "Which one."},
                "factor": {"type": "integer", "default": 1},
            },
            "required": ["report"],
            "additionalProperties": False,
        },
        "outputSchema": {"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]},
        "annotations": {"readOnlyHint": True},
        "_meta": {"com.example/x": 1},
    }
    assert (page_count.tool.kind, page_count.tool.mode, page_count.tool.policy) == ("inline", "forbidden", None)


def test_a_task_has_its_durations() -> None:
    tool: Tool = example()[2].tool
    assert (tool.kind, tool.mode) == ("task", "optional")
    assert tool.policy == Policy(300_000, 60_000, 3_600_000, 604_800_000, 2_000)
    assert tool.runs_on == StepFunctions(timeout=minutes(5))
    assert tool.signature.injected == (("task", "task"),)
    assert tool.returns.output_schema == {
        "type": "object",
        "properties": {"words": {"type": "integer"}},
        "required": ["words"],
    }


def test_defaults_of_a_task() -> None:
    tools = Toolset()

    @tools.task(runs_on=StepFunctions())
    def job() -> None:
        """Work."""

    assert only(tools).policy == Policy(600_000, 60_000, 86_400_000, 604_800_000, 5_000)


def test_icons_name_and_description_by_hand() -> None:
    tools = Toolset()
    icons = [{"src": "https://example.com/a.png", "mimeType": "image/png", "sizes": ["48x48"]}]

    @tools.task("reports.render-2", runs_on=StepFunctions(), mode="required", description=" By hand. ", icons=icons)
    def job() -> None: ...

    entry = only(tools).wire()
    assert (entry["name"], entry["description"], entry["icons"]) == ("reports.render-2", "By hand.", icons)
    assert only(tools).mode == "required"
    assert "outputSchema" not in entry


def test_schemas_by_hand_travel_unaltered() -> None:
    tools = Toolset()
    schema = {"type": "object", "$comment": "mine"}
    output = {"type": "object", "additionalProperties": {"type": "integer"}}

    @tools.tool(schema=schema, output_schema=output)
    def tool(arguments: dict[str, Any]) -> dict[str, int]:
        """Work."""
        return {}

    assert only(tools).wire()["inputSchema"] is schema
    assert only(tools).wire()["outputSchema"] is output


def test_a_server_lists_its_tools_in_order() -> None:
    tools, _, _ = example()
    more = Toolset()

    @more.tool("a_first_by_letter")
    def tool() -> None:
        """Work."""

    server = TaskServer("reports", version="1.0.0", tools=[tools, more], instructions="Read.", title="Reports")
    assert list(server.tools) == ["page_count", "render", "a_first_by_letter"]
    assert server.get("render") is server.tools["render"]
    assert server.get("none") is None
    assert (server.name, server.version, server.title, server.instructions) == ("reports", "1.0.0", "Reports", "Read.")
    with pytest.raises(TypeError):
        server.tools["x"] = only(more)  # type: ignore[index]


def test_two_servers_may_share_a_toolset() -> None:
    tools, _, _ = example()
    assert list(TaskServer("a", version="1", tools=[tools]).tools) == list(
        TaskServer("b", version="1", tools=[tools]).tools
    )


def test_names_are_taken_once() -> None:
    tools, _, _ = example()
    other, _, _ = example()
    with pytest.raises(DeclarationError, match="tool 'page_count': two tools have this name"):
        TaskServer("a", version="1", tools=[tools, other])
    fresh, _, _ = example()
    with pytest.raises(DeclarationError, match="tool 'render': the name is taken"):

        @fresh.tool()
        def render() -> None:
            """Work."""


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"name": ""}, "server's name"),
        ({"version": ""}, "server's version"),
        ({"version": 1}, "server's version"),
        ({"title": 5}, "server's title"),
        ({"instructions": ["a"]}, "server's instructions"),
        ({"tools": [types]}, r"takes Toolset objects, not module; write reports\.tools"),
        ({"tools": [example()[1]]}, "not DeclaredTool"),
        ({"tools": types}, "takes Toolset objects"),
    ],
)
def test_servers_that_cannot_work(more: dict[str, Any], text: str) -> None:
    with pytest.raises(DeclarationError, match=text):
        TaskServer(**{"name": "a", "version": "1", "tools": [], **more})


def work(task: TaskContext) -> None:
    """Work."""


def ask(call: Call) -> None:
    """Ask."""


def silent() -> None: ...


def params_only(a: int) -> None:
    """
    Args:
        a: One.
    """


def generator() -> Iterator[int]:
    """Work."""
    yield 1


@pytest.mark.parametrize(
    ("function", "more", "text"),
    [
        (work, {"mode": "forbidden"}, r"makes no sense; declare it with @tools\.tool"),
        (work, {"mode": "sometimes"}, "mode is 'optional' or 'required'"),
        (work, {"name": ""}, "1 to 128"),
        (work, {"name": "x" * 129}, "1 to 128"),
        (work, {"name": "render report"}, "1 to 128"),
        (work, {"name": "rendér"}, "1 to 128"),
        (work, {"name": "a\n"}, "1 to 128"),
        (work, {"runs_on": StepFunctions}, "runs_on is a place to run"),
        (work, {"runs_on": "lambda"}, "runs_on is a place to run"),
        (work, {"keep_result": timedelta(0)}, "keep_result must be longer than zero"),
        (work, {"keep_result": 3600}, "keep_result is a duration"),
        (work, {"answer_within": timedelta(seconds=-1)}, "answer_within must be longer than zero"),
        (work, {"poll_interval": timedelta(microseconds=1)}, "poll_interval must be longer than zero"),
        (work, {"title": " "}, "title is a text"),
        (work, {"annotations": {"readonlyHint": True}}, "'readonlyHint' is unknown; there are title, readOnlyHint"),
        (work, {"annotations": {"readOnlyHint": "yes"}}, "readOnlyHint is True or False"),
        (work, {"annotations": ["readOnlyHint"]}, "annotations is a dict"),
        (work, {"icons": [{"mimeType": "image/png"}]}, "needs a src"),
        (work, {"icons": [{"src": "icon.png"}]}, "needs a src"),
        (work, {"icons": {"src": "https://example.com"}}, "icons is a list"),
        (work, {"icons": [{"src": "https://example.com", "size": "48x48"}]}, "'size' is unknown"),
        (work, {"meta": {"a": {1}}}, "meta must be plain JSON"),
        (work, {"meta": []}, "meta is a dict"),
        (work, {"job": "jobs/render"}, "job names a module"),
        (work, {"job": "jobs.render:"}, "job names a module"),
        (silent, {}, "no description for agents; write a docstring"),
        (params_only, {}, "no description for agents"),
        (work, {"description": "  "}, "no description for agents"),
        (generator, {}, "it yields"),
        (ask, {}, "takes a Call"),
    ],
)
def test_tasks_that_cannot_work(function: Any, more: dict[str, Any], text: str) -> None:
    tools = Toolset()
    with pytest.raises(DeclarationError, match=text) as caught:
        tools.task(**{"runs_on": StepFunctions(), **more})(function)
    expected = more.get("name") if more.get("name") is not None else function.__name__
    assert caught.value.tool == expected
    assert tools.tools == ()


def test_inline_tools_have_a_call_and_no_task() -> None:
    tools = Toolset()
    tools.tool()(ask)
    assert only(tools).signature.injected == (("call", "call"),)
    with pytest.raises(DeclarationError, match=r"tool 'work': parameter 'task' takes a TaskContext"):
        tools.tool()(work)


def test_a_decorator_without_parentheses_says_so() -> None:
    tools = Toolset()
    with pytest.raises(DeclarationError, match="tool 'silent': write the decorator with parentheses"):
        tools.tool(silent)  # type: ignore[arg-type]
    with pytest.raises(DeclarationError, match="parentheses"):
        tools.task(silent, runs_on=StepFunctions())  # type: ignore[arg-type]


def test_a_result_kept_for_ever_warns() -> None:
    tools = Toolset()
    with pytest.warns(UserWarning, match="tool 'work': keep_result=None keeps every ticket") as caught:
        tools.task(runs_on=StepFunctions(), keep_result=None)(work)
    assert caught[0].filename == __file__
    policy = only(tools).policy
    assert policy is not None
    assert policy.keep_result_ms is None


def test_types_from_around_a_nested_declaration() -> None:
    class Local(BaseModel):
        a: int

    tools = Toolset()

    @tools.task(runs_on=StepFunctions())
    def job(task: TaskContext, local: Local) -> list[Local]:
        """Work."""
        return [local]

    @job.before
    def check(call: Call, local: Local) -> None: ...

    assert only(tools).signature.bind({"local": {"a": 1}}) == {"local": Local(a=1)}
    assert only(tools).returns.result([Local(a=1)])["structuredContent"] == {"result": [{"a": 1}]}


def test_local_names_never_get_in_the_way() -> None:
    tools = Toolset()
    function, tool_name, output_schema, names = 1, 2, 3, 4

    @tools.tool()
    def tool(a: int) -> int:
        """Work."""
        return function + tool_name + output_schema + names + a

    assert tool(1) == 11


def test_before() -> None:
    tools = Toolset()

    @tools.task(runs_on=StepFunctions())
    def render(task: TaskContext, report: str, pages: int = 3) -> None:
        """Work."""

    @render.before
    def confirm(call: Call, pages: int) -> str:
        return f"{call} {pages}"

    server = TaskServer("a", version="1", tools=[tools])
    tool = server.tools["render"]
    assert tool.before is confirm
    assert tool.before_signature is not None
    bound = tool.signature.bind({"report": "a"})
    assert tool.before(**tool.before_signature.keywords(bound, call="call")) == "call 3"
    with pytest.raises(DeclarationError, match="tool 'render': its server exists already"):
        render.before(confirm)
    with pytest.raises(DeclarationError, match="toolset has a server already"):
        tools.tool()(ask)


def test_hooks_that_cannot_work() -> None:
    tools = Toolset()

    @tools.task(runs_on=StepFunctions())
    def render(task: TaskContext, report: str) -> None:
        """Work."""

    def stranger(call: Call, size: int) -> None: ...
    def job_like(task: TaskContext) -> None: ...
    def yielding(call: Call) -> Iterator[int]:
        yield 1

    for hook, text in ((stranger, "takes 'size'"), (job_like, "takes a TaskContext"), (yielding, "yields")):
        with pytest.raises(DeclarationError, match=f"tool 'render': .*{text}"):
            render.before(hook)
    render.before(lambda report: None)
    with pytest.raises(DeclarationError, match="it has a before hook already"):
        render.before(lambda report: None)


def test_only_jobs_have_before() -> None:
    assert not hasattr(example()[1], "before")
