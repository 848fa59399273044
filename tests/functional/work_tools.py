"""A catalogue of work that is no Python function, and of tools that give repeated calls one task."""

from __future__ import annotations

from pydantic import BaseModel, Field

from taskrail import (
    Batch,
    ExistingJob,
    ExistingStateMachine,
    InputFile,
    Lambda,
    StepFunctions,
    TaskContext,
    TaskServer,
    ToolError,
    Toolset,
    hours,
    minutes,
    seconds,
)

tools = Toolset()


class Migration(BaseModel):
    """Move a table's rows to another layout."""

    table: str
    batches: int = 3
    notes: str = ""


class Moved(BaseModel):
    """What was moved."""

    rows: int = Field(description="How many rows.")


class Scenes(BaseModel):
    """Cut a film into scenes."""

    film: str
    count: int = 2
    colour: bool = True
    label: str | None = None


class Upload(BaseModel):
    """Take in a document."""

    document: InputFile
    note: str = ""


tools.workflow(
    "migrate",
    input=Migration,
    output=Moved,
    definition="workflows/migrate.asl.json",
    functions={"plan": "workflows.migrate.plan"},
    timeout=minutes(10),
    answer_within=hours(2),
    poll_interval=seconds(2),
)
tools.workflow("anything", input=None, description="Whatever.", definition="workflows/anything.asl.json")
tools.workflow(
    "adopted_machine",
    input=Migration,
    existing=ExistingStateMachine(arn="arn:aws:states:eu-central-1:123456789012:stateMachine:old"),
)
tools.container(
    "cut",
    input=Scenes,
    image="example/cutter:1",
    command=["cut", "Ref::film", "--count", "Ref::count", "--colour", "Ref::colour", "--label", "Ref::label"],
    runs_on=Batch(timeout=minutes(30), attempts=2, queue_within=hours(1)),
    log_lines=3,
    poll_interval=seconds(2),
)
tools.container("silent", input=Scenes, output=Moved, image="example/silent:1", runs_on=Batch(timeout=minutes(5)))
tools.container("adopted_job", input=Scenes, existing=ExistingJob(queue="old", definition="old"), parameters=["film"])
tools.container("take_in", input=Upload, image="example/take:1")


@tools.task(runs_on=Batch(timeout=minutes(30), attempts=2, queue_within=hours(1)), poll_interval=seconds(2))
def crunch(task: TaskContext, numbers: list[int]) -> int:
    """Add numbers, and ask whether the sum is wanted."""
    total = task.step("add", lambda: sum(numbers))
    if total > 100 and not task.ask("large", "That is a lot. Go on?").accepted:
        raise ToolError("Not wanted.")
    return total


@tools.task(runs_on=StepFunctions(timeout=minutes(5)), dedupe=hours(3), keep_result=hours(1))
def once(task: TaskContext, text: str) -> str:
    """Say something, once."""
    if text == "bad":
        raise ToolError("Bad.")
    return text


@tools.task(runs_on=Batch(timeout=minutes(5)), dedupe=hours(1))
def once_on_batch(task: TaskContext, text: str) -> str:
    """Say something, once, on Batch."""
    return text


@tools.task(runs_on=Lambda(timeout=minutes(5)))
def glance(text: str) -> int:
    """Count letters, in a function."""
    return len(text)


server = TaskServer("work", version="1", tools=[tools], uploads=True)
