"""What can be measured: AWS's own metrics, and those that the kit writes into its log."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch

from infra.function import KitFunction

NAMESPACE = "Taskrail"
"""Of the kit's own metrics, which its log lines hold in the embedded metric format (`taskrail.telemetry`)."""

CREATED = "TasksCreated"
ENDED = "TasksEnded"
TIME_TO_END = "TimeToEnd"
TIME_TO_PROGRESS = "TimeToFirstProgress"
QUESTIONS = "QuestionsOpened"
QUESTIONS_CLOSED = "QuestionsClosed"
REPAIRS = "Repairs"
STATUSES = ("completed", "failed", "cancelled")

FIVE_MINUTES = cdk.Duration.minutes(5)


def received(kit: KitFunction, *, label: str | None = None) -> cloudwatch.Metric:
    """How many asynchronous invocations a function's queue has taken (Lambda Developer Guide, "Types of metrics")."""
    return kit.function.metric("AsyncEventsReceived", statistic="Sum", period=FIVE_MINUTES, label=label)


def dropped(kit: KitFunction, *, label: str | None = None) -> cloudwatch.Metric:
    """How many of them were given up: after every attempt, or for their age."""
    return kit.function.metric("AsyncEventsDropped", statistic="Sum", period=FIVE_MINUTES, label=label)


def own(
    name: str, deployment: str, *, statistic: str = "Sum", label: str | None = None, **dimensions: str
) -> cloudwatch.Metric:
    """One of the kit's own metrics.

    Parameters
    ----------
    name, deployment
        Which, and of which deployment: an account may have several.
    statistic, label
        How it is summed up, and what it is called in a graph.
    dimensions
        More of it, ``taskStatus`` for instance; none: over all tools.
    """
    return cloudwatch.Metric(
        namespace=NAMESPACE,
        metric_name=name,
        dimensions_map={"deployment": deployment, **dimensions},
        statistic=statistic,
        label=label,
        period=FIVE_MINUTES,
    )
