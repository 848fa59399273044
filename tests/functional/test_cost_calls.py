"""The price model counts what is really called: each row of `benchmarks.cost_calls`, and the sizes it pays for.

Counted as in `test_aws_calls`: by botocore's events under the real handlers and engines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from benchmarks import cost_calls, cost_items
from benchmarks.cost_assumptions import ASSUMED
from benchmarks.cost_calls import CALLS, LARGE_PAYLOAD
from benchmarks.cost_items import READ_UNIT, WRITE_UNIT, item_bytes, units
from benchmarks.cost_model import Work, sizes_of
from taskrail import Lambda, StepFunctions, TaskContext, TaskServer, Toolset, minutes
from taskrail.clients import client
from taskrail.testing import TABLE, StandingClock
from tests.faults import acts, work_acts
from tests.faults.world import Process, World, world
from tests.functional.deployed import Deployed, deployed

tools = Toolset()
clocks: list[StandingClock] = []


@tools.tool()
def greet(name: str) -> str:
    """Greet somebody, inside the request."""
    return f"Hello, {name}!"


@tools.task(runs_on=StepFunctions(timeout=minutes(14)))
def on_step_functions(task: TaskContext, text: str = "", works_ms: int = 0) -> str:
    """Work for a while and tell nothing."""
    return works(task, text, works_ms)


@tools.task(runs_on=Lambda(timeout=minutes(14)))
def on_lambda(task: TaskContext, text: str = "", works_ms: int = 0) -> str:
    """Work for a while and tell nothing."""
    return works(task, text, works_ms)


def works(task: TaskContext, text: str, works_ms: int) -> str:
    """Look for a cancellation twice a second, as the worker's ticker does for a job that does not."""
    for _ in range(works_ms // 500):
        clocks[-1].advance(500)
        task.check()
    return text


server = TaskServer("costs", version="1", tools=[tools])


@pytest.fixture
def here() -> Iterator[Deployed]:
    with deployed(server) as made:
        clocks[:] = [made.clock]
        yield made


def run(here: Deployed, engine: str, task_id: str) -> Callable[[], object]:
    return lambda: here.run(task_id) if engine == "step_functions" else here.deliver(task_id)


def test_an_inline_tool(here: Deployed) -> None:
    called = here.made(lambda: here.request("tools/call", "greet", name="greet", arguments={"name": "Ada"}))
    assert tuple(called) == CALLS["inline"]["call"]


@pytest.mark.parametrize("engine", ["step_functions", "lambda"])
def test_a_job_in_a_function(here: Deployed, engine: cost_calls.Engine) -> None:
    calls, tickets = CALLS[engine], list[str]()
    assert tuple(here.made(lambda: tickets.append(here.call(f"on_{engine}", text="a")))) == calls["call"]
    assert tuple(here.made(lambda: here.get(tickets[0]))) == calls["poll"]
    assert tuple(here.made(run(here, engine, tickets[0]))) == calls["run"]
    assert here.get(tickets[0])["status"] == "completed"
    assert tuple(here.made(lambda: here.get(tickets[0]))) == calls["poll"]


def test_a_poll_of_a_silent_job_asks_the_engine_that_can_be_asked(here: Deployed) -> None:
    task_id = here.call("on_step_functions", text="a")
    here.clock.advance(here.runtime.settings.probe_after_ms)
    assert tuple(here.made(lambda: here.get(task_id))) == CALLS["step_functions"]["probe"]


def test_a_poll_of_a_leased_job_asks_nobody(here: Deployed) -> None:
    assert "probe" not in CALLS["lambda"]
    task_id = here.call("on_lambda")
    assert here.runtime.rail.reports.claim_by_lease(task_id, 1, "r-1", lambda: 0) is not None
    for _ in range(4):
        here.clock.advance(10_000)
        assert tuple(here.made(lambda: here.get(task_id))) == CALLS["lambda"]["poll"]


@pytest.mark.parametrize("works_ms", [10_000, 60_000, 300_000, 800_000])
@pytest.mark.parametrize("engine", ["step_functions", "lambda"])
def test_what_a_worker_does_to_listen_and_to_keep_its_lease(here: Deployed, engine: str, works_ms: int) -> None:
    task_id = here.call(f"on_{engine}", works_ms=works_ms)
    made = here.made(run(here, engine, task_id))
    writes = made.count("UpdateItem") - 2
    assert len(made) == made.count("UpdateItem") + made.count("GetItem")
    renewals = cost_calls.renewals(works_ms) if engine == "lambda" else 0
    looks = cost_calls.looks(works_ms) - renewals
    # The real worker looks at whole ticks of half a second: now and then a tick later.
    assert writes == pytest.approx(renewals, rel=0.25, abs=1)
    assert made.count("GetItem") == pytest.approx(looks, rel=0.15, abs=1)


def test_a_large_payload_adds_one_call_each_way(here: Deployed) -> None:
    put, get = LARGE_PAYLOAD
    small = here.made(lambda: here.call("on_step_functions", text="x"))
    large = here.made(lambda: here.call("on_step_functions", text="x" * 5_000))
    assert sorted(large) == sorted([*small, put])
    task_id = here.call("on_step_functions", text="x" * 40_000)
    assert sorted(here.made(lambda: here.run(task_id))) == sorted([*CALLS["step_functions"]["run"], put, get])
    assert here.made(lambda: here.get(task_id)) == ["GetItem", get]


@pytest.mark.parametrize("engine", ["step_functions", "lambda"])
def test_the_sizes_are_those_of_real_items(here: Deployed, engine: cost_calls.Engine) -> None:
    """Within a tenth, and in the same number of units."""
    text = "a" * (ASSUMED.argument_bytes - len('{"text":"","works_ms":0}'))
    task_id = here.call(f"on_{engine}", text=text, works_ms=0)
    reckoned = sizes_of(Work(f"on_{engine}", engine, 60), ASSUMED)
    made = stored_bytes(task_id)
    run(here, engine, task_id)()
    ended = stored_bytes(task_id)
    # An anonymous caller has a short name and no claims, and this result is shorter than the model's.
    short = 64 - len("anonymous") + len('caller{"subject":"a-subject-of-36-characters-or-so-----"}')
    assert made + short == pytest.approx(reckoned.made, rel=0.1)
    assert units(made + short, WRITE_UNIT) == reckoned.create_units
    assert ended + short + ASSUMED.result_bytes - ASSUMED.argument_bytes == pytest.approx(reckoned.ended, rel=0.15)
    assert units(reckoned.ended, READ_UNIT) == reckoned.last_read_units == 1


def stored_bytes(task_id: str) -> int:
    key = {"pk": {"S": f"task#{task_id}"}}
    item: Any = client("dynamodb").get_item(TableName=TABLE, Key=key)["Item"]
    return item_bytes(item)


def test_bytes_are_counted_as_dynamodb_does() -> None:
    item = {"pk": {"S": "task#1"}, "n": {"N": "1780000000000"}, "zero": {"N": "0"}, "open": {"BOOL": True}}
    assert item_bytes(item) == (2 + 6) + (1 + 2 + 1) + (4 + 1) + (4 + 1)
    assert item_bytes({"a": {"S": "é"}}) == 3
    with pytest.raises(ValueError, match="M"):
        item_bytes({"a": {"M": {}}})
    assert [cost_items.units(size, 1_024) for size in (0, 1, 1_024, 1_025)] == [1, 1, 1, 2]


# Batch, containers and workflows, with the stand-ins of the fault table.


@pytest.fixture(scope="module")
def everywhere() -> Iterator[World]:
    with world() as made:
        yield made


@pytest.fixture
def there(everywhere: World) -> World:
    everywhere.go_back()
    return everywhere


def calls_of(there: World, act: Callable[[Process], object]) -> tuple[str, ...]:
    process = Process(there)
    act(process)
    return tuple(call.partition(":")[2] for call in process.wire.calls)


@pytest.mark.parametrize(("engine", "tool"), [("batch", "batch"), ("container", "box"), ("workflow", "flow")])
def test_the_call_and_the_polls_of_other_work(there: World, engine: cost_calls.Engine, tool: str) -> None:
    assert calls_of(there, acts.create(tool, text="a")) == CALLS[engine]["call"]
    assert calls_of(there, acts.get) == CALLS[engine]["poll"]
    if engine != "workflow":
        work_acts.job_runs(there)
        assert calls_of(there, work_acts.job_event()) == CALLS[engine]["event"]
    there.clock.advance(20_000)
    assert calls_of(there, acts.get) == CALLS[engine]["probe"]


def test_the_run_of_a_job_on_batch(there: World) -> None:
    acts.ticket("batch", text="a")(there)
    assert calls_of(there, acts.attempt(1)) == CALLS["batch"]["run"]
    assert calls_of(there, work_acts.job_event()) == CALLS["batch"]["end_event"]


def test_the_result_and_the_end_of_a_container(there: World) -> None:
    acts.ticket("box", text="a")(there)
    work_acts.job_runs(there)
    assert calls_of(there, work_acts.container("result", result=1)) == CALLS["container"]["report_result"]
    work_acts.job_left("the result", 0)(there)
    assert calls_of(there, work_acts.job_event()) == CALLS["container"]["end_event"]
    work_acts.died_unasked(there)
    assert calls_of(there, work_acts.expire) == CALLS["container"]["removed"]


def test_the_end_of_a_workflow(there: World) -> None:
    acts.ticket("flow")(there)
    work_acts.flow_over(there)
    assert calls_of(there, work_acts.flow_event()) == CALLS["workflow"]["end_event"]
    work_acts.died_unasked(there)
    assert calls_of(there, work_acts.expire) == CALLS["workflow"]["removed"]


@pytest.mark.parametrize(("engine", "tool"), [("step_functions", "plain"), ("batch", "batch")])
def test_the_removal_of_a_job_that_has_ended(there: World, engine: cost_calls.Engine, tool: str) -> None:
    acts.ticket(tool, text="a")(there)
    there.run_jobs()
    work_acts.died_unasked(there)
    assert calls_of(there, work_acts.expire) == CALLS[engine]["removed"] == CALLS["lambda"]["removed"]
