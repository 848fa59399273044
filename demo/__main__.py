"""`python -m demo`: tell the story; the exit code says whether it held."""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from pathlib import Path

import anyio
from mcp import MCPError
from pydantic import ValidationError
from rich.console import Console

from demo.errors import StoryBroken
from demo.screen import Screen
from demo.stack import local_stack
from demo.story import Story

LONGEST_SECONDS = 180


def main() -> int:
    """Set the stage, tell the story, and clear up."""
    console = Console(highlight=False)
    screen = Screen(console)
    began = time.monotonic()
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.default_int_handler)
    try:
        with tempfile.TemporaryDirectory(prefix="taskrail-demo-") as name:
            folder = Path(name)
            screen.chapter("AWS on one machine", "python -m local --port 0")
            with local_stack(folder) as url:
                screen.ok(f"{url} is up after {time.monotonic() - began:.1f} s")
                anyio.run(_tell, Story(url, folder, screen))
        screen.end(f"Everything held, in {time.monotonic() - began:.0f} s. Nothing was left behind.")
    except KeyboardInterrupt:
        console.print("\nInterrupted; the local stack was stopped.")
        return 130
    except StoryBroken as error:
        Console(stderr=True, highlight=False).print(
            f"\nThe demo failed: {error}", markup=False, style="bold red", soft_wrap=True
        )
        return 1
    return 0


async def _tell(story: Story) -> None:
    try:
        with anyio.fail_after(LONGEST_SECONDS):
            await story.tell()
    except Exception as error:
        raise _in_words(_innermost(error)) from error


def _innermost(error: Exception) -> Exception:
    """What broke first: the client's task groups wrap it."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _in_words(error: Exception) -> Exception:
    match error:
        case TimeoutError():
            return StoryBroken(f"it was not over after {LONGEST_SECONDS} s")
        case MCPError():
            return StoryBroken(f"the server answered {error.code}: {error.message}")
        case ValidationError():
            return StoryBroken(f"an answer has another form than the protocol says: {error}")
        case _:
            return error


if __name__ == "__main__":
    sys.exit(main())
