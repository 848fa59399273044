"""Cold starts: from the start of a process to its first answer, everybody in turns."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks import children, fixtures
from benchmarks.bundles import Made
from benchmarks.numbers import Measure, ratio
from benchmarks.rivals import FLOOR, FLOOR_BOTOCORE, RIVALS, SDK, SDK_USUAL, Rival

LOAD = "load"
FIRST = ("server/discover", "tools/call", "tasks/get")
BARE = "bare Python, its start"


@dataclass(frozen=True)
class Case:
    """One kind of process.

    Parameters
    ----------
    rival
        Name of the rival; `BARE` for an interpreter that loads nothing.
    what
        `LOAD`, or the operation that it answers first.
    order
        What it is told.
    """

    rival: str
    what: str
    order: Mapping[str, Any]


def measure(
    bundles: Mapping[str, Made], aws: Made, rounds: int, tell: Callable[[str], None], rivals: tuple[Rival, ...] = RIVALS
) -> dict[str, Any]:
    """Start every kind of process once a round.

    Parameters
    ----------
    bundles, aws
        By the rival's name; and boto3's.
    rounds
        How many.
    tell
        Told of the progress.
    rivals
        Who takes part.
    """
    cases = list(_cases(bundles, aws, rivals))
    for case in cases:
        # The first start of each finds nothing in the disk's cache, and counts for nothing.
        _check(case, children.run("cold", case.order))
    samples: dict[tuple[str, str], list[dict[str, Any]]] = {(case.rival, case.what): [] for case in cases}
    for number in range(rounds):
        tell(f"cold starts, round {number + 1} of {rounds}")
        for case in cases:
            samples[case.rival, case.what].append(children.run("cold", case.order))
    return {
        "rounds": rounds,
        "processes": [_told(case, samples) for case in cases],
        "bundles": {name: {"zipped": made.zipped, "unzipped": made.unzipped} for name, made in bundles.items()},
    }


def _cases(bundles: Mapping[str, Made], aws: Made, rivals: tuple[Rival, ...]) -> list[Case]:
    nothing: dict[str, Any] = {"module": None, "path": [], "environment": {}, "answers": {}, "event": None}
    cases = [Case(BARE, LOAD, nothing)]
    for rival in rivals:
        common = fixtures.order(rival, bundles[rival.name], aws)
        cases.append(Case(rival.name, LOAD, {**common, "event": None, "client": True}))
        if rival.serves:
            known = fixtures.recorded(rival, bundles[rival.name], aws)
            cases += [Case(rival.name, first, {**common, **known[first]}) for first in FIRST]
    return cases


def _check(case: Case, told: Mapping[str, Any]) -> None:
    """An answer that is none would be a fast one."""
    if case.what == LOAD:
        return
    answer = told["answer"]
    result = json.loads(answer["body"]).get("result")
    if answer["statusCode"] != 200 or result is None:
        raise children.ProbeError(f"{case.rival} did not answer {case.what}: {answer}")
    wanted = {"server/discover": "supportedVersions", "tools/call": "taskId", "tasks/get": "status"}[case.what]
    if wanted not in result:
        raise children.ProbeError(f"{case.rival} answered {case.what} without {wanted}: {answer['body']}")
    # A start that fails in an unknown way hands the ticket over all the same.
    if sorted(told["calls"]) != sorted(case.order["answers"]):
        raise children.ProbeError(f"{case.rival} answered {case.what} with these calls of AWS: {told['calls']}")


def _told(case: Case, samples: Mapping[tuple[str, str], list[dict[str, Any]]]) -> dict[str, Any]:
    """The measures of one kind of process, and its ratios to the floor's and to the SDK handler's."""
    mine = samples[case.rival, case.what]
    # Loading is what differs; an interpreter's own start is the same for all, and would flatter every ratio.
    key = "load" if case.what == LOAD and case.rival != BARE else "cpu"
    values = [told[key] for told in mine]
    made: dict[str, Any] = {
        "rival": case.rival,
        "what": case.what,
        "cpu_s": Measure.of(values).as_json(),
        "wall_s": Measure.of([told["wall"] for told in mine]).as_json(),
        "peak_mb": Measure.of([told["peak_kb"] / 1_024 for told in mine]).as_json(),
        "modules": mine[-1]["modules"],
        "to": {},
    }
    if case.rival == BARE:
        return made
    # The floor answers nothing: a first answer is compared with what it takes to load it.
    made["to"] = {
        rival: ratio(values, [told[key] for told in others]).as_json()
        for rival, what in _others(case.what)
        if (others := samples.get((rival, what)))
    }
    return made


def _others(what: str) -> tuple[tuple[str, str], ...]:
    return (FLOOR.name, LOAD), (FLOOR_BOTOCORE.name, LOAD), (SDK.name, what), (SDK_USUAL.name, what)
