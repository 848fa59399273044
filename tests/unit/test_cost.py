"""The price model: prices, sizes, logs, bills, the command, and the page that is printed from it.

That it counts the calls that are really made is `tests/functional/test_cost_calls.py`'s.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import cost, cost_logs, cost_page
from benchmarks.cost_assumptions import ASSUMED
from benchmarks.cost_calls import CALLS, ENGINES, Engine
from benchmarks.cost_catalogue import UnknownEngine, states_in, work_of
from benchmarks.cost_model import WORK, Work, bill, monthly, rounded, snap_start
from benchmarks.cost_prices import FILE, prices, read
from benchmarks.polls import CLIENTS
from catalogue import server
from taskrail.telemetry import JsonLines

ROOT = Path(__file__).resolve().parents[2]
MINUTE = 60.0


def work(engine: Engine, runtime_s: float = MINUTE, **more: Any) -> Work:
    return Work("count_words", engine, runtime_s, **more)


def constant(file: str, name: str) -> Any:
    """A module's constant, without the packages that the module needs."""
    for node in ast.parse((ROOT / file).read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(node.value)
    raise AssertionError(f"{file} has no {name}")


# Prices.


def test_every_price_has_its_source_and_its_day() -> None:
    known = prices()
    assert known.region == "us-east-1" and len(known.prices) > 30
    for price in known.prices.values():
        assert price.source.startswith("https://") and price.read.year >= 2026 and price.unit
        assert price.evidence in known.evidence


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"read": "yesterday"}, "Invalid isoformat"),
        ({"evidence": "hearsay"}, "evidence is one of"),
        ({"source": "a friend"}, "https://"),
        ({"dollars": -1}, "dollars"),
        ({"per": 0}, "per"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_price_that_lacks_something_is_refused_by_name(change: dict[str, Any], told: str) -> None:
    file = json.loads(FILE.read_text())
    file["prices"]["s3_get"] |= change
    with pytest.raises(ValueError, match=rf"s3_get.*{told}"):
        read(json.dumps(file))


def test_ten_polls_through_an_http_api_are_eleven_dollars_of_requests() -> None:
    made = bill(work("step_functions", 9.0))
    assert made.polls == 10
    assert made.groups["API requests"] == pytest.approx(11.0)
    assert made.groups["transitions"] == pytest.approx(50.0)
    assert bill(work("step_functions", 9.0), "rest").groups["API requests"] == pytest.approx(38.5)


# Bills.


@pytest.mark.parametrize("engine", ENGINES)
def test_a_bill_is_the_sum_of_its_lines(engine: Engine) -> None:
    made = bill(work(engine))
    assert sum(made.groups.values()) == pytest.approx(made.per_million)
    assert made.overhead_per_million + made.groups.get(WORK, 0.0) == pytest.approx(made.per_million)
    assert all(line.dollars > 0 for line in made.entries)


def test_a_request_of_an_inline_tool_touches_no_table_and_no_engine() -> None:
    assert set(bill(work("inline", 0.05)).groups) == {"API requests", "API function", "logs", "traces", "data out"}
    slow = bill(work("inline", 1.05))
    assert slow.groups["API function"] - bill(work("inline", 0.05)).groups["API function"] == pytest.approx(
        13.33, abs=0.01
    )


def test_lambda_is_the_cheap_end() -> None:
    """The transitions are what it saves, and the second line's event; its lease costs less than the polls' probes."""
    for runtime in (10.0, MINUTE, 600.0):
        by_lease, by_machine = bill(work("lambda", runtime)), bill(work("step_functions", runtime))
        assert "transitions" not in by_lease.groups
        assert 50.0 < by_machine.per_million - by_lease.per_million < 56.0
        assert by_lease.groups[WORK] == by_machine.groups[WORK]
        others = (bill(work(engine, runtime)).overhead_per_million for engine in ("batch", "container", "workflow"))
        assert by_lease.overhead_per_million < min(others)


def test_the_clients_cadence_moves_the_bill_and_rest_costs_two_and_a_half_more_a_request() -> None:
    for engine in CALLS:
        if engine == "inline":
            continue
        patient, eager = (bill(work(engine), client=CLIENTS[name]) for name in ("taskrail", "fastmcp"))
        assert patient.polls < eager.polls and patient.per_million < eager.per_million
        requests = eager.polls + 1 + (engine == "container")
        assert bill(work(engine), "rest").per_million - eager.per_million == pytest.approx(2.5 * requests)


def test_fargate_is_paid_by_the_minute_at_least_and_by_what_was_chosen() -> None:
    def own(**more: Any) -> float:
        return bill(work("batch", **{"runtime_s": 3_600.0, **more})).work_per_million

    assert own(runtime_s=1.0) == own(runtime_s=30.0) < own(runtime_s=100.0)
    assert own(vcpu=2) > own() > own(spot=True)
    assert own(architecture="x86_64") > own()
    assert own(storage_gb=20) == own(storage_gb=None) < own(storage_gb=100)
    hours = (3_600 + ASSUMED.batch_paid_start_s) / 3_600
    assert own(vcpu=1, memory_mb=2_048) == pytest.approx(hours * 1e6 * (0.03238 + 2 * 0.00356 + 0.005))


def test_a_worker_that_works_long_pays_for_listening_and_for_its_lease() -> None:
    lines = {(line.group, line.what): line.amount for line in bill(work("lambda", 600.0)).entries}
    assert lines["table, writes", "renewals of the lease"] == 30
    assert lines["table, reads", "a worker that listens"] == 138 - 30
    assert "polls that ask the engine" not in {line.what for line in bill(work("lambda", 600.0)).entries}


def test_large_payloads_add_objects() -> None:
    large = replace(ASSUMED, large_share=1.0)
    for engine, times in (("lambda", 2), ("batch", 2), ("workflow", 1), ("container", 1)):
        more = bill(work(engine), assumed=large).groups["objects"] - bill(work(engine)).groups["objects"]  # type: ignore[arg-type]
        assert more == pytest.approx(times * 5.4)


def test_large_items_take_more_units() -> None:
    wide = replace(ASSUMED, argument_bytes=4_000, result_bytes=30_000)
    for group in ("table, writes", "table, reads"):
        assert bill(work("lambda"), assumed=wide).groups[group] > bill(work("lambda")).groups[group]
    pointed = bill(work("lambda"), assumed=replace(ASSUMED, result_bytes=5_000_000, argument_bytes=5_000_000))
    assert pointed.groups["table, writes"] < bill(work("lambda"), assumed=wide).groups["table, writes"]


def test_results_that_are_kept_longer_are_stored_longer() -> None:
    day, year = (bill(work("lambda", keep_s=days * 86_400.0)).groups["storage"] for days in (1, 365))
    assert year == pytest.approx(365 * day)
    assert "storage" not in bill(work("lambda", keep_s=None)).groups


@pytest.mark.parametrize("wrong", [{"poll_ms": -1.0}, {"sampled": 1.5}, {"cold_share": -0.1}])
def test_assumptions_that_cannot_be_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        replace(ASSUMED, **wrong)  # type: ignore[arg-type]


def test_the_sizes_of_functions_are_those_that_are_deployed() -> None:
    assert constant("infra/api_function.py", "MEMORY_MB") == ASSUMED.api_memory_mb
    tree = ast.parse((ROOT / "infra/function.py").read_text())
    defaults = {
        argument.arg: default.value
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "__init__"
        for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        if isinstance(default, ast.Constant)
    }
    assert defaults["memory_mb"] == ASSUMED.event_memory_mb


# Logs.


def test_the_access_logs_sample_has_the_fields_of_the_format() -> None:
    common = constant("infra/access_log.py", "_COMMON")
    assert [*common, "route", "authorizer"] == list(cost_logs.ACCESS)


def test_a_request_leaves_a_bounded_log() -> None:
    """All that is in the kit's own line is bounded; so is what an error adds."""
    assert 300 < cost_logs.request_line() < 700
    assert cost_logs.request_line("tools/call") < 700
    assert max(cost_logs.task_lines()) < 800
    assert cost_logs.api_request() < 1_600
    assert JsonLines.LONGEST < cost_logs.longest_line() < 256_000


def test_metrics_are_counted_from_the_lines() -> None:
    one, two, ten = (cost_logs.series(tools) for tools in (1, 2, 10))
    assert two - one == (ten - two) / 8 > 0
    assert cost_logs.series(0) == 3 * 7
    assert [entry.amount for entry in monthly(2)] == [two, 1]


def test_snapshots_are_paid_by_the_month_and_by_the_start() -> None:
    kept, restored = snap_start()
    assert kept.dollars == pytest.approx(730 * 3_600 * 0.0000015046)
    assert restored.per_million == pytest.approx(1e6 * ASSUMED.cold_share * 0.0001397998)


# The catalogue.


def test_every_tool_of_the_catalogue_has_a_price() -> None:
    engines = {name: work_of(tool, 30.0) for name, tool in server.tools.items()}
    assert engines["measure_text"].engine == "inline"
    assert engines["line_statistics"].engine == "container"
    assert (engines["line_statistics"].vcpu, engines["line_statistics"].memory_mb) == (0.25, 512)
    assert engines["run_migration"].engine == "workflow"
    assert engines["redact_documents"].engine == "step_functions"
    assert all(bill(priced).per_million > 0 for priced in engines.values())


def test_states_of_branches_and_iterations_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner: dict[str, Any] = {"States": {"One": {}, "Two": {}}}
    machine = {"States": {"A": {"Branches": [inner, inner]}, "B": {"ItemProcessor": inner}, "C": {"Iterator": inner}}}
    (tmp_path / "m.json").write_text(json.dumps(machine))
    monkeypatch.setattr("benchmarks.cost_catalogue.FUNCTIONS", tmp_path)
    assert states_in("m.json") == 3 + 8


def test_an_engine_without_a_price_is_told() -> None:
    class Mainframe:
        engine = "mainframe"

    tool = replace(server.tools["redact_documents"], runs_on=Mainframe())  # type: ignore[arg-type]
    with pytest.raises(UnknownEngine, match=r"redact_documents.*Mainframe"):
        work_of(tool, 1.0)


# The command.


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cost.main(arguments) == 0
    return capsys.readouterr().out


def test_the_command_prints_every_tool_and_what_it_takes_for_granted(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--runtime", "30", "--runtime", "redact_documents=600", "--polls-as", "strands")
    for name in server.tools:
        assert f"{name}: " in text
    assert re.search(r"redact_documents: step_functions, works 600 s, \d\d polls", text)
    # No longer than the tool's time-out, unless that is asked for.
    assert "line_statistics: container, works 30 s" in text
    assert "line_statistics: container, works 300 s" in printed(capsys, "--runtime", "5000")
    assert "Strands" in text and "poll_ms = 20" in text and "public_ipv4" in text
    assert "tasks/get (" in printed(capsys, "--lines") and "tasks/get (" not in text


def test_the_command_takes_other_assumptions(capsys: pytest.CaptureFixture[str]) -> None:
    assert "sampled = 0" in printed(capsys, "--assume", "sampled=0", "--assume", "api_memory_mb=512")
    assert "traces" not in printed(capsys, "--assume", "sampled=0")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--runtime", "nobody=3"], "has no tool 'nobody'"),
        (["--runtime", "soon"], "'soon' is no number"),
        (["--runtime", "nan"], "out of range"),
        (["--runtime", "redact_documents=9000"], "ends it after 600 s"),
        (["--assume", "weather=1"], "there is no 'weather'"),
        (["--assume", "sampled=2"], "sampled cannot be 2"),
        (["--catalogue", "nowhere"], "no module 'nowhere'"),
    ],
)
def test_the_command_says_what_is_wrong(capsys: pytest.CaptureFixture[str], arguments: list[str], told: str) -> None:
    assert cost.main(arguments) == 2
    assert told in capsys.readouterr().err


def test_the_page_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "cost.md").read_text()
    begin, end = "<!-- python -m benchmarks.cost --page -->\n", "<!-- end -->\n"
    assert page.count(begin) == page.count(end) == 1
    assert page.partition(begin)[2].partition(end)[0] == printed(capsys, "--page") == cost_page.page()


@pytest.mark.parametrize(
    ("dollars", "told"), [(0.0049, "0.00"), (99.99, "99.99"), (100.5, "101"), (12_345.4, "12,345")]
)
def test_dollars_are_rounded(dollars: float, told: str) -> None:
    assert rounded(dollars) == told
