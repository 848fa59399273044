"""Calls of AWS and DynamoDB's units of every operation: counted under the real handlers, not estimated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pydantic import BaseModel

from benchmarks.deployment import Deployment, deployment
from benchmarks.units import Units
from taskrail import Batch, Lambda, StepFunctions, TaskContext, TaskServer, Toolset, minutes, seconds
from taskrail.compute import Compute
from taskrail.testing import StandingClock

ENGINES = ("step_functions", "batch", "lambda")
_TITLES = {"step_functions": "Step Functions", "batch": "Batch", "lambda": "Lambda"}
_POLLS = 10


class Approval(BaseModel):
    """What is asked."""

    yes: bool


def catalogue(clock: StandingClock) -> TaskServer:
    """The same tool on every engine; its work takes time only by the clock that it is given."""
    tools = Toolset()
    runs_on: dict[str, Compute] = {
        "step_functions": StepFunctions(timeout=minutes(10)),
        "batch": Batch(vcpu=0.25, memory_mb=512, timeout=minutes(10)),
        "lambda": Lambda(timeout=minutes(10)),
    }
    for engine in ENGINES:

        @tools.task(engine, runs_on=runs_on[engine], poll_interval=seconds(5))
        def work(task: TaskContext, text: str, times: int = 1, told: int = 0, asks: bool = False) -> str:
            """Return a text several times over."""
            for number in range(told):
                clock.advance(3_000)
                task.progress(number + 1, told)
            if asks:
                task.ask("go", "Go on?", Approval)
            return text * times

    return TaskServer("bench", version="1.0.0", tools=[tools])


def measure(tell: Callable[[str], None]) -> dict[str, Any]:
    """Do every operation once on each engine.

    Parameters
    ----------
    tell
        Told of the progress.
    """
    tell("calls and units of each operation")
    clock = StandingClock()
    rows: list[dict[str, Any]] = []
    with deployment(catalogue(clock), clock) as there:
        for engine in ENGINES:
            total = Units()
            for operation, calls, units in _operations(there, engine):
                rows.append(
                    {
                        "engine": _TITLES[engine],
                        "operation": operation,
                        "calls": calls,
                        "read_units": units.read,
                        "write_units": units.write,
                    }
                )
                if operation in ("tools/call", "run: claim and end", "tasks/get, completed"):
                    total += units
                if operation == "tasks/get, working":
                    for _ in range(_POLLS - 1):
                        total += units
            rows.append(
                {
                    "engine": _TITLES[engine],
                    "operation": f"one task with {_POLLS} polls",
                    "calls": [],
                    "read_units": total.read,
                    "write_units": total.write,
                }
            )
    return {"operations": rows}


def _operations(there: Deployment, engine: str) -> Iterator[tuple[str, list[str], Units]]:
    """Each operation with its calls and units."""

    def did(name: str, act: Callable[[], object]) -> tuple[str, list[str], Units]:
        calls, units = there.ledger.made(act)
        return name, calls, units

    made: list[str] = []
    yield did("tools/call", lambda: made.append(there.call(engine, text="a")))
    yield did("tasks/get, working", lambda: there.get(made[-1]))
    yield did("run: claim and end", lambda: there.run(engine, made[-1]))
    yield did("tasks/get, completed", lambda: there.get(made[-1]))
    if engine == "step_functions":
        yield did("event of the end", lambda: there.tell(made[-1]))
    made.append(there.call(engine, text="a", told=1))
    yield did("run: claim, progress and end", lambda: there.run(engine, made[-1]))
    made.append(there.call(engine, text="a", asks=True))
    yield did("run: claim and question", lambda: there.run(engine, made[-1]))
    yield did("tasks/update", lambda: there.update(made[-1], go={"yes": True}))
    made.append(there.call(engine, text="a"))
    yield did("tasks/cancel", lambda: there.cancel(made[-1]))
    yield did("tools/call, 5 KB of arguments", lambda: made.append(there.call(engine, text="a" * 5_000)))
    for title, size in (("1 KB", 1_000), ("30 KB", 30_000), ("100 KB", 100_000), ("1 MB", 1_000_000)):
        made.append(there.call(engine, text="a" * 10, times=size // 10))
        yield did(f"run: claim and end, result of {title}", lambda: there.run(engine, made[-1]))
        yield did(f"tasks/get, result of {title}", lambda: there.get(made[-1]))
