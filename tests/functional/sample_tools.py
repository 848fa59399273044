"""Tools for the functional tests: small jobs that end in every way a job can end."""

from __future__ import annotations

import sys
from typing import Any

from pydantic import BaseModel, Field

from taskrail import (
    Call,
    ProtocolError,
    StepFunctions,
    TaskContext,
    TaskServer,
    ToolError,
    Toolset,
    hours,
    minutes,
    seconds,
)

tools = Toolset()
WORK = StepFunctions(timeout=minutes(5))

done: list[str] = []
"""What really happened, in order; a test clears it."""


class Approval(BaseModel):
    publish: bool = Field(description="Publish it?")


class Name(BaseModel):
    name: str


class Summary(BaseModel):
    words: int
    share: float


@tools.tool()
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}!"


@tools.tool()
def ask_inline(call: Call) -> str:
    """Greet somebody whose name is asked first."""
    answer = call.ask("who", "Who are you?", Name)
    return f"Hello, {answer.content.name}!" if answer.accepted else "Hello!"


@tools.task(runs_on=WORK, keep_result=hours(2), poll_interval=seconds(2))
def count(task: TaskContext, items: list[str]) -> Summary:
    """Count items."""
    for item in task.track(items, "Counting"):
        done.append(item)
    return Summary(words=len(items), share=0.1)


@tools.task(runs_on=WORK)
def text_back(task: TaskContext, text: str, times: int = 1) -> str:
    """Return a text as it is, several times over."""
    return text * times


@tools.task(runs_on=WORK)
def numbers_back(task: TaskContext, size: int) -> dict[str, Any]:
    """Return structured content of a size."""
    return {"values": "x" * size, "more": [0.1, 1e300, 3]}


@tools.task(runs_on=WORK)
def end_as(task: TaskContext, how: str) -> Any:
    """End in the way that is asked for."""
    match how:
        case "tool_error":
            raise ToolError("The report has no pages.", structured={"pages": 0})
        case "protocol_error":
            raise ProtocolError(4711, "The archive is closed.", {"until": "Monday"})
        case "exception":
            raise RuntimeError("password=hunter2 leaked into a message")
        case "exit":
            sys.exit(3)
        case "exit_text":
            sys.exit("password=hunter2")
        case "infinity":
            return float("inf")
        case "a_set":
            return {1, 2}
        case "interrupt":
            raise KeyboardInterrupt
    return how


@tools.task(runs_on=WORK, answer_within=hours(1))
def publish(task: TaskContext, title: str) -> str:
    """Render and publish, once somebody agrees."""
    pages = task.step("render", lambda: done.append("rendered") or 12)  # type: ignore[func-returns-value]
    answer = task.ask("approval", f"Publish {title}?", Approval)
    if not answer.accepted or not answer.content.publish:
        raise ToolError("The report was not approved.")
    return f"{title}: {pages} pages published"


def meanwhile() -> object:
    """What happens beside a job that always tells the same; a test puts its own in its place."""
    return None


@tools.task(runs_on=WORK)
def tell_the_same(task: TaskContext) -> str:
    """Tell the same progress again and again."""
    for _ in range(100):
        meanwhile()
        task.progress(1, 2, "Half of it")
    return "never cancelled"


@tools.task(runs_on=WORK)
def publish_tracked(task: TaskContext, items: list[str]) -> str:
    """Go through items, then ask."""
    for _ in task.track(items, "Checking"):
        pass
    return "published" if task.ask("approval", "Publish?", Approval).accepted else "kept"


@tools.task(runs_on=WORK)
def two_questions(task: TaskContext) -> str:
    """Ask two things at once."""
    answers = task.ask_all({"first": ("First name?", Name), "last": ("Last name?", Name)})
    return f"{answers['first'].content.name} {answers['last'].content.name}"


@tools.task(runs_on=WORK)
def same_key_twice(task: TaskContext) -> str:
    """Use one key for two questions."""
    task.ask("key", "One?", Name)
    task.ask("key", "Another?", Name)
    return "never"


@tools.task(runs_on=WORK)
def attach_files(task: TaskContext) -> str:
    """Attach two files, one of them inside a step."""

    def work() -> int:
        task.attach("inside.txt", "from the step")
        return 1

    task.step("make", work)
    task.ask("go_on", "Go on?", None)
    task.attach("after.csv", b"a,b\n1,2\n", description="A table")
    return "two files"


@tools.task(runs_on=WORK, mode="required")
def only_as_task(task: TaskContext) -> str:
    """Work for clients that know tasks."""
    return "done"


@tools.task(runs_on=WORK)
async def later(task: TaskContext, text: str) -> str:
    """An asynchronous job."""

    async def work() -> str:
        done.append("awaited")
        return text.upper()

    return await task.step_async("upper", work)


@tools.task(runs_on=WORK)
def big_order(task: TaskContext, pages: int) -> str:
    """Order pages; many of them only after a question."""
    done.append(f"ordered {pages}")
    return f"{pages} pages"


@big_order.before
def confirm_large(call: Call, pages: int) -> None:
    if pages > 300:
        answer = call.ask("large", "More than 300 pages. Go on?", Approval)
        if not answer.accepted or not answer.content.publish:
            raise ToolError("Not started.")


server = TaskServer("samples", version="1.0.0", tools=[tools])
