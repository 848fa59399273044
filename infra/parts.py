"""The parts of a deployment that alarms and the dashboard look at."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_sqs as sqs

from infra.function import KitFunction
from infra.metrics import FIVE_MINUTES, REPAIRS, own
from infra.state_machine import LoggedMachine


@dataclass(frozen=True)
class Parts:
    """What there is to look at.

    Parameters
    ----------
    deployment
        Its name.
    requests, client_errors, server_errors, latency
        Of the API.
    api, expired, helpers
        Functions: that of the API, that which cleans up, and all that work behind it.
    jobs
        Functions of Python jobs and of workflows' steps, by name.
    machines, job_machines
        State machines by tool; those of Python jobs, which never fail of the job's own code, alone.
    invoked
        Those functions of `jobs` that are invoked without a state machine, by tool.
    table, dead_letters
        The table, and the queue of what was given up.
    """

    deployment: str
    requests: cloudwatch.Metric
    client_errors: cloudwatch.Metric
    server_errors: cloudwatch.Metric
    latency: tuple[cloudwatch.IMetric, ...]
    api: KitFunction
    expired: KitFunction | None
    helpers: tuple[KitFunction, ...]
    jobs: dict[str, KitFunction]
    machines: dict[str, LoggedMachine]
    job_machines: dict[str, LoggedMachine]
    invoked: dict[str, KitFunction]
    table: dynamodb.TableV2
    dead_letters: sqs.Queue

    @property
    def repairs(self) -> cloudwatch.Metric:
        """How often a read had to find out what became of a run."""
        return own(REPAIRS, self.deployment)

    @property
    def table_throttles(self) -> tuple[cloudwatch.Metric, ...]:
        """Reads and writes that DynamoDB refused for being too many."""
        return tuple(
            self.table.metric(f"{kind}ThrottleEvents", statistic="Sum", period=FIVE_MINUTES)
            for kind in ("Read", "Write")
        )
