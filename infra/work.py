"""Everything that runs tools: made for each as the catalogue says, or adopted."""

from __future__ import annotations

from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.adopted import adopt
from infra.batch_work import BatchWork
from infra.engines import Engines
from infra.foundation import Foundation
from infra.function import KitFunction
from infra.job_function import JobFunction
from infra.job_machine import JobMachine
from infra.plan import Plan, words
from infra.report_function import ReportFunction
from infra.state_machine import LoggedMachine
from infra.workflow import WorkflowMachine


class Work(Construct):
    """The engines of a deployment, filled.

    Parameters
    ----------
    foundation, plan
        What they work on, and which there are.

    Attributes
    ----------
    engines
        Who is run by what.
    roles
        The role that a tool's code has, by the tool's name: of its function or its job. A workflow's own is that of
        its state machine, that of one of its functions stands under ``tool.function``.
    functions, machines
        What there is for the dashboard to show, by the same names.
    invoked
        Functions that are invoked without a state machine, by tool.
    report
        Takes reports; None without workflows and containers.
    """

    def __init__(self, scope: Construct, name: str, *, foundation: Foundation, plan: Plan) -> None:
        super().__init__(scope, name)
        self.engines = Engines(self, "Engines")
        self.roles: dict[str, iam.Role] = {}
        self.functions: dict[str, KitFunction] = {}
        self.machines: dict[str, LoggedMachine] = {}
        self.invoked: dict[str, JobFunction] = {}
        self.report = ReportFunction(self, "Report", foundation=foundation) if plan.needs_report else None
        self.batch: BatchWork | None = None
        for tool in plan.machines:
            job = JobMachine(self, f"Job{words(tool.name)}", foundation=foundation, tool=tool)
            self.roles[tool.name] = job.job.role
            self.functions[tool.name] = job.job
            self.machines[tool.name] = job.runs
        for tool in plan.functions:
            invoked = JobFunction(self, f"Invoked{words(tool.name)}", foundation=foundation, tool=tool)
            self.roles[tool.name] = invoked.job.role
            self.functions[tool.name] = invoked.job
            self.invoked[tool.name] = invoked
            self.engines.functions[tool.name] = invoked.job.function.function_arn
        for tool in plan.workflows:
            assert self.report is not None
            workflow = WorkflowMachine(
                self,
                f"Workflow{words(tool.name)}",
                foundation=foundation,
                tool=tool,
                report=self.report.function,
            )
            self.roles[tool.name] = workflow.runs.role
            for short, step in workflow.functions.items():
                self.roles[f"{tool.name}.{short}"] = step.role
                self.functions[f"{tool.name}.{short}"] = step
            self.machines[tool.name] = workflow.runs
            self.engines.waiting.add(tool.name)
        for tool_name, runs in self.machines.items():
            self.engines.machines[tool_name] = runs.machine.state_machine_arn
            self.engines.machine_names[tool_name] = runs.machine.state_machine_name
        if plan.needs_batch:
            self.batch = BatchWork(self, "Batch", foundation=foundation, engines=self.engines, plan=plan)
            self.roles |= {tool: job.role for tool, job in self.batch.jobs.items()}
        for tool in (*plan.adopted_machines, *plan.adopted_jobs):
            adopt(self.engines, tool)
        if self.report is not None:
            self.report.allow_resume(self.engines)
