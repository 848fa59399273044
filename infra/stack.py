"""The stack: it only composes what the catalogue names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.api_function import ApiFunction
from infra.behind import Behind
from infra.client_configuration import ClientConfiguration
from infra.code import Codes
from infra.configuration import Configuration
from infra.edge import METADATA, Edge, has_metadata
from infra.foundation import Foundation
from infra.http_edge import HttpEdge
from infra.parts import Parts
from infra.plan import Plan
from infra.rest_edge import RestEdge
from infra.watching import Watching
from infra.work import Work
from taskrail.server import TaskServer


class TaskrailStack(cdk.Stack):
    """One deployment.

    Parameters
    ----------
    configuration
        What was chosen.
    server
        The catalogue.
    codes
        The bundles.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        configuration: Configuration,
        server: TaskServer,
        codes: Codes,
        **more: Any,
    ) -> None:
        super().__init__(scope, name, **more)
        plan = Plan.of(server, batch=not configuration.emulator)
        plan.check(configuration)
        self.foundation = Foundation(self, "Kit", configuration=configuration, codes=codes)
        self.work = Work(self, "Work", foundation=self.foundation, plan=plan)
        self.edge: Edge
        if configuration.api == "http":
            self.edge = HttpEdge(self, "Http", foundation=self.foundation, plan=plan)
        else:
            self.edge = RestEdge(self, "Rest", configuration=configuration)
        report = self.work.report
        self.api = ApiFunction(
            self,
            "Api",
            foundation=self.foundation,
            engines=self.work.engines,
            plan=plan,
            report_url=f"{self.edge.url}/report" if plan.takes_http_reports else None,
            metadata_url=f"{self.edge.url}{METADATA}/mcp" if has_metadata(configuration) else None,
        )
        self.edge.serve(
            api=self.api.function,
            report=report.function if report is not None and plan.takes_http_reports else None,
        )
        behind = Behind(self, "Behind", foundation=self.foundation, work=self.work, plan=plan)
        Watching(
            self,
            "Watching",
            configuration=configuration,
            endpoint=f"{self.edge.url}/mcp",
            parts=Parts(
                deployment=configuration.name,
                **self.edge.metrics,
                api=self.api.kit,
                expired=behind.expired,
                helpers=(*([] if report is None else [report.kit]), *behind.all),
                jobs=self.work.functions,
                machines=self.work.machines,
                job_machines={tool.name: self.work.machines[tool.name] for tool in plan.machines},
                invoked={tool: function.job for tool, function in self.work.invoked.items()},
                table=self.foundation.table.table,
                dead_letters=self.foundation.dead_letters.queue,
            ),
        )
        self._tell(configuration)

    def _tell(self, configuration: Configuration) -> None:
        """The outputs, and a warning where one is due."""
        report = self.work.report
        ClientConfiguration(
            self,
            "Clients",
            configuration=configuration,
            url=self.edge.url,
            report_arn=None if report is None else report.function.function_arn,
        )
        if configuration.auth == "none":
            cdk.Annotations.of(self).add_warning_v2(
                "taskrail:anonymous",
                "allow_anonymous=true: anybody on the internet may call this API, and everybody is the same caller, "
                "who sees and may cancel all tasks.",
            )

    @property
    def roles(self) -> Mapping[str, iam.Role]:
        """By tool, the role of the code that does its work: an extension gives it what the tool needs."""
        return self.work.roles
