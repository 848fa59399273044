"""A catalogue of jobs that take more than they should: memory, disk, time, output, processes."""

from __future__ import annotations

import ctypes
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from taskrail import StepFunctions, TaskContext, TaskServer, Toolset, seconds

tools = Toolset()
RUNS = StepFunctions(memory_mb=256, timeout=seconds(60))
SHORT = StepFunctions(memory_mb=256, timeout=seconds(2))

MEGABYTE = 1024 * 1024
UPDATES = 10_000
PRINTED = 100 * MEGABYTE

hoard: list[bytearray] = []
"""What is in here is never freed."""


def leave_megabytes(number: int) -> None:
    """Let this process have so much more address space and nothing beyond it."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + number * MEGABYTE
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


@tools.task(runs_on=RUNS, poll_interval=seconds(1))
def eat_memory(task: TaskContext, to_the_last_byte: bool) -> str:
    """Take memory until there is none: in one piece that is given back, or for good and to the last byte."""
    task.progress(message="Eating")
    leave_megabytes(64)
    if not to_the_last_byte:
        return f"{len(bytearray(1024 * MEGABYTE))}"
    size = MEGABYTE
    while True:
        try:
            hoard.append(bytearray(size))
        except MemoryError:
            if size <= 64:
                raise
            size //= 2


@tools.task(runs_on=RUNS, poll_interval=seconds(1))
def be_killed(task: TaskContext) -> str:
    """End as the system ends a process that took too much memory."""
    os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


@tools.task(runs_on=RUNS, poll_interval=seconds(1))
def fill_the_disk(task: TaskContext, path: str, caught: bool) -> str:
    """Write until nothing more can be written, to the job's own log as well."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (MEGABYTE, MEGABYTE))
    written = 0
    try:
        with open(path, "wb", buffering=0) as file:
            while True:
                written += file.write(b"x" * 65_536)
                # The log is on the same disk.
                os.write(1, b"y" * 65_536)
    except OSError:
        if not caught:
            raise
    return f"full after {written}"


@tools.task(runs_on=RUNS, poll_interval=seconds(1))
def find_no_space(task: TaskContext) -> str:
    """Write to a disk that is full already."""
    Path("/dev/full").write_bytes(b"x")
    return "written"


@tools.task(runs_on=SHORT, poll_interval=seconds(1))
def never_end(task: TaskContext, how: str) -> str:
    """Take for ever: busy, or in a way that gives no other thread of the process its turn."""
    match how:
        case "busy":
            while True:
                pass
        case "in the way":
            re.fullmatch(r"(a|a)*b", "a" * 200)
        case "alone":
            # Called this way, the function keeps all other threads of the process waiting.
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            ctypes.PyDLL(None).sleep(600)
    return "ended"


@tools.task(runs_on=RUNS, poll_interval=seconds(1))
def flood(task: TaskContext) -> str:
    """Tell far more, and at far greater length, than anybody can read."""
    # Nothing is longer on the wire: four bytes, or twelve once escaped.
    message = "\N{RAILWAY TRACK}" * (MEGABYTE // 4)
    for number in range(UPDATES):
        task.progress(number, UPDATES, message)
        time.sleep(0.0002)
    return "told"


@tools.task(runs_on=RUNS, poll_interval=seconds(1))
def listen_to_nobody(task: TaskContext) -> str:
    """Work on through signals, exceptions and cancellation."""
    while True:
        try:
            for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
                signal.signal(signum, signal.SIG_IGN)
            task.progress(message="Deaf")
            time.sleep(0.05)
        except BaseException:
            continue


@tools.task(runs_on=RUNS, poll_interval=seconds(1))
def print_a_lot(task: TaskContext) -> str:
    """Print a hundred megabytes."""
    line = "z" * 1023
    for _ in range(PRINTED // MEGABYTE):
        print(*[line] * 1024, sep="\n")
    return "printed"


@tools.task(runs_on=RUNS, poll_interval=seconds(1))
def leave_children(task: TaskContext, marker: str, session: bool) -> str:
    """Start processes that ignore signals, and return without them."""
    for _ in range(3):
        subprocess.Popen(
            ["sh", "-c", f"trap '' TERM INT HUP; while :; do sleep 0.1; : {marker}; done"], start_new_session=session
        )
    return "returned"


@tools.task(runs_on=RUNS, poll_interval=seconds(1))
def leave_a_thread(task: TaskContext, silent: bool) -> str:
    """Return while a thread that is no daemon runs on; silent with no output left to close."""
    threading.Thread(target=lambda: [time.sleep(0.01) for _ in iter(int, 1)], daemon=False).start()
    if silent:
        sys.stdout.close()
        sys.stderr.close()
    return "returned"


@tools.task(runs_on=RUNS, poll_interval=seconds(1))
def crash(task: TaskContext, how: str) -> str:
    """End as no Python code ends."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    match how:
        case "exit":
            os._exit(3)
        case "segfault":
            ctypes.string_at(0)
        case "abort":
            os.abort()
        case "recursion":
            return crash(task, how)
    raise AssertionError(how)


@tools.task(runs_on=RUNS, poll_interval=seconds(1))
def fork(task: TaskContext) -> str:
    """Return twice."""
    os.fork()
    return "returned"


@tools.task(runs_on=RUNS, poll_interval=seconds(1))
def close_everything(task: TaskContext) -> str:
    """Close every descriptor, those of others included."""
    os.closerange(3, 1024)
    return "closed"


server = TaskServer("hungry", version="1.0.0", tools=[tools])
