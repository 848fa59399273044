"""How much the tests tried, and how much they are to try.

A test counts what it tries under a name; the counts of all of xdist's workers are summed, and printed when the
run ends. `tests.conftest` takes the hooks of this module over.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest

LONG = os.environ.get("TASKRAIL_LONG") == "1"
"""Whether the long forms run: CI sets ``TASKRAIL_LONG=1``; ``make test`` runs the short ones."""

SAME_EVERY_TIME = "CI" in os.environ
"""Whether hypothesis plays the same examples in every run: a red CI shows a change, not a lucky find."""

_counts: Counter[str] = Counter()


def sized(short: int, long: int) -> int:
    """The number for the form that runs."""
    return long if LONG else short


def count(what: str, number: int = 1) -> None:
    """Count what was tried.

    Parameters
    ----------
    what
        Name under which it is summed and printed, such as ``inputs at the handler``.
    number
        How many.
    """
    _counts[what] += number


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of xdist hands its counts over."""
    handed_over: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if handed_over is not None:
        handed_over["counts"] = dict(_counts)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A worker of xdist has ended; one that crashed has told nothing."""
    _counts.update(getattr(node, "workeroutput", {}).get("counts", {}))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the counts."""
    form = "long" if LONG else "short"
    for what, number in sorted(_counts.items()):
        terminalreporter.write_line(f"{number} {what} ({form} form)")
