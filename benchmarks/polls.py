"""How often real clients ask for a task, what that costs, and how late they see its result. Nothing here waits.

A client is what it waits between two polls; `tests/clients/test_cadence.py` holds each against the client itself. A
task is the kit's own: its `poll_interval` says what the answers ask for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from benchmarks.cost_requests import MILLION, poll_dollars, probe_dollars
from taskrail.settings import Settings
from taskrail.task import Task
from taskrail_client.pace import Pace

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000

JOBS: Mapping[str, int] = MappingProxyType(
    {"10 s": 10 * SECOND, "1 min": MINUTE, "10 min": 10 * MINUTE, "1 h": HOUR, "8 h": 8 * HOUR}
)
"""Milliseconds that a job takes, by the name of that."""

AROUND = 0.25
"""Delays are over jobs of each length from a quarter shorter to a quarter longer: when a job ends, chance decides."""

Wait = Callable[[int], float]
"""Milliseconds until the next poll, given the ``pollIntervalMs`` of the last answer; the creation's is the first."""

Interval = Callable[[float], int]
"""The ``pollIntervalMs`` that an answer asks for, given the age of the run in milliseconds."""


@dataclass(frozen=True)
class Client:
    """A client's way of polling.

    Parameters
    ----------
    name, about
        What it is called, and its version and settings.
    begin
        Makes what it waits, for one task.
    patience_ms
        When it gives the task up, and cancels it; None for never.
    """

    name: str
    about: str
    begin: Callable[[], Wait]
    patience_ms: int | None = None


@dataclass(frozen=True)
class Row:
    """One client, one kind of interval, one job.

    Parameters
    ----------
    client, interval, job
        Which.
    polls
        How many ``tasks/get`` it takes to the one that brings the result, or to the end of its patience.
    probes
        How many of them ask the engine, and write that down, where the job tells nothing (not on Lambda).
    http_dollars, rest_dollars
        What the polls of a million such tasks cost through either API, those writes included.
    mean_delay_ms, worst_delay_ms
        How long after its end the result is seen, over jobs about as long; None where the client had given up.
    """

    client: str
    interval: str
    job: str
    polls: int
    probes: int
    http_dollars: float
    rest_dollars: float
    mean_delay_ms: float | None
    worst_delay_ms: float | None


def fastmcp() -> Wait:
    """FastMCP 4.1.4: at once, then 20 ms, doubled each time up to what the last answer asked for.

    `fastmcp_tasks/client.py`, ``_drive_to_terminal`` and ``_next_poll_delay``.
    """
    least, backoff, first = 20.0, 20.0, True

    def wait(interval_ms: int) -> float:
        nonlocal backoff, first
        if first:
            first = False
            return 0.0
        ceiling = max(float(interval_ms), least)
        delay, backoff = min(backoff, ceiling), min(backoff * 2, ceiling)
        return delay

    return wait


def strands() -> Wait:
    """Strands Agents 1.62: what the last answer asked for, the creation's first.

    `strands/tools/mcp/mcp_client.py`, ``_complete_v2_task``.
    """
    return lambda interval_ms: max(10.0, float(interval_ms))


def taskrail_client() -> Wait:
    """The kit's own client without a stream: what the last answer asked for and 15 % more, the middle of its jitter."""
    pace = Pace(uniform=lambda least, most: (least + most) / 2)
    return lambda interval_ms: pace.between_polls(interval_ms) * 1_000


CLIENTS: Mapping[str, Client] = MappingProxyType(
    {
        "fastmcp": Client("fastmcp", "FastMCP 4.1.4", fastmcp),
        "strands": Client("strands", "Strands Agents 1.62, poll_timeout raised beyond the job", strands),
        "strands-5min": Client("strands-5min", "Strands Agents 1.62 as it comes", strands, patience_ms=5 * MINUTE),
        "taskrail": Client("taskrail", "taskrail_client, polling only", taskrail_client),
    }
)


def adaptive(poll_interval_ms: int = 5 * SECOND) -> Interval:
    """What the kit asks for: a tenth of the run's age, at least the tool's `poll_interval`, at most a minute."""
    task = Task(
        task_id="0" * 32,
        owner="",
        tool="",
        engine="",
        created_at=0,
        updated_at=0,
        ttl_ms=None,
        keep_ms=None,
        poll_ms=poll_interval_ms,
        run_started_at=0,
        run_deadline=24 * HOUR,
    )
    return lambda age_ms: task.poll_interval(int(age_ms))


def fixed(interval_ms: int) -> Interval:
    """The same at every age."""
    return lambda age_ms: interval_ms


INTERVALS: Mapping[str, Interval] = MappingProxyType(
    {"adaptive, 5 s": adaptive(), "fixed 5 s": fixed(5 * SECOND), "fixed 60 s": fixed(MINUTE)}
)


def poll_times(client: Client, interval: Interval, until_ms: float) -> list[float]:
    """The moments of a client's polls of a task that goes on: all until that moment, and the next one after it.

    Parameters
    ----------
    client, interval
        Who asks, and what the answers ask for. An answer takes no time.
    until_ms
        Milliseconds since the task was made.
    """
    wait = client.begin()
    at, times = wait(interval(0)), []
    while client.patience_ms is None or at < client.patience_ms:
        times.append(at)
        if at >= until_ms:
            break
        at += wait(interval(at))
    return times


def polls_of(client: Client, interval: Interval, job_ms: float) -> tuple[int, int]:
    """How many polls a job of that length takes, and how many of them ask the engine, where it tells nothing."""
    times = poll_times(client, interval, job_ms)
    last, probes = 0.0, 0
    for at in times:
        if at < job_ms and at - last >= Settings.probe_after_ms:
            last, probes = at, probes + 1
    return len(times), probes


def delays(client: Client, interval: Interval, job_ms: int) -> tuple[float, float] | None:
    """Mean and longest time from a job's end until it is seen, in milliseconds; None if the client gives up before.

    Over all lengths around `job_ms`, each as likely, exactly: between two polls the delay falls evenly to nothing.
    """
    shortest, longest = job_ms * (1 - AROUND), job_ms * (1 + AROUND)
    times = poll_times(client, interval, longest)
    if not times or times[-1] < longest:
        return None
    area, worst, begin = 0.0, 0.0, shortest
    for at in times[bisect_left(times, shortest) :]:
        end = min(at, longest)
        area += (end - begin) * (at - (begin + end) / 2)
        worst, begin = max(worst, at - begin), end
    return area / (longest - shortest), worst


def rows(clients: Mapping[str, Client] = CLIENTS, intervals: Mapping[str, Interval] = INTERVALS) -> tuple[Row, ...]:
    """Every client with every kind of interval and every job.

    Parameters
    ----------
    clients, intervals
        Which ones.
    """
    return tuple(
        _row(client, name, interval, job, job_ms)
        for job, job_ms in JOBS.items()
        for name, interval in intervals.items()
        for client in clients.values()
    )


def _row(client: Client, name: str, interval: Interval, job: str, job_ms: int) -> Row:
    polls, probes = polls_of(client, interval, job_ms)
    seen = delays(client, interval, job_ms)
    probing = probes * probe_dollars()
    return Row(
        client=client.name,
        interval=name,
        job=job,
        polls=polls,
        probes=probes,
        http_dollars=MILLION * (polls * poll_dollars("http") + probing),
        rest_dollars=MILLION * (polls * poll_dollars("rest") + probing),
        mean_delay_ms=None if seen is None else seen[0],
        worst_delay_ms=None if seen is None else seen[1],
    )
