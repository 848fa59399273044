"""Jobs for the fault table: each does one thing that makes AWS calls, and counts the work it really did."""

from __future__ import annotations

from collections import Counter

from pydantic import BaseModel

from taskrail import (
    Batch,
    Call,
    ExistingJob,
    ExistingStateMachine,
    Lambda,
    StepFunctions,
    TaskContext,
    TaskServer,
    ToolError,
    Toolset,
    hours,
    minutes,
    seconds,
)
from taskrail.testing import StandingClock

tools = Toolset()
ON = StepFunctions(timeout=minutes(5))
ON_LAMBDA = Lambda(timeout=minutes(5), queue_within=minutes(10))
ON_BATCH = Batch(timeout=minutes(5), attempts=1, queue_within=minutes(10))
LARGE = "x" * 5_000
"""Too large for an item: arguments, answers and step outcomes of this size go to the bucket."""

done: Counter[tuple[str, str]] = Counter()
"""Work that was really done, by task and kind; every world clears it."""
clocks: list[StandingClock] = []
"""The clock of the world under test."""


class Approval(BaseModel):
    yes: bool
    note: str = ""


class Given(BaseModel):
    """Work that is none of the kit's."""

    text: str = ""


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


@tools.task(runs_on=ON_BATCH, keep_result=hours(2))
def batch(task: TaskContext, text: str) -> str:
    """Do one thing, in a container of the kit's."""
    done[task.task_id, "work"] += 1
    return "the result"


@tools.task(runs_on=ON_BATCH, keep_result=hours(2))
def batch_asks(task: TaskContext) -> str:
    """Ask once, in a container of the kit's."""
    task.ask("go", "Go on?", Approval)
    done[task.task_id, "work"] += 1
    return "the result"


@tools.task(runs_on=ON_LAMBDA, keep_result=hours(2))
def function(task: TaskContext, text: str) -> str:
    """Do one thing, in a function that is invoked asynchronously."""
    done[task.task_id, "work"] += 1
    return "the result"


@tools.task(runs_on=ON_LAMBDA, keep_result=hours(2))
def function_renews(task: TaskContext) -> str:
    """Tell nothing for so long that the lease has to be renewed, twice."""
    for _ in range(2):
        clocks[-1].advance(21_000)
        task.check()
    done[task.task_id, "work"] += 1
    return "the result"


@tools.task(runs_on=ON_LAMBDA, keep_result=hours(2))
def function_asks(task: TaskContext) -> str:
    """Ask once, after a step that costs money."""

    def pay() -> int:
        done[task.task_id, "step"] += 1
        return 1

    task.step("pay", pay)
    task.ask("go", "Go on?", Approval)
    done[task.task_id, "work"] += 1
    return "the result"


@tools.task(runs_on=ON_LAMBDA, keep_result=hours(2))
def function_holds(task: TaskContext) -> str:
    """Ask, and hold the run open for a while."""
    task.ask("go", "Go on?", Approval, wait=seconds(0.5))
    done[task.task_id, "work"] += 1
    return "the result"


@tools.task(runs_on=ON, keep_result=hours(2), dedupe=hours(1))
def once(task: TaskContext, text: str) -> str:
    """Do one thing, however often it is called."""
    done[task.task_id, "work"] += 1
    return "the result"


@tools.task(runs_on=ON_BATCH, keep_result=hours(2), dedupe=hours(1))
def once_batch(task: TaskContext, text: str) -> str:
    """The same, in a container of the kit's."""
    done[task.task_id, "work"] += 1
    return "the result"


@tools.task(runs_on=ON_LAMBDA, keep_result=hours(2), dedupe=hours(1))
def once_function(task: TaskContext, text: str) -> str:
    """The same, in a function that is invoked asynchronously."""
    done[task.task_id, "work"] += 1
    return "the result"


# What these do stands in `tests.faults.remote`.
for name in ("box", "box_asks"):
    tools.container(
        name, input=Given, existing=ExistingJob(queue="jobs", definition=name), runs_on=ON_BATCH, keep_result=hours(2)
    )
for name in ("flow", "flow_asks"):
    machine = ExistingStateMachine(arn=f"arn:aws:states:eu-central-1:123456789012:stateMachine:{name}", envelope=True)
    tools.workflow(name, input=Given, existing=machine, timeout=minutes(5), keep_result=hours(2))

server = TaskServer("faults", version="1", tools=[tools])
