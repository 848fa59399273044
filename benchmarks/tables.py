"""The results as tables: the same ones for the terminal and for the docs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from benchmarks.rivals import FLOOR, FLOOR_BOTOCORE, RIVALS, SDK, SDK_USUAL

TITLES = {rival.name: rival.title for rival in RIVALS}
FIRST = ("server/discover", "tools/call", "tasks/get")
WARM = ("tools/call", "tasks/get", "tasks/update")


@dataclass(frozen=True)
class Table:
    """One table.

    Parameters
    ----------
    title
        Above it.
    columns
        Names; the first column holds names, the others numbers or lists.
    rows
        Texts.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """For the docs."""
        lines = [f"**{self.title}**", "", _line(self.columns), _line("---" for _ in self.columns)]
        return "\n".join([*lines, *map(_line, self.rows)])


def tables(results: Mapping[str, Any]) -> Iterator[Table]:
    """The tables of all sections that were measured.

    Parameters
    ----------
    results
        By section, as the results' file has them.
    """
    if "cold" in results:
        yield from _cold(results["cold"])
    if "warm" in results:
        yield from _warm(results["warm"])
    if "calls" in results:
        yield _calls(results["calls"])
    if "scale" in results:
        yield from _scale(results["scale"])
    if "polls" in results:
        yield _polls(results["polls"])
    if results.get("bars"):
        rows = [(bar["what"], bar["bar"], bar["measured"], "yes" if bar["holds"] else "NO") for bar in results["bars"]]
        yield Table("Numbers to hold", ("what", "bar", "measured", "holds"), rows)


def of_measure(measure: Mapping[str, float], digits: int) -> str:
    """A median, and half the distance between the quarter points."""
    spread = (measure["high"] - measure["low"]) / 2
    return f"{measure['median']:.{digits}f} ±{spread:.{digits}f}"


def _cold(cold: Mapping[str, Any]) -> Iterator[Table]:
    measured = {(each["rival"], each["what"]): each for each in cold["processes"]}
    names = [name for name, what in measured if what == "load"]
    rows = []
    for name in names:
        load = measured[name, "load"]
        first = [measured.get((name, what)) for what in FIRST]
        rows.append(
            (
                TITLES.get(name, name),
                of_measure(load["cpu_s"], 3),
                *("–" if each is None else of_measure(each["cpu_s"], 3) for each in first),
                str(max(each["modules"] for each in (load, *first) if each is not None)),
                f"{max(each['peak_mb']['median'] for each in (load, *first) if each is not None):.0f}",
            )
        )
    columns = ("", "load, CPU s", *(f"first {what}, CPU s" for what in FIRST), "modules", "peak MB")
    yield Table(f"Cold start: {cold['rounds']} fresh processes of each kind", columns, rows)
    others = (FLOOR.name, FLOOR_BOTOCORE.name, SDK.name, SDK_USUAL.name)
    ratios = [
        (
            f"{TITLES.get(name, name)}, {'load' if what == 'load' else 'first ' + what}",
            *(of_measure(each["to"][other], 2) if other in each["to"] else "–" for other in others),
        )
        for (name, what), each in measured.items()
        if name in ("taskrail", "fastmcp") and each["to"]
    ]
    yield Table("Cold start: ratios", ("", *(f"to {TITLES[other]}" for other in others)), ratios)
    sizes = [
        (TITLES[name], f"{size['zipped'] / 1e6:.2f}", f"{size['unzipped'] / 1e6:.1f}")
        for name, size in cold["bundles"].items()
    ]
    yield Table("Bundle, without boto3", ("", "zipped, MB", "unzipped, MB"), sizes)


def _warm(warm: Mapping[str, Any]) -> Iterator[Table]:
    measured = {(each["rival"], each["operation"], each["outside_botocore"]): each for each in warm["requests"]}
    names = list(dict.fromkeys(name for name, _, _ in measured))
    for outside, title in ((False, "with botocore, AWS answering at once"), (True, "outside botocore alone")):
        rows = [
            (
                TITLES[name],
                *(of_measure(measured[name, what, outside]["cpu_ms"], 3) for what in WARM),
                *(_ratio(measured[name, "tasks/get", outside], other) for other in (SDK.name, SDK_USUAL.name)),
            )
            for name in names
        ]
        compared = (f"tasks/get to {TITLES[other]}" for other in (SDK.name, SDK_USUAL.name))
        yield Table(f"Warm request, CPU ms: {title}", ("", *WARM, *compared), rows)


def _ratio(each: Mapping[str, Any], other: str) -> str:
    return of_measure(each["to"][other], 2) if other in each["to"] else "–"


def _calls(calls: Mapping[str, Any]) -> Table:
    engines = list(dict.fromkeys(row["engine"] for row in calls["operations"]))
    made = {(row["operation"], row["engine"]): row for row in calls["operations"]}
    rows = [
        (operation, *(_call(made.get((operation, engine))) for engine in engines))
        for operation in dict.fromkeys(operation for operation, _ in made)
    ]
    return Table("Calls of AWS, and DynamoDB's units (read + write)", ("", *engines), rows)


def _call(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "–"
    units = f"({row['read_units']:g} + {row['write_units']:g})"
    return f"{_listed(row['calls'])} {units}".strip()


def _scale(scale: Mapping[str, Any]) -> Iterator[Table]:
    kinds = ("tools/call", "tasks/get", "run")
    rows = [
        (
            f"{level['open_tasks']:,}",
            *(f"{of_measure(level[kind]['ms'], 2)} ({level[kind]['p95_ms']:.1f})" for kind in kinds),
            f"{level['polls_per_second']:.0f}",
            ", ".join(f"{len(level[kind]['calls'])}" for kind in kinds),
            ", ".join(f"{level[kind]['read_units']:g}/{level[kind]['write_units']:g}" for kind in kinds),
        )
        for level in scale["levels"]
    ]
    columns = ("open tasks", *(f"{kind}, ms (95 %)" for kind in kinds), "polls a second", "calls", "units read/write")
    yield Table(f"Beside other tasks, {scale['operations']} operations each, on an emulator", columns, rows)
    rows = [
        (
            each["size"],
            f"{each['item_bytes']:,}",
            _listed(each["run"]["calls"]),
            f"{each['run']['write_units']:g}",
            _listed(each["tasks/get"]["calls"]),
            f"{each['tasks/get']['read_units']:g}",
            f"{each['item_write_ms']:.2f}",
            f"{each['item_read_ms']:.2f}",
            f"{each['poll_ms']:.2f}",
        )
        for each in scale["payloads"]
    ]
    columns = ("result", "item, bytes", "run", "write", "poll", "read", "item written, ms", "item read, ms", "poll, ms")
    yield Table("Results of several sizes, on an emulator", columns, rows)


def _polls(rows: Sequence[Mapping[str, Any]]) -> Table:
    made = {(row["job"], row["client"], row["interval"]): row for row in rows}
    intervals = list(dict.fromkeys(row["interval"] for row in rows))
    told = [
        (job, client, *(_poll(made[job, client, interval]) for interval in intervals))
        for job, client in dict.fromkeys((job, client) for job, client, _ in made)
    ]
    title = (
        "Polls of a task; dollars for a million such tasks, on an HTTP API; until its result is seen, mean (longest)"
    )
    return Table(title, ("job", "client", *intervals), told)


def _poll(row: Mapping[str, Any]) -> str:
    mean, worst = row["mean_delay_ms"], row["worst_delay_ms"]
    seen = "gave up" if mean is None else f"{mean / 1_000:.1f} s ({worst / 1_000:.0f} s)"
    return f"{row['polls']:,}; ${row['http_dollars']:,.2f}; {seen}"


def _listed(calls: Sequence[str]) -> str:
    """Calls in their order, the same ones in a row told once."""
    runs = [(name, len(list(those))) for name, those in groupby(calls)]
    return ", ".join(name if count == 1 else f"{count} × {name}" for name, count in runs)


def _line(cells: Any) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
