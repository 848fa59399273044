"""Tools on Lambda, whose worker dies when a test says so."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from pydantic import BaseModel

from taskrail import Lambda, StepFunctions, TaskContext, TaskServer, Toolset, hours, minutes
from taskrail.context import RunInterrupted

tools = Toolset()
done: list[str] = []
"""What was really done, in order."""
deaths: list[str] = []
"""Before which piece of work the worker dies, once each."""
busy: dict[str, Callable[[], None]] = {}
"""What a piece of work does while it is done."""


class Approval(BaseModel):
    publish: bool


def work(name: str) -> str:
    """Do a piece of work, or die before it: whatever leaves a job that way writes nothing to its task."""
    if name in deaths:
        deaths.remove(name)
        raise RunInterrupted
    busy.get(name, lambda: None)()
    done.append(name)
    return name


@tools.task(runs_on=Lambda(timeout=minutes(5)))
def once(task: TaskContext, text: str) -> str:
    """Does one piece of work, at one attempt."""
    return work(text)


@tools.task(runs_on=Lambda(timeout=minutes(5), attempts=3, queue_within=hours(1)))
def thrice(task: TaskContext, text: str) -> str:
    """Does two pieces of work, each remembered, at up to three attempts."""
    task.step("first", lambda: work(f"{text} first"))
    task.step("second", lambda: work(f"{text} second"))
    return f"{text} in attempt {task.attempt}"


@tools.task(runs_on=StepFunctions(timeout=minutes(5)))
def elsewhere(task: TaskContext, text: str) -> str:
    """Does one piece of work behind a state machine."""
    return work(text)


@tools.task(runs_on=Lambda(timeout=minutes(5)), dedupe=hours(1))
def single(task: TaskContext, text: str) -> str:
    """Does one piece of work, however often it is called."""
    return work(text)


@tools.task(runs_on=Lambda(timeout=minutes(5), attempts=2))
def publish(task: TaskContext, title: str, hold_ms: int = 0) -> str:
    """Renders, asks, and publishes."""
    task.step("render", lambda: work("render"))
    wait = timedelta(milliseconds=hold_ms)
    answer = task.ask("approval", f"Publish {title}?", Approval, wait=wait)
    return work("publish") if answer.accepted and answer.content.publish else "kept"


server = TaskServer("lambda", version="1", tools=[tools])
