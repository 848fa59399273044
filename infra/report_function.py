"""`report`: the only way in for workflows and containers."""

from __future__ import annotations

from aws_cdk import aws_iam as iam
from constructs import Construct

from infra import permissions
from infra.engines import Engines
from infra.foundation import Foundation
from infra.function import KitFunction
from infra.payload_bucket import TASKS


class ReportFunction(Construct):
    """Takes progress, questions and results, by token.

    State machines name it, so that it cannot name them: neither in its settings, nor in the policy that it is made
    with. What it may do to them stands in a policy that comes after both.

    Parameters
    ----------
    foundation
        What it works on.
    """

    def __init__(self, scope: Construct, name: str, *, foundation: Foundation) -> None:
        super().__init__(scope, name)
        made = KitFunction(
            self,
            "Report",
            configuration=foundation.configuration,
            code=foundation.codes.of(),
            handler="handlers.report.handler",
            description="Takes the reports of workflows and containers",
            timeout_seconds=29,
            memory_mb=512,
            environment=foundation.environment,
        )
        self.function = made.function
        self._role = made.role
        self.kit = made
        foundation.table.allow(made.role, "GetItem", "UpdateItem")
        foundation.bucket.allow(made.role, read=(TASKS,), write=(TASKS,))
        foundation.secret.allow_read(made.role)

    def allow_resume(self, engines: Engines) -> None:
        """Let it hand an answer that was there before to the state that asks."""
        if engines.waiting:
            policy = iam.Policy(self, "Resume", roles=[self._role])
            permissions.allow_resume(engines, policy)
