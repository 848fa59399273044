"""The numbers to hold, and whether a run held them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.rivals import FLOOR, SDK_USUAL, TASKRAIL

LOAD_TO_FLOOR = 1.15
LOAD_TO_SDK = 1 / 3
MOST_BYTES = 5_000_000
MOST_APART = 32
"""Bytes by which two items of one kind may differ."""
WARM_TO_SDK = 1 / 4
LOAD_RIVAL = WARM_RIVAL = SDK_USUAL
"""The handler on the official SDK that a cold start and a warm poll are held against: the one that writes a line and
counts for each request, as the kit does, and as the floor is ready to. The lean one stands beside it in every table."""

_TWO = ("GetItem", "UpdateItem")
CALLS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("Step Functions", "tools/call"): ("PutItem", "StartExecution"),
    ("Batch", "tools/call"): ("PutItem", "SubmitJob", "UpdateItem"),
    ("Lambda", "tools/call"): ("PutItem", "Invoke"),
    ("Step Functions", "tasks/update"): (*_TWO, "StartExecution"),
    ("Batch", "tasks/update"): (*_TWO, "SubmitJob", "UpdateItem"),
    ("Lambda", "tasks/update"): (*_TWO, "Invoke"),
    ("Step Functions", "tasks/cancel"): (*_TWO, "StopExecution"),
    ("Batch", "tasks/cancel"): (*_TWO, "DescribeJobs", "TerminateJob", "DescribeJobs"),
    ("Lambda", "tasks/cancel"): _TWO,
    **{
        (engine, operation): calls
        for engine in ("Step Functions", "Batch", "Lambda")
        for operation, calls in (
            ("tasks/get, working", ("GetItem",)),
            ("tasks/get, completed", ("GetItem",)),
            ("run: claim and end", ("UpdateItem", "UpdateItem")),
            ("run: claim, progress and end", ("UpdateItem", "UpdateItem", "UpdateItem")),
        )
    },
}
"""What each operation may call, with small payloads; the start and the stop are those of its engine."""


@dataclass(frozen=True)
class Bar:
    """One number to hold.

    Parameters
    ----------
    what
        What was measured.
    bar, measured
        In words.
    holds
        Whether it held in this run.
    """

    what: str
    bar: str
    measured: str
    holds: bool

    def as_json(self) -> dict[str, Any]:
        """For the results' file."""
        return asdict(self)


def bars(results: Mapping[str, Any], spare: float = 0) -> list[Bar]:
    """The bars of all sections that were measured.

    Parameters
    ----------
    results
        By section, as the results' file has them.
    spare
        By which part more what is measured on this machine may be: a short form has wide spreads.
    """
    made: list[Bar] = []
    if "cold" in results:
        made += _cold(results["cold"], spare)
    if "warm" in results:
        made.append(_warm(results["warm"], spare))
    if "calls" in results:
        made += _calls(results["calls"])
    if "scale" in results:
        made += _scale(results["scale"])
    return made


def _cold(cold: Mapping[str, Any], spare: float) -> Iterator[Bar]:
    (mine,) = (each for each in cold["processes"] if (each["rival"], each["what"]) == (TASKRAIL.name, "load"))
    for title, to, most in (
        (FLOOR.title, mine["to"][FLOOR.name], LOAD_TO_FLOOR),
        (LOAD_RIVAL.title, mine["to"][LOAD_RIVAL.name], LOAD_TO_SDK),
    ):
        what = f"CPU of loading the API's handler with its DynamoDB client, to {title}"
        yield _ratio(what, to["median"], most, spare)
    zipped = cold["bundles"][TASKRAIL.name]["zipped"]
    bar = f"< {MOST_BYTES / 1e6:.0f} MB{_spared(spare)}"
    yield Bar("bundle, zipped", bar, f"{zipped / 1e6:.2f} MB", zipped < MOST_BYTES * (1 + spare))


def _warm(warm: Mapping[str, Any], spare: float) -> Bar:
    (mine,) = (
        each
        for each in warm["requests"]
        if (each["rival"], each["operation"], each["outside_botocore"]) == (TASKRAIL.name, "tasks/get", True)
    )
    to = mine["to"][WARM_RIVAL.name]["median"]
    what = f"CPU of a warm tasks/get outside botocore, to {WARM_RIVAL.title}"
    return _ratio(what, to, WARM_TO_SDK, spare)


def _ratio(what: str, measured: float, most: float, spare: float) -> Bar:
    return Bar(what, f"≤ {most:.3g} ×{_spared(spare)}", f"{measured:.3f} ×", measured <= most * (1 + spare))


def _spared(spare: float) -> str:
    return f" and {spare:.0%} for the spread" if spare else ""


def _calls(calls: Mapping[str, Any]) -> Iterator[Bar]:
    made = {(row["engine"], row["operation"]): tuple(row["calls"]) for row in calls["operations"]}
    other = [f"{engine}, {what}" for (engine, what), wanted in CALLS.items() if made.get((engine, what)) != wanted]
    measured = f"{len(CALLS)} of {len(CALLS)} as told" if not other else "others: " + "; ".join(other)
    yield Bar("AWS calls of each operation, small payloads", "as design and docs tell", measured, not other)


def _scale(scale: Mapping[str, Any]) -> Iterator[Bar]:
    levels = scale["levels"]
    kinds = ("tools/call", "tasks/get", "run")
    costs = [
        [(level[kind]["calls"], level[kind]["read_units"], level[kind]["write_units"]) for kind in kinds]
        for level in levels
    ]
    same = all(cost == costs[0] for cost in costs)
    most = max(level["open_tasks"] for level in levels)
    what = f"calls and units of an operation beside {levels[0]['open_tasks']} and beside {most:,} open tasks"
    yield Bar(what, "the same", "the same" if same else "they differ", same)
    large = [payload for payload in scale["payloads"] if payload["run"]["calls"].count("PutObject")]
    sizes = [each["item_bytes"] for each in large]
    # A number's size is that of its digits without zeros at its end, and moments have some or none.
    even = len({each["run"]["write_units"] for each in large}) <= 1 and max(sizes) - min(sizes) <= MOST_APART
    what = "item and units with results of " + " and ".join(each["size"] for each in large)
    yield Bar(what, "the same", "the same" if even else "they differ", even)
