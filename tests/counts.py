"""How much the tests tried, and how much they are to try.

A test counts what it tries under a name; the counts of all of xdist's workers are summed, and printed when the
run ends. `tests.conftest` takes the hooks of this module over.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest

SHARE = float(os.environ.get("TASKRAIL_LONG") or 0)
"""How far on the way from the short forms to the long ones: ``make test-long`` sets ``TASKRAIL_LONG=1``, CI a part."""

LONG = SHARE > 0
"""Whether more than the short forms run."""

SAME_EVERY_TIME = "CI" in os.environ
"""Whether hypothesis plays the same examples in every run: a red CI shows a change, not a lucky find."""

_counts: Counter[str] = Counter()


def sized(short: int, long: int) -> int:
    """The number for the form that runs."""
    return round(short + (long - short) * SHARE)


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
    form = "short" if not LONG else "long" if SHARE == 1 else f"{SHARE:g} of the way to the long"
    for what, number in sorted(_counts.items()):
        terminalreporter.write_line(f"{number} {what} ({form} form)")
