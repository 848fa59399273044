"""A Python job on Lambda alone: a function that is invoked asynchronously, with no state machine before it."""

from __future__ import annotations

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.cdk import allow
from infra.foundation import Foundation
from infra.invocations import Invocations
from infra.python_job import PythonJob
from taskrail.compute import Lambda
from taskrail.tools import Tool


class JobFunction(Construct):
    """Runs one tool.

    Parameters
    ----------
    foundation
        What it works on.
    tool
        A Python job on Lambda.
    """

    def __init__(self, scope: Construct, name: str, *, foundation: Foundation, tool: Tool) -> None:
        super().__init__(scope, name)
        assert isinstance(tool.runs_on, Lambda)
        self._runs_on = tool.runs_on
        self.job = PythonJob(self, "Job", foundation=foundation, tool=tool, handler="handlers.invoked_job.handler")

    def tell(self, heard: lambda_.IFunction) -> None:
        """Say how often an invocation is tried, how long it may wait, and who hears of one that is given up.

        It is a step of its own: who hears of it names the state machines of other jobs, and comes after them.

        Parameters
        ----------
        heard
            The function that takes the records.
        """
        allow(self.job.role, ["lambda:InvokeFunction"], [heard.function_arn])
        Invocations(
            self,
            "Invocations",
            of=self.job,
            retries=self._runs_on.attempts - 1,
            seconds=self._runs_on.queue_ms // 1000,
            given_up_to=heard.function_arn,
        )
