"""Which scenarios of the official suite we run, at which wire version, and what in them does not apply.

The reasons stand in `docs/conformance.md`; a test compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass

WIRE = "2026-07-28"


@dataclass(frozen=True)
class Scenario:
    """One scenario of the suite.

    Parameters
    ----------
    name
        Its name in the suite.
    spec_version
        Wire version to ask for. Scenarios of an extension stand on no time line: with a version they are
        skipped with exit code 0, without one they speak the newest wire. The others fall back to an older wire
        unless told.
    alone
        It measures response times, so nothing else runs beside it.
    skipped_by_suite
        The suite itself skips all of it, on every server.
    not_applicable
        Ids of checks that must fail here, since they ask for what a server of tools does not have. One that
        passes all the same is an error: the list is out of date.
    """

    name: str
    spec_version: str | None = WIRE
    alone: bool = False
    skipped_by_suite: bool = False
    not_applicable: frozenset[str] = frozenset()


def _extension(name: str, *, skipped_by_suite: bool = False) -> Scenario:
    return Scenario(name, spec_version=None, skipped_by_suite=skipped_by_suite)


SCENARIOS: tuple[Scenario, ...] = (
    Scenario("server-stateless", alone=True),
    _extension("tasks-lifecycle"),
    _extension("tasks-capability-negotiation"),
    _extension("tasks-wire-fields"),
    _extension("tasks-request-headers"),
    _extension("tasks-request-state-removal"),
    _extension("tasks-mrtr-input"),
    _extension("tasks-mrtr-composition"),
    _extension("tasks-dispatch-and-envelope"),
    _extension("tasks-required-task-error"),
    _extension("tasks-status-notifications", skipped_by_suite=True),
    Scenario("tools-list"),
    Scenario("tools-call-simple-text"),
    Scenario("tools-call-image"),
    Scenario("tools-call-audio"),
    Scenario("tools-call-embedded-resource"),
    Scenario("tools-call-mixed-content"),
    Scenario("tools-call-error"),
    Scenario("dns-rebinding-protection"),
    Scenario("http-header-validation"),
    Scenario("http-custom-header-server-validation"),
    Scenario("json-schema-2020-12"),
    Scenario(
        "caching",
        not_applicable=frozenset(
            {
                "sep-2549-prompts-list-caching-hints",
                "sep-2549-resources-list-caching-hints",
                "sep-2549-resources-templates-list-caching-hints",
            }
        ),
    ),
    Scenario("input-required-result-basic-elicitation"),
    Scenario("input-required-result-basic-sampling"),
    Scenario("input-required-result-basic-list-roots"),
    Scenario("input-required-result-request-state"),
    Scenario("input-required-result-multiple-input-requests"),
    Scenario("input-required-result-multi-round"),
    Scenario("input-required-result-missing-input-response"),
    Scenario("input-required-result-result-type"),
    Scenario("input-required-result-unsupported-methods"),
    Scenario("input-required-result-tampered-state"),
    Scenario("input-required-result-capability-check"),
    Scenario("input-required-result-ignore-extra-params"),
    Scenario("input-required-result-validate-input"),
)
