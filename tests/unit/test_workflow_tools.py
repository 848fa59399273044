"""Declaring a state machine as a tool: what it takes, what it keeps, what it returns, and what cannot work."""

from __future__ import annotations

import inspect
import warnings
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel

from taskrail import Call, ExistingStateMachine, Header, Image, TaskServer, Toolset, hours, minutes
from taskrail.compute import Policy
from taskrail.errors import ArgumentsError, DeclarationError
from taskrail.results import ResultError
from taskrail.tools import Tool
from taskrail.toolset import DeclaredTask
from taskrail.work import Workflow

FILE = "workflows/move.asl.json"
HAND: dict[str, Any] = {
    "type": "object",
    "properties": {"target": {"type": "string"}, "speed": {"type": "integer", "default": 1}},
    "required": ["target"],
    "additionalProperties": False,
}


class Part(BaseModel):
    table: str
    rows: int = 10


class Move(BaseModel):
    """Move a database.

    Parameters
    ----------
    target
        Where it goes.
    """

    target: str
    day: date | None = None
    parts: list[Part] = Field(default_factory=list)
    from_: Annotated[int, Field(alias="from", description="Where to start.")] = 0
    how: Literal["fast", "safe"] = "safe"


class Moved(BaseModel):
    rows: int


def declared(**options: Any) -> DeclaredTask[..., Any]:
    given: dict[str, Any] = {"input": Move, "definition": FILE, **options}
    return Toolset().workflow("move", **given)


def tool(**options: Any) -> Tool:
    return declared(**options).tool


def test_the_entry_of_a_workflow() -> None:
    entry = tool(output=Moved, title="Move", annotations={"destructiveHint": True}).wire()
    assert entry == {
        "name": "move",
        "title": "Move",
        "description": "Move a database.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "target": {"type": "string", "description": "Where it goes."},
                "day": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], "default": None},
                "parts": {"type": "array", "items": {"$ref": "#/$defs/Part"}},
                "from": {"type": "integer", "default": 0, "description": "Where to start."},
                "how": {"type": "string", "enum": ["fast", "safe"], "default": "safe"},
            },
            "required": ["target"],
            "additionalProperties": False,
            "$defs": {
                "Part": {
                    "type": "object",
                    "properties": {"table": {"type": "string"}, "rows": {"type": "integer", "default": 10}},
                    "required": ["table"],
                }
            },
        },
        "outputSchema": {"type": "object", "properties": {"rows": {"type": "integer"}}, "required": ["rows"]},
        "annotations": {"destructiveHint": True},
    }


def test_what_a_workflow_is_made_of() -> None:
    made = tool(functions={"plan": "workflows.move.plan"}, timeout=minutes(30), dedupe=hours(1))
    work = Workflow(FILE, {"plan": "workflows.move.plan"}, None, minutes(30))
    assert (made.kind, made.mode, made.work, made.runs_on) == ("workflow", "optional", work, work)
    assert made.policy == Policy(1_800_000, 60_000, 86_400_000, 604_800_000, 5_000)
    assert made.dedupe_ms == 3_600_000
    assert tool().dedupe_ms is None


def test_options_are_those_of_a_task() -> None:
    made = tool(mode="required", keep_result=hours(2), answer_within=hours(1), poll_interval=minutes(1))
    assert made.mode == "required"
    assert made.policy == Policy(3_600_000, 60_000, 7_200_000, 3_600_000, 60_000)
    entry = tool(description=" By hand. ", icons=[{"src": "https://example.com/a"}], meta={"com.example/a": 1}).wire()
    assert entry["description"] == "By hand."
    assert (entry["icons"], entry["_meta"]) == ([{"src": "https://example.com/a"}], {"com.example/a": 1})


def test_what_is_stored_is_checked_json_with_defaults_under_the_names_of_the_wire() -> None:
    stored = tool().stored_arguments({"target": "b", "day": "2026-02-01", "parts": [{"table": "t"}]})
    assert stored == {
        "target": "b",
        "day": "2026-02-01",
        "parts": [{"table": "t", "rows": 10}],
        "from": 0,
        "how": "safe",
    }
    assert tool().stored_arguments(stored) == stored


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "target: Field required"),
        ({"target": 5}, "target: Input should be a valid string"),
        ({"target": "a", "from": "5"}, "from: Input should be a valid integer"),
        ({"target": "a", "from": True}, "from: Input should be a valid integer"),
        ({"target": "a", "from_": 5}, "from_: Extra inputs"),
        ({"target": "a", "more": 5}, "more: Extra inputs"),
        ({"target": "a", "parts": [{"table": "t", "rows": "1"}]}, r"parts\[0\].rows: Input should be a valid integer"),
    ],
)
def test_arguments_are_held_to_the_model_as_strictly_as_a_functions(arguments: dict[str, Any], told: str) -> None:
    for check in (tool().stored_arguments, tool().signature.bind):
        with pytest.raises(ArgumentsError, match=told):
            check(arguments)


def test_a_model_may_say_itself_what_happens_to_more_arguments() -> None:
    class Open(BaseModel):
        """Work."""

        model_config = ConfigDict(extra="allow")
        a: int = 1

    assert tool(input=Open).stored_arguments({"b": 2}) == {"a": 1, "b": 2}
    assert tool(input=Open).signature.input_schema["additionalProperties"] is True


def test_a_validator_of_the_model_is_asked() -> None:
    from pydantic import field_validator

    class Even(BaseModel):
        """Work."""

        number: int

        @field_validator("number")
        @classmethod
        def _even(cls, number: int) -> int:
            if number % 2:
                raise ValueError("an even number, please")
            return number

    assert tool(input=Even).stored_arguments({"number": 4}) == {"number": 4}
    with pytest.raises(ArgumentsError, match=r"number: .*even number"):
        tool(input=Even).stored_arguments({"number": 5})


def test_a_schema_by_hand_travels_unaltered_and_fills_nothing_in() -> None:
    made = tool(input=HAND, description="Move.")
    assert made.wire()["inputSchema"] is HAND
    assert made.stored_arguments({"target": "a"}) == {"target": "a"}
    with pytest.raises(ArgumentsError, match="target: must be of type string"):
        made.stored_arguments({"target": 1})


def test_a_workflow_without_arguments() -> None:
    made = tool(input=None, description="Move.")
    assert made.signature.input_schema == {"type": "object", "properties": {}, "additionalProperties": False}
    assert made.stored_arguments({}) == {}
    with pytest.raises(ArgumentsError, match="a: Extra inputs"):
        made.stored_arguments({"a": 1})


def test_a_python_jobs_arguments_are_stored_as_they_came() -> None:
    from taskrail import StepFunctions

    tools = Toolset()

    @tools.task(runs_on=StepFunctions(), dedupe=hours(2))
    def job(number: int = 1) -> None:
        """Work."""

    assert job.tool.stored_arguments({}) == {}
    assert job.tool.parameter_values({"number": 1}) == {}
    assert job.tool.dedupe_ms == 7_200_000


def test_headers_of_a_model() -> None:
    class Regional(BaseModel):
        """Work."""

        region: Annotated[str, Header("Region")]

    assert [header.name for header in tool(input=Regional).signature.headers] == ["Region"]


def test_output_by_type_by_hand_and_whatever_comes() -> None:
    assert tool(output=Moved).returns.result({"rows": 5})["structuredContent"] == {"rows": 5}
    with pytest.raises(ResultError, match="rows"):
        tool(output=Moved).returns.result({"rows": "many"})
    assert tool(output=list[int]).returns.result([1])["structuredContent"] == {"result": [1]}
    by_hand = tool(output={"type": "object", "required": ["a"]})
    assert by_hand.wire()["outputSchema"] == {"type": "object", "required": ["a"]}
    with pytest.raises(ResultError, match="required but missing: a"):
        by_hand.returns.result({})
    anything = tool()
    assert "outputSchema" not in anything.wire()
    assert anything.returns.result({"a": 1}) == {
        "content": [{"type": "text", "text": '{"a":1}'}],
        "isError": False,
        "structuredContent": {"a": 1},
    }
    assert anything.returns.result(None)["content"] == []


def test_a_hook_takes_the_fields_by_name() -> None:
    move = declared()

    @move.before
    def check(call: Call, target: str, from_: int) -> None: ...

    hook = move.tool.before_signature
    assert hook is not None
    bound = move.tool.signature.bind({"target": "a", "from": 3})
    assert hook.keywords(bound, call="the call") == {"call": "the call", "target": "a", "from_": 3}
    with pytest.raises(DeclarationError, match=r"takes 'goal', which the tool does not.*target"):
        declared().before(lambda goal: None)


def test_a_hook_of_a_schema_by_hand() -> None:
    move = declared(input=HAND, description="Move.")

    @move.before
    def check(target: str, speed: int = 1) -> None: ...

    hook = move.tool.before_signature
    assert hook is not None
    assert hook.keywords(move.tool.signature.bind({"target": "a"})) == {"target": "a"}
    with pytest.raises(DeclarationError, match="takes 'speed', which callers may leave out; give it a default"):
        declared(input=HAND, description="Move.").before(lambda target, speed: None)
    with pytest.raises(DeclarationError, match="takes 'goal', which the tool does not"):
        declared(input=HAND, description="Move.").before(lambda goal: None)


def test_calling_it_says_that_it_is_elsewhere() -> None:
    with pytest.raises(NotImplementedError, match="'move' is no Python function"):
        declared()(target="a")
    move: Any = declared()
    assert move.__name__ == "move"
    assert repr(declared()) == "<workflow tool 'move'>"


def test_it_is_listed_among_the_others_and_its_name_is_its_own() -> None:
    tools = Toolset()
    tools.workflow("move", input=Move, definition=FILE)
    with pytest.raises(DeclarationError, match="tool 'move': the name is taken"):
        tools.workflow("move", input=Move, definition=FILE)
    assert list(TaskServer("s", version="1", tools=[tools]).tools) == ["move"]


def test_the_warning_about_results_for_ever_names_the_declaration() -> None:
    tools = Toolset()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
        tools.workflow("move", input=Move, definition=FILE, keep_result=None)
    assert [(warning.filename, warning.lineno) for warning in caught] == [(__file__, line)]


class Rooted(RootModel[dict[str, int]]):
    """Work."""


class Renamed(BaseModel):
    """Work."""

    number: Annotated[int, Field(validation_alias="n")]


class Hidden(BaseModel):
    """Work."""

    number: Annotated[int, Field(exclude=True)]


class Undescribed(BaseModel):
    number: int


class Odd(BaseModel):
    """Work."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    call: Call


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"definition": None}, "one of them"),
        ({"definition": "move.json"}, "below functions/workflows/"),
        ({"existing": ExistingStateMachine(tag=("a", "b"))}, "one of them"),
        ({"functions": {"plan": "plan"}}, "names a function"),
        ({"timeout": 5}, "timeout is a duration"),
        ({"input": Undescribed}, "has no description for agents"),
        ({"input": None}, "has no description for agents"),
        ({"input": HAND}, "has no description for agents"),
        ({"description": " "}, "has no description for agents"),
        ({"input": int}, "input is a pydantic model, a JSON Schema"),
        ({"input": "Move"}, "input is a pydantic model, a JSON Schema"),
        ({"input": Move(target="a")}, "input is a pydantic model, a JSON Schema"),
        ({"input": {"type": "array"}}, '"type": "object"'),
        ({"input": Rooted}, "not a RootModel"),
        ({"input": Renamed}, "'n' is not called the same once it is written"),
        ({"input": Hidden}, "'number' is not called the same once it is written"),
        ({"input": Odd}, "input=Odd cannot be told as JSON Schema"),
        ({"output": Image}, "output is a type that JSON can carry"),
        ({"output": Call}, "cannot be told as JSON Schema"),
        ({"output": {"type": "nonsense"}}, "output_schema: the schema is not valid"),
        ({"mode": "forbidden"}, "makes no sense"),
        ({"mode": "never"}, "'optional' or 'required'"),
        ({"dedupe": 5}, "dedupe is a duration"),
        ({"dedupe": hours(0)}, "dedupe must be longer than zero"),
        ({"keep_result": 5}, "keep_result is a duration"),
        ({"title": ""}, "title is a text"),
        ({"annotations": {"readOnly": True}}, "annotations: 'readOnly' is unknown"),
        ({"icons": [{}]}, "icons: each needs a src"),
        ({"meta": {"a": {1}}}, "meta must be plain JSON"),
        ({"colour": "red"}, "'colour' is unknown"),
    ],
)
def test_what_cannot_work_is_refused_with_the_tools_name(options: dict[str, Any], told: str) -> None:
    with pytest.raises(DeclarationError, match=f"tool 'move': .*{told}"):
        declared(**options)


@pytest.mark.parametrize("name", ["", "a b", None, 5])
def test_a_name_that_the_protocol_does_not_allow(name: Any) -> None:
    with pytest.raises(DeclarationError, match="a name is 1 to 128"):
        Toolset().workflow(name, input=Move, definition=FILE)


def test_a_workflow_is_no_place_to_run_for_a_function() -> None:
    def job() -> None:
        """Work."""

    with pytest.raises(DeclarationError, match="runs_on is a place to run"):
        Toolset().task(runs_on=Workflow(FILE))(job)
