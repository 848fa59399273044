"""Tools whose jobs a worker's process does while a test watches it: through files, since it is another process."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from pathlib import Path

from taskrail import Batch, TaskContext, TaskServer, ToolError, Toolset
from taskrail.context import JobCancelled, RunInterrupted

tools = Toolset()


def note(directory: str, name: str, text: str) -> str:
    """Add a line to a file of the test's."""
    with open(Path(directory, name), "a") as file:
        file.write(text + "\n")
    return text


@tools.task(runs_on=Batch())
def greet(name: str) -> str:
    """Greets, or does not know whom."""
    if not name:
        raise ToolError("There is nobody to greet.")
    return f"Hello {name}"


@tools.task(runs_on=Batch())
def long_work(task: TaskContext, directory: str, looks: bool = False, breaks: bool = False) -> str:
    """Does a step, then waits for the test's word, then does another."""
    task.step("first", lambda: note(directory, "steps", f"first in attempt {task.attempt}"))
    try:
        note(directory, "waiting", "now")
        while not Path(directory, "go").exists():
            time.sleep(0.02)
            if looks:
                task.check()
    except BaseException as error:
        note(directory, "left", type(error).__name__)
        raise
    finally:
        note(directory, "cleaned", f"attempt {task.attempt}")
        if breaks:
            raise RuntimeError("secret-of-the-job")
    return task.step("second", lambda: note(directory, "steps", f"second in attempt {task.attempt}"))


@tools.task(runs_on=Batch())
async def long_work_in_a_loop(task: TaskContext, directory: str) -> str:
    """Waits for the test's word in an event loop, in a group of tasks."""

    async def wait() -> None:
        try:
            note(directory, "waiting", "now")
            while not Path(directory, "go").exists():
                await asyncio.sleep(0.02)
        finally:
            note(directory, "cleaned", f"attempt {task.attempt}")

    async with asyncio.TaskGroup() as group:
        group.create_task(wait())
    return "done"


@tools.task(runs_on=Batch())
def ask(task: TaskContext, directory: str) -> str:
    """Asks, and holds its run open for the answer."""
    try:
        note(directory, "waiting", "now")
        return f"go={task.ask('go', 'Go on?', wait=timedelta(minutes=5)).accepted}"
    finally:
        note(directory, "cleaned", f"attempt {task.attempt}")


@tools.task(runs_on=Batch())
def will_not_leave(task: TaskContext, directory: str) -> str:
    """Goes on with its work whatever it is told, and is done with it."""
    try:
        note(directory, "waiting", "now")
        while True:
            time.sleep(0.02)
    except (JobCancelled, RunInterrupted):
        return "done all the same"


server = TaskServer("batch-worker", version="1", tools=[tools])
