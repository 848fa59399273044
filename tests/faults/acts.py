"""How the world gets to where an operation begins, and what is done then."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from taskrail.clock import milliseconds
from taskrail.testing import Called
from tests.faults.faults import Fault, Killed, Lasting, Plan
from tests.faults.world import Process, World, tell_end, tell_lost

# --- how the world gets to where an operation begins


def ticket(tool: str, **arguments: Any) -> Callable[[World], None]:
    """A task, its run started and waiting for its worker."""

    def prepare(world: World) -> None:
        world.task_id = world.healthy.kit.call(tool, **arguments).task_id

    return prepare


def first_then(*preparations: Callable[[World], None]) -> Callable[[World], None]:
    """One preparation after the other."""

    def prepare(world: World) -> None:
        for preparation in preparations:
            preparation(world)

    return prepare


def jobs_run(world: World) -> None:
    """Every run that was started has happened."""
    world.run_jobs()


def later(duration: timedelta) -> Callable[[World], None]:
    """Time has passed."""
    return lambda world: world.clock.advance(milliseconds(duration))


def worker_died(world: World, *, before_call: int = 1) -> None:
    """A worker claimed the run and died before one of its calls; its engine does not know yet."""
    with suppress(Killed):
        Process(world, Plan(before_call, Fault.KILLED_BEFORE)).attempt(world.run_name())
        raise AssertionError("The worker should have died.")


def worker_died_holding(world: World) -> None:
    """A worker asked, and died while it held its run open for the answer."""
    worker_died(world, before_call=2)


def run_over(world: World) -> None:
    """The engine knows that the run has failed, and told nobody."""
    world.end_run(world.run_name(), event=False)


def cancel_asked(world: World) -> None:
    """The client has cancelled."""
    world.healthy.called(world.task_id).cancel()


def answered(world: World) -> None:
    """The question has been answered, and the next run started."""
    world.healthy.called(world.task_id).answer(go={"yes": True})


def start_got_lost(world: World) -> None:
    """The call was answered, but its run never started."""
    process = Process(world, Plan(1, Fault.TIMEOUT_BEFORE, Lasting.OUTAGE))
    world.task_id = process.kit.call("plain", text="a").task_id
    world.clock.advance(20_000)


def engine_refuses(world: World) -> None:
    """The engine has no permission, or no capacity."""
    world.queue.refuse = world.invocations.refuse = True


def start_got_lost_and_missed(world: World) -> None:
    """The same, and a first look has found nothing."""
    start_got_lost(world)
    world.healthy.called(world.task_id).poll()
    world.clock.advance(20_000)


def caller_died(world: World) -> None:
    """The process that took the answer to the pre-flight question stored the task and died."""
    with suppress(Killed):
        create_sealed(Process(world, Plan(1, Fault.KILLED_BEFORE)))
        raise AssertionError("The caller should have died.")


def first_question(world: World) -> None:
    """The call's pre-flight question has been asked; the client holds the sealed state."""
    world.state = world.healthy.kit.call("plain", text="ask first").state


# --- what is done


def create(tool: str, **arguments: Any) -> Callable[[Process], Called]:
    """`tools/call`: the client gets a ticket."""

    def act(process: Process) -> Called:
        called = process.kit.call(tool, **arguments)
        process.world.task_id = called.task_id
        return called

    return act


def create_sealed(process: Process) -> Called:
    """`tools/call` with the answer to its pre-flight question."""
    called = process.kit.call("plain", text="ask first", answers={"sure": {"yes": True}}, state=process.world.state)
    process.world.task_id = called.task_id
    return called


def create_and_wait(process: Process) -> Called:
    """`tools/call` of a client that knows no tasks: the result, or in words where it will be."""
    called = process.kit.call("plain", text="a", tasks=False)
    assert called.text == "the result" or "Not finished yet" in called.text
    process.world.task_id = max(process.world.items())
    return called


def get(process: Process) -> dict[str, Any]:
    """`tasks/get`."""
    return process.called(process.world.task_id).poll()


def update(**notes: str) -> Callable[[Process], Any]:
    """`tasks/update`: questions are accepted, each with a note."""

    def act(process: Process) -> Any:
        process.world.answered = set(notes)
        answers = {key: {"yes": True, "note": note} for key, note in notes.items()}
        return process.called(process.world.task_id).answer(**answers)

    return act


def cancel(process: Process) -> Any:
    """`tasks/cancel`."""
    return process.called(process.world.task_id).cancel()


def attempt(run: int, number: int = 1) -> Callable[[Process], str]:
    """One attempt of a run by a worker."""
    return lambda process: process.attempt(process.world.run_name(run), number)


def event(status: str) -> Callable[[Process], None]:
    """The event arrives that the first run has ended."""
    error = "States.TaskFailed" if status == "FAILED" else None
    return lambda process: tell_end(process, process.world.run_name(), status, error)


def record(process: Process) -> None:
    """The record arrives that the function of the first run has died for the last time."""
    tell_lost(process, process.world.invocations.of(process.world.run_name())[0])
