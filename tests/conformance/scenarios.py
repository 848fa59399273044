"""Which scenarios of the official suite we run, at which wire version, and what in them does not apply.

The reasons stand in `docs/conformance.md`; a test compares the two, and the runner compares all of it with what the
suite has.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatch

WIRE = "2026-07-28"
EARLIER_REVISIONS = ("2025-11-25", "2025-06-18")
"""Those that the suite can speak; it has no scenario of tools for 2025-03-26."""


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

    @property
    def label(self) -> str:
        """Its name, with the revision where it is an earlier one."""
        return f"{self.name} ({self.spec_version})" if self.spec_version in EARLIER_REVISIONS else self.name


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

_TOOLS = (
    "server-initialize",
    "ping",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
)
# The suite has these from 2025-11-25 on.
_LATER = {"json-schema-2020-12": "2025-11-25", "dns-rebinding-protection": "2025-11-25"}

EARLIER: tuple[Scenario, ...] = (
    *(Scenario(name, spec_version=revision) for revision in EARLIER_REVISIONS for name in _TOOLS),
    *(Scenario(name, spec_version=revision) for name, revision in _LATER.items()),
)
"""Scenarios of the earlier revisions that concern tools."""

LEFT_OUT = (
    "input-required-result-non-tool-request",
    "prompts-*",
    "resources-*",
    "completion-complete",
    "sep-2164-resource-not-found",
    "sep-2640-skills-*",
    "logging-set-level",
    "tools-call-with-logging",
    "tools-call-with-progress",
    "tools-call-sampling",
    "tools-call-elicitation",
    "elicitation-*",
    "server-sse-polling",
    "server-sse-multiple-streams",
    "server-session-lifecycle",
)
"""Scenarios, by name or pattern, that cannot apply to a server of tools behind stateless HTTP."""


def unlisted(names: Iterable[str]) -> list[str]:
    """Those of the suite's scenarios that are neither run nor left out for a reason.

    Parameters
    ----------
    names
        The suite's scenarios for servers.
    """
    run = {scenario.name for scenario in (*SCENARIOS, *EARLIER)}
    return [name for name in names if name not in run and not any(fnmatch(name, pattern) for pattern in LEFT_OUT)]
