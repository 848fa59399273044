"""The function behind ``POST /mcp``."""

from __future__ import annotations

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra import permissions
from infra.engines import Engines
from infra.foundation import Foundation
from infra.function import KitFunction
from infra.payload_bucket import INPUTS, TASKS
from infra.plan import Plan

MEMORY_MB = 1024
SECONDS = 29
"""A REST API waits no longer (API Gateway quotas)."""
LIVE = "live"
"""The alias that the API invokes when its function starts from a snapshot."""


class ApiFunction(Construct):
    """Answers MCP clients: reads and changes tasks, starts, stops and describes their runs.

    Parameters
    ----------
    foundation, engines, plan
        What it works on.
    report_url
        Where containers report to; None without any.
    metadata_url
        Where the protected resource metadata is; None without an authorization server.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        foundation: Foundation,
        engines: Engines,
        plan: Plan,
        report_url: str | None,
        metadata_url: str | None,
    ) -> None:
        super().__init__(scope, name)
        configuration = foundation.configuration
        environment = {
            **foundation.environment,
            **engines.environment,
            "WAIT_BUDGET_MS": str(configuration.wait_seconds * 1000),
            "AUTH": configuration.auth,
        }
        optional = {
            "REPORT_URL": report_url,
            "ALLOWED_ORIGINS": ",".join(configuration.allowed_origins),
            "TENANT_CLAIM": configuration.tenant_claim,
            "IAM_OWNER": configuration.iam_owner if configuration.auth == "iam" else None,
            "OWNER_KEY": configuration.owner_key,
            "LISTEN": configuration.listen if configuration.listen != "off" else None,
            "LISTEN_SECONDS": str(configuration.listen_seconds) if configuration.listen != "off" else None,
            "EXPERIMENTAL_TASKS": "true" if configuration.experimental_tasks else None,
            "CLAIMS": ",".join(configuration.claims),
            "RESOURCE_METADATA_URL": metadata_url,
        }
        made = KitFunction(
            self,
            "Mcp",
            configuration=configuration,
            code=foundation.codes.of(),
            handler="handlers.mcp_api.handler",
            description="MCP: tools and tasks",
            timeout_seconds=SECONDS,
            memory_mb=MEMORY_MB,
            environment=environment | {key: value for key, value in optional.items() if value},
            reserved_concurrency=configuration.concurrency,
            snap_start=configuration.snap_start,
        )
        self.kit = made
        self.function: lambda_.IFunction = made.function
        if configuration.snap_start:
            # Only a published version has a snapshot; the alias is the name that stays while versions come and go.
            self.function = lambda_.Alias(self, "Live", alias_name=LIVE, version=made.function.current_version)
        foundation.secret.allow_read(made.role)
        if plan.has_tasks:
            several = ("BatchGetItem",) if configuration.listen != "off" else ()
            foundation.table.allow(made.role, "GetItem", "PutItem", "UpdateItem", "DeleteItem", *several)
            foundation.table.allow_lists(made.role)
            foundation.bucket.allow(made.role, read=(TASKS, INPUTS), write=(TASKS, INPUTS))
            permissions.allow_start(engines, made.role)
            permissions.allow_control(engines, made.role)
            permissions.allow_resume(engines, made.role)
