"""`python -m infra.picture > docs/dashboard.svg`: the dashboard of the catalogue, drawn with invented numbers.

CloudWatch draws dashboards only for accounts that have one. This draws the same JSON, so that it can be looked at
before there is an account: which graphs there are, where, and what is in them.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

CELL, GAP, TOP = 50, 4, 28
_COLORS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#9467bd", "#8c564b", "#17becf", "#7f7f7f")
_POINTS = 48


def draw(body: Mapping[str, Any]) -> str:
    """A dashboard as SVG.

    Parameters
    ----------
    body
        The dashboard's JSON.
    """
    widgets = body["widgets"]
    height = max(widget["y"] + widget["height"] for widget in widgets) * CELL
    parts = [part for widget in widgets for part in _widget(widget)]
    size = f'width="{24 * CELL}" height="{height}" viewBox="0 0 {24 * CELL} {height}"'
    style = 'font-family="Helvetica, Arial, sans-serif" font-size="12"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>'
    return "\n".join([head, _box(0, 0, 24 * CELL, height, "#f2f3f3"), *parts, "</svg>", ""])


def _widget(widget: Mapping[str, Any]) -> Iterator[str]:
    left, top = widget["x"] * CELL + GAP, widget["y"] * CELL + GAP
    width, height = widget["width"] * CELL - 2 * GAP, widget["height"] * CELL - 2 * GAP
    properties = widget["properties"]
    yield _box(left, top, width, height, "#ffffff")
    if widget["type"] == "text":
        for number, line in enumerate(properties["markdown"].splitlines()):
            yield _text(left + 12, top + 30 + 24 * number, line.lstrip("# "), 20 if line.startswith("#") else 12)
        return
    yield _text(left + 12, top + 20, properties.get("title", ""), 14)
    if widget["type"] == "alarm":
        yield from _alarms(left + 12, top + 36, width - 24, properties["alarms"])
        return
    yield from _graph(left + 40, top + TOP + 8, width - 56, height - TOP - 60, properties)


def _alarms(left: float, top: float, width: float, alarms: list[str]) -> Iterator[str]:
    columns, side = 6, width / 6
    for number, alarm in enumerate(alarms):
        x, y = left + number % columns * side, top + number // columns * 24
        yield _box(x, y, side - 6, 20, "#1d8102")
        yield _text(x + 6, y + 14, alarm, 10, "#ffffff")


def _graph(left: float, top: float, width: float, height: float, properties: Mapping[str, Any]) -> Iterator[str]:
    for line in range(5):
        y = top + height * line / 4
        yield f'<line x1="{left}" y1="{y:.1f}" x2="{left + width}" y2="{y:.1f}" stroke="#e0e0e0"/>'
    legend, below = left, top + height + 12
    title = str(properties.get("title"))
    for number, (label, color) in enumerate(_series(properties)):
        values = [_invented(title, label, point) for point in range(_POINTS)]
        steps = (
            f"{left + width * at / (_POINTS - 1):.1f},{top + height * (1 - value):.1f}"
            for at, value in enumerate(values)
        )
        color = color or _COLORS[number % len(_COLORS)]
        yield f'<polyline points="{" ".join(steps)}" fill="none" stroke="{color}" stroke-width="1.5"/>'
        if legend > left and legend + 14 + 5.4 * len(label) > left + width:
            legend, below = left, below + 14
        yield _box(legend, below, 10, 10, color)
        yield _text(legend + 14, below + 9, label, 10)
        legend += 24 + 5.4 * len(label)


def _series(properties: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    for metric in properties.get("metrics", ()):
        options = metric[-1] if isinstance(metric[-1], dict) else {}
        if options.get("visible", True):
            yield options.get("label") or str(metric[1]), options.get("color")


def _invented(title: str, label: str, point: int) -> float:
    """A value from 0 to 1: of the same series always the same; what counts faults is nearly always nothing."""
    seed = sum(ord(letter) * (place + 1) for place, letter in enumerate(label))
    faults = ("error", "throttle", "failed", "5xx", "4xx", "dead", "repair", "refused", "cancelled")
    rare = title.startswith(("Runs failed", "Errors")) or any(word in label for word in faults)
    if rare:
        return 0.15 if (point * 7 + seed) % 29 == 0 else 0.0
    day = 0.5 + 0.35 * math.sin((point - 12 + seed % 5) / _POINTS * 2 * math.pi)
    return day * (0.35 + seed % 60 / 100) + 0.06 * math.sin(point * (1 + seed % 7))


def _box(left: float, top: float, width: float, height: float, color: str) -> str:
    return f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{color}" rx="2"/>'


def _text(left: float, top: float, text: str, size: int, color: str = "#16191f") -> str:
    return f'<text x="{left:.1f}" y="{top:.1f}" font-size="{size}" fill="{color}">{escape(text)}</text>'


def main() -> int:
    """Draw the dashboard of the catalogue in functions/."""
    import aws_cdk as cdk

    from catalogue import server
    from infra.app import build
    from infra.configuration import Configuration

    app = cdk.App(context={"aws:cdk:bundling-stacks": []})
    build(app, server, Configuration(auth="iam"))
    template = app.synth().stacks[0].template
    resources = template["Resources"]
    (board,) = (each for each in resources.values() if each["Type"] == "AWS::CloudWatch::Dashboard")
    names = {"AWS::Region": "eu-central-1", "AWS::Partition": "aws", "AWS::URLSuffix": "amazonaws.com"}
    sys.stdout.write(draw(json.loads(_resolved(board["Properties"]["DashboardBody"], names))))
    return 0


def _resolved(value: Any, names: Mapping[str, str]) -> str:
    """A value of the template as text; what AWS fills in at the deployment becomes a readable name."""
    if isinstance(value, str):
        return value
    kind, inner = next(iter(value.items()))
    if kind == "Fn::Join":
        return str(inner[0]).join(_resolved(part, names) for part in inner[1])
    if kind == "Ref":
        return names.get(inner, "abc123")
    if inner[1] == "ApiEndpoint":
        return "https://abc123.execute-api.eu-central-1.amazonaws.com"
    return str(inner[0]).removeprefix("WatchingAlarms")[:-8]


if __name__ == "__main__":
    sys.exit(main())
