"""The fixture tools that the official suite expects of a server of tools, under the names it gives them.

The order matters in two places: `http-header-validation` calls the first listed tool with no arguments, and
`http-custom-header-server-validation` takes the first tool that has an `x-mcp-header`.
"""

from __future__ import annotations

import base64
import time
from typing import Annotated, Any

from pydantic import BaseModel, Field

from taskrail import (
    Audio,
    Call,
    Header,
    Image,
    ProtocolError,
    Resource,
    StepFunctions,
    TaskContext,
    TaskServer,
    Text,
    ToolError,
    Toolset,
    minutes,
    seconds,
)
from taskrail.questions import form_question, roots_question, sampling_question

content = Toolset()
requests = Toolset()
tasks = Toolset()

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
# A WAV file's header, and no sample after it.
SILENCE = base64.b64decode("UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=")

# Taken over by the suite character by character: a schema given by hand travels unaltered.
CANONICAL_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


class Name(BaseModel):
    """A question for a name."""

    name: str


class Ok(BaseModel):
    """A question for a yes."""

    ok: bool


class Color(BaseModel):
    """A question for a colour."""

    color: str


class Confirm(BaseModel):
    """A question before something is destroyed."""

    confirm: bool = Field(description="Go on?")


def says(text: str) -> dict[str, Any]:
    """A sampling message of the user."""
    return {"role": "user", "content": {"type": "text", "text": text}}


# --- content


@content.tool()
def test_simple_text() -> str:
    """Return one text."""
    return "This is a simple text response for testing."


@content.tool()
def test_image_content() -> Image:
    """Return one image."""
    return Image(PIXEL, "image/png")


@content.tool()
def test_audio_content() -> Audio:
    """Return one piece of audio."""
    return Audio(SILENCE, "audio/wav")


@content.tool()
def test_embedded_resource() -> Resource:
    """Return one embedded resource."""
    return Resource("test://embedded-resource", text="This is an embedded resource content.", mime_type="text/plain")


@content.tool()
def test_multiple_content_types() -> list[Text | Image | Resource]:
    """Return a text, an image and a resource."""
    return [
        Text("Multiple content types test:"),
        Image(PIXEL, "image/png"),
        Resource("test://mixed-content-resource", text='{"test":"data","value":123}', mime_type="application/json"),
    ]


@content.tool()
def test_error_handling() -> str:
    """Fail, and say so."""
    raise ToolError("This tool intentionally returns an error for testing")


@content.tool(schema=CANONICAL_SCHEMA)
def json_schema_2020_12_tool(arguments: dict[str, Any]) -> str:
    """Show that a schema given by hand travels unaltered."""
    return f"Received {len(arguments)} arguments."


@content.tool()
def test_custom_header(region: Annotated[str, Header("Region")] = "") -> str:
    """Take an argument that a proxy can read in a header."""
    return f"Region: {region}"


# --- inside the request


@requests.tool()
def test_missing_capability(call: Call) -> str:
    """Ask for what the client did not declare."""
    call.sample("thought", [says("Think.")], 10)
    return "The client can sample."


@requests.tool()
def test_streaming_elicitation(call: Call) -> str:
    """Ask a question and return a result."""
    answer = call.ask("name", "What is your name?", Name)
    return f"Hello, {answer.content.name}!" if answer.accepted else "Hello, nobody!"


@requests.tool()
def test_logging_tool() -> str:
    """Return a result and log nothing to the client."""
    return "Nothing was logged to the client."


@requests.tool()
def test_input_required_result_elicitation(call: Call) -> str:
    """Greet after asking for a name."""
    answer = call.ask("user_name", "What is your name?", Name)
    return f"Hello, {answer.content.name}!" if answer.accepted else "Hello, nobody!"


@requests.tool()
def test_input_required_result_sampling(call: Call) -> str:
    """Return what the client's model says."""
    answer = call.sample("capital_question", [says("What is the capital of France?")], 100)
    return str(answer.raw["content"]["text"])


@requests.tool()
def test_input_required_result_list_roots(call: Call) -> str:
    """List the client's roots."""
    answer = call.roots("client_roots")
    return ", ".join(root["uri"] for root in answer.raw["roots"])


@requests.tool()
def test_input_required_result_request_state(call: Call) -> str:
    """Show that the sealed state came back as it was sent."""
    call.ask("confirm", "Please confirm", Ok)
    return "state-ok"


@requests.tool()
def test_input_required_result_tampered_state(call: Call) -> str:
    """Ask, so that the client has a state to tamper with."""
    call.ask("confirm", "Please confirm", Ok)
    return "The state was whole."


@requests.tool()
def test_input_required_result_multiple_inputs(call: Call) -> str:
    """Ask three kinds of question at once."""
    answers = call.gather(
        form_question("user_name", "What is your name?", Name),
        sampling_question("greeting", [says("Generate a greeting")], 50),
        roots_question("client_roots"),
    )
    return f"{len(answers)} answers."


@requests.tool()
def test_input_required_result_multi_round(call: Call) -> str:
    """Ask twice: the second question comes after the first answer."""
    name = call.ask("step1", "Step 1: What is your name?", Name)
    color = call.ask("step2", "Step 2: What is your favorite color?", Color)
    if not (name.accepted and color.accepted):
        return "Not answered."
    return f"{name.content.name} likes {color.content.color}."


@requests.tool()
def test_input_required_result_capabilities(call: Call) -> str:
    """Ask only what the client can be asked."""
    answers = call.gather(
        form_question("user_name", "What is your name?", Name),
        sampling_question("greeting", [says("Generate a greeting")], 50),
    )
    return f"{len(answers)} answers."


@requests.tool()
def greet(name: str) -> str:
    """Greet somebody by name."""
    return f"Hello, {name}!"


# --- tasks

SMALL = StepFunctions(memory_mb=256, timeout=minutes(2))


@tasks.task(runs_on=SMALL, poll_interval=seconds(1))
def slow_compute(task: TaskContext, seconds: Annotated[float, Field(ge=0, le=100)], label: str = "") -> str:
    """Work for that many seconds, and stop when told to."""
    for _ in task.track(range(round(seconds * 10)), "Computing"):
        time.sleep(0.1)
    return f"Computed {label} for {seconds} s."


@tasks.task(runs_on=SMALL, mode="required", poll_interval=seconds(1))
def failing_job(task: TaskContext) -> str:
    """Fail after a second."""
    time.sleep(1)
    raise ToolError("This job intentionally fails for testing")


@tasks.task(runs_on=SMALL, poll_interval=seconds(1))
def protocol_error_job(task: TaskContext) -> str:
    """End in a protocol error."""
    raise ProtocolError(-31999, "This job intentionally ends in a protocol error")


@tasks.task(runs_on=SMALL, poll_interval=seconds(1))
def confirm_delete(task: TaskContext, filename: str) -> str:
    """Delete nothing, after asking."""
    answer = task.ask("confirm", f"Delete {filename}?", Confirm)
    return f"Deleted {filename}." if answer.accepted and answer.content.confirm else f"Kept {filename}."


@tasks.task(runs_on=SMALL, poll_interval=seconds(1))
def multi_input(task: TaskContext) -> str:
    """Ask two questions at once."""
    answers = task.ask_all({"name": ("What is your name?", Name), "confirm": ("Go on?", Confirm)})
    return f"{sum(answer.accepted for answer in answers.values())} of {len(answers)} accepted."


@tasks.task(runs_on=SMALL, mode="required", poll_interval=seconds(1))
def test_tool_with_task(task: TaskContext, user_name: str = "") -> str:
    """Greet somebody whose name is asked for before the task is made."""
    return f"Hello, {user_name}!"


@test_tool_with_task.before
def ask_for_the_name(call: Call, user_name: str = "") -> dict[str, str]:
    """Ask inside the request; what it returns goes into the task's arguments."""
    answer = call.ask("user_name", "What is your name?", Name)
    return {"user_name": answer.content.name if answer.accepted else "nobody"}


server = TaskServer(
    "taskrail-conformance",
    version="1.0.0",
    instructions="Fixture tools of the official conformance suite.",
    tools=[content, requests, tasks],
)
