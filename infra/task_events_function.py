"""The table's stream → `task_events` → EventBridge: by option, for whoever should hear without polling."""

from __future__ import annotations

import json

import aws_cdk as cdk
from constructs import Construct

from infra.cdk import allow
from infra.expired_function import add_stream
from infra.foundation import Foundation
from infra.function import KitFunction

_WRITTEN = json.dumps({"eventName": ["INSERT", "MODIFY"], "dynamodb": {"Keys": {"pk": {"S": [{"prefix": "task#"}]}}}})


class TaskEventsFunction(Construct):
    """Publishes what happens to tasks, without an argument, an answer or a result.

    Parameters
    ----------
    foundation
        What it works on, and the name of the bus.
    """

    def __init__(self, scope: Construct, name: str, *, foundation: Foundation) -> None:
        super().__init__(scope, name)
        bus = str(foundation.configuration.event_bus)
        self.kit = KitFunction(
            self,
            "Published",
            configuration=foundation.configuration,
            code=foundation.codes.of(),
            handler="handlers.task_events.handler",
            description="Publishes events about tasks",
            timeout_seconds=60,
            environment={"EVENT_BUS": bus},
        )
        stack = cdk.Stack.of(self)
        arn = f"arn:{stack.partition}:events:{stack.region}:{stack.account}:event-bus/{bus}"
        allow(self.kit.role, ["events:PutEvents"], [arn])
        add_stream(self.kit, foundation, _WRITTEN)
