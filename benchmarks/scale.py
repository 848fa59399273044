"""What an operation costs beside ten tasks and beside ten thousand, and with small and large payloads.

Over MiniStack, whose DynamoDB is atomic and a process of its own, through the real handlers. Its latencies are those
of a dictionary behind HTTP on this machine: they show whether something grows, not how fast DynamoDB is.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from benchmarks.cost_items import item_bytes
from benchmarks.deployment import Deployment
from benchmarks.numbers import Measure, percentile
from infra import emulator
from taskrail import StepFunctions, TaskContext, TaskServer, Toolset, minutes
from taskrail.clock import SystemClock
from taskrail.ids import RandomIds
from taskrail.store.items import from_item, to_item
from taskrail.testing import TABLE

THREADS = 8
SIZES = (("1 KB", 1_000), ("30 KB", 30_000), ("100 KB", 100_000), ("1 MB", 1_000_000))
_AT_ONCE = 25
"""Items of one BatchWriteItem (API reference)."""

tools = Toolset()


@tools.task(runs_on=StepFunctions(timeout=minutes(10)))
def work(task: TaskContext, text: str, times: int = 1) -> str:
    """Return a text several times over."""
    return text * times


server = TaskServer("scale", version="1.0.0", tools=[tools])


def measure(levels: Sequence[int], count: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """Operations beside so many open tasks, and with payloads of several sizes.

    Parameters
    ----------
    levels
        Numbers of open tasks, rising.
    count
        Operations of each kind at each level.
    tell
        Told of the progress.

    Raises
    ------
    EmulatorError
        MiniStack is not installed, or does not come up.
    """
    with emulator.running() as ministack:
        there = Deployment(server, SystemClock(), ministack.endpoint)
        there.make_stores()
        rows, stored = [], 0
        for level in levels:
            tell(f"store beside {level:,} open tasks")
            stored += _fill(there, level - stored)
            _operations(there, max(10, count // 10))
            rows.append({"open_tasks": level, **_operations(there, count), **_throughput(there, count)})
        tell("payloads of several sizes")
        payloads = [{"size": title, **_payload(there, size, max(5, count // 10))} for title, size in SIZES]
    return {"operations": count, "threads": THREADS, "levels": rows, "payloads": payloads}


def _fill(there: Deployment, count: int) -> int:
    """Store so many open tasks beside those that are there: copies of one, with ids of their own."""
    if count <= 0:
        return 0
    template, ids = from_item(there.item(there.call("work", text="a"))), RandomIds()
    items = [to_item(replace(template, task_id=ids.task_id())) for _ in range(count - 1)]
    for start in range(0, len(items), _AT_ONCE):
        puts = [{"PutRequest": {"Item": item}} for item in items[start : start + _AT_ONCE]]
        there.table.batch_write_item(RequestItems={TABLE: puts})
    return count


def _operations(there: Deployment, count: int) -> dict[str, Any]:
    """Latency, calls and units of creating, reading, and running a task; those made here are ended here."""
    made: list[str] = []
    told: dict[str, Any] = {}
    acts: tuple[tuple[str, Callable[[int], object]], ...] = (
        ("tools/call", lambda number: made.append(there.call("work", text="a"))),
        ("tasks/get", lambda number: there.get(made[number])),
        ("run", lambda number: there.run("step_functions", made[number])),
    )
    for name, act in acts:
        there.counts_units = False
        took = [_seconds(act, number) for number in range(count)]
        there.counts_units = True
        calls, units = there.ledger.made(partial(act, count))
        told[name] = {
            "ms": Measure.of([seconds * 1_000 for seconds in took]).as_json(),
            "p95_ms": percentile(took, 95) * 1_000,
            "calls": calls,
            "read_units": units.read,
            "write_units": units.write,
        }
    return told


def _throughput(there: Deployment, count: int) -> dict[str, Any]:
    """Polls a second by several threads at once."""
    there.counts_units = False
    task_ids = [there.call("work", text="a") for _ in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as pool:
        begun = time.perf_counter()
        list(pool.map(there.get, task_ids * max(1, count // THREADS)))
        took = time.perf_counter() - begun
    for task_id in task_ids:
        there.run("step_functions", task_id)
    return {"polls_per_second": len(task_ids) * max(1, count // THREADS) / took}


def _payload(there: Deployment, size: int, count: int) -> dict[str, Any]:
    """The end of a run with a result of so many bytes, and the poll that brings it: item, units and latencies."""
    writes, reads, polls = [], [], []
    for _ in range(count):
        there.counts_units = False
        task_id = there.call("work", text="a" * 10, times=size // 10)
        there.ledger.made(partial(there.run, "step_functions", task_id))
        writes.append([seconds for name, seconds in there.ledger.took if name == "UpdateItem"][-1])
        polls.append(_seconds(there.get, task_id))
        there.ledger.made(partial(there.get, task_id))
        reads.append(next(seconds for name, seconds in there.ledger.took if name == "GetItem"))
    there.counts_units = True
    task_id = there.call("work", text="a" * 10, times=size // 10)
    run_calls, run_units = there.ledger.made(partial(there.run, "step_functions", task_id))
    get_calls, get_units = there.ledger.made(partial(there.get, task_id))
    return {
        "item_bytes": item_bytes(there.item(task_id)),
        "run": {"calls": run_calls, "write_units": run_units.write},
        "tasks/get": {"calls": get_calls, "read_units": get_units.read},
        "item_write_ms": statistics.median(writes) * 1_000,
        "item_read_ms": statistics.median(reads) * 1_000,
        "poll_ms": statistics.median(polls) * 1_000,
    }


def _seconds(act: Callable[[Any], object], given: Any) -> float:
    begun = time.perf_counter()
    act(given)
    return time.perf_counter() - begun
