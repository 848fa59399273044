"""Where events end up that nobody could deliver or digest."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.cdk import excuse


class DeadLetters(Construct):
    """One queue for all of them; an alarm watches it."""

    def __init__(self, scope: Construct, name: str) -> None:
        super().__init__(scope, name)
        self.queue = sqs.Queue(
            self,
            "Queue",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=cdk.Duration.days(14),
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        excuse(self.queue, "AwsSolutions-SQS3", "It is the dead-letter queue of rules and of an event source.")
