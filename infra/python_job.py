"""The function that does a Python job's work, whoever invokes it."""

from __future__ import annotations

import math

from constructs import Construct

from infra.foundation import Foundation
from infra.function import KitFunction
from infra.payload_bucket import INPUTS, TASKS
from infra.plan import job_package
from taskrail.compute import Lambda, StepFunctions
from taskrail.tools import Tool

SPARE_SECONDS = 10
"""What the worker has for loading the job, and for reporting that its time ran out."""
LONGEST_SECONDS = 900
"""A function ends then (Lambda quotas)."""


class PythonJob(KitFunction):
    """Lives a little longer than its tool may take, and may do what a worker does.

    Parameters
    ----------
    foundation
        What it works on.
    tool
        A Python job in a function.
    handler
        What takes its invocations.
    """

    def __init__(self, scope: Construct, name: str, *, foundation: Foundation, tool: Tool, handler: str) -> None:
        runs_on = tool.runs_on
        assert isinstance(runs_on, StepFunctions | Lambda)
        self.seconds = min(LONGEST_SECONDS, math.ceil(runs_on.timeout.total_seconds()) + SPARE_SECONDS)
        super().__init__(
            scope,
            name,
            configuration=foundation.configuration,
            code=foundation.codes.of(job_package(tool)),
            handler=handler,
            description=f"Runs {tool.name}",
            timeout_seconds=self.seconds,
            memory_mb=runs_on.memory_mb,
            environment=foundation.worker_environment,
        )
        foundation.table.allow_job(self.role)
        foundation.bucket.allow(self.role, read=(TASKS, INPUTS), write=(TASKS,))
