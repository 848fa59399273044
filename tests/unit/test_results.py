"""Results: what a return annotation promises, and what becomes of the values."""

from __future__ import annotations

import base64
import enum
import json
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated, Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, computed_field
from typing_extensions import TypedDict

from taskrail import Audio, Image, Link, Resource, Text, ToolResult
from taskrail.errors import DeclarationError, TaskrailError
from taskrail.results import ResultError, Returns, error_result, returns_of, text_result


class Page(BaseModel):
    number: int
    words: list[str] = Field(default=[], serialization_alias="theWords")
    day: date | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> int:
        return self.number * 2


class Node(BaseModel):
    name: str
    inside: list[Node] = []


class Point(TypedDict):
    x: int
    y: int


@dataclass
class Size:
    width: int


class Open(BaseModel):
    anything: Any


@dataclass
class OpenSize:
    width: Any


class Colour(enum.Enum):
    RED = "red"


def returns(annotation: Any) -> Returns:
    def tool() -> Any: ...

    tool.__annotations__["return"] = annotation
    return returns_of("t", tool)


def check(made: Returns, result: dict[str, Any]) -> Any:
    """A result that keeps every promise; its structured part comes back."""
    assert result["isError"] is False
    structured = result["structuredContent"]
    assert made.output_schema is not None
    jsonschema.Draft202012Validator.check_schema(made.output_schema)
    jsonschema.validate(structured, made.output_schema)
    assert made.output_schema["type"] == "object"
    assert json.loads(result["content"][-1]["text"]) == structured
    return structured


@pytest.mark.parametrize(
    ("annotation", "value", "structured"),
    [
        (
            Page,
            Page(number=2, words=["a"], day=date(2026, 1, 2)),
            {"number": 2, "theWords": ["a"], "day": "2026-01-02", "double": 4},
        ),
        (Page, {"number": 1}, {"number": 1, "theWords": [], "day": None, "double": 2}),
        (Node, Node(name="a", inside=[Node(name="b")]), {"name": "a", "inside": [{"name": "b", "inside": []}]}),
        (Point, {"x": 1, "y": 2}, {"x": 1, "y": 2}),
        (Size, Size(3), {"width": 3}),
        (dict, {"a": [1, None]}, {"a": [1, None]}),
        (dict[str, float], {"a": 0.1}, {"a": 0.1}),
        (int, 5, {"result": 5}),
        (bool, True, {"result": True}),
        (list[Page], [Page(number=1)], {"result": [{"number": 1, "theWords": [], "day": None, "double": 2}]}),
        (list[Node], [Node(name="a")], {"result": [{"name": "a", "inside": []}]}),
        (int | None, None, {"result": None}),
        (str | None, "a", {"result": "a"}),
        (Page | Size, Size(1), {"result": {"width": 1}}),
        (tuple[int, str], (1, "a"), {"result": [1, "a"]}),
        (Colour, Colour.RED, {"result": "red"}),
        (Decimal, Decimal("1.50"), {"result": "1.50"}),
        (date, date(2026, 1, 2), {"result": "2026-01-02"}),
        (set[int], {1}, {"result": [1]}),
        (Annotated[int, Field(ge=0, description="How many")], 3, {"result": 3}),
    ],
    ids=str,
)
def test_structured_values(annotation: Any, value: Any, structured: Any) -> None:
    made = returns(annotation)
    assert check(made, made.result(value)) == structured
    assert made.wrapped is ("result" in structured)


def test_schemas_carry_no_titles_that_nobody_wrote() -> None:
    schema = returns(list[Page]).output_schema
    assert '"title"' not in json.dumps([schema, returns(Page).output_schema, returns(Node).output_schema])


def test_a_title_that_somebody_wrote_stays() -> None:
    class Titled(BaseModel):
        """What it is."""

        number: int = Field(title="Number of pages")

    schema = returns(Titled).output_schema
    assert schema is not None
    assert schema["properties"]["number"]["title"] == "Number of pages"
    assert schema["description"] == "What it is."


@pytest.mark.parametrize(
    "annotation", [str, None, Any, object, Annotated[str, "x"], Text, ToolResult, list[Image], Image | Text]
)
def test_no_schema_where_there_is_nothing_structured(annotation: Any) -> None:
    assert returns(annotation).output_schema is None


def test_a_missing_annotation_promises_nothing() -> None:
    def tool():  # type: ignore[no-untyped-def]
        ...

    made = returns_of("t", tool)
    assert made.output_schema is None
    assert made.result("a") == {"content": [{"type": "text", "text": "a"}], "isError": False}
    assert made.result(None) == {"content": [], "isError": False}
    assert made.result(3)["content"] == [{"type": "text", "text": "3"}]
    assert made.result([1, 2])["content"] == [{"type": "text", "text": "[1,2]"}]
    assert made.result({"a": 1})["structuredContent"] == {"a": 1}


def test_text_is_text_only() -> None:
    assert returns(str).result('say "ü"\n') == {"content": [{"type": "text", "text": 'say "ü"\n'}], "isError": False}


def test_content_blocks_on_the_wire() -> None:
    data = base64.b64encode(b"\x00\xff").decode()
    result = returns(list[Text]).result(
        [
            Text("a", annotations={"audience": ["user"]}),
            "b",
            Image(b"\x00\xff", "image/png"),
            Audio(b"\x00\xff", "audio/wav"),
            Resource("test://a", text="t", mime_type="text/plain"),
            Resource("test://b", blob=b"\x00\xff"),
            Link("https://example.com/a", "a.pdf", "application/pdf", "A file", 12),
        ]
    )
    assert result["content"] == [
        {"type": "text", "text": "a", "annotations": {"audience": ["user"]}},
        {"type": "text", "text": "b"},
        {"type": "image", "data": data, "mimeType": "image/png"},
        {"type": "audio", "data": data, "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "test://a", "mimeType": "text/plain", "text": "t"}},
        {"type": "resource", "resource": {"uri": "test://b", "blob": data}},
        {
            "type": "resource_link",
            "uri": "https://example.com/a",
            "name": "a.pdf",
            "description": "A file",
            "mimeType": "application/pdf",
            "size": 12,
        },
    ]
    assert "structuredContent" not in result
    assert returns(Image).result(Image(b"", "image/png"))["content"][0]["type"] == "image"


@pytest.mark.parametrize(
    "make",
    [
        lambda: Image("text", "image/png"),  # type: ignore[arg-type]
        lambda: Image(b"", "png"),
        lambda: Image(b"", "text/plain"),
        lambda: Audio(b"", "image/png"),
        lambda: Resource("test://a"),
        lambda: Resource("test://a", text="a", blob=b"a"),
        lambda: Resource("no scheme", text="a"),
        lambda: Link("relative/path", "a"),
        lambda: Link("https://example.com", ""),
        lambda: Link("https://example.com", "a", size=-1),
        lambda: Text(5),  # type: ignore[arg-type]
        lambda: Text("\ud800"),
    ],
)
def test_blocks_that_no_client_could_read(make: Callable[[], Any]) -> None:
    with pytest.raises(ResultError):
        make()


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (float, math.nan),
        (float, math.inf),
        (dict, {"a": -math.inf}),
        (Open, Open(anything=[math.nan])),
        (OpenSize, OpenSize({"a": math.inf})),
        (Any, math.nan),
        (Any, {1, 2}),
        (Any, {"a": b"bytes"}),
        (Any, object()),
        (Any, {(1, 2): 3}),
        (Any, "\ud800"),
        (str, "\udfff"),
        pytest.param(Any, 10**5000, id="long number"),
        (dict[str, Any], {"a": object()}),
        (int, "many"),
        (int, None),
        (Page, {"number": "x"}),
        (Page, None),
        (Page, Size(1)),
        (list[int], [1, "x"]),
        (list[Text], [Text("a"), 5]),
    ],
)
def test_values_that_cannot_be_sent(annotation: Any, value: Any) -> None:
    with pytest.raises(ResultError) as caught:
        returns(annotation).result(value)
    assert str(caught.value)
    assert isinstance(caught.value, TaskrailError)


def test_a_value_that_contains_itself() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ResultError, match="contains itself"):
        returns(Any).result(loop)


def test_a_model_that_was_changed_into_something_else() -> None:
    page = Page(number=1)
    page.number = "secret"  # type: ignore[assignment]
    with pytest.raises(ResultError) as caught:
        returns(Page).result(page)
    assert "secret" not in str(caught.value)


def test_the_value_of_a_fault_is_not_told() -> None:
    with pytest.raises(ResultError, match=r"does not fit.*number") as caught:
        returns(Page).result({"number": "secret"})
    assert "secret" not in str(caught.value)


def test_a_result_put_together_by_hand() -> None:
    made = returns(ToolResult)
    result = made.result(ToolResult(["Found 2", Image(b"", "image/png")], structured={"n": 2}, meta={"x/y": 1}))
    assert [block["type"] for block in result["content"]] == ["text", "image", "text"]
    assert json.loads(result["content"][2]["text"]) == {"n": 2} == result["structuredContent"]
    assert result["_meta"] == {"x/y": 1}
    assert made.result(ToolResult(['{"n":2}'], structured={"n": 2}))["content"] == [{"type": "text", "text": '{"n":2}'}]


def test_an_error_carries_no_structured_content() -> None:
    result = returns(ToolResult).result(ToolResult(["It broke"], structured={"done": 3}, is_error=True))
    assert result == {
        "content": [{"type": "text", "text": "It broke"}, {"type": "text", "text": '{"done":3}'}],
        "isError": True,
    }


OUTPUT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def test_an_output_schema_by_hand_travels_unaltered_and_binds() -> None:
    def tool() -> Any: ...

    made = returns_of("t", tool, OUTPUT)
    assert made.output_schema is OUTPUT
    assert check(made, made.result({"n": 1})) == {"n": 1}
    assert check(made, made.result(ToolResult(structured={"n": 1}))) == {"n": 1}
    for value in ({"n": "secret"}, {}, "text", ToolResult(["text"]), ToolResult(structured={"n": "secret"})):
        with pytest.raises(ResultError) as caught:
            made.result(value)
        assert "secret" not in str(caught.value)
    assert made.result(ToolResult(["no"], is_error=True))["isError"] is True


@pytest.mark.parametrize("annotation", [bytes, Callable[[], int], type, threading.Lock], ids=str)
def test_annotations_that_are_no_json(annotation: Any) -> None:
    with pytest.raises(DeclarationError, match="tool 't': "):
        returns(annotation)


@pytest.mark.parametrize(
    "schema", [{"type": "strange"}, {"$ref": "https://example.com/x"}, {"$schema": "https://example.com"}, []]
)
def test_output_schemas_that_cannot_work(schema: Any) -> None:
    def tool() -> Any: ...

    with pytest.raises(DeclarationError, match=r"tool 't': output_schema: "):
        returns_of("t", tool, schema)


def test_error_result_keeps_what_there_is() -> None:
    assert error_result("no", ["part"]) == {
        "content": [{"type": "text", "text": "no"}, {"type": "text", "text": "part"}],
        "isError": True,
    }
    error_result("half \ud800")["content"][0]["text"].encode("utf-8")


def test_text_result() -> None:
    assert text_result("a") == {"content": [{"type": "text", "text": "a"}], "isError": False}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(), max_size=4) | st.integers(), inner, max_size=4)
        | st.frozensets(st.integers(), max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES, st.sampled_from([Any, dict[str, Any], list[Any], int | None, str, float]))
def test_any_value_becomes_valid_json_or_a_clear_error(value: Any, annotation: Any) -> None:
    made = returns(annotation)
    try:
        result = made.result(value)
    except ResultError as error:
        assert str(error)
        return
    text = json.dumps(result, allow_nan=False, ensure_ascii=False)
    text.encode("utf-8")
    assert json.loads(text) == result
    if made.output_schema is not None:
        check(made, result)
