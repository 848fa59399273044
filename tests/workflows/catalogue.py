"""A catalogue of workflows and containers for the local stack: the examples, and what goes wrong on purpose."""

from __future__ import annotations

import time

from pydantic import BaseModel

from taskrail import Batch, ExistingJob, ExistingStateMachine, TaskContext, TaskServer, Toolset, minutes, seconds
from tests.workflows.snippets import SCRIPTS
from tools import migrations, statistics

tools = Toolset()


class How(BaseModel):
    """What to do."""

    how: str = ""


class Nothing(BaseModel):
    """Nothing to say."""

    note: str = ""


class Book(BaseModel):
    """As docs/tools.md has it."""

    chapters: list[str] = []
    copies: int = 1


class Film(BaseModel):
    """As docs/tools.md has it."""

    scenes: int = 3


for name in ("both", "again", "around", "quoted", "snippets_jsonpath", "snippets_jsonata"):
    tools.workflow(
        name,
        description="Ask.",
        input=Nothing,
        definition=f"workflows/{name}.asl.json",
        poll_interval=seconds(1),
    )

tools.workflow(
    "ends",
    description="End as told.",
    input=How,
    definition="workflows/ends.asl.json",
    functions={"end": "tests.workflows.functions.end"},
    poll_interval=seconds(1),
)

# What docs/tools.md shows.
tools.workflow(
    "print_book",
    description="As documented.",
    input=Book,
    definition="workflows/print_book.asl.json",
    functions={"plan": "print_book.plan", "press": "print_book.press"},
    poll_interval=seconds(1),
)
tools.workflow(
    "ask_both",
    description="As documented.",
    input=Book,
    definition="workflows/ask_both.asl.json",
    poll_interval=seconds(1),
)

tools.workflow("no_machine", description="Cannot run.", input=Nothing, definition="workflows/no_machine.asl.json")
tools.workflow("no_file", description="Cannot run.", input=Nothing, definition="workflows/no_such.asl.json")
tools.workflow(
    "adopted_machine",
    description="Cannot run here.",
    input=Nothing,
    existing=ExistingStateMachine(arn="arn:aws:states:eu-central-1:123456789012:stateMachine:reports"),
)
tools.container(
    "adopted_job", description="Cannot run here.", input=Nothing, existing=ExistingJob(queue="q", definition="d")
)
tools.container("image_command", description="Cannot run here.", input=Nothing, image="example.com/image:1")

SMALL = Batch(vcpu=0.25, memory_mb=512, timeout=minutes(2))

tools.container(
    "shell",
    description="Whatever a shell can do.",
    input=How,
    image="example.com/sh:1",
    command=["sh", "-c", "Ref::how"],
    environment={"GREETING": "hello"},
    log_lines=3,
    runs_on=SMALL,
    poll_interval=seconds(1),
)
for name, command in (
    ("in_sh", ["sh", "-c", SCRIPTS["container.sh"], "container.sh", "Ref::scenes"]),
    ("in_node", ["node", "--input-type=module", "--eval", SCRIPTS["container.mjs"]]),
):
    # As documented, with the script in the command in place of a file in the image.
    tools.container(
        name,
        description="As documented.",
        input=Film,
        image="example.com/image:1",
        command=command,
        runs_on=SMALL,
        poll_interval=seconds(1),
    )

tools.container(
    "twice",
    description="Whatever a shell can do; tried twice if it is lost.",
    input=How,
    image="example.com/sh:1",
    command=["sh", "-c", "Ref::how"],
    runs_on=Batch(vcpu=0.25, memory_mb=512, timeout=minutes(2), attempts=2),
    poll_interval=seconds(1),
)
tools.container(
    "no_program",
    description="A command that this machine does not have.",
    input=Nothing,
    image="example.com/image:1",
    command=["no-such-program"],
    log_lines=1,
    runs_on=SMALL,
    poll_interval=seconds(1),
)


@tools.task(runs_on=Batch(vcpu=0.25, memory_mb=512, timeout=minutes(2), attempts=2), poll_interval=seconds(1))
def on_batch(task: TaskContext, how: str) -> str:
    """A Python job on Batch."""
    if how == "wait" or (how == "wait once" and task.attempt == 1):
        for _ in task.track(range(10_000), "Working"):
            time.sleep(0.1)
    return f"attempt {task.attempt}"


server = TaskServer("workflows", version="1.0.0", tools=[tools, migrations.tools, statistics.tools])
