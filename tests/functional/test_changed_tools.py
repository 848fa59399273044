"""A tool that is gone or changed while its tasks are open: they end, and say why; they are never stuck."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from taskrail import StepFunctions, TaskContext, TaskServer, Toolset, hours, minutes
from taskrail.engines import Engine, RunOrder, RunReport, RunState, run_name
from taskrail.errors import StartRefused
from taskrail.runtime import build
from taskrail.settings import Settings
from taskrail.testing import BUCKET, START, TABLE, Called, CountingIds, Kit, QueueEngine, harness
from tests.functional import freeze, layout_tools

SECRET = "SECRET-TITLE"
WORK = StepFunctions(timeout=minutes(5))


@dataclass
class Machines(QueueEngine):
    """An engine that has a state machine for each tool of its deployment, and for no other.

    Parameters
    ----------
    tools
        Names of the tools.
    """

    tools: frozenset[str] = field(default_factory=frozenset)

    def start(self, order: RunOrder) -> str:
        """Refuse what there is no machine for."""
        if order.tool not in self.tools:
            raise StartRefused(f"No state machine is configured for the tool {order.tool!r}.")
        return super().start(order)

    def stop(self, tool: str, name: str, run_id: str | None) -> bool:
        """What there is no machine for does not go on."""
        return tool not in self.tools or super().stop(tool, name, run_id)

    def describe(self, tool: str, name: str, run_id: str | None) -> RunReport:
        """What there is no machine for is unknown."""
        return super().describe(tool, name, run_id) if tool in self.tools else RunReport(RunState.NOT_FOUND)


@pytest.fixture(scope="module")
def old() -> Iterator[Kit]:
    with harness(layout_tools.server) as made:
        yield made


def deployed(old: Kit, tools: Toolset, engine_name: str = "step_functions") -> Kit:
    """A later deployment over the same table and bucket."""
    server = TaskServer("layout", version="2", tools=[tools])
    engine = Machines(tools=frozenset(name for name, tool in server.tools.items() if tool.policy is not None))
    engines: dict[str, Engine] = {engine_name: engine}
    runtime = build(
        server,
        Settings(table=TABLE, bucket=BUCKET, secret="a secret for tests only"),
        dynamodb=old.dynamodb,
        s3=lambda: old.s3,
        engines=engines,
        clock=old.clock,
        ids=CountingIds(),
    )
    return Kit(runtime, engine, old.clock, old.dynamodb, old.s3)


def taken_over(old: Kit, state: str, tools: Toolset, engine_name: str = "step_functions") -> tuple[Kit, Called]:
    """A task that the old deployment brought into a state, in the hands of a client of the new one."""
    for stored in old.scan():
        old.dynamodb.delete_item(TableName=TABLE, Key={"pk": stored["pk"]})
    old.clock.on_sleep = old.run
    old.engine.waiting.clear()
    old.clock.advance(START - old.clock.now())
    task_id = freeze.STATES[state](old).task_id
    new = deployed(old, tools, engine_name)
    return new, Called(new, {"resultType": "task", "taskId": task_id})


def nothing_else() -> Toolset:
    """Tools among which the old ones are not."""
    tools = Toolset()

    @tools.task(runs_on=WORK)
    def other(task: TaskContext) -> str:
        """Something else."""
        return "other"

    return tools


def inline() -> Toolset:
    """The old name for a tool that is answered at once."""
    tools = Toolset()

    @tools.tool()
    def report(title: str) -> str:
        """Render at once."""
        return title

    return tools


GONE = {"gone": nothing_else, "answered at once now": inline}
STATES = [state for state in freeze.STATES if state.startswith(("working", "input")) and "unlimited" not in state]


def poll_to_the_end(task: Called, polls: int = 12, every: timedelta = timedelta(seconds=12)) -> dict[str, Any]:
    """What a client sees that answers what is asked and asks again and again; it must see an end."""
    for _ in range(polls):
        detail = task.poll()
        if detail["status"] in ("completed", "failed", "cancelled"):
            return detail
        if detail["status"] == "input_required":
            task.answer_with({key: {"approval": freeze.ANSWER}.get(key, freeze.YES) for key in detail["inputRequests"]})
        task._kit.advance(every)
    raise AssertionError(f"the task is stuck: {detail}")


def explained(detail: dict[str, Any], *words: str) -> None:
    """The end says why, and quotes nothing of the caller's."""
    told = detail["error"]["message"] if detail["status"] == "failed" else detail["result"]["content"][0]["text"]
    assert any(word in told for word in words), told
    assert detail["taskId"] in told
    assert SECRET not in told
    assert len(told) < 300


@pytest.mark.parametrize("tools", GONE.values(), ids=GONE)
@pytest.mark.parametrize("state", STATES)
def test_a_tool_that_is_gone_with_its_machine(old: Kit, state: str, tools: Callable[[], Toolset]) -> None:
    """Nobody starts its runs any more, and nobody knows of those that were started."""
    new, task = taken_over(old, state, tools())
    detail = poll_to_the_end(task)
    if "cancelling" in state:
        assert detail["status"] == "cancelled"
        return
    assert detail["status"] == "failed"
    assert detail["error"]["code"] == -32603
    explained(detail, "tool of this task no longer exists", "has vanished")
    assert new.engine.starts == []


@pytest.mark.parametrize("tools", GONE.values(), ids=GONE)
@pytest.mark.parametrize("state", [state for state in STATES if state.startswith("working")])
def test_a_tool_that_is_gone_while_its_machine_still_runs(old: Kit, state: str, tools: Callable[[], Toolset]) -> None:
    """The worker of the new deployment is the first to notice."""
    new, task = taken_over(old, state, tools())
    item = freeze.item_of(old, task.task_id)
    outcome = new.run_one(run_name(task.task_id, int(item["run"]["N"])), attempt=int(item["attempt"]["N"]) + 1)
    detail = task.poll()
    assert outcome == detail["status"] == "failed"
    explained(detail, "tool of this task no longer exists")


@pytest.mark.parametrize("state", STATES)
def test_a_tool_that_is_gone_can_still_be_cancelled(old: Kit, state: str) -> None:
    new, task = taken_over(old, state, nothing_else())
    task.cancel()
    new.advance(timedelta(seconds=15))
    assert task.status == "cancelled"


@pytest.mark.parametrize("state", [state for state in STATES if state.startswith("input")])
def test_a_tool_that_is_gone_while_nobody_answers(old: Kit, state: str) -> None:
    new, task = taken_over(old, state, nothing_else())
    new.advance(timedelta(hours=3, minutes=1))
    detail = task.poll()
    assert detail["status"] == "completed"
    explained(detail, "Nobody answered in time")


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled", "completed-large"])
def test_the_outcomes_of_a_tool_that_is_gone_are_still_read(old: Kit, state: str) -> None:
    _, task = taken_over(old, state, nothing_else())
    assert task.poll()["status"] == state.partition("-")[0]


@pytest.mark.parametrize("state", STATES)
def test_a_tool_that_runs_on_another_engine_now(old: Kit, state: str) -> None:
    """Its runs are on the engine that the item names, which this deployment has no more."""
    _, task = taken_over(old, state, layout_tools.declared(), engine_name="batch")
    detail = poll_to_the_end(task)
    if "cancelling" in state:
        assert detail["status"] == "cancelled"
        return
    assert detail["status"] == "failed"
    explained(detail, "engine of this task no longer exists")


class Other(BaseModel):
    publish: bool
    reason: str


def report_with(body: Callable[..., Any]) -> Toolset:
    """The old tool with another function."""
    tools = Toolset()
    tools.task("report", runs_on=WORK, keep_result=hours(2), answer_within=hours(3))(body)
    return tools


def renamed(task: TaskContext, heading: str) -> str:
    """Take another argument."""
    return heading


def narrowed(task: TaskContext, title: int) -> str:
    """Take an argument of another type."""
    return str(title)


def more_wanted(task: TaskContext, title: str, reader: str) -> str:
    """Take one more argument."""
    return title + reader


def no_question(task: TaskContext, title: str, body: str = "", fail: bool = False) -> str:
    """Ask nothing any more."""
    return f"{title} published"


def another_key(task: TaskContext, title: str, body: str = "", fail: bool = False) -> str:
    """Ask the same under another key."""
    answer = task.ask("consent", f"Publish {title}?", layout_tools.Approval)
    return f"{title} {answer.action}"


def another_form(task: TaskContext, title: str, body: str = "", fail: bool = False) -> str:
    """Ask another thing under the same key."""
    answer = task.ask("approval", f"Publish {title}?", Other)
    return f"{title} {answer.content.reason}"


def another_step(task: TaskContext, title: str, body: str = "", fail: bool = False) -> str:
    """Make something else of the step that was remembered."""
    pages: list[int] = task.step("render", lambda: [1, 2])
    return f"{title} {pages[0]}"


def follow(kit: Kit, task: Called) -> dict[str, Any]:
    """Answer and run until the end, as engines and clients do."""
    for _ in range(5):
        detail = task.poll()
        if detail["status"] in ("completed", "failed", "cancelled"):
            return detail
        if detail["status"] == "input_required":
            task.answer_with(dict.fromkeys(detail["inputRequests"], freeze.ANSWER))
        item = freeze.item_of(kit, task.task_id)
        name = run_name(task.task_id, int(item["run"]["N"]))
        kit.engine.waiting.clear()
        if task.status == "working":
            kit.run_one(name, attempt=int(item["attempt"]["N"]) + 1)
    raise AssertionError(f"the task is stuck: {detail}")


@contextmanager
def secret_title() -> Iterator[None]:
    """The tasks that are made meanwhile have a title that must not be quoted."""
    unclaimed = freeze.STATES["working-unclaimed"]
    freeze.STATES["working-unclaimed"] = lambda kit: kit.call("report", title=SECRET)
    try:
        yield
    finally:
        freeze.STATES["working-unclaimed"] = unclaimed


@pytest.mark.parametrize(("body", "name"), [(renamed, "heading"), (narrowed, "title"), (more_wanted, "reader")])
@pytest.mark.parametrize("state", ["working-unclaimed", "working-claimed", "working-answered", "input-required"])
def test_a_tool_whose_arguments_have_changed(old: Kit, state: str, body: Callable[..., Any], name: str) -> None:
    with secret_title():
        new, task = taken_over(old, state, report_with(body))
    detail = follow(new, task)
    assert detail["result"]["isError"]
    explained(detail, "its arguments no longer fit")
    assert name in detail["result"]["content"][0]["text"]


@pytest.mark.parametrize(
    ("body", "state", "text"),
    [
        (no_question, "input-required", "Q3 published"),
        (no_question, "input-required-half-answered", "Q3 published"),
        (no_question, "working-answered", "Q3 published"),
        (another_key, "input-required", "Q3 accept"),
        (another_key, "working-answered", "Q3 accept"),
        (another_form, "input-required", "already stands for another question"),
        (another_form, "working-answered", "already stands for another question"),
        (another_form, "input-required-half-answered", "already stands for another question"),
        (another_step, "working-claimed", "The job failed"),
    ],
)
def test_a_tool_that_asks_or_remembers_otherwise_now(old: Kit, body: Callable[..., Any], state: str, text: str) -> None:
    new, task = taken_over(old, state, report_with(body))
    detail = follow(new, task)
    assert detail["status"] == "completed"
    assert text in task.text


def test_a_tool_whose_job_cannot_be_loaded(old: Kit) -> None:
    tools = Toolset()

    @tools.task(runs_on=WORK, job="jobs.no_such_job")
    def report(task: TaskContext, title: str, body: str = "", fail: bool = False) -> str:
        """Its code was forgotten in the deployment."""

    new, task = taken_over(old, "working-unclaimed", tools)
    detail = follow(new, task)
    assert detail["status"] == "failed"
    explained(detail, "could not be loaded")
