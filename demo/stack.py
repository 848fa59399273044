"""Starts the local stack for the demo, and sees to it that nothing of it stays behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from demo.errors import StoryBroken

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 60.0
STOP_SECONDS = 15.0


@contextmanager
def local_stack(folder: Path) -> Iterator[str]:
    """Run `python -m local` on a free port; yields the URL of its MCP endpoint.

    Parameters
    ----------
    folder
        An empty folder for its output and temporary files.

    Raises
    ------
    StoryBroken
        It does not start, does not stop at an interrupt, or leaves a process or a file behind.
    """
    log, ready, files = folder / "local.log", folder / "ready.json", folder / "files"
    files.mkdir()
    with log.open("wb") as output:
        # A session of its own: Ctrl-C reaches the demo alone, which then stops the stack in order.
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", "local", "--port", "0", "--ready-file", str(ready)],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(files)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        told = _wait_until_ready(process, ready, log)
        yield told["url"]
    except BaseException as error:
        died = process.poll()
        _interrupt(process)
        if died is not None and isinstance(error, Exception) and not isinstance(error, StoryBroken):
            raise StoryBroken(f"the local stack ended with {died} in the middle of the story:\n{_tail(log)}") from error
        raise
    if not _interrupt(process):
        raise StoryBroken(f"the local stack did not stop within {STOP_SECONDS:.0f} s of an interrupt")
    if process.returncode not in (0, 130, -signal.SIGINT):
        raise StoryBroken(f"the local stack ended with {process.returncode}:\n{_tail(log)}")
    if any(_exists(os.kill, pid) for pid in told["processes"].values()):
        raise StoryBroken("the local stack left processes behind")
    if left := sorted(path.name for path in files.iterdir()):
        raise StoryBroken(f"the local stack left files behind: {', '.join(left)}")


def _wait_until_ready(process: subprocess.Popen[bytes], ready: Path, log: Path) -> dict[str, Any]:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if ready.exists():
            told: dict[str, Any] = json.loads(ready.read_text())
            return told
        if process.poll() is not None:
            raise StoryBroken(f"the local stack ended with {process.returncode} before it was ready:\n{_tail(log)}")
        time.sleep(0.05)
    raise StoryBroken(f"the local stack was not ready within {START_SECONDS:.0f} s:\n{_tail(log)}")


def _interrupt(process: subprocess.Popen[bytes]) -> bool:
    """End the stack as Ctrl-C would; whether the whole group of processes ended by itself."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    deadline = time.monotonic() + STOP_SECONDS
    while _alive(process):
        if time.monotonic() > deadline:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return False
        time.sleep(0.05)
    return True


def _alive(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is None or _exists(os.killpg, process.pid)


def _exists(kill: Callable[[int, int], None], number: int) -> bool:
    try:
        kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _tail(log: Path, lines: int = 20) -> str:
    return "\n".join(f"    {line}" for line in log.read_text(errors="replace").splitlines()[-lines:])
