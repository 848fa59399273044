"""Fargate behind AWS Batch: a compute environment of each kind that is used, and the queues in front of it."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_batch as batch
from constructs import Construct

from infra.configuration import Configuration
from infra.network import Network
from taskrail.compute import Batch


class BatchEnvironment(Construct):
    """The queues of a deployment, made as the tools ask for them.

    Parameters
    ----------
    configuration
        How much may run at once, and in which network.
    """

    def __init__(self, scope: Construct, name: str, *, configuration: Configuration) -> None:
        super().__init__(scope, name)
        self._configuration = configuration
        self.network = Network(self, "Network", configuration=configuration)
        self._environments: dict[bool, batch.FargateComputeEnvironment] = {}
        self._queues: dict[tuple[bool, int], batch.JobQueue] = {}

    def queue(self, runs_on: Batch) -> batch.JobQueue:
        """The queue for jobs of that kind that wait that long at most."""
        seconds = round(runs_on.queue_within.total_seconds())
        key = (runs_on.spot, seconds)
        if key not in self._queues:
            kind = "Spot" if runs_on.spot else "OnDemand"
            self._queues[key] = batch.JobQueue(
                self,
                f"{kind}Queue{seconds}",
                compute_environments=[
                    batch.OrderedComputeEnvironment(
                        compute_environment=self._environment(runs_on.spot),
                        order=1,
                    )
                ],
                # Without these a job that finds no place waits for ever.
                job_state_time_limit_actions=[
                    batch.JobStateTimeLimitAction(
                        reason=reason,
                        state=batch.JobStateTimeLimitActionsState.RUNNABLE,
                        action=batch.JobStateTimeLimitActionsAction.CANCEL,
                        max_time=cdk.Duration.seconds(seconds),
                    )
                    for reason in batch.JobStateTimeLimitActionsReason
                ],
            )
        return self._queues[key]

    def _environment(self, spot: bool) -> batch.FargateComputeEnvironment:
        if spot not in self._environments:
            self._environments[spot] = batch.FargateComputeEnvironment(
                self,
                "Spot" if spot else "OnDemand",
                vpc=self.network.vpc,
                vpc_subnets=self.network.subnets,
                security_groups=[self.network.security_group],
                spot=spot,
                maxv_cpus=self._configuration.max_vcpus,
            )
        return self._environments[spot]
