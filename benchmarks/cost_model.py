"""What a task costs, line by line: from the calls of `cost_calls`, the sizes of `cost_items` and the prices."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks import cost_calls, cost_items, cost_logs
from benchmarks.cost_assumptions import ASSUMED, Assumptions
from benchmarks.cost_calls import CALLS, Engine
from benchmarks.cost_items import Sizes
from benchmarks.cost_prices import PriceList, prices
from benchmarks.cost_requests import GB, Api, Entry, entry, lambda_seconds, request_entries
from benchmarks.polls import CLIENTS, Client, adaptive, polls_of

FARGATE_LEAST_S = 60
"""Seconds of a Fargate task that are paid at least (Fargate pricing, "Duration")."""

FARGATE_FREE_GB = 20
HOURS_A_MONTH = 730
SECONDS_A_MONTH = HOURS_A_MONTH * 3_600

WORK = "the work itself"
"""The lines of a job's own machine: the rest is what the kit adds."""

_RUN_IDS = {
    "step_functions": "arn:aws:states:us-east-1:123456789012:execution:TaskrailRunsMachine0A1B2C3D-4E5F6a7b8c9d:"
    + "0" * 34,
    "lambda": "79b4f56e-95b1-4643-9700-2807f4e68189",
    "batch": "79b4f56e-95b1-4643-9700-2807f4e68189",
}
_ON_BATCH = ("batch", "container")
_ON_A_FUNCTION = ("lambda", "step_functions")


@dataclass(frozen=True)
class Work:
    """A tool as far as its price goes.

    Parameters
    ----------
    name, engine
        Its name, and what runs it.
    runtime_s
        How long one task of it works, in seconds.
    poll_interval_ms, keep_s
        As declared; None keeps results for ever.
    memory_mb, vcpu, architecture, spot, storage_gb
        Its machine: of a function the memory, of a container all.
    states
        States of a workflow, each passed once.
    """

    name: str
    engine: Engine
    runtime_s: float
    poll_interval_ms: int = 5_000
    keep_s: float | None = 86_400
    memory_mb: int = 512
    vcpu: float = 1
    architecture: str = "arm64"
    spot: bool = False
    storage_gb: int | None = None
    states: int = 1


@dataclass(frozen=True)
class Bill:
    """What one task of a tool costs.

    Parameters
    ----------
    work, api, client
        Which tool, through which kind of API, polled by whom.
    polls
        How many ``tasks/get`` it takes.
    entries
        The lines, those that are nothing left out.
    """

    work: Work
    api: Api
    client: str
    polls: int
    entries: tuple[Entry, ...]

    @property
    def per_million(self) -> float:
        """Dollars for a million tasks."""
        return sum(line.per_million for line in self.entries)

    @property
    def work_per_million(self) -> float:
        """What of that is the job's own machine."""
        return sum(line.per_million for line in self.entries if line.group == WORK)

    @property
    def groups(self) -> dict[str, float]:
        """Dollars for a million tasks by what the lines belong to, in the order of the lines."""
        sums: dict[str, float] = {}
        for line in self.entries:
            sums[line.group] = sums.get(line.group, 0) + line.per_million
        return sums

    @property
    def overhead_per_million(self) -> float:
        """What of that is everything else."""
        return self.per_million - self.work_per_million


def bill(
    work: Work,
    api: Api = "http",
    client: Client = CLIENTS["fastmcp"],
    assumed: Assumptions = ASSUMED,
    list_: PriceList | None = None,
) -> Bill:
    """The bill of a task that ends well, is asked nothing, and tells no progress.

    Parameters
    ----------
    work, api, client
        Which tool, through which kind of API, polled by whom.
    assumed, list_
        What is taken for granted, and the prices; those of `prices.json` when left out.
    """
    known = list_ or prices()
    if work.engine == "inline":
        ms = assumed.poll_ms + work.runtime_s * 1_000
        lines = request_entries(api, 1, ms, "tools/call", assumed, known)
        return Bill(work, api, client.name, 0, _paid(lines))
    usage = _Usage(work, client, assumed)
    lines = [
        *request_entries(api, 1, assumed.call_ms, "tools/call", assumed, known),
        *request_entries(api, usage.polls, assumed.poll_ms, "tasks/get", assumed, known),
        *_reports(work, api, assumed, known),
        *_table(work, usage, assumed, known),
        *_engine(work, assumed, known),
        *_small_functions(work, assumed, known),
        *_objects(work, assumed, known),
        *_task_logs(work, assumed, known),
    ]
    return Bill(work, api, client.name, usage.polls, _paid(lines))


def _paid(lines: Iterable[Entry]) -> tuple[Entry, ...]:
    """The lines that cost something."""
    return tuple(line for line in lines if line.dollars > 0)


class _Usage:
    """How often each operation happens in the life of one task."""

    def __init__(self, work: Work, client: Client, assumed: Assumptions) -> None:
        start = assumed.batch_start_s if work.engine in _ON_BATCH else assumed.start_s
        runtime_ms = work.runtime_s * 1_000
        interval = adaptive(work.poll_interval_ms)
        self.polls, probes = polls_of(client, interval, runtime_ms + start * 1_000)
        calls = CALLS[work.engine]
        self.probes = probes if "probe" in calls else 0
        self.renewals = cost_calls.renewals(runtime_ms) if "renewal" in calls else 0
        # A renewal hears of a cancellation as well.
        self.looks = max(cost_calls.looks(runtime_ms) - self.renewals, 0) if "look" in calls else 0
        self.events = cost_calls.EVENTS_BEFORE_THE_END if "event" in calls else 0


def sizes_of(work: Work, assumed: Assumptions) -> Sizes:
    """The sizes of its task's item."""
    engine = {"container": "batch", "workflow": "step_functions"}.get(work.engine, work.engine)
    return cost_items.sizes(
        engine=engine,
        tool=work.name,
        argument_bytes=assumed.argument_bytes,
        result_bytes=assumed.result_bytes,
        run_id=_RUN_IDS[engine],
        inline_arguments=work.engine != "container",
    )


def _table(work: Work, usage: _Usage, assumed: Assumptions, known: PriceList) -> list[Entry]:
    """DynamoDB: what is written and read, and what is stored until it expires."""
    calls, size = CALLS[work.engine], sizes_of(work, assumed)
    made = calls["call"].count("PutItem") * size.create_units
    recorded = calls["call"].count("UpdateItem") * size.change_units
    run = size.change_units + size.end_units if "run" in calls else size.end_units
    kept = (size.ended + cost_items.INDEXING) / GB * (work.keep_s or 0) / SECONDS_A_MONTH
    heard = usage.events * size.read_units + calls.get("end_event", ()).count("GetItem") * size.last_read_units
    asked = calls.get("report_result", ()).count("GetItem") * size.read_units
    polled = (usage.polls - 1) * size.read_units + size.last_read_units if usage.polls else 0
    return [
        entry("table, writes", "the call", "dynamodb_write_unit", made + recorded, known),
        entry("table, writes", "the run and its end", "dynamodb_write_unit", run, known),
        entry(
            "table, writes", "renewals of the lease", "dynamodb_write_unit", usage.renewals * size.change_units, known
        ),
        entry(
            "table, writes", "polls that ask the engine", "dynamodb_write_unit", usage.probes * size.change_units, known
        ),
        entry("table, reads", "polls", "dynamodb_read_unit", polled, known),
        entry("table, reads", "a worker that listens", "dynamodb_read_unit", usage.looks * size.read_units, known),
        entry("table, reads", "events and reports", "dynamodb_read_unit", heard + asked, known),
        entry("table, reads", "a look at the removal", "dynamodb_read_unit", calls["removed"].count("GetItem"), known),
        entry("storage", "items until they expire", "dynamodb_storage", kept, known),
        entry("storage", "their backup", "dynamodb_backup", kept, known),
    ]


def _engine(work: Work, assumed: Assumptions, known: PriceList) -> list[Entry]:
    """What runs the work, and the work itself."""
    lines = []
    if work.engine == "step_functions":
        lines.append(
            entry(
                "transitions", "of the execution", "step_functions_transition", cost_calls.TRANSITIONS_OF_A_JOB, known
            )
        )
    if work.engine == "workflow":
        lines.append(entry("transitions", "of the execution", "step_functions_transition", work.states + 1, known))
    if work.engine in _ON_A_FUNCTION:
        seconds = lambda_seconds(work.runtime_s * 1_000, work.memory_mb)
        lines += [
            entry("worker", "request", "lambda_request", 1, known),
            entry("traces", "worker", "xray_trace", assumed.sampled, known),
            entry(WORK, f"{work.memory_mb} MB", f"lambda_gb_second_{work.architecture}", seconds, known),
        ]
    if work.engine in _ON_BATCH:
        hours = max(work.runtime_s + assumed.batch_paid_start_s, FARGATE_LEAST_S) / 3_600
        kind = "spot" if work.spot else work.architecture
        beyond = max((work.storage_gb or FARGATE_FREE_GB) - FARGATE_FREE_GB, 0)
        lines += [
            entry(WORK, f"{work.vcpu:g} vCPU", f"fargate_vcpu_{kind}", work.vcpu * hours, known),
            entry(WORK, f"{work.memory_mb} MB", f"fargate_gb_{kind}", work.memory_mb / 1_024 * hours, known),
            entry(WORK, "disk", "fargate_storage", beyond * hours, known),
            entry(WORK, "public address", "public_ipv4", hours, known),
        ]
    return lines


def _small_functions(work: Work, assumed: Assumptions, known: PriceList) -> list[Entry]:
    """`run_events` and `expired`: invocations, their time, logs and traces."""
    calls = CALLS[work.engine]
    events = ("event" in calls) * cost_calls.EVENTS_BEFORE_THE_END + ("end_event" in calls)
    lines = []
    for what, number in (("events of runs", events), ("clean-up", 1)):
        seconds = number * lambda_seconds(assumed.event_ms, assumed.event_memory_mb)
        lines += [
            entry(what, "requests", "lambda_request", number, known),
            entry(what, "time", "lambda_gb_second_arm64", seconds, known),
            entry("logs", what, "logs_ingested", number * cost_logs.platform_lines() / GB, known),
            entry("traces", what, "xray_trace", number * assumed.sampled, known),
        ]
    return lines


def _reports(work: Work, api: Api, assumed: Assumptions, known: PriceList) -> list[Entry]:
    """A container hands its result over through the API; its function is a small one."""
    if "report_result" not in CALLS[work.engine]:
        return []
    seconds = lambda_seconds(assumed.event_ms, assumed.event_memory_mb)
    logged = cost_logs.platform_lines() + cost_logs.access_line()
    return [
        entry("API requests", "report of the result", f"{api}_api_request", 1, known),
        entry("API function", "requests, report of the result", "lambda_request", 1, known),
        entry("API function", "time, report of the result", "lambda_gb_second_arm64", seconds, known),
        entry("logs", "report of the result", "logs_ingested", logged / GB, known),
    ]


def _objects(work: Work, assumed: Assumptions, known: PriceList) -> list[Entry]:
    """S3: what an engine always puts there, what is too large for an item, and the clean-up."""
    calls = CALLS[work.engine]
    alive = [call for name, made in calls.items() if name != "removed" for call in made]
    # Arguments and result, each put once and read once.
    large = 2 * assumed.large_share if work.engine in (*_ON_A_FUNCTION, "batch") else assumed.large_share
    return [
        entry("objects", "put", "s3_put", alive.count("PutObject") + large, known),
        entry("objects", "read", "s3_get", alive.count("GetObject") + large, known),
        entry("objects", "listed at the removal", "s3_put", calls["removed"].count("ListObjectsV2"), known),
    ]


def _task_logs(work: Work, assumed: Assumptions, known: PriceList) -> list[Entry]:
    """What a task and its run leave in logs, the requests not counted."""
    told = sum(cost_logs.task_lines())
    worker = cost_logs.platform_lines() if work.engine in _ON_A_FUNCTION else 0
    run = 0
    if work.engine == "step_functions":
        run = cost_logs.execution()
    elif work.engine == "workflow":
        run = cost_logs.execution(2 + 5 * work.states)
    return [
        entry("logs", "the task", "logs_ingested", told / GB, known),
        entry("logs", "the worker", "logs_ingested", (worker + assumed.job_log_bytes) / GB, known),
        entry("logs", "the execution", "logs_ingested", run / GB, known),
    ]


def monthly(tools: int, list_: PriceList | None = None) -> tuple[Entry, ...]:
    """What a deployment costs in a month in which every kind of thing happens in every hour, beside its tasks.

    Parameters
    ----------
    tools
        Task tools of the catalogue.
    """
    known = list_ or prices()
    return (
        entry("by the month", "custom metrics", "custom_metric", cost_logs.series(tools), known),
        entry("by the month", "secret", "secret", 1, known),
    )


def snap_start(assumed: Assumptions = ASSUMED, list_: PriceList | None = None) -> tuple[Entry, Entry]:
    """What `snap_start` adds for one function of the API's size: by the month and version, and by the request.

    Parameters
    ----------
    assumed
        The function's memory, and the share of its invocations that start a new process.
    """
    known = list_ or prices()
    gb = assumed.api_memory_mb / 1_024
    return (
        entry("by the month", "a snapshot kept", "snapstart_cache", gb * SECONDS_A_MONTH, known),
        entry("API function", "snapshots restored", "snapstart_restore", gb * assumed.cold_share, known),
    )


def rounded(dollars: float) -> str:
    """Dollars as they are printed: cents below a hundred, whole dollars above."""
    return f"{dollars:,.2f}" if dollars < 100 else f"{math.floor(dollars + 0.5):,}"
