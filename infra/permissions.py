"""Who may start, stop, describe and resume runs: exactly those calls, on exactly those resources."""

from __future__ import annotations

from collections.abc import Iterator

import aws_cdk as cdk
from aws_cdk import aws_iam as iam

from infra.cdk import allow
from infra.engines import TAG, Engines, named

_RUNS = "Runs have names and ids that are made when they start; they are runs of this machine."


def allow_start(engines: Engines, role: iam.Role) -> None:
    """Let a role start runs."""
    if engines.machine_arns:
        allow(role, ["states:StartExecution"], engines.machine_arns)
    if engines.functions:
        allow(role, ["lambda:InvokeFunction"], list(engines.functions.values()))
    definitions = named(job["definition"] for job in engines.jobs.values())
    arns = [engines.arn("batch", "job-definition", name) for name in definitions]
    # Without a revision the newest one is meant, and which that is changes with every deployment.
    revisions = [f"{arn}:*" for arn in arns if not _has_revision(arn)]
    if engines.queue_arns or arns:
        allow(role, ["batch:SubmitJob"], [*engines.queue_arns, *arns])
    if revisions:
        allow(role, ["batch:SubmitJob"], revisions, because="The revisions of one job definition.")
    _allow_tagged(engines, role)


def allow_control(engines: Engines, role: iam.Role) -> None:
    """Let a role stop runs and look how they stand."""
    actions = ["states:StopExecution", "states:DescribeExecution"]
    names = dict.fromkeys(engines.machine_names.values())
    if names:
        allow(role, actions, [engines.arn("states", "execution", f"{name}:*") for name in names], because=_RUNS)
    if any(reference.startswith(TAG) for reference in engines.machines.values()):
        executions = engines.arn("states", "execution", "*")
        allow(role, actions, [executions], because="The state machine is known only by its tag, when it is used.")
    if engines.jobs:
        allow(role, ["batch:DescribeJobs", "batch:ListJobs"], ["*"])
        jobs = engines.arn("batch", "job", "*")
        because = "A job's ARN holds an id that Batch makes, and neither queue nor definition."
        allow(role, ["batch:TerminateJob"], [jobs], because=because)
    if engines.log_groups:
        because = "A job's log stream gets its name when the job starts."
        allow(role, ["logs:GetLogEvents"], list(dict.fromkeys(engines.log_groups)), because=because)
    if any(reference.startswith(TAG) for reference in _references(engines)):
        allow(role, ["tag:GetResources"], ["*"])


def allow_resume(engines: Engines, grantee: iam.Role | iam.Policy) -> None:
    """Let somebody hand answers to states that wait with a task token."""
    waiting = named(arn for tool, arn in engines.machines.items() if tool in engines.waiting)
    if waiting:
        allow(grantee, ["states:SendTaskSuccess"], waiting)


def _allow_tagged(engines: Engines, role: iam.Role) -> None:
    """Start what is known by its tag only: whatever resource has that tag."""
    because = "Any resource of this account and region, if it has the tag that the catalogue names."
    kinds = (
        ("states", "stateMachine", "states:StartExecution", engines.machines.values()),
        ("batch", "job-queue", "batch:SubmitJob", (job["queue"] for job in engines.jobs.values())),
        ("batch", "job-definition", "batch:SubmitJob", (job["definition"] for job in engines.jobs.values())),
    )
    for service, kind, action, references in kinds:
        for reference in dict.fromkeys(references):
            if not reference.startswith(TAG):
                continue
            key, _, value = reference.removeprefix(TAG).partition("=")
            # Batch looks at a definition's tags only when its revision is named.
            resource = engines.arn(service, kind, "*:*" if kind == "job-definition" else "*")
            conditions = {"StringEquals": {f"aws:ResourceTag/{key}": value}}
            allow(role, [action], [resource], conditions=conditions, because=because)


def _references(engines: Engines) -> Iterator[str]:
    yield from engines.machines.values()
    for job in engines.jobs.values():
        yield from job.values()


def _has_revision(definition: str) -> bool:
    """Whether an ARN of a job definition says which revision; those that the stack makes do."""
    return cdk.Token.is_unresolved(definition.rpartition("/")[2]) or ":" in definition.rpartition("/")[2]
