"""A job definition of AWS Batch: for a Python task, or for any container."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_batch as batch
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.batch_environment import BatchEnvironment
from infra.batch_retries import retries
from infra.cdk import allow, excuse, removal
from infra.foundation import Foundation
from infra.function import retention
from infra.image import image_of
from taskrail.compute import Batch
from taskrail.tools import Tool

_ARCHITECTURES = {"arm64": ecs.CpuArchitecture.ARM64, "x86_64": ecs.CpuArchitecture.X86_64}


class BatchJob(Construct):
    """One tool's job: where it queues, what it runs, and what it may do.

    Parameters
    ----------
    foundation, environment
        What it works on, and where it runs.
    tool
        The tool; it runs on Batch.
    image
        URI of its image; None for one that is built from ``functions/``.
    command, variables
        What it runs.
    tried_again
        Exit codes after which it is tried again; the loss of its machine always is.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        foundation: Foundation,
        environment: BatchEnvironment,
        tool: Tool,
        image: str | None,
        command: Sequence[str],
        variables: Mapping[str, str],
        tried_again: Sequence[int] = (),
    ) -> None:
        super().__init__(scope, name)
        runs_on = tool.runs_on
        assert isinstance(runs_on, Batch)
        configuration = foundation.configuration
        self.log_group = logs.LogGroup(
            self, "Log", retention=retention(configuration), removal_policy=removal(configuration)
        )
        tasks = iam.ServicePrincipal("ecs-tasks.amazonaws.com")
        self.role = iam.Role(self, "Role", assumed_by=tasks)
        starts = iam.Role(self, "Start", assumed_by=tasks)
        allow(starts, ["logs:CreateLogStream", "logs:PutLogEvents"], [self.log_group.log_group_arn])
        excuse(starts, "AwsSolutions-IAM5[Resource::*]", "GetAuthorizationToken of the registry knows no resources.")
        container = batch.EcsFargateContainerDefinition(
            self,
            "Container",
            image=image_of(self, configuration=configuration, tool=tool, uri=image),
            command=list(command) or None,
            cpu=runs_on.vcpu,
            memory=cdk.Size.mebibytes(runs_on.memory_mb),
            ephemeral_storage_size=None if runs_on.storage_gb is None else cdk.Size.gibibytes(runs_on.storage_gb),
            fargate_cpu_architecture=_ARCHITECTURES[runs_on.architecture],
            assign_public_ip=environment.network.public_ip,
            environment=dict(variables),
            job_role=self.role,
            execution_role=starts,
            logging=ecs.LogDriver.aws_logs(stream_prefix=tool.name, log_group=self.log_group),
        )
        definition = batch.EcsJobDefinition(
            self,
            "Definition",
            container=container,
            retry_attempts=runs_on.attempts,
            retry_strategies=retries(tried_again) if runs_on.attempts > 1 else None,
            # Each submission brings its own, a little longer; this one is for a job that somebody submits by hand.
            timeout=cdk.Duration.seconds(math.ceil(runs_on.timeout.total_seconds())),
            propagate_tags=True,
        )
        self.names = {
            "queue": environment.queue(runs_on).job_queue_arn,
            "definition": definition.job_definition_arn,
        }
