"""A state machine of the user's own: its definition, its functions, its right to report."""

from __future__ import annotations

from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.foundation import Foundation
from infra.function import KitFunction
from infra.payload_bucket import ARGUMENTS, INPUTS
from infra.state_machine import LoggedMachine
from taskrail.tools import Tool
from taskrail.work import Workflow

_SECONDS = 900
_MEMORY_MB = 1024


class WorkflowMachine(Construct):
    """Runs one tool.

    Parameters
    ----------
    foundation
        What its functions work on.
    tool
        A workflow with a definition.
    report
        The function that ``${report}`` stands for.
    """

    def __init__(
        self, scope: Construct, name: str, *, foundation: Foundation, tool: Tool, report: lambda_.IFunction
    ) -> None:
        super().__init__(scope, name)
        work = tool.work
        assert isinstance(work, Workflow) and work.definition is not None
        substitutions = {"report": report.function_arn}
        self.functions: dict[str, KitFunction] = {}
        for short, handler in work.functions.items():
            step = KitFunction(
                self,
                f"Step{short.title().replace('_', '')}",
                configuration=foundation.configuration,
                code=foundation.codes.of(),
                handler=handler,
                description=f"A step of {tool.name}",
                timeout_seconds=_SECONDS,
                memory_mb=_MEMORY_MB,
                environment={"BUCKET": foundation.bucket.bucket.bucket_name},
            )
            # Arguments too large for an execution's input are read from the bucket.
            foundation.bucket.allow(step.role, read=(ARGUMENTS, INPUTS))
            substitutions[short] = step.function.function_arn
            self.functions[short] = step
        text = (foundation.codes.functions / work.definition).read_text(encoding="utf-8")
        used = {short: arn for short, arn in substitutions.items() if f"${{{short}}}" in text}
        self.runs = LoggedMachine(
            self,
            "Runs",
            configuration=foundation.configuration,
            definition=sfn.DefinitionBody.from_string(text),
            substitutions=used,
            invokes=list(used.values()),
        )
