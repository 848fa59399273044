"""What a person sees: headings, facts, and a bar; plain lines where there is no terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Column, Table

from demo.tasks import State

PROGRESS = "io.taskrail/progress"
STEP = 0.25


def progress_of(state: State) -> tuple[float, float] | None:
    """Units done and in all, from the vendor key of a task's `_meta`; None while there are none.

    A job may end sooner after its last report than progress is written: completed means all of it.
    """
    numbers = (state.meta or {}).get(PROGRESS, {})
    done, total = numbers.get("done"), numbers.get("total")
    if done is None or not total:
        return None
    return (total, total) if state.status == "completed" else (done, total)


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
        done, total = progress_of(state) or (0, None if state.status == "working" else 1)
        self.progress.update(self.row, completed=done, total=total, description=words(state))


@dataclass
class Lines:
    """A line for each new status, message or quarter of the way."""

    console: Console
    last: tuple[str, str, float] | None = field(default=None, init=False)

    def show(self, state: State) -> None:
        """Show the state that a poll brought, unless it says nothing new."""
        numbers = progress_of(state)
        share = numbers[0] / numbers[1] if numbers else 0.0
        now = (state.status, words(state).rstrip("0123456789 of"), share // STEP)
        if now != self.last:
            self.last = now
            percent = f"  {share:.0%}" if numbers else ""
            self.console.print(f"   {words(state)}{percent}", markup=False, soft_wrap=True)


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
        self._line("   ", text)

    def ok(self, text: str) -> None:
        """One fact that was checked."""
        self._line(" [green]✓[/green] ", text)

    def end(self, text: str) -> None:
        """The last line."""
        self._console.print(f"\n[bold green]{escape(text)}[/bold green]", soft_wrap=True)

    def _line(self, mark: str, text: str) -> None:
        if not self._console.is_terminal:
            self._console.print(mark + escape(text), soft_wrap=True)
            return
        columns = Table.grid()
        columns.add_column(width=3)
        columns.add_row(mark, escape(text))
        self._console.print(columns)

    @contextmanager
    def meter(self) -> Iterator[Meter]:
        """A bar on a terminal, lines elsewhere."""
        if not self._console.is_terminal:
            yield Lines(self._console)
            return
        text = TextColumn("   {task.description}", table_column=Column(min_width=49, no_wrap=True))
        percent = TextColumn("{task.percentage:>3.0f} %")
        with Progress(text, BarColumn(20), percent, console=self._console) as progress:
            yield Bar(progress, progress.add_task("", total=None))


def words(state: State) -> str:
    """A task's state in words."""
    return f"{state.status}: {state.status_message}" if state.status_message else state.status
