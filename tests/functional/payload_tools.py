"""Jobs whose payloads are large, many, gone, or no JSON at all; a test says what they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from taskrail import ProtocolError, StepFunctions, TaskContext, TaskServer, ToolError, ToolResult, Toolset, minutes
from taskrail.content import Text

tools = Toolset()
WORK = StepFunctions(timeout=minutes(5))


class Note(BaseModel):
    text: str


class Rows(BaseModel):
    rows: list[str]
    share: float
    more: dict[str, int]


class Open(BaseModel):
    anything: Any


class Share(BaseModel):
    share: float


given: list[Any] = [None]
"""The value that jobs return, remember, report or attach: what a caller could not send."""


@tools.task(runs_on=WORK)
def attach_many(task: TaskContext, count: int, text: str = "") -> str:
    """Attach many files and return a text."""
    for number in range(count):
        task.attach(f"file-{number}.txt", f"content {number}", description=f"File number {number}")
    return text


@tools.task(runs_on=WORK)
def attach_twice(task: TaskContext) -> str:
    """Attach two files under one name."""
    task.attach("same.txt", "first")
    task.attach("same.txt", "second")
    return "done"


@tools.task(runs_on=WORK)
def remember_then_ask(task: TaskContext, text: str = "", size: int = 0) -> str:
    """Remember a step, ask, and use both."""
    kept = task.step("size", lambda: "s" * size)
    answer = task.ask("note", "A note?", Note)
    return f"{len(text)} {len(kept)} {len(answer.content.text)}"


@tools.task(runs_on=WORK)
def many_steps(task: TaskContext, count: int, size: int) -> str:
    """Remember many steps."""
    for number in range(count):
        task.step(f"step-{number}", lambda: '"' * size)
    return "done"


@tools.task(runs_on=WORK)
def many_questions(task: TaskContext, count: int, words: int = 1) -> str:
    """Ask many things at once."""
    answers = task.ask_all({f"q{number}": ("Why? " * words, Note) for number in range(count)})
    return str(sum(len(answer.content.text) for answer in answers.values()))


@tools.task(runs_on=WORK)
def rows(task: TaskContext, count: int, width: int) -> Rows:
    """Return a model of a size."""
    return Rows(rows=['"' + "x" * width] * count, share=0.1, more={"a": 1})


@tools.task(runs_on=WORK)
def plain_list(task: TaskContext, count: int, width: int) -> list[str]:
    """Return a list of a size, which travels wrapped."""
    return ["\u00e4" * width] * count


@tools.task(
    runs_on=WORK,
    output_schema={
        "type": "object",
        "properties": {"text": {"type": "string"}, "count": {"type": "integer"}},
        "required": ["text", "count"],
        "additionalProperties": False,
    },
)
def by_hand(task: TaskContext, count: int, width: int) -> dict[str, Any]:
    """Return what a schema by hand describes."""
    return {"text": "y" * width * count, "count": count}


@tools.task(runs_on=WORK)
def put_together(task: TaskContext, count: int, width: int) -> ToolResult:
    """Return many blocks beside a little structure."""
    return ToolResult([f"{number}" + "z" * width for number in range(count)], structured={"count": count})


@tools.task(runs_on=WORK)
def refuse_at_length(task: TaskContext, message: int, data: int) -> str:
    """End with a JSON-RPC error of a size."""
    raise ProtocolError(4711, "m" * message, {"why": "d" * data})


@tools.task(runs_on=WORK)
def give_any(task: TaskContext) -> Any:
    """Return it, whatever it is."""
    return given[0]


@tools.task(runs_on=WORK)
def give_bare(task: TaskContext):  # type: ignore[no-untyped-def]  # without an annotation on purpose
    """Return it from a function that says nothing of what it returns."""
    return given[0]


@tools.task(runs_on=WORK)
def give_dict(task: TaskContext) -> dict[str, Any]:
    """Return it inside an open object."""
    return {"list": [{"value": given[0]}]}


@tools.task(runs_on=WORK)
def give_open_model(task: TaskContext) -> Open:
    """Return it inside an open model."""
    return Open(anything={"value": given[0]})


@tools.task(runs_on=WORK)
def give_model_as_any(task: TaskContext) -> Any:
    """Return it inside a model that nobody announced."""
    return Open.model_construct(anything=[given[0]])


@tools.task(runs_on=WORK)
def give_share(task: TaskContext) -> Share:
    """Return it where a number belongs."""
    return Share.model_construct(share=given[0])


@tools.task(runs_on=WORK)
def give_floats(task: TaskContext) -> list[float]:
    """Return it among numbers."""
    return [0.5, given[0]]


@tools.task(runs_on=WORK)
def give_structured(task: TaskContext) -> ToolResult:
    """Return it in a result put together by hand."""
    return ToolResult(["text"], structured={"value": given[0]})


@tools.task(runs_on=WORK)
def give_structured_model(task: TaskContext) -> ToolResult:
    """Return it in a model, in a result put together by hand."""
    return ToolResult(["text"], structured=Open.model_construct(anything=given[0]))


@tools.task(runs_on=WORK)
def give_meta(task: TaskContext) -> ToolResult:
    """Return it in the result's metadata."""
    return ToolResult(["text"], meta={"value": given[0]})


@tools.task(runs_on=WORK)
def give_annotation(task: TaskContext) -> Text:
    """Return it in a block's annotations."""
    return Text("text", annotations={"priority": given[0]})


@tools.task(runs_on=WORK)
def remember(task: TaskContext) -> str:
    """Remember it as a step's outcome."""
    task.step("value", lambda: {"value": given[0]})
    return "remembered"


@tools.task(runs_on=WORK)
def progress_done(task: TaskContext) -> str:
    """Tell it as progress."""
    task.progress(given[0], 10)
    return "told"


@tools.task(runs_on=WORK)
def progress_total(task: TaskContext) -> str:
    """Tell it as a total."""
    task.progress(1, given[0], "Working")
    return "told"


@tools.task(runs_on=WORK)
def attach_named(task: TaskContext) -> str:
    """Attach a file of that name."""
    task.attach(given[0], "content")
    return "attached"


@tools.task(runs_on=WORK)
def attach_described(task: TaskContext) -> str:
    """Attach a file with that description."""
    task.attach("file.txt", "content", description=given[0])
    return "attached"


@tools.task(runs_on=WORK)
def attach_typed(task: TaskContext) -> str:
    """Attach a file of that media type."""
    task.attach("file.txt", "content", mime_type=given[0])
    return "attached"


@tools.task(runs_on=WORK)
def tool_error(task: TaskContext) -> str:
    """Refuse, with it as the partial result, and as the message if it can be one."""
    raise ToolError(given[0] if isinstance(given[0], str | Exception) else "No.", structured={"value": given[0]})


@tools.task(runs_on=WORK)
def protocol_error(task: TaskContext) -> str:
    """Refuse formally, with it as the data."""
    raise ProtocolError(4711, "Refused.", {"value": given[0]})


@tools.task(runs_on=WORK)
def sample_with(task: TaskContext) -> str:
    """Ask the client's model with it among the parameters."""
    task.sample("thought", [{"role": "user", "content": {"type": "text", "text": "Hm?"}}], 10, metadata={"v": given[0]})
    return "sampled"


@tools.task(runs_on=WORK)
def anything(task: TaskContext) -> Any:
    """Do what the test says."""
    work: Callable[[TaskContext], Any] = given[0]
    return work(task)


server = TaskServer("payloads", version="1", tools=[tools])
