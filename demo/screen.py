"""What a person sees: headings, facts, and a bar; plain lines where there is no terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from demo.tasks import State

PROGRESS = "io.taskrail/progress"
STEP = 0.25


def progress_of(state: State) -> tuple[float, float] | None:
    """Units done and in all, from the vendor key of a task's `_meta`; None while there are none."""
    numbers = (state.meta or {}).get(PROGRESS, {})
    done, total = numbers.get("done"), numbers.get("total")
    return (done, total) if done is not None and total else None


class Meter(Protocol):
    """Something that shows a task's progress."""

    def show(self, state: State) -> None:
        """Show the state that a poll brought."""
        ...


@dataclass
class Bar:
    """A bar that is drawn again at every state."""

    progress: Progress
    row: TaskID

    def show(self, state: State) -> None:
        """Show the state that a poll brought."""
        done, total = progress_of(state) or (0, None)
        self.progress.update(self.row, completed=done, total=total, description=words(state))


@dataclass
class Lines:
    """A line for each new status, message or quarter of the way."""

    console: Console
    last: tuple[str, str, float] | None = field(default=None, init=False)

    def show(self, state: State) -> None:
        """Show the state that a poll brought, unless it says nothing new."""
        done, total = progress_of(state) or (0, 1)
        subject = words(state).split("  ")[0].rstrip("0123456789 of")
        now = (state.status, subject, done / total // STEP)
        if now != self.last:
            self.last = now
            self.console.print(f"    {words(state)}  {done / total:.0%}", markup=False, soft_wrap=True)


class Screen:
    """Prints the story.

    Parameters
    ----------
    console
        Where to; rich finds out whether it is a terminal.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._chapter = 0

    def chapter(self, title: str, method: str = "") -> None:
        """Begin the next part of the story."""
        self._chapter += 1
        note = f"  [dim]{escape(method)}[/dim]" if method else ""
        self._console.print(f"\n[bold]{self._chapter}. {escape(title)}[/bold]{note}", soft_wrap=True)

    def say(self, text: str) -> None:
        """One fact."""
        self._console.print(f"   {text}", markup=False, soft_wrap=True)

    def ok(self, text: str) -> None:
        """One fact that was checked."""
        self._console.print(f" [green]✓[/green] {escape(text)}", soft_wrap=True)

    def end(self, text: str) -> None:
        """The last line."""
        self._console.print(f"\n[bold green]{escape(text)}[/bold green]", soft_wrap=True)

    @contextmanager
    def meter(self) -> Iterator[Meter]:
        """A bar on a terminal, lines elsewhere."""
        if not self._console.is_terminal:
            yield Lines(self._console)
            return
        columns = (
            TextColumn("   {task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.percentage:>3.0f} %"),
        )
        with Progress(*columns, console=self._console) as progress:
            yield Bar(progress, progress.add_task("", total=None))


def words(state: State) -> str:
    """A task's state in words."""
    return f"{state.status}: {state.status_message}" if state.status_message else state.status
