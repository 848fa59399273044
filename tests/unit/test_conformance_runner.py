"""The judge of the conformance run cannot be fooled by silence."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.run import judge
from tests.conformance.scenarios import SCENARIOS, Scenario
from tests.stack import ROOT


def check(name: str, status: str) -> dict[str, Any]:
    """A check as the suite reports it."""
    return {"id": name, "name": name, "status": status, "description": "what it looks at"}


def test_counts_a_pass_a_failure_and_a_skip() -> None:
    """Each goes where it belongs, and information counts as nothing."""
    report = judge(
        Scenario("s"),
        [check("a", "SUCCESS"), check("b", "FAILURE"), check("c", "SKIPPED"), check("d", "INFO")],
    )
    assert (len(report.passed), len(report.failed), len(report.skipped)) == (1, 1, 1)


def test_a_warning_is_a_failure() -> None:
    """What the suite merely recommends, we do."""
    assert judge(Scenario("s"), [check("a", "SUCCESS"), check("b", "WARNING")]).failed


@pytest.mark.parametrize("checks", [[], [check("a", "SKIPPED")], [check("a", "INFO")]])
def test_a_scenario_that_ran_no_check_failed(checks: list[dict[str, Any]]) -> None:
    """The suite's exit code is 0 for a scenario that it left out."""
    assert judge(Scenario("s"), checks).failed


def test_a_scenario_that_the_suite_always_skips_is_a_skip() -> None:
    """It is neither passed nor failed; once it runs, the table must say so."""
    scenario = Scenario("s", skipped_by_suite=True)
    assert not judge(scenario, [check("a", "SKIPPED")]).failed
    assert judge(scenario, [check("a", "SUCCESS")]).failed


def test_what_does_not_apply_must_fail() -> None:
    """A stale entry in the list is a failure."""
    scenario = Scenario("s", not_applicable=frozenset({"a"}))
    assert not judge(scenario, [check("a", "FAILURE"), check("b", "SUCCESS")]).failed
    assert judge(scenario, [check("a", "SUCCESS"), check("b", "SUCCESS")]).failed


def test_the_reasons_are_written_down() -> None:
    """Every check that is not applicable, and every scenario that is skipped, stands in the document."""
    text = (ROOT / "docs" / "conformance.md").read_text()
    for scenario in SCENARIOS:
        assert all(f"`{scenario.name}`: `{name}`" in text for name in scenario.not_applicable)
        assert not scenario.skipped_by_suite or f"`{scenario.name}`" in text


def test_no_scenario_is_listed_twice() -> None:
    """A double would be counted twice."""
    names = [scenario.name for scenario in SCENARIOS]
    assert len(names) == len(set(names)) == 36
