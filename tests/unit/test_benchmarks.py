"""The pure parts of the benchmarks: units, medians and ratios, bars, tables, the picture, and the place in the docs."""

from __future__ import annotations

import copy
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from benchmarks import documents, picture
from benchmarks.bars import bars
from benchmarks.calls import measure as measured_calls
from benchmarks.numbers import Measure, percentile, ratio
from benchmarks.requests import OPERATIONS, request
from benchmarks.tables import Table, of_measure, tables
from benchmarks.units import Units, of_call


def measure(value: float) -> dict[str, float]:
    """A measure whose values are all the same."""
    return Measure.of([value] * 3).as_json()


def process(rival: str, what: str, cpu: float, **to: float) -> dict[str, Any]:
    """One kind of process of the cold starts."""
    return {
        "rival": rival,
        "what": what,
        "cpu_s": measure(cpu),
        "wall_s": measure(cpu),
        "peak_mb": measure(50),
        "modules": 400,
        "to": {name: measure(value) for name, value in to.items()},
    }


def level(open_tasks: int) -> dict[str, Any]:
    """What operations cost beside so many tasks."""
    kinds = {"tools/call": ["PutItem", "StartExecution"], "tasks/get": ["GetItem"], "run": ["UpdateItem"] * 2}
    told = {
        kind: {"ms": measure(2), "p95_ms": 3.0, "calls": calls, "read_units": 1, "write_units": 0}
        for kind, calls in kinds.items()
    }
    return {"open_tasks": open_tasks, **told, "polls_per_second": 500.0}


def payload(size: str, item_bytes: int, *calls: str) -> dict[str, Any]:
    """What a result of a size costs."""
    return {
        "size": size,
        "item_bytes": item_bytes,
        "run": {"calls": list(calls), "write_units": 2},
        "tasks/get": {"calls": ["GetItem"], "read_units": 1},
        "item_write_ms": 1.0,
        "item_read_ms": 1.0,
        "poll_ms": 2.0,
    }


def poll(interval: str, client: str = "strands") -> dict[str, Any]:
    """One row of the polls."""
    row = {"client": client, "interval": interval, "job": "1 h", "polls": 87, "probes": 3, "rest_dollars": 2.0}
    return {**row, "http_dollars": 1.0, "mean_delay_ms": 2_500.0, "worst_delay_ms": 5_000.0}


@pytest.fixture(scope="module")
def calls() -> dict[str, Any]:
    """The calls section, as the handlers make them."""
    return measured_calls(lambda text: None)


@pytest.fixture
def results(calls: dict[str, Any]) -> dict[str, Any]:
    """A run in which everything held."""
    warm = [
        {
            "rival": rival,
            "operation": operation,
            "outside_botocore": outside,
            "cpu_ms": measure(cpu),
            "to": {"sdk_usual": measure(cpu if outside else 1)},
        }
        for rival, cpu in (("taskrail", 0.2), ("sdk_usual", 1.0))
        for operation in ("tools/call", "tasks/get", "tasks/update")
        for outside in (False, True)
    ]
    return {
        "made": {
            "date": "2026-11-30",
            "command": "python -m benchmarks",
            "python": "3.13.1",
            "system": "Linux x86_64",
            "cpus": 2,
            "versions": {"mcp": "2.3.0"},
        },
        "cold": {
            "rounds": 3,
            "processes": [
                process("bare Python, its start", "load", 0.01),
                process("taskrail", "load", 0.2, floor=1.0, sdk_usual=0.3),
                process("taskrail", "tasks/get", 0.25, floor=1.1, sdk_usual=0.35),
                process("sdk_usual", "load", 0.7),
                process("sdk_usual", "tasks/get", 0.7),
                process("floor", "load", 0.2),
            ],
            "bundles": {"taskrail": {"zipped": 4_900_000, "unzipped": 13_000_000}},
        },
        "warm": {"rounds": 3, "answers": 10, "requests": warm},
        "calls": calls,
        "scale": {
            "operations": 10,
            "threads": 8,
            "levels": [level(10), level(10_000)],
            "payloads": [
                payload("1 KB", 1_500, "UpdateItem", "UpdateItem"),
                payload("100 KB", 600, "UpdateItem", "PutObject", "UpdateItem"),
                payload("1 MB", 600, "UpdateItem", "PutObject", "UpdateItem"),
            ],
        },
        "polls": [poll("adaptive, 5 s"), poll("fixed 5 s")],
    }


def missed(results: dict[str, Any]) -> list[str]:
    """What a run did not hold."""
    return [bar.what for bar in bars(results) if not bar.holds]


def item(size: int) -> dict[str, Any]:
    """An item of so many bytes."""
    return {"pk": {"S": "x" * (size - 2)}}


@pytest.mark.parametrize(
    ("operation", "before", "after", "units"),
    [
        ("GetItem", None, None, Units(read=1)),
        ("GetItem", 4_096, 4_096, Units(read=1)),
        ("GetItem", 4_097, 4_097, Units(read=2)),
        ("PutItem", None, 1_024, Units(write=1)),
        ("PutItem", None, 1_025, Units(write=2)),
        # The larger of the two counts: making an item small is billed as the large one that it was.
        ("UpdateItem", 3_000, 500, Units(write=3)),
        ("UpdateItem", 500, 3_000, Units(write=3)),
        # A refused write, and the deletion of nothing.
        ("PutItem", 2_048, 2_048, Units(write=2)),
        ("DeleteItem", None, None, Units(write=1)),
    ],
)
def test_units_follow_the_rules_of_dynamodb(
    operation: str, before: int | None, after: int | None, units: Units
) -> None:
    sizes = [None if size is None else item(size) for size in (before, after)]
    assert of_call(operation, *sizes) == units


def test_a_read_that_may_be_late_takes_half() -> None:
    assert of_call("GetItem", item(10), item(10), consistent=False) == Units(read=0.5)


def test_a_call_about_several_items_is_not_counted_in_silence() -> None:
    with pytest.raises(ValueError, match="Query is not counted"):
        of_call("Query", None, None)


def test_units_add_up() -> None:
    assert Units(1, 2) + Units(0.5, 3) == Units(1.5, 5)


def test_a_measure_is_the_median_and_the_quarter_points() -> None:
    assert Measure.of([5, 1, 3, 2, 4]) == Measure(median=3, low=2, high=4, count=5)
    assert Measure.of([7]) == Measure(median=7, low=7, high=7, count=1)


def test_a_ratio_is_taken_round_by_round() -> None:
    """A slow minute that both of them met leaves no trace; a ratio of medians would show it."""
    assert ratio([1, 10, 8], [2, 20, 4]).median == 0.5
    with pytest.raises(ValueError):
        ratio([1, 2], [1])


def test_a_percentile_is_one_of_the_values() -> None:
    assert percentile(list(range(1, 101)), 95) == 95
    assert percentile([3, 1, 2], 95) == 3
    assert percentile([1], 50) == 1


def test_a_measure_is_shown_with_half_of_its_spread() -> None:
    assert of_measure({"median": 0.2504, "low": 0.24, "high": 0.26}, 3) == "0.250 ±0.010"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_request_names_its_method_in_header_and_body(operation: str) -> None:
    event = request(operation, "0" * 32)
    body = json.loads(event["body"])
    assert body["method"] == event["headers"]["mcp-method"] == operation
    assert event["headers"].get("mcp-name") == body["params"].get("name", body["params"].get("taskId"))


def test_every_bar_holds_in_a_run_that_is_good(results: dict[str, Any]) -> None:
    assert len(bars(results)) == 7
    assert missed(results) == []


def test_a_section_that_was_not_measured_has_no_bar(results: dict[str, Any]) -> None:
    assert [bar.what for bar in bars({"calls": results["calls"]})] == ["AWS calls of each operation, small payloads"]
    assert bars({}) == []


def spoilt(results: dict[str, Any], *path: Any, value: Any) -> dict[str, Any]:
    """The results with one value changed."""
    changed = copy.deepcopy(results)
    inner: Any = changed
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return changed


@pytest.mark.parametrize(
    ("path", "value", "what"),
    [
        (("cold", "processes", 1, "to", "floor"), measure(1.16), "to the floor"),
        (("cold", "processes", 1, "to", "sdk_usual"), measure(0.34), "to official SDK"),
        (("cold", "bundles", "taskrail", "zipped"), 5_000_000, "bundle"),
        (("warm", "requests", 3, "to", "sdk_usual"), measure(0.26), "warm tasks/get"),
        (("scale", "levels", 1, "tasks/get", "read_units"), 2, "beside 10 and beside 10,000"),
        (("scale", "levels", 1, "run", "calls"), ["UpdateItem"] * 3, "beside 10 and beside 10,000"),
        (("scale", "payloads", 2, "item_bytes"), 1_600, "results of 100 KB and 1 MB"),
    ],
)
def test_a_bar_that_is_not_held_is_told(results: dict[str, Any], path: tuple[Any, ...], value: Any, what: str) -> None:
    (told,) = missed(spoilt(results, *path, value=value))
    assert what in told


def test_a_call_more_is_told_with_its_operation(results: dict[str, Any]) -> None:
    (place,) = (
        number
        for number, row in enumerate(results["calls"]["operations"])
        if (row["engine"], row["operation"]) == ("Batch", "tasks/get, working")
    )
    worse = spoilt(results, "calls", "operations", place, "calls", value=["GetItem", "GetItem"])
    (bar,) = (bar for bar in bars(worse) if not bar.holds)
    assert "Batch, tasks/get, working" in bar.measured


def test_ten_polls_are_in_the_units_of_a_task(calls: dict[str, Any]) -> None:
    units = {row["engine"]: row for row in calls["operations"] if row["operation"] == "one task with 10 polls"}
    assert {name: row["read_units"] for name, row in units.items()} == dict.fromkeys(units, 10)
    # Its creation, its claim, its end; on Batch the job's id as well.
    assert {name: row["write_units"] for name, row in units.items()} == {"Step Functions": 3, "Batch": 4, "Lambda": 3}


def test_every_section_has_its_table(results: dict[str, Any]) -> None:
    results["bars"] = [bar.as_json() for bar in bars(results)]
    made = list(tables(results))
    assert len(made) == 10
    assert all(len(row) == len(table.columns) for table in made for row in table.rows)
    assert ("Taskrail", "0.200 ±0.000", "–", "–", "0.250 ±0.000", "400", "50") in made[0].rows


def test_a_table_in_markdown() -> None:
    table = Table("Title", ("a", "b"), [("1", "x | y")])
    assert table.markdown().splitlines() == ["**Title**", "", "| a | b |", "| --- | --- |", "| 1 | x \\| y |"]


def test_the_picture_is_an_svg_with_everybody_in_it(results: dict[str, Any]) -> None:
    drawn = picture.draw(results)
    root = ET.fromstring(drawn)
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"Taskrail", "official SDK, as usual", "250", "700", "0.200", "4.9", "10,000 open tasks", "87"} <= set(texts)
    width = float(root.attrib["width"])
    for box in root.iter("{http://www.w3.org/2000/svg}rect"):
        assert float(box.attrib["x"]) + float(box.attrib["width"]) <= width
    # What is longer is drawn longer.
    bars_drawn = [float(box.attrib["width"]) for box in root.iter() if box.attrib.get("class") in ("ours", "other")]
    assert bars_drawn[0] == pytest.approx(bars_drawn[1] * 2 / 7, rel=0.01)


def test_the_tables_go_between_the_marks_and_nothing_else_changes(results: dict[str, Any], tmp_path: Path) -> None:
    document = tmp_path / "performance.md"
    document.write_text(f"before\n\n{documents.BEGIN}\n\nstale words\n\n{documents.END}\n\nafter\n")
    documents.write(document, results)
    once = document.read_text()
    assert once.startswith(f"before\n\n{documents.BEGIN}\n\nMeasured on 2026-11-30 by `python -m benchmarks`")
    assert once.endswith(f"\n\n{documents.END}\n\nafter\n") and "stale words" not in once
    documents.write(document, results)
    assert document.read_text() == once


def test_a_document_without_the_marks_is_left_alone(results: dict[str, Any], tmp_path: Path) -> None:
    document = tmp_path / "performance.md"
    document.write_text(f"{documents.END}{documents.BEGIN}")
    with pytest.raises(documents.NoMarks, match="in this order"):
        documents.write(document, results)
    assert document.read_text() == f"{documents.END}{documents.BEGIN}"


def test_a_short_form_allows_for_its_spread(results: dict[str, Any]) -> None:
    results["cold"]["processes"][1]["to"]["floor"] = measure(1.3)
    assert [bar.what for bar in bars(results) if not bar.holds] == [bars(results)[0].what]
    spared = bars(results, 0.2)
    assert all(bar.holds for bar in spared)
    assert "20% for the spread" in spared[0].bar
    results["cold"]["processes"][1]["to"]["floor"] = measure(1.39)
    assert not bars(results, 0.2)[0].holds
