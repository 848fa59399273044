"""The table's stream → `expired`: what nobody waits for any more is stopped and deleted."""

from __future__ import annotations

import json

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra import permissions
from infra.cdk import allow
from infra.engines import Engines
from infra.foundation import Foundation
from infra.function import KitFunction

_REMOVED = json.dumps({"eventName": ["REMOVE"], "dynamodb": {"Keys": {"pk": {"S": [{"prefix": "task#"}]}}}})


class ExpiredFunction(Construct):
    """Hears of removed tasks.

    Parameters
    ----------
    foundation, engines
        What it works on.
    """

    def __init__(self, scope: Construct, name: str, *, foundation: Foundation, engines: Engines) -> None:
        super().__init__(scope, name)
        made = KitFunction(
            self,
            "Expired",
            configuration=foundation.configuration,
            code=foundation.codes.of(),
            handler="handlers.expired.handler",
            description="Stops and deletes what nobody waits for",
            timeout_seconds=300,
            environment={**foundation.environment, **engines.control_environment},
        )
        self.kit = made
        # Reservations of repeated calls are deleted, places under a limit are given up.
        limited = ("UpdateItem",) if foundation.configuration.most_open else ()
        foundation.table.allow(made.role, "DeleteItem", *limited)
        foundation.bucket.allow_delete(made.role)
        permissions.allow_control(engines, made.role)
        add_stream(made, foundation, _REMOVED)


def add_stream(made: KitFunction, foundation: Foundation, pattern: str) -> None:
    """Let a function take records of the table's stream that match a pattern.

    A record that cannot be digested is tried alone, for a day at most, and then told to the dead letters.
    """
    stream = foundation.table.table.table_stream_arn
    assert stream is not None
    queue = foundation.dead_letters.queue
    allow(made.role, ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"], [stream])
    allow(made.role, ["dynamodb:ListStreams"], ["*"])
    allow(made.role, ["sqs:SendMessage"], [queue.queue_arn])
    source = lambda_.CfnEventSourceMapping(
        made,
        "Stream",
        event_source_arn=stream,
        function_name=made.function.function_name,
        starting_position="TRIM_HORIZON",
        batch_size=25,
        bisect_batch_on_function_error=True,
        maximum_retry_attempts=10,
        maximum_record_age_in_seconds=86_400,
        function_response_types=["ReportBatchItemFailures"],
        filter_criteria=lambda_.CfnEventSourceMapping.FilterCriteriaProperty(
            filters=[lambda_.CfnEventSourceMapping.FilterProperty(pattern=pattern)]
        ),
        destination_config=lambda_.CfnEventSourceMapping.DestinationConfigProperty(
            on_failure=lambda_.CfnEventSourceMapping.OnFailureProperty(destination=queue.queue_arn)
        ),
    )
    # The mapping is refused while the role cannot read the stream yet.
    source.node.add_dependency(made.role)
