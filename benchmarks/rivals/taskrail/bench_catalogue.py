"""The kit's entry in the comparison: one tool whose calls are tasks on Step Functions."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from taskrail import StepFunctions, TaskContext, TaskServer, Toolset, hours, minutes, seconds

tools = Toolset()


class Approval(BaseModel):
    """What is asked."""

    publish: bool = Field(description="Publish the report?")


@tools.task(runs_on=StepFunctions(timeout=minutes(10)), keep_result=hours(24), poll_interval=seconds(5))
def render(task: TaskContext, report: str, pages: Annotated[int, Field(ge=1, le=500)]) -> str:
    """Render a report as PDF."""
    approved = task.ask("approval", "Publish the report?", Approval)
    return f"{pages} pages of {report} rendered, {'published' if approved.accepted else 'kept'}"


server = TaskServer("bench", version="1.0.0", tools=[tools])
