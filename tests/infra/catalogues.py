"""Catalogues of one kind of work each, and one of every kind."""

from __future__ import annotations

from typing import Annotated

from taskrail import Batch, Header, Lambda, StepFunctions, TaskContext, TaskServer, Toolset, hours, minutes
from taskrail.work import ExistingJob, ExistingStateMachine

IMAGE = "111122223333.dkr.ecr.eu-central-1.amazonaws.com/jobs:1"
MACHINE = "arn:aws:states:eu-central-1:111122223333:stateMachine:nightly"


def inline_tools() -> Toolset:
    """A tool that is answered at once, and asks for a header."""
    tools = Toolset()

    @tools.tool()
    def greet(name: Annotated[str, Header("Tenant-Name")]) -> str:
        """Greet somebody."""
        return name

    return tools


def step_functions_tools() -> Toolset:
    """A light job, and a heavy one with a package of its own."""
    tools = Toolset()

    @tools.task(runs_on=StepFunctions(memory_mb=1024, timeout=minutes(2)))
    def count(task: TaskContext) -> int:
        """Count."""
        return 1

    @tools.task(job="jobs.redact_documents", runs_on=StepFunctions(timeout=minutes(14)))
    def redact(task: TaskContext) -> int:
        """Redact."""

    return tools


def lambda_tools() -> Toolset:
    """A job on Lambda alone that is tried three times, and a heavy one with a package of its own."""
    tools = Toolset()

    @tools.task(runs_on=Lambda(memory_mb=256, timeout=minutes(2), attempts=3, queue_within=minutes(30)))
    def digest(task: TaskContext) -> int:
        """Digest."""
        return 1

    @tools.task(job="jobs.redact_documents", runs_on=Lambda(timeout=minutes(14), queue_within=hours(6)))
    def blacken(task: TaskContext) -> int:
        """Blacken."""

    return tools


def batch_tools() -> Toolset:
    """A Python job on Batch, one on spot capacity, and a container."""
    tools = Toolset()

    @tools.task(runs_on=Batch(vcpu=2, memory_mb=4096, timeout=hours(2), attempts=3, storage_gb=50))
    def render(task: TaskContext) -> int:
        """Render."""
        return 1

    @tools.task(runs_on=Batch(spot=True, queue_within=minutes(30), architecture="x86_64", attempts=2))
    def thumbnails(task: TaskContext) -> int:
        """Make thumbnails."""
        return 1

    tools.container(
        "transcode",
        description="Transcode.",
        input={"type": "object", "properties": {"source": {"type": "string", "maxLength": 100}}},
        image=IMAGE,
        command=["transcode", "Ref::source"],
        environment={"MODE": "fast"},
        log_lines=5,
        runs_on=Batch(attempts=1),
    )
    return tools


def workflow_tools() -> Toolset:
    """The example's state machine."""
    tools = Toolset()
    tools.workflow(
        "run_migration",
        description="Migrate.",
        input={"type": "object"},
        definition="workflows/run_migration.asl.json",
        functions={
            "plan": "workflows.run_migration.plan",
            "apply_batch": "workflows.run_migration.apply_batch",
            "verify": "workflows.run_migration.verify",
        },
    )
    return tools


def adopted_tools() -> Toolset:
    """What is in the account already, by ARN, by name and by tag."""
    tools = Toolset()
    whole = {"type": "object"}
    tools.workflow("nightly", description="N.", input=whole, existing=ExistingStateMachine(arn=MACHINE))
    tools.workflow("tagged", description="T.", input=whole, existing=ExistingStateMachine(tag=("team", "reports")))
    tools.container(
        "named",
        description="N.",
        input=whole,
        existing=ExistingJob(queue="nightly", definition="report:3"),
        runs_on=Batch(),
    )
    tools.container(
        "tagged_job",
        description="T.",
        input=whole,
        existing=ExistingJob(queue_tag=("team", "q"), definition_tag=("team", "d")),
        runs_on=Batch(),
    )
    return tools


def server(*toolsets: Toolset) -> TaskServer:
    """A server of these tools."""
    return TaskServer("reports", version="1", tools=list(toolsets))
