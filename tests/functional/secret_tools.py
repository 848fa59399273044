"""Tools that put marked texts into every place there is; a test then looks where each has got to."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from taskrail import (
    Batch,
    Call,
    ExistingJob,
    ExistingStateMachine,
    ProtocolError,
    StepFunctions,
    TaskContext,
    TaskServer,
    ToolError,
    Toolset,
    hours,
    minutes,
)

tools = Toolset()
WORK = StepFunctions(timeout=minutes(5))


def mark(place: str) -> str:
    """The text that is put into that place and into no other."""
    return f"MARK-{place}-KRAM"


class Pin(BaseModel):
    pin: str = Field(max_length=6_000)


class Report(BaseModel):
    summary: str


@tools.task(runs_on=WORK)
def whole_life(task: TaskContext, small: str, large: str) -> Report:
    """Do all that a job can do, and return."""
    task.progress(1, 2, mark("progress"))
    task.step("small", lambda: mark("step"))
    task.step("large", lambda: mark("large-step") + "x" * 5_000)
    answer = task.ask("pin", mark("question"), Pin)
    task.ask("more", mark("second-question"), Pin)
    task.attach(f"{mark('file-name')}.txt", mark("file"))
    assert answer.content.pin
    return Report(summary=mark("result"))


@tools.task(runs_on=WORK)
def end_badly(task: TaskContext, how: str, secret: str) -> Report:
    """End in the way that is asked for, with the argument at hand."""
    local = secret + secret
    if how == "tool_error":
        raise ToolError(mark("tool-error"), structured={"half": mark("partial-result")})
    if how == "protocol_error":
        raise ProtocolError(4711, mark("error-message"), {"more": mark("error-data")})
    if how == "exit":
        raise SystemExit(mark("exit"))
    if how == "result":
        return {"summary": [mark("wrong-result"), local], mark("wrong-name"): local}  # type: ignore[return-value]
    try:
        raise KeyError(mark("cause"))
    except KeyError as error:
        failure = RuntimeError(mark("exception"))
        failure.add_note(mark("note"))
        raise failure from error


@tools.task(runs_on=WORK)
def asks_first(task: TaskContext, account: str) -> str:
    """Work that is asked about before it is stored."""
    return "done"


@asks_first.before
def confirm(call: Call, account: str) -> None:
    answer = call.ask("pin", mark("first-question"), Pin)
    call.ask("sure", "Sure?")
    if answer.content.pin == "wrong":
        raise ToolError(mark("hook-error"))
    if answer.content.pin == "broken":
        raise RuntimeError(mark("hook-exception"))


@tools.tool()
def at_once(secret: str, fail: bool = False) -> dict[str, Any]:
    """Answer inside the request."""
    if fail:
        raise RuntimeError(mark("inline-exception"))
    return {"answer": mark("inline-result")}


@tools.tool(
    schema={
        "type": "object",
        "properties": {"code": {"enum": ["a", "b"]}, "size": {"type": "integer", "maximum": 5}},
        "additionalProperties": False,
    }
)
def by_hand(code: str = "a", size: int = 0) -> str:
    """Take what a schema by hand describes."""
    return code


class Given(BaseModel):
    """Work that is none of the kit's."""

    secret: str
    word: str = ""


@tools.task(runs_on=WORK, dedupe=hours(1))
def once(task: TaskContext, secret: str) -> str:
    """Make one task of the same calls."""
    return "done"


@tools.task(runs_on=Batch(timeout=minutes(5)))
def on_batch(task: TaskContext, secret: str) -> str:
    """Work in a container of the kit's."""
    return mark("result")


tools.workflow(
    "machine",
    input=Given,
    existing=ExistingStateMachine(
        arn=f"arn:aws:states:eu-central-1:123456789012:stateMachine:{mark('machine-name')}", envelope=True
    ),
)
tools.container(
    "image",
    input=Given,
    image=f"example.com/{mark('image-name')}",
    command=["run", mark("command"), "Ref::word"],
    environment={"PASSWORD": mark("environment")},
    log_lines=5,
)
tools.container(
    "quiet",
    input=Given,
    existing=ExistingJob(queue=mark("queue-name"), definition=mark("definition-name")),
)

server = TaskServer("secrets", version="1", tools=[tools])
