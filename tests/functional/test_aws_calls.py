"""What every operation costs in AWS calls: the first row of design.md, section 9, for Step Functions.

Counted by botocore's own events under the real handlers and the real engine, for small payloads.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import BaseModel

from taskrail import StepFunctions, TaskContext, TaskServer, Toolset, minutes, seconds
from taskrail.testing import StandingClock
from tests.functional.deployed import Deployed, deployed

GET, PUT, UPDATE = "GetItem", "PutItem", "UpdateItem"
START, STOP, DESCRIBE = "StartExecution", "StopExecution", "DescribeExecution"
STORE, LOAD = "PutObject", "GetObject"

tools = Toolset()
clocks: list[StandingClock] = []


class Approval(BaseModel):
    yes: bool


@tools.tool()
def greet(name: str) -> str:
    """Greet somebody, inside the request."""
    return f"Hello, {name}!"


@tools.task(runs_on=StepFunctions(timeout=minutes(5)))
def work(task: TaskContext, text: str, times: int = 1) -> str:
    """Return a text several times over."""
    return text * times


@tools.task(runs_on=StepFunctions(timeout=minutes(5)), poll_interval=seconds(5))
def tells(task: TaskContext, pages: int, pace_ms: int) -> str:
    """Tell the progress after every page."""
    for page in range(pages):
        clocks[-1].advance(pace_ms)
        task.progress(page + 1, pages)
    return "told"


@tools.task(runs_on=StepFunctions(timeout=minutes(5)))
def asks(task: TaskContext) -> str:
    """Ask once."""
    return "yes" if task.ask("go", "Go on?", Approval).accepted else "no"


server = TaskServer("costs", version="1", tools=[tools])


@pytest.fixture
def here() -> Iterator[Deployed]:
    with deployed(server) as made:
        clocks[:] = [made.clock]
        yield made


def test_discovery_and_the_list_of_tools_call_nothing(here: Deployed) -> None:
    assert here.made(lambda: here.request("server/discover")) == []
    assert here.made(lambda: here.request("tools/list")) == []


def test_an_inline_tool_and_a_call_that_cannot_be_served_call_nothing(here: Deployed) -> None:
    assert here.made(lambda: here.request("tools/call", "greet", name="greet", arguments={"name": "Ada"})) == []
    assert here.made(lambda: here.request("tools/call", "work", name="work", arguments={})) == []


def test_a_call_of_a_task_tool_takes_two(here: Deployed) -> None:
    assert here.made(lambda: here.call("work", text="a")) == [PUT, START]


def test_a_poll_takes_one_whatever_the_task_is(here: Deployed) -> None:
    task_id = here.call("asks")
    assert here.made(lambda: here.get(task_id)) == [GET]
    here.run(task_id)
    assert here.get(task_id)["status"] == "input_required"
    assert here.made(lambda: here.get(task_id)) == [GET]
    here.update(task_id, go={"yes": True})
    here.run(task_id, 2)
    assert here.get(task_id)["status"] == "completed"
    assert here.made(lambda: here.get(task_id)) == [GET]


def test_an_update_takes_two_and_the_start(here: Deployed) -> None:
    task_id = here.call("asks")
    here.run(task_id)
    assert here.made(lambda: here.update(task_id, unknown={})) == [GET]
    assert here.made(lambda: here.update(task_id, go={"yes": True})) == [GET, UPDATE, START]
    assert here.made(lambda: here.update(task_id, go={"yes": True})) == [GET]


def test_a_cancel_takes_two_and_the_stop(here: Deployed) -> None:
    task_id = here.call("work", text="a")
    assert here.made(lambda: here.cancel(task_id)) == [GET, UPDATE, STOP]
    assert here.made(lambda: here.cancel(task_id)) == [GET]


def test_a_cancel_of_an_open_question_has_nothing_to_stop(here: Deployed) -> None:
    task_id = here.call("asks")
    here.run(task_id)
    assert here.made(lambda: here.cancel(task_id)) == [GET, UPDATE]


def test_a_run_takes_its_claim_and_its_terminal_write(here: Deployed) -> None:
    task_id = here.call("work", text="a")
    assert here.made(lambda: here.run(task_id)) == [UPDATE, UPDATE]
    assert here.get(task_id)["status"] == "completed"


def test_a_run_that_is_not_wanted_takes_its_claim(here: Deployed) -> None:
    task_id = here.call("work", text="a")
    here.cancel(task_id)
    assert here.made(lambda: here.run(task_id)) == [UPDATE]


def test_a_question_takes_one(here: Deployed) -> None:
    task_id = here.call("asks")
    assert here.made(lambda: here.run(task_id)) == [UPDATE, UPDATE]
    here.update(task_id, go={"yes": True})
    assert here.made(lambda: here.run(task_id, 2)) == [UPDATE, UPDATE]


def test_progress_takes_one_when_it_is_due(here: Deployed) -> None:
    task_id = here.call("tells", pages=3, pace_ms=2_500)
    assert here.made(lambda: here.run(task_id)) == [UPDATE, *[UPDATE] * 3, UPDATE]


def test_progress_that_is_told_too_often_waits_until_half_the_poll_interval_is_over(here: Deployed) -> None:
    task_id = here.call("tells", pages=100, pace_ms=50)
    calls = here.made(lambda: here.run(task_id))
    assert calls.count(UPDATE) == 1 + 2 + 1
    # Meanwhile it listens for a cancellation, every two seconds of the five.
    assert len(calls) - calls.count(UPDATE) == calls.count(GET) <= 2


def test_the_event_of_a_run_that_has_reported_takes_one(here: Deployed) -> None:
    task_id = here.call("work", text="a")
    here.run(task_id)
    event = {
        "detail-type": "Step Functions Execution Status Change",
        "detail": {"name": f"{task_id}-1", "status": "SUCCEEDED"},
    }
    assert here.made(lambda: here.tell(event)) == [GET]


def test_a_poll_of_a_silent_task_asks_the_engine_now_and_then(here: Deployed) -> None:
    task_id = here.call("work", text="a")
    here.clock.advance(20_000)
    assert here.made(lambda: here.get(task_id)) == [GET, DESCRIBE, UPDATE]
    assert here.made(lambda: here.get(task_id)) == [GET]


def test_large_payloads_take_one_more_each_way(here: Deployed) -> None:
    assert here.made(lambda: here.call("work", text="x" * 5_000)) == [STORE, PUT, START]
    task_id = here.call("work", text="x", times=50_000)
    assert here.made(lambda: here.run(task_id)) == [UPDATE, STORE, UPDATE]
    assert here.made(lambda: here.get(task_id)) == [GET, LOAD]
