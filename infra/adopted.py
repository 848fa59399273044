"""What is in the account already: nothing is made, only named, and allowed."""

from __future__ import annotations

from infra.engines import Engines
from taskrail.tools import Tool
from taskrail.work import Container, ExistingJob, ExistingStateMachine, Workflow

DEFAULT_LOG_GROUP = "/aws/batch/job"


def adopt(engines: Engines, tool: Tool) -> None:
    """Enter a tool whose work exists.

    Parameters
    ----------
    engines
        Where it is entered; what they allow is allowed for it as well.
    tool
        A workflow or a container with ``existing=``.
    """
    work = tool.work
    if isinstance(work, Workflow) and work.existing is not None:
        _adopt_machine(engines, tool.name, work.existing)
        if work.envelope:
            engines.waiting.add(tool.name)
    elif isinstance(work, Container) and work.existing is not None:
        _adopt_job(engines, tool.name, work.existing)
        if work.log_lines:
            engines.read_log(DEFAULT_LOG_GROUP)


def _adopt_machine(engines: Engines, tool: str, existing: ExistingStateMachine) -> None:
    if existing.arn is None:
        engines.machines[tool] = _tag(existing.tag)
        return
    engines.machines[tool] = existing.arn
    engines.machine_names[tool] = existing.arn.rpartition(":")[2]


def _adopt_job(engines: Engines, tool: str, existing: ExistingJob) -> None:
    engines.jobs[tool] = {
        "queue": existing.queue if existing.queue is not None else _tag(existing.queue_tag),
        "definition": existing.definition if existing.definition is not None else _tag(existing.definition_tag),
    }


def _tag(tag: tuple[str, str] | None) -> str:
    assert tag is not None, "the catalogue names it by one or the other"
    return f"tag:{tag[0]}={tag[1]}"
