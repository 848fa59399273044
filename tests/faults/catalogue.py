"""Jobs for the fault table: each does one thing that makes AWS calls, and counts the work it really did."""

from __future__ import annotations

from collections import Counter

from pydantic import BaseModel

from taskrail import Call, StepFunctions, TaskContext, TaskServer, ToolError, Toolset, hours, minutes, seconds
from taskrail.testing import StandingClock

tools = Toolset()
ON = StepFunctions(timeout=minutes(5))
LARGE = "x" * 5_000
"""Too large for an item: arguments, answers and step outcomes of this size go to the bucket."""

done: Counter[tuple[str, str]] = Counter()
"""Work that was really done, by task and kind; every world clears it."""
clocks: list[StandingClock] = []
"""The clock of the world under test."""


class Approval(BaseModel):
    yes: bool
    note: str = ""


@tools.task(runs_on=ON, keep_result=hours(2))
def plain(task: TaskContext, text: str) -> str:
    """Do one thing and return."""
    done[task.task_id, "work"] += 1
    return "the result"


@plain.before
def ask_first(call: Call, text: str) -> None:
    if text == "ask first" and not call.ask("sure", "Sure?", Approval).accepted:
        raise ToolError("Not started.")


@tools.task(runs_on=ON, keep_result=hours(2))
def much(task: TaskContext) -> str:
    """Return more than an item takes."""
    done[task.task_id, "work"] += 1
    return "y" * 40_000


@tools.task(runs_on=ON, keep_result=hours(2))
def steps(task: TaskContext, size: int) -> str:
    """Do a step that costs money, once."""

    def pay() -> str:
        done[task.task_id, "step"] += 1
        return "x" * size

    task.step("pay", pay)
    return "the result"


@tools.task(runs_on=ON, keep_result=hours(2))
def tells(task: TaskContext) -> str:
    """Tell the progress twice, both times due."""
    for count in (1, 2):
        clocks[-1].advance(60_000)
        task.progress(count, 2)
    return "the result"


@tools.task(runs_on=ON, keep_result=hours(2))
def asks(task: TaskContext) -> str:
    """Ask once, after a step that costs money."""

    def pay() -> int:
        done[task.task_id, "step"] += 1
        return 1

    task.step("pay", pay)
    task.ask("go", "Go on?", Approval)
    done[task.task_id, "work"] += 1
    return "the result"


@tools.task(runs_on=ON, keep_result=hours(2))
def asks_two(task: TaskContext) -> str:
    """Ask two things at once."""
    task.ask_all({"one": ("One?", Approval), "two": ("Two?", Approval)})
    done[task.task_id, "work"] += 1
    return "the result"


@tools.task(runs_on=ON, keep_result=hours(2))
def holds(task: TaskContext) -> str:
    """Ask, and hold the run open for a while."""
    task.ask("go", "Go on?", Approval, wait=seconds(0.5))
    done[task.task_id, "work"] += 1
    return "the result"


@tools.task(runs_on=ON, keep_result=hours(2))
def attaches(task: TaskContext) -> str:
    """Attach a file."""
    task.attach("table.csv", b"a,b\n1,2\n")
    return "the result"


server = TaskServer("faults", version="1", tools=[tools])
