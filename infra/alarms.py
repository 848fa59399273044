"""What somebody has to be woken for; docs/operations.md says for each what it means and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from infra.metrics import FIVE_MINUTES, dropped
from infra.parts import Parts
from infra.plan import words


@dataclass(frozen=True)
class Watched:
    """One alarm as data.

    Parameters
    ----------
    name, meaning
        What it is called, and what its message says.
    metric
        What is watched.
    threshold
        From which value on, over five minutes.
    periods
        For how many of them in a row.
    """

    name: str
    meaning: str
    metric: cloudwatch.IMetric
    threshold: float = 1
    periods: int = 1


class Alarms(Construct):
    """The alarms of a deployment.

    Parameters
    ----------
    parts
        What is watched.
    topic_arn
        SNS topic that hears of them; None for nobody.
    """

    def __init__(self, scope: Construct, name: str, *, parts: Parts, topic_arn: str | None) -> None:
        super().__init__(scope, name)
        topic = None if topic_arn is None else sns.Topic.from_topic_arn(self, "Topic", topic_arn)
        self.alarms: list[cloudwatch.IAlarm] = []
        for watched in _watched(parts):
            alarm = cloudwatch.Alarm(
                self,
                watched.name,
                alarm_description=watched.meaning,
                metric=watched.metric,
                threshold=watched.threshold,
                evaluation_periods=watched.periods,
                comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
                treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            )
            self.alarms.append(alarm)
            if topic is not None:
                alarm.add_alarm_action(actions.SnsAction(topic))


def _watched(parts: Parts) -> Iterator[Watched]:
    api = parts.api.function
    yield Watched("ApiErrors", "MCP clients were answered with HTTP 5xx.", parts.server_errors, threshold=5)
    errors = api.metric_errors(period=FIVE_MINUTES)
    yield Watched("ApiFunctionErrors", "The API function failed or ran out of time.", errors)
    yield Watched(
        "ApiThrottles", "Requests found no free API function.", api.metric_throttles(period=FIVE_MINUTES), threshold=5
    )
    for kit in parts.helpers:
        name = "".join(word.title() for word in kit.label.split("_"))
        meaning = f"An event, a report or an expired task was not digested by {kit.label}."
        yield Watched(f"{name}Errors", meaning, kit.function.metric_errors(period=FIVE_MINUTES))
    if parts.expired is not None:
        age = parts.expired.function.metric("IteratorAge", statistic="Maximum", period=FIVE_MINUTES)
        hour = cdk.Duration.hours(1).to_milliseconds()
        yield Watched("ExpiredLate", "Expired tasks wait for over an hour to be cleaned up.", age, threshold=hour)
    yield Watched(
        "DeadLetters",
        "Events were given up: they lie in the dead-letter queue.",
        parts.dead_letters.metric_approximate_number_of_messages_visible(statistic="Maximum", period=FIVE_MINUTES),
    )
    yield Watched("Repairs", "Reads keep finding tasks whose end nobody told.", parts.repairs, threshold=10, periods=3)
    for tool, runs in parts.job_machines.items():
        # The job's own faults end a run in good order; what fails here is what the kit stands on.
        meaning = f"Runs of {tool} broke outside its own code: out of memory, killed, or its function could not run."
        yield Watched(f"{words(tool)}Broke", meaning, runs.machine.metric_failed(period=FIVE_MINUTES))
    for tool, kit in parts.invoked.items():
        meaning = f"Invocations of {tool} were given up: its function died in every attempt, or found no place in time."
        yield Watched(f"{words(tool)}Broke", meaning, dropped(kit))
    for kind, throttled in zip(("Read", "Write"), parts.table_throttles, strict=True):
        yield Watched(f"Table{kind}Throttles", f"DynamoDB refused to {kind.lower()}.", throttled)
