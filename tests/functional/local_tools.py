"""A catalogue for the local stack, whose jobs end in every way that a process can."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from pydantic import BaseModel

from taskrail import InputFile, Lambda, StepFunctions, TaskContext, TaskServer, ToolError, Toolset, seconds

tools = Toolset()
RUNS = StepFunctions(memory_mb=256, timeout=seconds(60))
SHORT = StepFunctions(memory_mb=256, timeout=seconds(2))
INVOKED = Lambda(memory_mb=256, timeout=seconds(50))
TWICE = Lambda(memory_mb=256, timeout=seconds(50), attempts=2)


class Go(BaseModel):
    """A yes or a no."""

    go: bool


@tools.tool()
def ping() -> str:
    """Answer."""
    return "pong"


@tools.tool()
def whose_process() -> int:
    """Number of the process that answers requests."""
    return os.getpid()


@tools.task(runs_on=RUNS, poll_interval=seconds(1))
def end(task: TaskContext, how: str) -> str:
    """End as told."""
    match how:
        case "return":
            return "returned"
        case "tool error":
            raise ToolError("told to")
        case "raise":
            raise ValueError("a secret")
        case "exit":
            raise SystemExit(3)
        case "hard exit":
            os._exit(3)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError(how)


@tools.task(runs_on=RUNS, poll_interval=seconds(1))
def wait_for_file(task: TaskContext, path: str) -> str:
    """Work until a file is there, hearing nothing meanwhile."""
    Path(path + ".begun").touch()
    while not Path(path).exists():
        time.sleep(0.02)
    return "there"


@tools.task(runs_on=TWICE, poll_interval=seconds(1))
def twice(task: TaskContext, path: str) -> str:
    """Record a step, and die in the first attempt."""
    first = task.step("process", os.getpid)
    if first == os.getpid():
        Path(path).write_text("dying")
        os.kill(first, signal.SIGKILL)
    return f"done by another process: {first != os.getpid()}"


@tools.task(runs_on=INVOKED, poll_interval=seconds(1))
def once_invoked(task: TaskContext, how: str) -> str:
    """End as told, with no attempt left after that."""
    match how:
        case "raise":
            raise ValueError("a secret")
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
    return "returned"


@tools.task(runs_on=INVOKED, poll_interval=seconds(1))
def approve_invoked(task: TaskContext) -> str:
    """Ask in the middle."""
    first = task.step("process", os.getpid)
    answer = task.ask("go", "Go on?", Go)
    return f"go={answer.accepted and answer.content.go} another process={os.getpid() != first}"


@tools.task(runs_on=INVOKED, poll_interval=seconds(1))
def work_invoked(task: TaskContext) -> str:
    """Work until cancelled."""
    for _ in task.track(range(100_000), "Working"):
        time.sleep(0.1)
    return "done"


@tools.task(runs_on=INVOKED, poll_interval=seconds(1))
def deaf_invoked(task: TaskContext, path: str) -> str:
    """Hear nothing until a file is there."""
    Path(path + ".begun").touch()
    while not Path(path).exists():
        time.sleep(0.02)
    return "there"


@tools.task(runs_on=RUNS, poll_interval=seconds(1))
def clean_up(task: TaskContext, path: str) -> str:
    """Hear nothing, and clean up at the end."""
    Path(path + ".begun").touch()
    try:
        time.sleep(50)
    finally:
        Path(path).touch()
    return "too late"


@tools.task(runs_on=RUNS, poll_interval=seconds(1))
def leave_a_child(task: TaskContext, marker: str) -> str:
    """Ignore signals, with processes of its own that do so too, one of them in a session of its own."""
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, signal.SIG_IGN)
    for alone in (False, True):
        subprocess.Popen(
            ["sh", "-c", f"trap '' TERM INT; while :; do sleep 0.1; : {marker}; done"], start_new_session=alone
        )
    while True:
        time.sleep(60)


@tools.task(runs_on=SHORT, poll_interval=seconds(1))
def outstay(task: TaskContext) -> str:
    """Sleep longer than allowed, and hear nothing."""
    time.sleep(60)
    return "too late"


@tools.task(runs_on=RUNS, poll_interval=seconds(1))
def approve(task: TaskContext) -> str:
    """Ask in the middle."""
    first = task.step("process", os.getpid)
    answer = task.ask("go", "Go on?", Go)
    again = os.getpid() != first
    return f"go={answer.accepted and answer.content.go} another process={again}"


@tools.task(runs_on=RUNS, poll_interval=seconds(1))
def work(task: TaskContext) -> str:
    """Work until cancelled."""
    for _ in task.track(range(100_000), "Working"):
        time.sleep(0.1)
    return "done"


@tools.task(runs_on=RUNS, dedupe=seconds(300), poll_interval=seconds(1))
def once(task: TaskContext, note: str) -> str:
    """The same call again is the same task."""
    return note


@tools.task(runs_on=RUNS, poll_interval=seconds(1))
def length(task: TaskContext, file: InputFile) -> int:
    """Bytes of a file that was uploaded."""
    with task.open_input(file) as source:
        return len(source.read())


server = TaskServer("local-tests", version="1.0.0", tools=[tools], uploads=True)
