"""What one request to the API costs, all of AWS's lines together, without what it does to a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from benchmarks import cost_logs
from benchmarks.cost_assumptions import ASSUMED, Assumptions
from benchmarks.cost_prices import PriceList, prices

Api = Literal["http", "rest"]
APIS: tuple[Api, ...] = ("http", "rest")
GB = 1_000_000_000
MILLION = 1_000_000


@dataclass(frozen=True)
class Entry:
    """One line of a bill.

    Parameters
    ----------
    group
        What it belongs to in a short bill.
    what
        What is paid for.
    amount, unit
        How much of it one task takes.
    dollars
        What that costs.
    """

    group: str
    what: str
    amount: float
    unit: str
    dollars: float

    @property
    def per_million(self) -> float:
        """Dollars for a million tasks."""
        return self.dollars * MILLION


def entry(group: str, what: str, price: str, amount: float, list_: PriceList) -> Entry:
    """A line: so many units at a price of the list."""
    return Entry(group, what, amount, list_.prices[price].unit, amount * list_.each(price))


def lambda_seconds(ms: float, memory_mb: int) -> float:
    """GB-seconds of an invocation."""
    return ms / 1_000 * memory_mb / 1_024


def request_entries(
    api: Api, number: float, ms: float, method: str, assumed: Assumptions = ASSUMED, list_: PriceList | None = None
) -> list[Entry]:
    """The lines of a number of equal requests: the API, its function, the logs, traces and the data that leaves.

    Parameters
    ----------
    api, number, method
        Through which kind of API, how many, of which method.
    ms
        Billed milliseconds of each, a cold start not counted.
    """
    known = list_ or prices()
    billed = ms + assumed.cold_share * assumed.cold_ms
    return [
        entry("API requests", method, f"{api}_api_request", number, known),
        entry("API function", f"requests, {method}", "lambda_request", number, known),
        entry(
            "API function",
            f"time, {method}",
            "lambda_gb_second_arm64",
            number * lambda_seconds(billed, assumed.api_memory_mb),
            known,
        ),
        entry("logs", method, "logs_ingested", number * cost_logs.api_request(method) / GB, known),
        entry("traces", method, "xray_trace", number * assumed.sampled, known),
        entry("data out", method, "data_out", number * assumed.answer_bytes / GB, known),
    ]


def poll_dollars(api: Api, assumed: Assumptions = ASSUMED, list_: PriceList | None = None) -> float:
    """Dollars of one ``tasks/get`` of a small task, its read of the table included."""
    known = list_ or prices()
    lines = request_entries(api, 1, assumed.poll_ms, "tasks/get", assumed, known)
    return sum(line.dollars for line in lines) + known.each("dynamodb_read_unit")


def probe_dollars(list_: PriceList | None = None) -> float:
    """Dollars of what a poll of a silent task adds: a write that remembers it. Asking the engine is free."""
    return (list_ or prices()).each("dynamodb_write_unit")
