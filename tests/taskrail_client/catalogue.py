"""A small server for the tests of the client: work that counts how often it was done, questions, and errors."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from taskrail import Call, StepFunctions, TaskContext, TaskServer, ToolError, Toolset, hours, minutes

tools = Toolset()
SMALL = StepFunctions(memory_mb=256, timeout=minutes(2))
OFTEN = timedelta(milliseconds=100)


class Approval(BaseModel):
    """A form with every kind of field."""

    publish: bool = Field(description="Publish it?")
    copies: int = Field(default=1, ge=1, le=9)
    paper: Literal["thin", "thick"] = "thin"
    colours: list[Literal["red", "blue"]] = []
    note: str | None = None


class Go(BaseModel):
    """A form with one field."""

    go: bool


@tools.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tools.task(runs_on=SMALL, poll_interval=OFTEN, dedupe=hours(1))
def tally(task: TaskContext, file: str, name: str, steps: int = 3, seconds: float = 0.0) -> str:
    """Write a line into a file, once per run, and be done after some steps."""
    with Path(file).open("a") as lines:
        lines.write(f"{name}\n")
    for _ in task.track(range(steps), "Counting"):
        time.sleep(seconds)
    return f"{name} is counted."


@tools.task(runs_on=SMALL, poll_interval=OFTEN)
def plain(task: TaskContext, word: str) -> str:
    """Say a word back; every call is a task of its own."""
    return word


@tools.task(runs_on=SMALL, poll_interval=OFTEN)
def publish(task: TaskContext, title: str) -> str:
    """Publish something, after asking twice."""
    answer = task.ask("approval", f"Publish {title}?", Approval)
    if not answer.accepted or not answer.content.publish:
        raise ToolError("Not published.")
    sure = task.ask("sure", "Are you sure?", Go)
    return f"{title} × {answer.content.copies} on {answer.content.paper}: {sure.accepted}"


@tools.task(runs_on=SMALL, poll_interval=OFTEN)
def break_down(task: TaskContext) -> str:
    """Raise what the caller should read."""
    raise ToolError("The machine is out of paper.")


@tools.task(runs_on=SMALL, poll_interval=OFTEN, dedupe=hours(1))
def fall_over(task: TaskContext) -> str:
    """Fail, and give repeated calls one task while it lasts."""
    raise ToolError("It fell over.")


@tools.task(runs_on=SMALL, poll_interval=OFTEN)
def wait_long(task: TaskContext) -> str:
    """Work for a minute and a half, and stop when told to."""
    for _ in task.track(range(900), "Waiting"):
        time.sleep(0.1)
    return "Waited."


@tools.task(runs_on=SMALL, poll_interval=OFTEN)
def guarded(task: TaskContext, title: str) -> str:
    """Run only what was approved before it started."""
    return f"{title} was started."


@guarded.before
def ask_first(call: Call, title: str) -> None:
    """Ask inside the request, before there is a task."""
    answer = call.ask("start", "Start it?", Go)
    if not answer.accepted or not answer.content.go:
        raise ToolError("It was not started.")


server = TaskServer("taskrail-client-tests", version="1.0.0", tools=[tools])
