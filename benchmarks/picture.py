"""The results as a picture, for the docs: drawn by hand, legible on light and on dark ground."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from benchmarks.rivals import RIVALS

TITLES = {rival.name: rival.title for rival in RIVALS}
WIDTH, PANEL, GAP, MARGIN = 960, 456, 16, 16
_BAR, _STEP, _NAMES = 20, 30, 172

_STYLE = """
.ground { fill: #ffffff } .panel { fill: #f6f8fa } text { fill: #1f2328 } .weak { fill: #59636e }
.ours { fill: #0969da } .other { fill: #8c959f } .line { stroke: #d1d9e0 }
@media (prefers-color-scheme: dark) {
  .ground { fill: #0d1117 } .panel { fill: #161b22 } text { fill: #f0f6fc } .weak { fill: #9198a1 }
  .ours { fill: #4493f8 } .other { fill: #6e7681 } .line { stroke: #3d444d }
}
"""


@dataclass(frozen=True)
class Bars:
    """One panel.

    Parameters
    ----------
    title, unit
        What is drawn.
    rows
        A name, a value, and whether it is ours.
    digits
        After the point.
    """

    title: str
    unit: str
    rows: Sequence[tuple[str, float, bool]]
    digits: int


def draw(results: Mapping[str, Any]) -> str:
    """The picture as SVG.

    Parameters
    ----------
    results
        By section, as the results' file has them; a section that is missing is not drawn.
    """
    panels = list(_panels(results))
    parts: list[str] = []
    tops: list[float] = [MARGIN + 44, MARGIN + 44]
    for panel in panels:
        # The next one goes where there is most room, so that the two columns end together.
        column = 0 if tops[0] <= tops[1] else 1
        tall = 48 + _STEP * len(panel.rows)
        parts += _panel(panel, MARGIN + column * (PANEL + GAP), tops[column], tall)
        tops[column] += tall + GAP
    height = max(tops) + 20
    made = results.get("made", {})
    told = f"{made.get('date', '')}, Python {made.get('python', '')}, {made.get('cpus', '')} CPUs; shorter is better"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="13" role="img" '
        'aria-label="What Taskrail costs beside others">'
    )
    return "\n".join(
        [
            head,
            f"<style>{_STYLE}</style>",
            _box("ground", 0, 0, WIDTH, height),
            _text(MARGIN, MARGIN + 22, "What it costs, measured side by side", size=18, weight=600),
            *parts,
            _text(MARGIN, height - 12, told, kind="weak", size=12),
            "</svg>",
            "",
        ]
    )


def _panels(results: Mapping[str, Any]) -> Iterator[Bars]:
    if "cold" in results:
        cold = {(each["rival"], each["what"]): each for each in results["cold"]["processes"]}
        names = [name for name, what in cold if what == "load" and name in TITLES]
        load = [(TITLES[name], cold[name, "load"]["cpu_s"]["median"] * 1_000, name == "taskrail") for name in names]
        yield Bars("Cold: load the handler and its DynamoDB client", "ms CPU", load, 0)
        first = [
            (TITLES[name], cold[name, "tasks/get"]["cpu_s"]["median"] * 1_000, name == "taskrail")
            for name in names
            if (name, "tasks/get") in cold
        ]
        yield Bars("Cold: process start to the first tasks/get", "ms CPU", first, 0)
        sizes = results["cold"]["bundles"]
        rows = [(TITLES[name], size["zipped"] / 1e6, name == "taskrail") for name, size in sizes.items()]
        yield Bars("Bundle, zipped, without boto3", "MB", [row for row in rows if "floor" not in row[0]], 1)
    if "warm" in results:
        warm = results["warm"]["requests"]
        rows = [
            (TITLES[each["rival"]], each["cpu_ms"]["median"], each["rival"] == "taskrail")
            for each in warm
            if each["operation"] == "tasks/get" and each["outside_botocore"]
        ]
        yield Bars("Warm: one tasks/get, outside botocore", "ms CPU", rows, 3)
    if "scale" in results:
        rows = [
            (f"{level['open_tasks']:,} open tasks", level["tasks/get"]["ms"]["median"], True)
            for level in results["scale"]["levels"]
        ]
        yield Bars("One tasks/get beside others, on an emulator", "ms", rows, 2)
    if "polls" in results:
        rows = [
            (f"{row['job']}, {row['interval']}", float(row["polls"]), row["interval"].startswith("adaptive"))
            for row in results["polls"]
            if row["client"] == "strands" and row["job"] in ("10 min", "1 h") and "60 s" not in row["interval"]
        ]
        yield Bars("Polls of one job (Strands' cadence)", "polls", rows, 0)


def _panel(panel: Bars, left: float, top: float, height: float) -> Iterator[str]:
    yield _box("panel", left, top, PANEL, height)
    yield _text(left + 14, top + 24, f"{panel.title}, {panel.unit}", weight=600)
    room = PANEL - _NAMES - 14 - 84
    most = max(value for _, value, _ in panel.rows)
    for number, (name, value, ours) in enumerate(panel.rows):
        y = top + 40 + number * _STEP
        length = max(2.0, room * value / most) if most else 2.0
        yield _text(left + 14, y + 15, name, kind="" if ours else "weak", weight=600 if ours else 400)
        yield _box("ours" if ours else "other", left + 14 + _NAMES, y, length, _BAR)
        yield _text(left + 14 + _NAMES + length + 8, y + 15, f"{value:,.{panel.digits}f}")


def _box(kind: str, left: float, top: float, width: float, height: float) -> str:
    return f'<rect class="{kind}" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" rx="3"/>'


def _text(left: float, top: float, text: str, *, kind: str = "", size: int = 13, weight: int = 400) -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{left:.1f}" y="{top:.1f}" font-size="{size}" font-weight="{weight}">{escape(text)}</text>'
