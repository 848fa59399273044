"""The function that takes reports: any payload of a state, any request of a container, nearly right or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.counts import count, sized
from tests.fuzz.mutations import mutated, swapped
from tests.fuzz.reports import ReportBench, posted, report_bench
from tests.fuzz.strategies import surrogates, values

pytestmark = pytest.mark.timeout(sized(60, 600))

AT_ONCE = 12
"""Mutations of one drawn report: drawing costs more than reporting."""


@pytest.fixture(scope="module")
def live() -> Iterator[ReportBench]:
    with report_bench() as made:
        yield made


def many(examples: int) -> Any:
    """Settings for that many examples; what an example did before tells nothing of the next."""
    return settings(max_examples=examples, suppress_health_check=list(HealthCheck))


def bearer(token: object) -> dict[str, Any]:
    """The header of a container's report."""
    return {"authorization": f"Bearer {token}"}


def told(body: bytes) -> Any:
    """The token in a body; None without one."""
    try:
        report = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return report.get("reportToken") if isinstance(report, dict) else None


def test_valid_reports_are_taken(live: ReportBench) -> None:
    before, reports = live.taken, live.good_reports()
    for token, report in reports:
        live.state({"reportToken": token, **report})
        live.container(posted(json.dumps(report).encode(), bearer(token)), token)
        count("fuzz inputs at the report function", 2)
    assert live.taken - before > len(reports)


def test_valid_reports_with_values_swapped(live: ReportBench) -> None:
    reports = live.good_reports()
    others = tuple(value for _, report in reports for value in report.values())

    @many(sized(20, 1_000))
    @given(st.sampled_from(range(len(reports))), st.integers(0, 2**32))
    def fuzz(chosen: int, seed: int) -> None:
        random = Random(seed)
        token, report = reports[chosen]
        for _ in range(AT_ONCE):
            changed = swapped({"reportToken": token, **report}, random, others)
            live.state(changed)
            body = json.dumps(swapped(report, random, others)).encode("utf-8", "surrogatepass")
            live.container(posted(body, bearer(token)), token, told(body))
            count("fuzz inputs at the report function", 2)

    fuzz()


def test_bytes_that_were_a_valid_report_once(live: ReportBench) -> None:
    reports = live.good_reports()
    bodies = [json.dumps({"reportToken": token, **report}).encode() for token, report in reports]

    @many(sized(40, 1_500))
    @given(st.sampled_from(range(len(reports))), st.integers(0, 2**32))
    def fuzz(chosen: int, seed: int) -> None:
        random = Random(seed)
        for _ in range(AT_ONCE):
            body = mutated(bodies[chosen], random, tuple(bodies))
            live.container(posted(body, {}), told(body))
            count("fuzz inputs at the report function")

    fuzz()


def test_tokens_that_were_valid_once(live: ReportBench) -> None:
    """A token with one letter changed, cut, doubled or put together from two is none."""
    tokens = [token.encode() for token in live.tokens]
    reports = live.good_reports()

    @many(sized(30, 800))
    @given(st.sampled_from(range(len(reports))), st.integers(0, 2**32))
    def fuzz(chosen: int, seed: int) -> None:
        random = Random(seed)
        token, report = reports[chosen]
        for _ in range(AT_ONCE):
            forged = mutated(token.encode(), random, tuple(tokens)).decode("utf-8", "replace")
            live.state({"reportToken": forged, **report})
            live.container(posted(json.dumps(report).encode(), bearer(forged)), forged.strip())
            count("fuzz inputs at the report function", 2)

    fuzz()


def test_events_that_are_nearly_ones(live: ReportBench) -> None:
    reports = live.good_reports()
    junk = {"version": values, "headers": values, "requestContext": values, "body": values, "isBase64Encoded": values}
    fields = {"do": values, "key": values, "message": values, "job": values, "attempt": values, "keys": values}
    more = {"schema": values, "taskToken": values, "done": values, "total": values, "result": values}

    @many(sized(60, 3_000))
    @given(
        st.sampled_from(range(len(reports))),
        st.fixed_dictionaries({}, optional=junk),
        st.fixed_dictionaries({}, optional={**fields, **more}),
        values,
        surrogates,
    )
    def fuzz(chosen: int, parts: dict[str, Any], instead: dict[str, Any], anything: Any, word: str) -> None:
        token, report = reports[chosen]
        event = posted(json.dumps(report).encode(), bearer(token))
        live.container({**event, **parts}, token)
        live.state({"reportToken": token, **report, **instead})
        live.state({"reportToken": word, **report, **instead})
        live.state({"reportToken": token, **report, "schema": {"type": "object", "properties": {word: anything}}})
        if not isinstance(anything, dict) or "requestContext" not in anything:
            live.state(anything)
        count("fuzz inputs at the report function", 5)

    fuzz()
