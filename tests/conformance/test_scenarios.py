"""`docs/conformance.md` lists what is run and what is not, and nothing that the suite has is forgotten."""

from __future__ import annotations

import re

from tests.conformance.scenarios import EARLIER, LEFT_OUT, SCENARIOS, unlisted
from tests.stack import ROOT

TEXT = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")


def test_the_document_lists_every_scenario_that_is_run() -> None:
    """Under its revision, each once; the one that the suite always skips stands among the skips."""
    listed = [
        (row.split("|")[1].split()[0].rstrip(","), name)
        for row in TEXT.splitlines()
        if row.startswith("| 202")
        for name in re.findall(r"`([^`]+)` \d+", row)
    ]
    run = [(one.spec_version or "2026-07-28", one.name) for one in (*SCENARIOS, *EARLIER) if not one.skipped_by_suite]
    assert sorted(listed) == sorted(run)


def test_the_document_says_how_many() -> None:
    """The number of checks at its head is the sum of those in its table."""
    counts = [
        int(count)
        for row in TEXT.splitlines()
        if row.startswith("| 202")
        for count in re.findall(r"`[^`]+` (\d+)", row)
    ]
    assert f"{sum(counts)} checks of {len(SCENARIOS) + len(EARLIER)} scenarios" in TEXT


def test_the_document_has_a_reason_for_what_is_left_out() -> None:
    """Every name and pattern of the list stands in its table."""
    reasons = TEXT[TEXT.index("## What does not apply") :]
    assert [name for name in LEFT_OUT if f"`{name}`" not in reasons] == []


def test_a_scenario_that_nobody_knows_is_found() -> None:
    """A new version of the suite brings some."""
    names = ["tools-list", "prompts-get-simple", "server-session-lifecycle", "tools-call-new"]
    assert unlisted(names) == ["tools-call-new"]


def test_no_scenario_is_run_twice_at_one_revision() -> None:
    """A double would be counted twice."""
    labels = [scenario.label for scenario in (*SCENARIOS, *EARLIER)]
    assert len(labels) == len(set(labels))
