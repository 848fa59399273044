"""No fault in any AWS call loses a task, strands it, repeats its recorded work, or shows its insides.

A cell prepares the world, lets one process meet one fault in one AWS call of one operation, lets the world go
on without faults, and compares what came of it with what the table promises.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from taskrail.clock import days, milliseconds
from taskrail.errors import EngineUnavailable, StoreUnavailable
from taskrail.testing import RpcFailure
from tests.counts import SHARE, count
from tests.faults import catalogue
from tests.faults.faults import Killed, Lasting
from tests.faults.lambda_table import FUNCTIONS
from tests.faults.operations import Answer, Cell, End, Operation, Then, cells
from tests.faults.table import OPERATIONS
from tests.faults.work_table import WORK
from tests.faults.world import Process, Snapshot, World, tell_end, tell_job, tell_lost, tell_removed, world

OUTLASTS_A_LEASE_MS = 55_000
"""After so long, in milliseconds, a read takes the worker of a run on Lambda for gone."""
LONGEST_POLLING = 12
"""Polls after which a task counts as stranded."""


def dry_run(operation: Operation, made: World) -> tuple[str, ...]:
    """The AWS calls that an operation makes in a world without faults."""
    made.go_back()
    operation.prepare(made)
    process = Process(made)
    assert answer_of(operation, process) is operation.usual, operation.name
    return tuple(process.wire.calls)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Generate the cells: the table gives the rows, dry runs give the calls in them."""
    if "cell" not in metafunc.fixturenames:
        return
    with world() as made:
        made_cells = [
            cell
            for operation in (*OPERATIONS, *WORK, *FUNCTIONS)
            for cell in cells(operation, dry_run(operation, made), share=SHARE)
        ]
    metafunc.parametrize("cell", made_cells, ids=[cell.name for cell in made_cells])


class Prepared:
    """Worlds in which operations are about to begin: each is prepared once, and gone back to for every cell."""

    def __init__(self, made: World) -> None:
        self._world = made
        self._moments: dict[str, Snapshot] = {}

    def __call__(self, operation: Operation) -> World:
        """The world as it is when the operation begins."""
        if operation.name not in self._moments:
            self._world.go_back()
            operation.prepare(self._world)
            self._moments[operation.name] = self._world.snapshot()
        self._world.go_back(self._moments[operation.name])
        return self._world


@pytest.fixture(scope="module")
def prepared() -> Iterator[Prepared]:
    with world() as made:
        yield Prepared(made)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """botocore's pauses between its tries take no time."""
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda seconds: None))


def test_cell(cell: Cell, prepared: Prepared) -> None:
    count("cells of the fault table")
    here = prepared(cell.operation)
    process = Process(here, cell.plan)
    began, before = here.clock.now(), len(here.items())
    answer = answer_of(cell.operation, process)
    assert cell.operation.run is not None or here.clock.now() - began <= cell.operation.longest_ms
    assert process.wire.struck, "the fault never came"
    assert answer is cell.answer
    if answer is Answer.REFUSED:
        left_behind_nothing(cell, here, before)
    ends = {cell.end}
    if cell.then is Then.CANCEL and here.clock.now() - began > OUTLASTS_A_LEASE_MS:
        # Whoever cancels after such an outage may find that the worker is no more.
        ends |= {End.LOST} if here.invocations.of(here.run_name()) else set()
    here.queue.refuse = here.invocations.refuse = False
    go_on(cell, here)
    if cell.then is Then.LEAVE or cell.end is End.GONE:
        left_alone(here)
        return
    detail = polled_to_its_end(cell, here)
    assert end_of(detail) in ends
    if cell.plan.fault.kills:
        late_news(here)
    after = here.healthy.called(here.task_id).poll()
    assert (after["status"], after["lastUpdatedAt"]) == (detail["status"], detail["lastUpdatedAt"]), "the end changed"
    for kind in ("work", "step"):
        assert catalogue.done[here.task_id, kind] <= (2 if kind in cell.again else 1), f"{kind} was repeated"
    assert len(here.items()) <= cell.operation.items
    if cell.end is End.CANCELLED and cell.operation.runs == 1:
        nothing_goes_on(here)
    started = here.starts(here.task_id)
    assert len(set(started)) <= cell.operation.runs
    # Batch and Lambda take every start for a new one; Step Functions takes a name once.
    assert len(started) == len(set(started)) or here.jobs.of(started[0]) or here.invocations.of(started[0])


def answer_of(operation: Operation, process: Process) -> Answer:
    """Do the operation; what came back, checked for what must never come back."""
    try:
        told = operation.act(process)
        if told is False:
            return Answer.ERROR
        # While a worker waits for the table, another job of its run may take the run up.
        name = process.world.run_name()
        alone = len(process.world.jobs.of(name)) + len(process.world.invocations.of(name)) < 2
        assert not alone or told not in ("nothing to do", "superseded"), "a worker took its own write for another's"
    except Killed:
        return Answer.NOTHING
    except (StoreUnavailable, EngineUnavailable):
        assert operation.run is not None or operation.name.startswith(("event", "report"))
        return Answer.ERROR
    except RpcFailure as failure:
        assert failure.status == 500
        assert failure.error["code"] == -32603
        assert failure.error.get("data") in (None, {"retryable": True})
        if failure.error["message"] == "Internal error.":
            return Answer.ERROR
        assert failure.error["message"] == (
            "The work could not be started. Nothing was stored; the call may be repeated."
        )
        return Answer.REFUSED
    return Answer.USUAL


def left_behind_nothing(cell: Cell, here: World, before: int) -> None:
    """After a refusal: no run, and no ticket unless taking it back is what failed."""
    plan = cell.plan
    not_taken_back = cell.call.endswith(":DeleteItem") and plan.lasting is not Lasting.ONE_TRY
    for task_id in here.items():
        assert not here.starts(task_id) or before
    # What failed may also be the freeing of the call's reservation, behind it.
    assert before <= len(here.items()) <= before + int(not_taken_back and not plan.fault.takes_effect)


def go_on(cell: Cell, here: World) -> None:
    """What the world does after the operation."""
    operation, run = cell.operation, cell.operation.run
    match cell.then:
        case Then.REPEAT if run is not None:
            here.healthy.attempt(here.run_name(run), 2)
        case Then.REPEAT:
            assert answer_of(operation, here.healthy) is Answer.USUAL
        case Then.TOLD if run is not None:
            here.end_run(here.run_name(run), event=True)
        case Then.POLL:
            if run is not None and cell.answer is not Answer.USUAL:
                here.end_run(here.run_name(run), event=False)
            here.clock.advance(20_000)
        case Then.CANCEL:
            here.healthy.called(here.task_id).cancel()
        case Then.HANGS:
            here.clock.advance(400_000)


def polled_to_its_end(cell: Cell, here: World) -> dict[str, Any]:
    """What a client that polls, and answers what it is asked, gets to see in the end."""
    called = here.healthy.called(here.task_id)
    for _ in range(LONGEST_POLLING):
        if not (cell.then is Then.CANCEL and cell.end is End.CANCELLED):
            here.run_jobs()
        here.jobs.kill()
        detail = called.poll()
        assert "secret-detail" not in json.dumps(detail)
        if detail["status"] in ("completed", "failed", "cancelled"):
            return detail
        questions = detail.get("inputRequests", {})
        if cell.happened:
            assert not here.answered & set(questions), "an answered question came back"
        if questions:
            called.answer(**{key: {"yes": True} for key in questions})
        else:
            here.clock.advance(400_000 if cell.operation.name == "cancel claimed work" else 20_000)
    raise AssertionError(f"stranded: {detail}")


def end_of(detail: dict[str, Any]) -> End:
    match detail["status"]:
        case "cancelled":
            return End.CANCELLED
        case "failed":
            assert detail["error"]["code"] == -32603
            return End.LOST
    result = detail["result"]
    if result.get("isError"):
        return End.BROKEN
    text = result["content"][0]["text"]
    if text == "The job has finished; it left no result.":
        return End.NOTHING
    assert text in ("the result", "y" * 40_000)
    return End.RESULT


def late_news(here: World) -> None:
    """Reports and events that come when all is over."""
    here.run_jobs()
    for name in [name for name in here.queue.states if name.startswith(here.task_id)]:
        tell_end(here.healthy, name, "FAILED", "States.TaskFailed")
        here.healthy.attempt(name, 9)
    for event in [event for event in here.invocations.all if event.name.startswith(here.task_id)]:
        tell_lost(here.healthy, event)
        here.healthy.deliver(event)
    for job in [job for job in here.jobs.all.values() if job.name.startswith(here.task_id)]:
        tell_job(here.healthy, job)
        if catalogue.server.tools[job.tool].work is None:
            here.healthy.work(job, 9)


def nothing_goes_on(here: World) -> None:
    """What is called cancelled has stopped, and what was not taken up never begins."""
    done = sum(catalogue.done.values())
    here.run_jobs()
    if here.executions.living():
        # The stop of a state that waits failed: whatever is left is stopped with its ticket.
        assert tell_removed(here.healthy, here.remove(here.task_id))
    assert not here.living()
    assert sum(catalogue.done.values()) == done


def left_alone(here: World) -> None:
    """Nobody asks any more: what still runs ends by itself or with its ticket, and every ticket expires."""
    here.run_jobs()
    here.clock.advance(milliseconds(days(20)))
    here.jobs.time_out()
    here.invocations.time_out()
    here.run_jobs()
    here.time_out()
    for task_id, expires in here.items().items():
        assert expires * 1000 <= here.clock.now()
        with pytest.raises(RpcFailure) as failure:
            here.healthy.called(task_id).poll()
        assert failure.value.error["code"] == -32602
        assert tell_removed(here.healthy, here.remove(task_id))
        assert here.objects_of(task_id) == []
    if here.removed:
        assert here.objects_of(here.task_id) == []
        assert here.reservations() == 0
    assert here.queue.waiting == []
    assert not here.living()
