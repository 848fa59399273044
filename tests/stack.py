"""The local stack as a process of its own, for the tests that need a server behind a real port."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
URL = re.compile(r"http://127\.0\.0\.1:\d+/mcp\b")


class StackError(RuntimeError):
    """The stack did not start, or did not end; the message carries what it printed."""


@contextmanager
def local_stack(catalogue: str, *, start_within: float = 60, end_within: float = 20) -> Iterator[str]:
    """Run `python -m local` on a free port, and end it as Ctrl-C does.

    Parameters
    ----------
    catalogue
        Module that has the `server`.
    start_within, end_within
        How long it may take until the URL is printed, and until it is gone, in seconds.

    Yields
    ------
    str
        URL of the MCP endpoint.

    Raises
    ------
    StackError
        It printed no URL in time, did not end on Ctrl-C in time, or ended with an error.
    """
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "local", "--port", "0", "--catalogue", catalogue],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    lines: list[str] = []
    url: list[str] = []
    ready = threading.Event()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if not url and (found := URL.search(line)):
                url.append(found.group())
                ready.set()
        ready.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        ready.wait(start_within)
        if not url:
            raise StackError("The local stack printed no URL:\n" + "".join(lines[-40:]))
        yield url[0]
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            code = process.wait(end_within)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise StackError("The local stack did not end on Ctrl-C:\n" + "".join(lines[-40:])) from None
        finally:
            reader.join(5)
            assert process.stdout is not None
            process.stdout.close()
    if code not in (0, 130, -signal.SIGINT):
        raise StackError(f"The local stack ended with exit code {code}:\n" + "".join(lines[-40:]))
