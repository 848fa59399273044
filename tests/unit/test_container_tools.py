"""Declaring a container as a tool: its placeholders, its sizes, and what cannot work."""

from __future__ import annotations

from enum import Enum
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from taskrail import Batch, ExistingJob, StepFunctions, Toolset, hours, minutes
from taskrail.compute import Policy
from taskrail.errors import DeclarationError
from taskrail.tools import Tool
from taskrail.work import Container


class Codec(Enum):
    H264 = "h264"
    AV1 = "av1"


class Transcode(BaseModel):
    """Transcode a film."""

    source: str
    codec: Codec = Codec.H264
    speed: int = 1
    quality: float | None = None
    audio: bool = True
    kind: Literal["film", 5] = "film"
    scenes: list[str] = []
    extra: dict[str, str] | None = None


def tool(**options: Any) -> Tool:
    given: dict[str, Any] = {"input": Transcode, "image": "example.com/ffmpeg:7", **options}
    return Toolset().container("transcode", **given).tool


def test_what_a_container_is_made_of() -> None:
    runs_on = Batch(vcpu=2, memory_mb=4096, timeout=hours(3), attempts=2, queue_within=hours(1))
    made = tool(
        command=["sh", "-c", "go Ref::source"],
        environment={"MODE": "fast"},
        parameters=("speed",),
        log_lines=20,
        runs_on=runs_on,
        dedupe=minutes(5),
    )
    assert (made.kind, made.runs_on, made.dedupe_ms) == ("container", runs_on, 300_000)
    assert made.work == Container(
        image="example.com/ffmpeg:7",
        command=("sh", "-c", "go Ref::source"),
        environment={"MODE": "fast"},
        parameters=("speed", "source"),
        log_lines=20,
    )
    assert made.policy == Policy(3 * 3_600_000, 3_600_000, 86_400_000, 604_800_000, 5_000, attempts=2)
    assert made.description == "Transcode a film."


def test_it_runs_on_batch_unless_told() -> None:
    assert tool().runs_on == Batch()
    assert tool().work == Container(image="example.com/ffmpeg:7")


def test_an_adopted_job_has_the_time_of_its_declaration() -> None:
    existing = ExistingJob(queue="films", definition_tag=("team", "films"))
    made = tool(image=None, existing=existing, runs_on=Batch(timeout=minutes(30), attempts=1), parameters=("source",))
    assert made.work == Container(existing=existing, parameters=("source",))
    assert made.policy is not None
    assert made.policy.timeout_ms == 1_800_000


def test_values_of_placeholders_are_written_as_json_writes_them() -> None:
    made = tool(parameters=("source", "codec", "speed", "quality", "audio", "kind"))
    stored = made.stored_arguments({"source": "a b", "quality": 0.5, "audio": False, "kind": 5})
    assert made.parameter_values(stored) == {
        "source": "a b",
        "codec": "h264",
        "speed": "1",
        "quality": "0.5",
        "audio": "false",
        "kind": "5",
    }


def test_what_is_null_or_absent_is_left_out() -> None:
    made = tool(parameters=("source", "quality"))
    assert made.parameter_values(made.stored_arguments({"source": "a"})) == {"source": "a"}
    by_hand = tool(
        input={"type": "object", "properties": {"source": {"type": ["string", "null"]}, "size": {"type": "integer"}}},
        parameters=("source", "size"),
        description="Transcode.",
    )
    assert by_hand.parameter_values(by_hand.stored_arguments({"source": None})) == {}


@pytest.mark.parametrize(
    "inner",
    [
        {"type": "string"},
        {"type": ["integer", "null"]},
        {"enum": ["a", 1, None]},
        {"const": True},
        {"anyOf": [{"type": "number"}, {"type": "null"}]},
        {"oneOf": [{"type": "boolean"}, {"$ref": "#/$defs/word"}]},
        {"allOf": [{"$ref": "#/$defs/word"}, {"maxLength": 5}]},
    ],
)
def test_schemas_of_what_a_placeholder_can_carry(inner: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"a": inner}, "$defs": {"word": {"type": "string"}}}
    assert tool(input=schema, parameters=("a",), description="Work.").work == Container(
        image="example.com/ffmpeg:7", parameters=("a",)
    )


@pytest.mark.parametrize(
    "inner",
    [
        {},
        True,
        {"type": "object"},
        {"type": ["string", "array"]},
        {"enum": ["a", []]},
        {"const": {}},
        {"anyOf": [{"type": "string"}, {"type": "array"}]},
        {"$ref": "#/$defs/self"},
    ],
)
def test_schemas_of_what_it_cannot(inner: Any) -> None:
    schema = {"type": "object", "properties": {"a": inner}, "$defs": {"self": {"$ref": "#/$defs/self"}}}
    with pytest.raises(DeclarationError, match="parameters: 'a' is not a text, a number or a truth value"):
        tool(input=schema, parameters=("a",), description="Work.")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"image": None}, "one of them"),
        ({"existing": ExistingJob("a", "b")}, "one of them"),
        ({"command": "echo"}, "command is a list of texts"),
        ({"command": ["echo", "Ref::goal"]}, "its input has no 'goal'; there are source, codec"),
        ({"parameters": ("goal",)}, "its input has no 'goal'"),
        ({"parameters": ("scenes",)}, "'scenes' is not a text"),
        ({"parameters": ("extra",)}, "'extra' is not a text"),
        ({"input": None, "parameters": ("a",), "description": "Work."}, "its input has no 'a'; there are none"),
        ({"environment": {"TASKRAIL_RUN": "1"}}, "are taken"),
        ({"log_lines": 500}, "log_lines is 0 to 200"),
        ({"runs_on": StepFunctions()}, r"runs_on of a container is Batch\(...\)"),
        ({"runs_on": Batch}, r"runs_on of a container is Batch\(...\)"),
        ({"mode": "forbidden"}, "makes no sense"),
    ],
)
def test_what_cannot_work_is_refused_with_the_tools_name(options: dict[str, Any], told: str) -> None:
    with pytest.raises(DeclarationError, match=f"tool 'transcode': .*{told}"):
        tool(**options)


def test_a_python_job_on_batch() -> None:
    tools = Toolset()

    @tools.task(runs_on=Batch(timeout=hours(2)), job="jobs.train")
    def train(rows: int) -> int:
        """Train."""
        raise NotImplementedError

    made = tools.tools[0]
    assert (made.kind, made.work, made.runs_on) == ("task", None, Batch(timeout=hours(2)))
    assert made.policy is not None
    assert made.policy.run_budget_ms == 3 * 7_200_000 + 6 * 3_600_000
    with pytest.raises(DeclarationError, match="runs_on is a place to run"):
        tools.task("again", runs_on=Batch)(train)  # type: ignore[arg-type]
