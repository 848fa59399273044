"""How the world gets to where an operation on Batch, a container, a workflow or a removed task begins, and what is
done then."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tests.faults.acts import caller_died, create_sealed, first_question, ticket
from tests.faults.faults import Fault, Killed, Lasting, Plan
from tests.faults.jobs import Job
from tests.faults.remote import QUESTION, invoke, post
from tests.faults.world import Process, World, tell_execution, tell_job, tell_removed

# --- how the world gets to where an operation begins


def trouble(plan: Plan, tool: str, **arguments: Any) -> Callable[[World], None]:
    """A task whose creation met a fault and was answered all the same."""

    def prepare(world: World) -> None:
        world.task_id = Process(world, plan).kit.call(tool, **arguments).task_id

    return prepare


def unrecorded(tool: str) -> Callable[[World], None]:
    """The job was submitted, and its id could not be recorded."""
    record = 3 if tool.startswith("box") else 2
    return trouble(Plan(record, Fault.TIMEOUT_BEFORE, Lasting.ONE_CALL), tool, text="a")


def doubled(tool: str) -> Callable[[World], None]:
    """The first answer of the submission got lost: the SDK's second one is a second job, and recorded."""
    submit = 2 if tool.startswith("box") else 1
    return trouble(Plan(submit, Fault.ERROR_AFTER), tool, text="a")


def doubled_unheard(tool: str) -> Callable[[World], None]:
    """No answer of any submission was heard: three jobs, none recorded."""
    submit = 2 if tool.startswith("box") else 1
    return trouble(Plan(submit, Fault.ERROR_AFTER, Lasting.ONE_CALL), tool, text="a")


def never_started(tool: str) -> Callable[[World], None]:
    """The call was answered, but its run never started."""
    start = 2 if tool == "once" or tool.startswith("box") else 1
    begin = trouble(Plan(start, Fault.TIMEOUT_BEFORE, Lasting.OUTAGE), tool, text="a")

    def prepare(world: World) -> None:
        begin(world)
        world.clock.advance(20_000)

    return prepare


def never_started_and_missed(tool: str) -> Callable[[World], None]:
    """The same, and a first look has found nothing."""
    begin = never_started(tool)

    def prepare(world: World) -> None:
        begin(world)
        world.healthy.called(world.task_id).poll()
        world.clock.advance(20_000)

    return prepare


def died_reserving(world: World) -> None:
    """Whoever made the same call before died between the reservation and the task."""
    with suppress(Killed):
        Process(world, Plan(1, Fault.KILLED_BEFORE)).kit.call("once", text="a")
        raise AssertionError("The caller should have died.")


def ended_in_error(world: World) -> None:
    """The task of the same call before has ended in an error."""
    ticket("once", text="a")(world)
    world.end_run(world.run_name(), event=False)
    world.clock.advance(20_000)
    assert world.healthy.called(world.task_id).poll()["status"] in ("completed", "failed")


def job_runs(world: World) -> None:
    """The first container has begun, and has told nothing yet."""
    _job(world).status = "RUNNING"


def job_ended(world: World) -> None:
    """The first container has failed; its engine told nobody."""
    _job(world).end(1)


def job_left(result: Any, exit_code: int) -> Callable[[World], None]:
    """The first container has stored a result and ended; its engine told nobody."""

    def prepare(world: World) -> None:
        job_runs(world)
        post(world.healthy, _job(world), {"do": "result", "result": result})
        _job(world).end(exit_code)

    return prepare


def job_over(world: World) -> None:
    """The first container has ended well, and stored nothing."""
    _job(world).end(0)


def flow_waits(world: World) -> None:
    """The workflow has asked, and waits in a state."""
    world.run_jobs()
    assert world.healthy.called(world.task_id).status == "input_required"


def flow_entered(world: World) -> None:
    """The state that is to ask has been entered, and has not asked yet."""
    _flow(world).enter()


def flow_retried(world: World) -> None:
    """The state that asked failed and is entered again, with a new token; the answer has come in between."""
    flow_waits(world)
    _flow(world).waits = None
    world.healthy.called(world.task_id).answer(go={"yes": True})
    _flow(world).enter()


def flow_over(world: World) -> None:
    """The workflow has returned; its engine told nobody."""
    world.run_jobs()
    assert not _flow(world).living


def flow_failed(error: str, cause: str) -> Callable[[World], None]:
    """The workflow has failed; its engine told nobody."""
    return lambda world: _flow(world).end(error=error, cause=cause)


def answer_not_passed_on(world: World) -> None:
    """Whoever recorded the answer died before it was passed on to the state."""
    flow_waits(world)
    with suppress(Killed):
        Process(world, Plan(2, Fault.KILLED_BEFORE)).called(world.task_id).answer(go={"yes": True})
        raise AssertionError("The caller should have died.")


def died_unasked(world: World) -> None:
    """The task's item is gone, and with it whatever could tell of its end."""
    world.removed = world.remove(world.task_id)


def taken_back_and_hung_again(world: World) -> None:
    """The item is gone since its start was refused; the call was repeated, and its task hung under the same id."""
    first_question(world)
    caller_died(world)
    (world.task_id,) = world.items()
    world.removed = world.remove(world.task_id)
    create_sealed(world.healthy)


# --- what is done


def container(do: str, **what: Any) -> Callable[[Process], Any]:
    """A report of the first container."""
    return lambda process: post(process, _job(process.world), {"do": do, **what})


def container_asks(process: Process) -> Any:
    """The first container asks."""
    return post(process, _job(process.world), QUESTION)


def state(do: str, **what: Any) -> Callable[[Process], Any]:
    """A report of a state of the workflow."""
    return lambda process: invoke(process, _flow(process.world), {"do": do, **what})


def state_asks(process: Process) -> Any:
    """The state that the workflow is in asks with its token."""
    return invoke(process, _flow(process.world), {**QUESTION, "taskToken": _flow(process.world).waits})


def job_event(number: int = 0) -> Callable[[Process], None]:
    """The event arrives of how a job of the first run stands, by the order of their submission."""
    return lambda process: tell_job(process, process.world.jobs.of(process.world.run_name())[number])


def flow_event(*, included: bool = True) -> Callable[[Process], None]:
    """The event arrives of how the workflow stands; a large output is left out of it."""

    def act(process: Process) -> None:
        detail = _flow(process.world).detail()
        if not included:
            del detail["output"]
            detail["outputDetails"] = {"included": False}
        tell_execution(process, detail)

    return act


def expire(process: Process) -> bool:
    """The table's stream tells that the item is gone."""
    return tell_removed(process, process.world.removed)


def _job(world: World) -> Job:
    return world.jobs.of(world.run_name())[0]


def _flow(world: World) -> Any:
    return world.executions.flows[world.run_name()]
