"""A small server for the tests with real clients: one tool for each way in which a call can go."""

from __future__ import annotations

import os
import time
from typing import Annotated

from pydantic import BaseModel, Field

from taskrail import Call, StepFunctions, TaskContext, TaskServer, ToolError, Toolset, minutes, seconds

tools = Toolset()
SMALL = StepFunctions(memory_mb=256, timeout=minutes(2))
TWO_MINUTES = float(os.environ.get("CLIENTS_TWO_MINUTES", "120"))
"""How many seconds the two-minute job takes: the tests make it shorter, and the wait of a request with it."""
PARTS = 3


class Lengths(BaseModel):
    """How long words are."""

    longest: str
    total: int


class Approval(BaseModel):
    """What the client's user is asked."""

    publish: bool = Field(description="Publish it?")


@tools.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tools.task(runs_on=SMALL, poll_interval=seconds(1))
def measure_words(task: TaskContext, words: Annotated[list[str], Field(min_length=1)]) -> Lengths:
    """Find the longest of some words."""
    lengths = {word: len(word) for word in task.track(words, "Measuring word")}
    return Lengths(longest=max(lengths, key=lambda word: lengths[word]), total=sum(lengths.values()))


@tools.task(runs_on=SMALL, poll_interval=seconds(1))
def publish(task: TaskContext, title: str) -> str:
    """Publish something, after asking."""
    drafted = task.step("draft", lambda: f"“{title}”")
    answer = task.ask("approval", f"Publish {drafted}?", Approval)
    if not answer.accepted or not answer.content.publish:
        raise ToolError(f"{drafted} was not published.")
    return f"{drafted} is published."


@tools.task(runs_on=SMALL, poll_interval=seconds(1))
def wait_long(task: TaskContext) -> str:
    """Work for a minute and a half, and stop when told to."""
    for _ in task.track(range(900), "Waiting"):
        time.sleep(0.1)
    return "Waited."


@tools.task(runs_on=StepFunctions(memory_mb=256, timeout=minutes(5)), poll_interval=seconds(1))
def take_two_minutes(task: TaskContext) -> str:
    """Work for two minutes, longer than any request may wait."""
    for _ in task.track(range(PARTS), "Working on part"):
        time.sleep(TWO_MINUTES / PARTS)
    return "Two minutes have passed."


@tools.task(runs_on=SMALL, poll_interval=seconds(1))
def break_down(task: TaskContext) -> str:
    """Raise what the caller should read."""
    raise ToolError("The machine is out of paper.")


@tools.task(runs_on=SMALL, poll_interval=seconds(1))
def stumble(task: TaskContext) -> str:
    """Raise what the caller must not read."""
    raise RuntimeError("password=hunter2")


@tools.task(runs_on=SMALL, poll_interval=seconds(1))
def guarded(task: TaskContext, title: str) -> str:
    """Run only what was approved before it started."""
    return f"“{title}” was started."


@guarded.before
def ask_first(call: Call, title: str) -> None:
    """Ask inside the request, before there is a task."""
    answer = call.ask("start", "Start it?", Approval)
    if not answer.accepted or not answer.content.publish:
        raise ToolError("It was not started.")


server = TaskServer("taskrail-clients", version="1.0.0", instructions="For tests.", tools=[tools])
