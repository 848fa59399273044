"""A catalogue whose jobs leave a journal outside the kit, so that work done twice is seen."""

from __future__ import annotations

import os
import time
from pathlib import Path

from pydantic import BaseModel

from taskrail import StepFunctions, TaskContext, TaskServer, Toolset, seconds

tools = Toolset()
RUNS = StepFunctions(memory_mb=256, timeout=seconds(60))


class Go(BaseModel):
    """A yes or a no."""

    go: bool


def note(journal: str, task: TaskContext, line: str) -> None:
    """Append a line to the task's journal, whole or not at all."""
    descriptor = os.open(Path(journal, task.task_id), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


def do(journal: str, task: TaskContext, step: str) -> None:
    """A step that says when it was done, and when it is known to be remembered."""
    task.step(step, lambda: note(journal, task, f"did {step}"))
    note(journal, task, f"kept {step}")


@tools.task(runs_on=RUNS, poll_interval=seconds(1))
def assemble(task: TaskContext, journal: str, parts: int) -> str:
    """Work in steps, and tell the progress."""
    for part in task.track(range(parts), "Part"):
        do(journal, task, f"part-{part}")
        time.sleep(0.1)
    return f"{parts} parts"


@tools.task(runs_on=RUNS, poll_interval=seconds(1))
def confirm(task: TaskContext, journal: str) -> str:
    """Work, ask, and work on in another run."""
    do(journal, task, "before")
    answer = task.ask("go", "Go on?", Go)
    do(journal, task, "after")
    return f"go={answer.content.go}"


@tools.task(runs_on=RUNS, poll_interval=seconds(1))
def wander(task: TaskContext, journal: str) -> str:
    """Work until cancelled."""
    note(journal, task, "began")
    while True:
        task.check()
        time.sleep(0.05)


server = TaskServer("chaos", version="1.0.0", tools=[tools])
