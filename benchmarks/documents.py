"""The tables in the docs: written between two marks, so that the text around them stays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.tables import Table, tables

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


class NoMarks(Exception):
    """A document has no place for the tables; the message says what it lacks."""


def write(document: Path, results: Mapping[str, Any]) -> None:
    """Replace what stands between the marks by the tables of a run.

    Parameters
    ----------
    document
        Markdown with the two marks.
    results
        As the results' file has them.

    Raises
    ------
    NoMarks
        One of them is missing.
    """
    text = document.read_text(encoding="utf-8")
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise NoMarks(f"{document} needs the lines {BEGIN} and {END}, in this order: the tables go between them")
    document.write_text("\n\n".join([head + begin, measured(results), end + tail]), encoding="utf-8")


def measured(results: Mapping[str, Any]) -> str:
    """What was measured, as Markdown.

    Parameters
    ----------
    results
        As the results' file has them.
    """
    made = results["made"]
    versions = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
    about = (
        f"Measured on {made['date']} by `{made['command']}`: Python {made['python']} on {made['system']}, "
        f"{made['cpus']} CPUs; {versions}. Each number is a median; ± is half the distance between the quarter points."
    )
    return "\n\n".join([about, *map(Table.markdown, tables(results))])
