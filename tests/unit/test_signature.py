"""Signatures: the schema that a function has, and the arguments that fit it."""

from __future__ import annotations

import enum
import json
import re
import warnings
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

import jsonschema
import pytest
from pydantic import AliasChoices, BaseModel, Field, field_validator

from taskrail import Call, TaskContext
from taskrail.errors import ArgumentsError, DeclarationError
from taskrail.signature import Signature, hook_signature, signature_of

if TYPE_CHECKING:
    from fractions import Fraction

    from taskrail.context import TaskContext as Ticket


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Page(BaseModel):
    """A page."""

    number: int
    words: list[str] = []


class Node(BaseModel):
    name: str
    inside: list[Node] = []


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str]


def signature(function: Callable[..., Any], **more: Any) -> Signature:
    return signature_of("t", function, **more)


def properties(function: Callable[..., Any]) -> dict[str, Any]:
    made = signature(function).input_schema
    jsonschema.Draft202012Validator.check_schema(made)
    assert made["type"] == "object"
    assert made["additionalProperties"] is False
    found = made["properties"]
    assert isinstance(found, dict)
    return found


def problems(function: Callable[..., Any], arguments: Any) -> tuple[str, ...]:
    with pytest.raises(ArgumentsError) as caught:
        signature(function).bind(arguments)
    return caught.value.problems


def test_no_parameters() -> None:
    def tool() -> None: ...

    assert signature(tool).input_schema == {"type": "object", "properties": {}, "additionalProperties": False}
    assert signature(tool).bind({}) == {}
    assert problems(tool, {"a": 1}) == ("a: Extra inputs are not permitted",)


def test_schema_of_plain_parameters() -> None:
    def tool(
        report: str, pages: Annotated[int, Field(ge=1, le=500, description="How many")], factor: float = 1.5
    ) -> None:
        """Render.

        Parameters
        ----------
        report
            Which report.
        pages
            Not this: Field says more.
        """

    assert signature(tool).input_schema == {
        "type": "object",
        "properties": {
            "report": {"type": "string", "description": "Which report."},
            "pages": {"type": "integer", "minimum": 1, "maximum": 500, "description": "How many"},
            "factor": {"type": "number", "default": 1.5},
        },
        "required": ["report", "pages"],
        "additionalProperties": False,
    }


def test_nullable_is_said_and_optional_is_optional() -> None:
    def tool(a: int | None, b: int | None = None, c: int = 3) -> None: ...

    assert properties(tool)["a"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert signature(tool).input_schema["required"] == ["a"]
    assert signature(tool).bind({"a": None}) == {"a": None, "b": None, "c": 3}
    assert problems(tool, {}) == ("a: Field required",)
    assert problems(tool, {"a": 1, "c": None}) == ("c: Input should be a valid integer",)


@pytest.mark.parametrize(
    ("annotation", "sent", "received"),
    [
        (int, 5, 5),
        (int, 5.0, 5),
        (float, 5, 5.0),
        (bool, True, True),
        (str, "ü\n", "ü\n"),
        (date, "2026-01-02", date(2026, 1, 2)),
        (datetime, "2026-01-02T03:04:05", datetime(2026, 1, 2, 3, 4, 5)),
        (timedelta, "PT5M", timedelta(minutes=5)),
        (UUID, "12345678-1234-5678-1234-567812345678", UUID("12345678-1234-5678-1234-567812345678")),
        (Decimal, "1.50", Decimal("1.50")),
        (Path, "a/b", Path("a/b")),
        (Colour, "blue", Colour.BLUE),
        (Level, 2, Level.HIGH),
        (Level, 2.0, Level.HIGH),
        (Literal["a", 1], 1.0, 1),
        (list[int], [1, 2.0], [1, 2]),
        (set[int], [1, 1], {1}),
        (tuple[int, str], [1, "a"], (1, "a")),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (dict, {"a": [None]}, {"a": [None]}),
        (Any, [1, {"a": None}], [1, {"a": None}]),
        (Page, {"number": 1}, Page(number=1)),
        (list[Page], [{"number": 1, "words": ["a"]}], [Page(number=1, words=["a"])]),
        (Node, {"name": "a", "inside": [{"name": "b"}]}, Node(name="a", inside=[Node(name="b")])),
        (Annotated[Cat | Dog, Field(discriminator="kind")], {"kind": "cat", "lives": 9}, Cat(kind="cat", lives=9)),
        (int | str, "5", "5"),
        (int | None, None, None),
    ],
    ids=str,
)
def test_values_that_fit(annotation: Any, sent: Any, received: Any) -> None:
    def tool(value: Any) -> None: ...

    tool.__annotations__["value"] = annotation
    properties(tool)
    bound = signature(tool).bind({"value": sent})["value"]
    assert bound == received
    assert type(bound) is type(received)


@pytest.mark.parametrize(
    ("annotation", "sent", "place"),
    [
        (int, "5", "value"),
        (int, True, "value"),
        (int, 5.5, "value"),
        (int, None, "value"),
        (float, "5", "value"),
        (float, False, "value"),
        (bool, 1, "value"),
        (bool, "true", "value"),
        (str, 5, "value"),
        (date, 20260102, "value"),
        (UUID, "quokka", "value"),
        (Colour, "quokka", "value"),
        (Level, True, "value"),
        (list[Level], [1, True], "value[1]"),
        (Literal[1], True, "value"),
        (Literal[True], 1, "value"),
        (Literal["a"], "quokka", "value"),
        (list[int], [1, "quokka"], "value[1]"),
        (list[int], {"quokka": 1}, "value"),
        (dict[str, int], {"a": "quokka"}, "value.a"),
        (Page, {"number": "quokka"}, "value.number"),
        (Page, {}, "value.number"),
        (list[Page], [{"number": 1}, {"number": 1, "words": ["a", 5]}], "value[1].words[1]"),
        (Node, {"name": "a", "inside": [{"name": 5}]}, "value.inside[0].name"),
        (Annotated[Cat | Dog, Field(discriminator="kind")], {"kind": "quokka"}, "value"),
        (Annotated[Cat | Dog, Field(discriminator="kind")], {"kind": "dog", "tricks": [1]}, "value.tricks[0]"),
        (Page | list[int], {"number": "quokka"}, "value.number"),
        (int | str, [1], "value"),
    ],
    ids=str,
)
def test_values_that_do_not_fit_are_told_by_place_and_never_quoted(annotation: Any, sent: Any, place: str) -> None:
    def tool(value: Any) -> None: ...

    tool.__annotations__["value"] = annotation
    told = problems(tool, {"value": sent})
    assert any(problem.startswith(f"{place}: ") for problem in told)
    assert "quokka" not in " ".join(told)
    assert "http" not in " ".join(told)


def test_all_faults_are_told_at_once() -> None:
    def tool(a: int, b: str, c: int) -> None: ...

    assert problems(tool, {"a": "x", "c": 1, "d": 1}) == (
        "a: Input should be a valid integer",
        "b: Field required",
        "d: Extra inputs are not permitted",
    )


@pytest.mark.parametrize("arguments", [None, [], 5, "text", [{"a": 1}]])
def test_arguments_that_are_no_object(arguments: Any) -> None:
    def tool(a: int = 1) -> None: ...

    assert problems(tool, arguments)[0].startswith("arguments: ")


def test_the_text_of_a_validator_of_the_tools_own_reaches_the_caller() -> None:
    class Even(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def even(cls, number: int) -> int:
            if number % 2:
                raise ValueError("must be even")
            return number

    def tool(value: Even) -> None: ...

    tool.__annotations__["value"] = Even
    assert problems(tool, {"value": {"number": 3}}) == ("value.number: Value error, must be even",)


def test_long_and_strange_names_do_not_disturb_the_text() -> None:
    def tool() -> None: ...

    told = problems(tool, {"x" * 5000: 1, "a\nb": 2})
    assert max(map(len, told)) < 200
    assert "\n" not in "".join(told)


def test_aliases_are_the_names_on_the_wire() -> None:
    def tool(pages: Annotated[int, Field(alias="pageCount")], schema: str = "s", model_config: int = 1) -> None: ...

    assert list(properties(tool)) == ["pageCount", "schema", "model_config"]
    assert signature(tool).bind({"pageCount": 3}) == {"pages": 3, "schema": "s", "model_config": 1}
    assert len(problems(tool, {"pages": 3})) == 2


def test_defaults_of_all_kinds() -> None:
    def tool(
        a: int = Field(default=3, ge=1, description="Count"),
        b: Annotated[list[int], Field(default_factory=list)] = Field(default_factory=lambda: [1]),  # noqa: B008
        c: Colour = Colour.RED,
        d: Page = Page(number=1),  # noqa: B008
        e: timedelta = timedelta(minutes=1),
    ) -> None: ...

    found = properties(tool)
    assert found["a"] == {"type": "integer", "minimum": 1, "default": 3, "description": "Count"}
    assert found["c"]["default"] == "red"
    assert found["d"]["default"] == {"number": 1, "words": []}
    assert found["e"]["default"] == "PT1M"
    bound = signature(tool).bind({})
    assert bound == {"a": 3, "b": [1], "c": Colour.RED, "d": Page(number=1), "e": timedelta(minutes=1)}
    assert bound["b"] is not signature(tool).bind({})["b"]


def test_a_default_that_json_cannot_carry_is_left_out_quietly() -> None:
    def tool(a: Any = object()) -> None: ...  # noqa: B008

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "default" not in properties(tool)["a"]


def test_titles_only_where_somebody_wrote_one() -> None:
    def tool(page: Page, colour: Colour, count: Annotated[int, Field(title="How many")], node: Node) -> None: ...

    text = json.dumps(signature(tool).input_schema)
    assert re.findall(r'"title": "([^"]*)"', text) == ["How many"]
    assert '"description": "A page."' in text


def test_parameter_descriptions_from_google_style() -> None:
    def tool(task: TaskContext, report: str) -> None:
        """Render.

        Args:
            task: The ticket.
            report (str): Which
                report.
        """

    made = signature(tool, allowed=frozenset(("task",)))
    assert made.input_schema["properties"]["report"]["description"] == "Which report."


def test_what_the_kit_hands_in_is_no_argument() -> None:
    def job(task: TaskContext, a: int) -> None: ...
    def hook(a: int, call: Call) -> None: ...
    def typed(ticket: Ticket, a: int) -> None: ...

    made = signature(job, allowed=frozenset(("task",)))
    assert list(made.input_schema["properties"]) == ["a"]
    assert made.injected == (("task", "task"),)
    assert made.keywords(made.bind({"a": 1}), task="the task") == {"a": 1, "task": "the task"}
    assert signature(hook, allowed=frozenset(("call",))).injected == (("call", "call"),)
    with pytest.raises(DeclarationError, match="'Ticket', which does not exist"):
        signature(typed, allowed=frozenset(("task",)))


def test_a_context_that_is_imported_for_type_checkers_only_is_known_by_its_name() -> None:
    module: dict[str, Any] = {"__builtins__": __builtins__, "__name__": "elsewhere"}
    exec("from __future__ import annotations\ndef job(ctx: TaskContext, a: int) -> None: ...", module)
    made = signature(module["job"], allowed=frozenset(("task",)))
    assert made.injected == (("ctx", "task"),)
    assert list(made.input_schema["properties"]) == ["a"]


@pytest.mark.parametrize("allowed", [frozenset[str](), frozenset(("call",))])
def test_a_context_in_the_wrong_place(allowed: frozenset[str]) -> None:
    def tool(task: TaskContext) -> None: ...

    with pytest.raises(DeclarationError, match=r"tool 't': parameter 'task' takes a TaskContext.*@tools\.task"):
        signature(tool, allowed=allowed)


def test_a_call_in_the_wrong_place() -> None:
    def tool(call: Call) -> None: ...

    with pytest.raises(DeclarationError, match="'call' takes a Call"):
        signature(tool, allowed=frozenset(("task",)))


def test_one_context_is_enough() -> None:
    def tool(a: TaskContext, b: TaskContext) -> None: ...

    with pytest.raises(DeclarationError, match="'b' is a second one"):
        signature(tool, allowed=frozenset(("task",)))


class Opaque:
    pass


def args_(*values: int) -> None: ...
def kwargs_(**values: int) -> None: ...
def positional_(value: int, /) -> None: ...
def bare_(value) -> None: ...  # type: ignore[no-untyped-def]
def callable_(value: Callable[[int], int]) -> None: ...
def object_(value: threading_lock) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def checking_(value: Fraction) -> None: ...
def none_(value: int = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013
def choices_(value: Annotated[int, Field(validation_alias=AliasChoices("a", "b"))]) -> None: ...
def same_(a: Annotated[int, Field(alias="x")], b: Annotated[int, Field(alias="x")]) -> None: ...
def arbitrary_(value: Opaque) -> None: ...


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (args_, r"\*values.*take a list"),
        (kwargs_, r"\*\*values.*name the parameters"),
        (positional_, "'value' is positional only.*drop the '/'"),
        (bare_, "'value' has no annotation"),
        (callable_, "'value' cannot be told as JSON Schema.*pydantic model"),
        (object_, "'value' names 'threading_lock', which does not exist"),
        (checking_, "'value' names 'Fraction'.*not under TYPE_CHECKING"),
        (none_, r"'value' defaults to None.*write '\.\.\. \| None'"),
        (choices_, "'value' has several aliases"),
        (same_, "'a' and 'b' share the alias 'x'"),
        (arbitrary_, "'value' cannot be told.*Opaque"),
        (5, "a tool is a function"),
    ],
)
def test_parameters_that_cannot_work(function: Any, text: str) -> None:
    with pytest.raises(DeclarationError, match=text) as caught:
        signature(function)
    assert str(caught.value).startswith("tool 't': ")


def test_names_from_around_the_declaration() -> None:
    from taskrail.hints import declaration_names

    class Local(BaseModel):
        a: int

    def outer() -> Signature:
        class Inner(BaseModel):
            b: int

        def tool(local: Local, inner: Inner, more: list[Inner]) -> None: ...

        return signature(tool, names=declaration_names(tool, 0))

    assert Local is not None
    bound = outer().bind({"local": {"a": 1}, "inner": {"b": 2}, "more": []})
    assert bound["local"] == Local(a=1)


def test_a_hook_takes_what_its_tool_takes() -> None:
    def job(report: str, pages: int) -> None: ...
    def hook(call: Call, pages: int) -> None: ...
    def greedy(call: Call, **rest: Any) -> None: ...
    def wrong(call: Call, size: int) -> None: ...
    def unneeded(pages: int, size: int = 3) -> None: ...

    tool = signature(job)
    bound = tool.bind({"report": "a", "pages": 3})
    assert hook_signature("t", hook, tool).keywords(bound, call=1) == {"pages": 3, "call": 1}
    assert hook_signature("t", greedy, tool).keywords(bound, call=1) == {"report": "a", "pages": 3, "call": 1}
    assert hook_signature("t", unneeded, tool).keywords(bound, call=1) == {"pages": 3}
    with pytest.raises(DeclarationError, match=r"hook takes 'size'.*report, pages"):
        hook_signature("t", wrong, tool)
