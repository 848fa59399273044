"""What every operation costs in AWS calls: the first row of design.md, section 9.

Counted by botocore's own events under the real handlers and the real engines, for small payloads. Where moto
cannot play the engine (jobs on Batch, states that wait), the stand-ins of the fault table do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pydantic import BaseModel

from taskrail import StepFunctions, TaskContext, TaskServer, Toolset, minutes, seconds
from taskrail.testing import StandingClock
from tests.faults import acts, work_acts
from tests.faults.world import Process, World, world
from tests.functional.deployed import Deployed, deployed

GET, PUT, UPDATE = "GetItem", "PutItem", "UpdateItem"
START, STOP, DESCRIBE = "StartExecution", "StopExecution", "DescribeExecution"
STORE, LOAD = "PutObject", "GetObject"
SUBMIT, TERMINATE, LOOK, RESUME = "SubmitJob", "TerminateJob", "DescribeJobs", "SendTaskSuccess"
INVOKE = "Invoke"

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


server = TaskServer("costs", version="1", tools=[tools], uploads=minutes(5))


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


def test_an_offer_to_upload_calls_nothing(here: Deployed) -> None:
    called = here.made(
        lambda: here.request("tools/call", "request_upload", name="request_upload", arguments={"filename": "a.csv"})
    )
    assert called == []


@pytest.fixture(scope="module")
def everywhere() -> Iterator[World]:
    with world() as made:
        yield made


@pytest.fixture
def there(everywhere: World) -> World:
    """A deployment with Batch and with workflows, as if it were new."""
    everywhere.go_back()
    return everywhere


def calls_of(there: World, act: Callable[[Process], object]) -> list[str]:
    """The AWS calls that something makes, in a process of its own."""
    process = Process(there)
    act(process)
    return [call.partition(":")[2] for call in process.wire.calls]


@pytest.mark.parametrize(
    ("tool", "calls"),
    [
        ("batch", [PUT, SUBMIT, UPDATE]),
        # Its arguments are always an object: nothing of the kit's runs in it that could read the item.
        ("box", [STORE, PUT, SUBMIT, UPDATE]),
        ("flow", [PUT, START]),
        ("function", [PUT, INVOKE]),
        ("once", [PUT, PUT, START]),
        ("once_batch", [PUT, PUT, SUBMIT, UPDATE]),
    ],
)
def test_a_call_takes_what_its_engine_needs(there: World, tool: str, calls: list[str]) -> None:
    assert calls_of(there, acts.create(tool, text="a")) == calls
    assert calls_of(there, acts.get) == [GET]


def test_a_call_that_is_made_again_finds_its_task(there: World) -> None:
    """As long as it is not known whether the work has begun, a write makes sure that it is not taken back."""
    acts.ticket("once", text="a")(there)
    again = acts.create("once", text="a")
    assert calls_of(there, again) == [PUT, GET, UPDATE, START]
    there.run_jobs()
    assert calls_of(there, again) == [PUT, GET]


@pytest.mark.parametrize(
    ("tool", "calls"),
    [
        ("batch", [GET, UPDATE, LOOK, TERMINATE, LOOK]),
        # Nobody claims its run: it is told, and found not to have begun.
        ("box", [GET, UPDATE, LOOK, TERMINATE, LOOK, UPDATE]),
        ("flow", [GET, UPDATE]),
        ("function", [GET, UPDATE]),
    ],
)
def test_a_cancel_takes_two_and_the_stop_of_its_engine(there: World, tool: str, calls: list[str]) -> None:
    acts.ticket(tool, text="a")(there)
    assert calls_of(there, acts.cancel) == calls
    assert calls_of(there, acts.cancel) == [GET]


def test_a_cancel_of_work_that_has_begun_tells_it(there: World) -> None:
    acts.ticket("batch", text="a")(there)
    acts.worker_died(there)
    assert calls_of(there, acts.cancel) == [GET, UPDATE, LOOK, TERMINATE, LOOK]
    assert calls_of(there, acts.cancel) == [GET]


def test_an_update_of_a_workflows_question_takes_two_and_passes_the_answer_on(there: World) -> None:
    acts.ticket("flow_asks")(there)
    work_acts.flow_waits(there)
    assert calls_of(there, acts.update(go="yes")) == [GET, UPDATE, RESUME, UPDATE]
    assert calls_of(there, acts.update(go="yes")) == [GET]


def test_an_update_of_a_containers_question_takes_two(there: World) -> None:
    acts.ticket("box_asks")(there)
    there.run_jobs()
    assert calls_of(there, acts.update(go="yes")) == [GET, UPDATE]


def test_a_job_on_batch_takes_its_claim_and_its_terminal_write(there: World) -> None:
    acts.ticket("batch", text="a")(there)
    assert calls_of(there, acts.attempt(1)) == [UPDATE, UPDATE]
    assert calls_of(there, acts.attempt(1)) == [UPDATE]
    assert calls_of(there, acts.get) == [GET]


def test_a_job_on_lambda_takes_its_claim_and_its_terminal_write(there: World) -> None:
    acts.ticket("function", text="a")(there)
    assert calls_of(there, acts.attempt(1)) == [UPDATE, UPDATE]
    assert calls_of(there, acts.attempt(1)) == [UPDATE]
    assert calls_of(there, acts.get) == [GET]


def test_a_lease_is_renewed_by_one_write_and_read_by_none(there: World) -> None:
    acts.ticket("function_renews")(there)
    assert calls_of(there, acts.attempt(1)) == [UPDATE, *[UPDATE] * 2, UPDATE]
    there.go_back()
    acts.ticket("function", text="a")(there)
    acts.worker_died(there)
    there.clock.advance(44_000)
    assert calls_of(there, acts.get) == [GET]
    there.clock.advance(11_000)
    assert calls_of(there, acts.get) == [GET, UPDATE]
    assert calls_of(there, acts.get) == [GET]


def test_a_poll_of_a_run_on_lambda_that_is_not_taken_up_invokes_now_and_then(there: World) -> None:
    acts.ticket("function", text="a")(there)
    there.clock.advance(20_000)
    assert calls_of(there, acts.get) == [GET, UPDATE, INVOKE]
    assert calls_of(there, acts.get) == [GET]
    there.clock.advance(19_000)
    assert calls_of(there, acts.get) == [GET]
    there.clock.advance(1_000)
    assert calls_of(there, acts.get) == [GET, UPDATE, INVOKE]


def test_an_update_of_a_question_on_lambda_takes_two_and_the_invocation(there: World) -> None:
    acts.ticket("function_asks")(there)
    there.run_jobs()
    assert calls_of(there, acts.update(go="yes")) == [GET, UPDATE, INVOKE]


def test_the_record_of_a_function_that_died_takes_two(there: World) -> None:
    acts.ticket("function", text="a")(there)
    acts.worker_died(there)
    assert calls_of(there, acts.record) == [GET, UPDATE]
    assert calls_of(there, acts.record) == [GET]


def test_reports_take_one_and_the_write(there: World) -> None:
    acts.ticket("flow")(there)
    assert calls_of(there, work_acts.state("progress", message="Half.")) == [GET, UPDATE]
    # What tells nothing new, or too soon, is no write.
    assert calls_of(there, work_acts.state("progress", message="Half.")) == [GET]
    assert calls_of(there, work_acts.state("progress", done=1, total=9)) == [GET]
    acts.ticket("box_asks")(there)
    assert calls_of(there, work_acts.container_asks) == [GET, UPDATE]
    assert calls_of(there, work_acts.container("answers")) == [GET]
    assert calls_of(there, work_acts.container("arguments")) == [GET, LOAD]
    assert calls_of(there, work_acts.container("result", result=1)) == [GET, STORE]
    assert calls_of(there, work_acts.container("result", upload=True)) == [GET]


def test_the_events_of_a_container_take_one_and_its_end_three(there: World) -> None:
    acts.ticket("box")(there)
    work_acts.job_runs(there)
    assert calls_of(there, work_acts.job_event()) == [GET]
    work_acts.job_left("the result", 0)(there)
    assert calls_of(there, work_acts.job_event()) == [GET, LOAD, UPDATE]
    assert calls_of(there, work_acts.job_event()) == [GET]


def test_the_end_of_a_workflow_takes_two(there: World) -> None:
    acts.ticket("flow")(there)
    work_acts.flow_over(there)
    assert calls_of(there, work_acts.flow_event()) == [GET, UPDATE]
    assert calls_of(there, work_acts.flow_event()) == [GET]


def test_a_removed_task_takes_a_look_its_stop_and_the_deletion_of_its_objects(there: World) -> None:
    acts.ticket("box", text="a")(there)
    work_acts.died_unasked(there)
    assert calls_of(there, work_acts.expire) == [GET, LOOK, TERMINATE, LOOK, "ListObjectsV2", "DeleteObjects"]
    there.go_back()
    acts.ticket("plain", text="a")(there)
    there.run_jobs()
    work_acts.died_unasked(there)
    assert calls_of(there, work_acts.expire) == [GET, "ListObjectsV2"]
    there.go_back()
    acts.ticket("function", text="a")(there)
    work_acts.died_unasked(there)
    assert calls_of(there, work_acts.expire) == [GET, "ListObjectsV2"]
