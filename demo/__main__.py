"""`python -m demo`: tell the story; the exit code says whether it held."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import anyio
from mcp import MCPError
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
        Console(stderr=True, highlight=False).print(f"\nThe demo failed: {error}", markup=False, style="bold red")
        return 1
    return 0


async def _tell(story: Story) -> None:
    try:
        with anyio.fail_after(LONGEST_SECONDS):
            await story.tell()
    except TimeoutError as error:
        raise StoryBroken(f"it was not over after {LONGEST_SECONDS} s") from error
    except MCPError as error:
        raise StoryBroken(f"the server answered {error.code}: {error.message}") from error
    except BaseExceptionGroup as group:
        # The client's task group wraps what ends it.
        broken, rest = group.split(StoryBroken)
        if rest is None and broken is not None:
            raise _first(broken) from group
        raise


def _first(group: BaseExceptionGroup[StoryBroken]) -> StoryBroken:
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


if __name__ == "__main__":
    sys.exit(main())
