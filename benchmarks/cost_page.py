"""The tables of `docs/cost.md`, so that the page is what the model says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from benchmarks.cost_assumptions import ASSUMED
from benchmarks.cost_calls import Engine
from benchmarks.cost_logs import access_line, api_request, execution, platform_lines, request_line, task_lines
from benchmarks.cost_model import Work, bill, monthly, rounded, snap_start
from benchmarks.cost_prices import prices
from benchmarks.cost_requests import APIS
from benchmarks.polls import CLIENTS, JOBS, rows

CLIENTS_TOLD = ("fastmcp", "strands", "taskrail")
INTERVALS_TOLD = ("adaptive, 5 s", "fixed 5 s")

_LONGEST_ON_A_FUNCTION_S = 870
_STATES = 4
_MACHINES = {
    "lambda": "512 MB",
    "step_functions": "512 MB",
    "batch": "1 vCPU, 2 GB, arm64",
    "container": "1 vCPU, 2 GB, arm64",
    "workflow": f"{_STATES} states",
}


def page() -> str:
    """All tables, as markdown."""
    return "\n".join([*_engines(), "", *_polls(), "", *_logs(), "", *_list()]) + "\n"


def _engines() -> Iterator[str]:
    """Engine × job × API kind × polls."""
    yield "### By engine, kind of API and client"
    yield ""
    yield "Dollars for a million tasks without the work itself, whose price has a column of its own."
    yield ""
    heads = [f"{api.upper()}, {client}" for api in APIS for client in CLIENTS_TOLD]
    yield from _head(["engine", "machine", "job", "the work itself", *heads])
    inline = [rounded(bill(Work("tool", "inline", 0.05), api).per_million) for api in APIS for _ in CLIENTS_TOLD]
    yield _row(["`inline`", "the API's", "50 ms", "in it", *inline])
    for engine in ("lambda", "step_functions", "batch", "container", "workflow"):
        for job, job_ms in JOBS.items():
            if engine in ("lambda", "step_functions") and job_ms / 1_000 > _LONGEST_ON_A_FUNCTION_S:
                continue
            yield _row([f"`{engine}`", _MACHINES[engine], job, *_prices(_work(engine, job_ms / 1_000))])


def _work(engine: Engine, runtime_s: float) -> Work:
    on_batch = engine in ("batch", "container")
    return Work("tool", engine, runtime_s, memory_mb=2_048 if on_batch else 512, states=_STATES)


def _prices(work: Work) -> Iterable[str]:
    bills = [bill(work, api, CLIENTS[client]) for api in APIS for client in CLIENTS_TOLD]
    own = bills[0].work_per_million
    return ["–" if own == 0 else rounded(own), *(rounded(made.overhead_per_million) for made in bills)]


def _polls() -> Iterator[str]:
    """Number and price of polls, and delays."""
    yield "### Polls"
    yield ""
    yield "Dollars for the polls of a million tasks; delay from the job's end until its result is seen, mean and worst."
    yield ""
    yield from _head(["job", "interval", "client", "polls", "HTTP", "REST", "mean delay", "worst delay"])
    for row in rows():
        if row.client not in CLIENTS_TOLD or row.interval not in INTERVALS_TOLD:
            continue
        dollars = (rounded(row.http_dollars), rounded(row.rest_dollars))
        delays = (_seconds(row.mean_delay_ms), _seconds(row.worst_delay_ms))
        yield _row([row.job, row.interval, row.client, str(row.polls), *dollars, *delays])
    yield ""
    yield from (f"- `{client.name}`: {client.about}." for client in CLIENTS.values() if client.name in CLIENTS_TOLD)
    (impatient,) = (
        row for row in rows() if (row.client, row.interval, row.job) == ("strands-5min", "adaptive, 5 s", "1 h")
    )
    yield (
        f"- Strands as it comes gives up after five minutes: {impatient.polls} polls, then a `tasks/cancel`, and the "
        "result of a longer job is lost to it. Set `poll_timeout`."
    )


def _logs() -> Iterator[str]:
    """Bytes in CloudWatch Logs."""
    each = prices().each("logs_ingested") / 1_000
    created, ended = task_lines()
    yield "### Logs"
    yield ""
    yield from _head(["what is logged", "bytes", "dollars for a million"])
    for what, size in (
        ("a poll: the kit's line", request_line()),
        ("a poll: Lambda's own two lines", platform_lines()),
        ("a poll: API Gateway's access log", access_line()),
        ("a poll, all together", api_request()),
        ("a task: made", created),
        ("a task: ended", ended),
        ("an execution of a job on Step Functions", execution()),
    ):
        yield _row([what, f"{size:,}", f"{size * each:.2f}"])
    yield ""
    first = monthly(1)[0]
    second = monthly(2)[0]
    more = second.amount - first.amount
    yield (
        f"The same lines make {first.amount:g} custom metrics with one task tool, and {more:g} more with each further "
        f"one: {rounded(first.dollars)} dollars in a month in which every hour has all of them, and "
        f"{rounded(second.dollars - first.dollars)} more each."
    )
    kept, restored = snap_start()
    yield ""
    yield (
        f"`snap_start` adds {rounded(kept.dollars)} dollars a month for each published version of the API function, "
        f"and {rounded(restored.per_million)} for a million requests of which {ASSUMED.cold_share:.1%} start a new "
        "process."
    )


def _list() -> Iterator[str]:
    """The prices."""
    known = prices()
    yield f"### Prices ({known.region})"
    yield ""
    yield from _head(["price", "dollars", "unit", "read", "evidence", "source"])
    for name, price in known.prices.items():
        per = "" if price.per == 1 else f"{price.per:,} × "
        source = price.source.removeprefix("https://")
        cells = [f"`{name}`", f"{price.dollars:.10f}".rstrip("0").rstrip("."), per + price.unit, f"{price.read}"]
        yield _row([*cells, price.evidence, f"[{source}]({price.source})"])
    yield ""
    yield from (f"- {mark}: {meaning}." for mark, meaning in known.evidence.items())


def _seconds(ms: float | None) -> str:
    return "gave up" if ms is None else f"{ms / 1_000:.1f} s"


def _head(cells: Sequence[str]) -> Iterator[str]:
    yield _row(cells)
    yield _row(["---"] * len(cells))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
