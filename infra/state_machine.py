"""A Standard state machine with a role, a log and traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.cdk import allow, excuse
from infra.configuration import Configuration
from infra.function import retention


class LoggedMachine(Construct):
    """A state machine that may invoke the given functions, and nothing else.

    Parameters
    ----------
    configuration
        How long its log is kept.
    definition, substitutions
        Its definition, time-out included, and what stands for ``${name}`` in it.
    invokes
        ARNs of functions.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        configuration: Configuration,
        definition: sfn.DefinitionBody,
        substitutions: Mapping[str, str],
        invokes: Sequence[str],
    ) -> None:
        super().__init__(scope, name)
        stack = cdk.Stack.of(self)
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("states.amazonaws.com"))
        if invokes:
            allow(self.role, ["lambda:InvokeFunction"], invokes)
        # Logs of this name do not use up the ten resource policies that an account has for delivering logs
        # (Step Functions Developer Guide, "Logging", "CloudWatch Logs resource policy size limitations").
        log_group = logs.LogGroup(
            self,
            "Log",
            log_group_name=f"/aws/vendedlogs/states/{stack.stack_name}-{self.node.addr[:12]}",
            retention=retention(configuration),
            # A name can be taken once: a log that outlived its stack would be in the way of the next.
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        self.machine = sfn.StateMachine(
            self,
            "Machine",
            state_machine_type=sfn.StateMachineType.STANDARD,
            definition_body=definition,
            definition_substitutions=dict(substitutions),
            role=self.role,
            tracing_enabled=configuration.tracing,
            # Without execution data: it holds arguments and report tokens.
            logs=sfn.LogOptions(destination=log_group, level=sfn.LogLevel.ALL, include_execution_data=False),
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        if not configuration.tracing:
            excuse(self.machine, "AwsSolutions-SF2", "Whether anything is traced is a choice of the deployment.")
        excuse(
            self.role,
            "AwsSolutions-IAM5[Resource::*]",
            "Step Functions needs these calls on all resources to deliver logs and traces; they know no others.",
        )
