"""`run_events`: what the engines tell of this stack's runs, by EventBridge, and by Lambda itself."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from infra import permissions
from infra.cdk import allow
from infra.engines import Engines
from infra.foundation import Foundation
from infra.function import KitFunction
from infra.invocations import Invocations
from infra.payload_bucket import TASKS

_ENDS = ["SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"]

_RETRIES = 2
_LONGEST_SECONDS = 21_600
"""As often and as long as Lambda tries an event whose function failed (PutFunctionEventInvokeConfig)."""


class RunEvents(Construct):
    """The second line: the end of a run is heard of although its worker never told.

    Of what is adopted by tag no events are asked for, since a rule would have to take those of the whole account;
    there the next read of the task asks the engine.

    Parameters
    ----------
    foundation, engines
        What it works on.
    """

    def __init__(self, scope: Construct, name: str, *, foundation: Foundation, engines: Engines) -> None:
        super().__init__(scope, name)
        self.heard = KitFunction(
            self,
            "Heard",
            configuration=foundation.configuration,
            code=foundation.codes.of(),
            handler="handlers.run_events.handler",
            description="Settles tasks whose run has ended",
            timeout_seconds=60,
            environment={**foundation.environment, **engines.control_environment},
        )
        foundation.table.allow(self.heard.role, "GetItem", "UpdateItem")
        foundation.bucket.allow(self.heard.role, read=(TASKS,), write=(TASKS,))
        permissions.allow_control(engines, self.heard.role)
        patterns = {
            "Executions": events.EventPattern(
                source=["aws.states"],
                detail_type=["Step Functions Execution Status Change"],
                detail={"stateMachineArn": engines.machine_arns, "status": _ENDS},
            ),
            "Jobs": events.EventPattern(
                source=["aws.batch"],
                detail_type=["Batch Job State Change"],
                detail={"jobQueue": engines.queue_arns},
            ),
        }
        for kind, known in (("Executions", engines.machine_arns), ("Jobs", engines.queue_arns)):
            if known:
                rule = events.Rule(self, kind, event_pattern=patterns[kind])
                rule.add_target(
                    targets.LambdaFunction(
                        self.heard.function,
                        dead_letter_queue=foundation.dead_letters.queue,
                        max_event_age=cdk.Duration.hours(24),
                        retry_attempts=185,
                    )
                )
        # A rule's dead letters are for what could not be delivered; these, for what was delivered and not digested.
        queue = foundation.dead_letters.queue.queue_arn
        allow(self.heard.role, ["sqs:SendMessage"], [queue])
        Invocations(self, "Invocations", of=self.heard, retries=_RETRIES, seconds=_LONGEST_SECONDS, given_up_to=queue)
