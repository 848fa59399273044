"""Run the official MCP conformance suite against the local stack: `make conformance`.

    python -m tests.conformance.run [--url URL] [scenario ...]

Every check counts: a warning is a failure, a scenario that reports nothing did not run and is a failure, a skip is
printed as a skip with the suite's reason, and a scenario of the suite that `scenarios.py` does not know is a failure
(of a run of everything). The last line is `N passed, N failed, N skipped`; the exit code is 0 only
if nothing failed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conformance.scenarios import EARLIER, SCENARIOS, Scenario, unlisted
from tests.stack import ROOT, local_stack

SUITE = ROOT / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
NODE = Path(sys.executable).parent / "node"
CATALOGUE = "tests.conformance.catalogue"
# The suite gives each wait in a scenario 5 or 10 s and has several of them.
SCENARIO_SECONDS = 120


@dataclass
class Report:
    """What one scenario came to."""

    scenario: Scenario
    passed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    not_applicable: list[str] = field(default_factory=list)


def judge(scenario: Scenario, checks: Sequence[dict[str, Any]]) -> Report:
    """Sort a scenario's checks.

    Parameters
    ----------
    scenario
        What was run.
    checks
        The suite's `checks.json`; empty if the suite wrote none.
    """
    report = Report(scenario)
    for check in checks:
        label = check["id"] if check["name"] == check["id"] else f"{check['id']} ({check['name']})"
        why = f"{label}: {check.get('errorMessage') or check.get('description', '')}"
        match check["status"]:
            case "INFO":
                pass
            case "SKIPPED":
                report.skipped.append(why)
            case "SUCCESS" if check["id"] in scenario.not_applicable:
                report.failed.append(f"{label}: passes, but is listed as not applicable")
            case "SUCCESS":
                report.passed.append(label)
            case _ if check["id"] in scenario.not_applicable:
                report.not_applicable.append(label)
            case _:
                report.failed.append(why)
    if scenario.skipped_by_suite:
        if report.passed:
            report.failed.append(f"{scenario.name}: is listed as skipped by the suite, but it ran")
    elif not report.passed:
        report.failed.append(f"{scenario.name}: ran no check")
    return report


def run_scenario(scenario: Scenario, url: str) -> Report:
    """Let the suite run one scenario.

    Parameters
    ----------
    scenario
        What to run.
    url
        The MCP endpoint.
    """
    with tempfile.TemporaryDirectory() as directory:
        command = [str(NODE), str(SUITE), "server", "--url", url, "--scenario", scenario.name, "-o", directory]
        if scenario.spec_version:
            command += ["--spec-version", scenario.spec_version]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SCENARIO_SECONDS, check=False)
            output = done.stdout + done.stderr
        except subprocess.TimeoutExpired:
            output = f"The suite did not end within {SCENARIO_SECONDS} s."
        files = list(Path(directory).rglob("checks.json"))
        checks = json.loads(files[0].read_text()) if len(files) == 1 else []
    report = judge(scenario, checks)
    if not checks:
        report.failed.append(f"{scenario.name}: the suite said: {output.strip()[-2000:]}")
    return report


def show(report: Report) -> None:
    """Print one scenario's line, and one for each check that did not simply pass."""
    counts = [f"{len(report.passed)} passed"]
    counts += [f"{len(report.failed)} failed"] if report.failed else []
    counts += [f"{len(report.skipped)} skipped"] if report.skipped else []
    counts += [f"{len(report.not_applicable)} not applicable"] if report.not_applicable else []
    mark = "FAIL" if report.failed else "skip" if not report.passed else "ok"
    print(f"{mark:4} {report.scenario.label}: {', '.join(counts)}", flush=True)
    for kind, lines in (("failed", report.failed), ("skipped", report.skipped)):
        for line, times in Counter(lines).items():
            print(f"       {kind}: {line}{f' ({times} times)' if times > 1 else ''}", flush=True)


def run_all(scenarios: Iterable[Scenario], url: str) -> list[Report]:
    """Run scenarios, two at a time; those that measure response times run first and alone.

    Parameters
    ----------
    scenarios
        What to run.
    url
        The MCP endpoint.
    """
    chosen = list(scenarios)
    reports = []
    for scenario in chosen:
        if scenario.alone:
            reports.append(run_scenario(scenario, url))
            show(reports[-1])
    with ThreadPoolExecutor(max_workers=2) as pool:
        for report in pool.map(lambda scenario: run_scenario(scenario, url), (s for s in chosen if not s.alone)):
            reports.append(report)
            show(report)
    return reports


def suite_scenarios() -> list[str]:
    """Names of all scenarios for servers that the suite has, of any revision."""
    command = [str(NODE), str(SUITE), "list", "--server"]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    return [line.split()[1] for line in printed.splitlines() if line.startswith("  - ")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line names, or everything, and return the exit code."""
    parser = argparse.ArgumentParser(prog="make conformance ARGS=...", description="The official suite, on our stack.")
    parser.add_argument("scenario", nargs="*", help="names of scenarios; all that apply, if none is given")
    parser.add_argument("--url", help="test this endpoint instead of starting the local stack")
    options = parser.parse_args(arguments)
    every = [*SCENARIOS, *EARLIER]
    if unknown := set(options.scenario) - {scenario.name for scenario in every}:
        parser.error(f"not in tests/conformance/scenarios.py: {', '.join(sorted(unknown))}")
    chosen = [scenario for scenario in every if scenario.name in options.scenario] or every
    new = [] if options.scenario else unlisted(suite_scenarios())

    print(
        "starting the local stack with the fixture catalogue" if not options.url else f"using {options.url}", flush=True
    )
    with nullcontext(options.url) if options.url else local_stack(CATALOGUE) as url:
        reports = run_all(chosen, url)
    for name in new:
        print(f"FAIL {name}: the suite has it, and tests/conformance/scenarios.py neither runs it nor leaves it out")
    passed, failed, skipped = (
        sum(len(getattr(report, kind)) for report in reports) for kind in ("passed", "failed", "skipped")
    )
    failed += len(new)
    print(f"\n{len(reports)} scenarios; what does not apply here, and why: docs/conformance.md")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
