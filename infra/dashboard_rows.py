"""The rows of the dashboard: what each graph shows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from aws_cdk import aws_cloudwatch as cloudwatch

from infra.metrics import (
    CREATED,
    ENDED,
    FIVE_MINUTES,
    QUESTIONS,
    QUESTIONS_CLOSED,
    STATUSES,
    TIME_TO_END,
    TIME_TO_PROGRESS,
    dropped,
    own,
    received,
)
from infra.parts import Parts
from infra.state_machine import LoggedMachine

THIRD = 8
"""Columns of the 24 that a dashboard has."""
_COLORS = {
    "completed": cloudwatch.Color.GREEN,
    "failed": cloudwatch.Color.RED,
    "cancelled": cloudwatch.Color.GREY,
}


def users_row(parts: Parts) -> list[cloudwatch.IWidget]:
    """What callers see: tasks, how long they take, questions."""
    name = parts.deployment
    ended = [own(ENDED, name, label=status, taskStatus=status).with_(color=_COLORS[status]) for status in STATUSES]
    times = [
        own(TIME_TO_END, name, statistic=statistic, label=f"to the end, {statistic}") for statistic in ("p50", "p95")
    ]
    questions = [own(QUESTIONS, name, label="opened"), own(QUESTIONS_CLOSED, name, label="closed")]
    first = own(TIME_TO_PROGRESS, name, statistic="p50", label="to the first progress, p50")
    return [
        _graph("Tasks: created, and how they ended", [own(CREATED, name, label="created"), *ended], width=THIRD),
        _graph("How long tasks take (ms)", [*times, first], width=THIRD),
        _graph("Questions: opened, and closed by an answer or an end", questions, width=THIRD),
    ]


def requests_row(parts: Parts) -> list[cloudwatch.IWidget]:
    """The door: requests, how long they take, the function behind."""
    api = parts.api.function
    function = [
        api.metric_errors(period=FIVE_MINUTES, label="errors", color=cloudwatch.Color.RED),
        api.metric_throttles(period=FIVE_MINUTES, label="throttles", color=cloudwatch.Color.ORANGE),
    ]
    refused = [
        parts.client_errors.with_(label="4xx", color=cloudwatch.Color.ORANGE),
        parts.server_errors.with_(label="5xx", color=cloudwatch.Color.RED),
    ]
    busy = [api.metric("ConcurrentExecutions", statistic="Maximum", period=FIVE_MINUTES, label="at once")]
    return [
        _graph("Requests", [parts.requests.with_(label="requests")], right=refused, width=THIRD),
        _graph("How long requests take (ms)", parts.latency, width=THIRD),
        _graph("API function", busy, right=function, width=THIRD),
    ]


def runs_row(parts: Parts) -> list[cloudwatch.IWidget]:
    """The work: executions and invocations, and the functions in them."""
    machines, invoked = sorted(parts.machines.items()), sorted(parts.invoked.items())
    started = [
        *(runs.machine.metric_started(period=FIVE_MINUTES, label=tool) for tool, runs in machines),
        *(received(kit, label=tool) for tool, kit in invoked),
    ]
    bad = [
        *(_broken(tool, runs) for tool, runs in machines),
        *(dropped(kit, label=tool) for tool, kit in invoked),
    ]
    durations = [
        kit.function.metric_duration(statistic="p95", period=FIVE_MINUTES, label=name)
        for name, kit in sorted(parts.jobs.items())
    ]
    widgets: list[tuple[str, Sequence[cloudwatch.IMetric]]] = [
        ("Runs started", started),
        ("Runs failed or out of time", bad),
        ("How long functions of jobs take, p95 (ms)", durations),
    ]
    return [_graph(title, metrics, width=THIRD) for title, metrics in widgets if metrics]


def upkeep_row(parts: Parts) -> list[cloudwatch.IWidget]:
    """What keeps it in order: repairs, events, the table."""
    letters = parts.dead_letters.metric_approximate_number_of_messages_visible(
        statistic="Maximum", period=FIVE_MINUTES, label="dead letters"
    )
    table = [
        parts.table.metric_consumed_read_capacity_units(period=FIVE_MINUTES, label="read units"),
        parts.table.metric_consumed_write_capacity_units(period=FIVE_MINUTES, label="write units"),
    ]
    refused = [
        metric.with_(label=f"{kind} refused", color=color)
        for metric, kind, color in zip(
            parts.table_throttles, ("reads", "writes"), (cloudwatch.Color.ORANGE, cloudwatch.Color.RED), strict=True
        )
    ]
    helpers = [kit.function.metric_errors(period=FIVE_MINUTES, label=kit.label) for kit in parts.helpers]
    return [
        _graph("Repairs by reads, and dead letters", [parts.repairs.with_(label="repairs"), letters], width=THIRD),
        _graph("Errors of the functions behind", helpers, width=THIRD),
        _graph("Table", table, right=refused, width=THIRD),
    ]


def _broken(tool: str, runs: LoggedMachine) -> cloudwatch.IMetric:
    failed, late = runs.machine.metric_failed(period=FIVE_MINUTES), runs.machine.metric_timed_out(period=FIVE_MINUTES)
    # Names of metrics are one space for the whole graph.
    names = {f"failed_{tool}": failed, f"late_{tool}": late}
    expression = " + ".join(f"FILL({_plain(name)}, 0)" for name in names)
    using = {_plain(name): metric for name, metric in names.items()}
    return cloudwatch.MathExpression(expression=expression, using_metrics=using, label=tool, period=FIVE_MINUTES)


def _plain(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _graph(
    title: str,
    left: Sequence[cloudwatch.IMetric],
    *,
    right: Sequence[cloudwatch.IMetric] = (),
    width: int,
) -> cloudwatch.GraphWidget:
    from_zero = cloudwatch.YAxisProps(min=0, show_units=False)
    return cloudwatch.GraphWidget(
        title=title,
        left=list(left),
        right=list(right),
        width=width,
        height=6,
        left_y_axis=from_zero,
        right_y_axis=from_zero,
    )
