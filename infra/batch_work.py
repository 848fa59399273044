"""Everything on Batch: Python tasks and containers, each with a job definition of its own."""

from __future__ import annotations

from constructs import Construct

from infra.batch_environment import BatchEnvironment
from infra.batch_job import BatchJob
from infra.engines import Engines
from infra.foundation import Foundation
from infra.payload_bucket import ARGUMENTS, INPUTS, RESULTS, TASKS
from infra.plan import Plan, words
from taskrail.tools import Tool
from taskrail.work import Container

WORKER = ("python", "-m", "taskrail.worker")
AGAIN = 75
"""What the worker exits with when another attempt may go on."""


class BatchWork(Construct):
    """The jobs of a catalogue, and what they run on.

    Parameters
    ----------
    foundation, engines
        What they work on, and where they are entered.
    plan
        Which there are.
    """

    def __init__(self, scope: Construct, name: str, *, foundation: Foundation, engines: Engines, plan: Plan) -> None:
        super().__init__(scope, name)
        self._foundation = foundation
        self.environment = BatchEnvironment(self, "Environment", configuration=foundation.configuration)
        self.jobs: dict[str, BatchJob] = {}
        for tool in plan.jobs:
            self.jobs[tool.name] = self._python(tool)
        for tool in plan.containers:
            self.jobs[tool.name] = self._container(tool, engines)
        engines.jobs |= {tool: job.names for tool, job in self.jobs.items()}

    def _python(self, tool: Tool) -> BatchJob:
        foundation = self._foundation
        job = BatchJob(
            self,
            words(tool.name),
            foundation=foundation,
            environment=self.environment,
            tool=tool,
            image=foundation.configuration.images.get(tool.name),
            command=WORKER,
            variables={f"TASKRAIL_{key}": value for key, value in foundation.worker_environment.items()},
            tried_again=(AGAIN,),
        )
        foundation.table.allow_job(job.role)
        foundation.bucket.allow(job.role, read=(TASKS, INPUTS), write=(TASKS,))
        return job

    def _container(self, tool: Tool, engines: Engines) -> BatchJob:
        work = tool.work
        assert isinstance(work, Container)
        job = BatchJob(
            self,
            words(tool.name),
            foundation=self._foundation,
            environment=self.environment,
            tool=tool,
            image=work.image,
            command=work.command,
            variables=work.environment,
        )
        # Its own arguments and result, as far as a policy can tell tasks apart: their names cannot be guessed.
        self._foundation.bucket.allow(job.role, read=(ARGUMENTS, INPUTS), write=(RESULTS,))
        if work.log_lines:
            engines.log_groups.append(job.log_group.log_group_arn)
        return job
