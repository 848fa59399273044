"""A Lambda function of the kit: its own role and log, and nothing that it does not need."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.cdk import allow, excuse, removal
from infra.configuration import RETENTIONS, Configuration

_ARCHITECTURES = {"arm64": lambda_.Architecture.ARM_64, "x86_64": lambda_.Architecture.X86_64}


class KitFunction(Construct):
    """One function.

    Parameters
    ----------
    configuration
        Python, architecture, and how long its log is kept.
    code, handler, description
        What it runs, and what for.
    timeout_seconds, memory_mb
        Its limits.
    environment
        Its settings, without the prefix ``TASKRAIL_``.
    reserved_concurrency
        Most invocations at once; None for as many as the account has.
    snap_start
        Whether it starts from a snapshot, which is taken of every version that is published.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        configuration: Configuration,
        code: lambda_.Code,
        handler: str,
        description: str,
        timeout_seconds: int = 30,
        memory_mb: int = 512,
        environment: Mapping[str, str] | None = None,
        reserved_concurrency: int | None = None,
        snap_start: bool = False,
    ) -> None:
        super().__init__(scope, name)
        self.label = handler.removeprefix("handlers.").removesuffix(".handler")
        self.log_group = logs.LogGroup(
            self,
            "Log",
            retention=retention(configuration),
            removal_policy=removal(configuration),
        )
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        allow(self.role, ["logs:CreateLogStream", "logs:PutLogEvents"], [self.log_group.log_group_arn])
        self.function = lambda_.Function(
            self,
            "Function",
            description=description,
            # Every Python that can be chosen knows snapshots (Lambda Developer Guide, "SnapStart").
            runtime=lambda_.Runtime(
                f"python{configuration.python}", lambda_.RuntimeFamily.PYTHON, supports_snap_start=True
            ),
            architecture=_ARCHITECTURES[configuration.architecture],
            code=code,
            handler=handler,
            role=self.role,
            timeout=cdk.Duration.seconds(timeout_seconds),
            memory_size=memory_mb,
            environment={
                "TASKRAIL_DEPLOYMENT": configuration.name,
                **{f"TASKRAIL_{key}": value for key, value in (environment or {}).items()},
            },
            log_group=self.log_group,
            logging_format=lambda_.LoggingFormat.JSON,
            tracing=lambda_.Tracing.ACTIVE if configuration.tracing else lambda_.Tracing.DISABLED,
            reserved_concurrent_executions=reserved_concurrency,
            snap_start=lambda_.SnapStartConf.ON_PUBLISHED_VERSIONS if snap_start else None,
        )
        excuse(
            self.role,
            "AwsSolutions-IAM5[Resource::*]",
            "PutTraceSegments and PutTelemetryRecords of X-Ray know no resources, nor do the calls that list and "
            "describe jobs of Batch or find resources by tag.",
        )
        # cdk-nag knows the newest runtime of its own day; which Python to run is a choice of the deployment.
        excuse(self.function, "AwsSolutions-L1", "Python is chosen by the deployment; all that can be are supported.")


def retention(configuration: Configuration) -> logs.RetentionDays:
    """How long logs are kept."""
    return logs.RetentionDays[RETENTIONS[configuration.log_retention_days]]
