"""``x-mcp-header``: what a client would drop a tool for is refused at load."""

from __future__ import annotations

import enum
import re
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from taskrail import Header
from taskrail.errors import DeclarationError
from taskrail.schema_headers import HeaderParameter, headers_of
from taskrail.signature import Signature, signature_of


class Colour(enum.Enum):
    RED = "red"


class Place(BaseModel):
    region: Annotated[str, Header("Region")]
    zone: int = 1


class Deep(BaseModel):
    place: Place
    other: list[Colour] = []


def signature(function: Any) -> Signature:
    return signature_of("t", function)


def test_plain_parameters() -> None:
    def tool(
        region: Annotated[str, Header("Region"), Field(description="Where")],
        urgent: Annotated[bool, Header("X-Urgent")] = False,
        count: Annotated[int, Field(ge=1, json_schema_extra={"x-mcp-header": "Count"})] = 1,
        kind: Annotated[Literal["a", "b"], Header("Kind")] = "a",
        colour: Annotated[Colour, Header("Colour")] = Colour.RED,
        renamed: Annotated[str, Header("Name"), Field(alias="theName")] = "",
    ) -> None: ...

    made = signature(tool)
    assert made.headers == (
        HeaderParameter("Region", ("region",), "string"),
        HeaderParameter("X-Urgent", ("urgent",), "boolean"),
        HeaderParameter("Count", ("count",), "integer"),
        HeaderParameter("Kind", ("kind",), "string"),
        HeaderParameter("Colour", ("colour",), "string"),
        HeaderParameter("Name", ("theName",), "string"),
    )
    assert made.input_schema["properties"]["region"] == {
        "type": "string",
        "description": "Where",
        "x-mcp-header": "Region",
    }
    assert made.input_schema["properties"]["colour"]["enum"] == ["red"]
    assert "$defs" not in made.input_schema
    assert made.bind({"region": "eu", "colour": "red"})["colour"] is Colour.RED


def test_nested_properties_count_and_are_written_in_place() -> None:
    def tool(deep: Deep, again: list[Colour]) -> None: ...

    made = signature(tool)
    assert made.headers == (HeaderParameter("Region", ("deep", "place", "region"), "string"),)
    place = made.input_schema["properties"]["deep"]["properties"]["place"]
    assert place["properties"]["region"]["x-mcp-header"] == "Region"
    assert set(made.input_schema["$defs"]) == {"Colour"}
    assert made.bind({"deep": {"place": {"region": "eu"}}, "again": []})["deep"].place.region == "eu"


class Box(BaseModel):
    inside: list[Colour] = []


def test_definitions_that_others_lead_to_are_kept_and_no_more() -> None:
    def tool(place: Place, boxes: list[Box]) -> None: ...

    assert set(signature(tool).input_schema["$defs"]) == {"Box", "Colour"}


def nullable_(a: Annotated[str | None, Header("A")] = None) -> None: ...
def float_(a: Annotated[float, Header("A")]) -> None: ...
def list_(a: Annotated[list[str], Header("A")]) -> None: ...
def object_(a: Annotated[dict[str, str], Header("A")]) -> None: ...
def model_(a: Annotated[Place, Header("A")]) -> None: ...
def any_(a: Annotated[Any, Header("A")]) -> None: ...
def items_(a: list[Annotated[str, Header("A")]]) -> None: ...
def in_list_(a: list[Place]) -> None: ...
def in_union_(a: Place | None = None) -> None: ...
def in_dict_(a: dict[str, Place]) -> None: ...
def twice_(a: Annotated[str, Header("Same")], b: Annotated[str, Header("sAME")]) -> None: ...
def twice_nested_(a: Place, b: Place) -> None: ...
def empty_(a: Annotated[str, Header("")]) -> None: ...
def space_(a: Annotated[str, Header("My Region")]) -> None: ...
def colon_(a: Annotated[str, Header("Region:")]) -> None: ...
def line_(a: Annotated[str, Header("Region\r\nX: y")]) -> None: ...
def foreign_(a: Annotated[str, Header("Région")]) -> None: ...
def number_(a: Annotated[str, Field(json_schema_extra={"x-mcp-header": 5})]) -> None: ...


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (nullable_, "of a: only a plain string.*may be null"),
        (float_, "of a: only a plain string, integer or boolean"),
        (list_, "of a: only a plain"),
        (object_, "of a: only a plain"),
        (model_, "of a: only a plain"),
        (any_, "of a: only a plain"),
        (items_, "stands where clients do not look"),
        (in_list_, "stands where clients do not look"),
        (in_union_, "stands where clients do not look"),
        (in_dict_, "stands where clients do not look"),
        (twice_, "on both a and b"),
        (twice_nested_, r"on both a\.region and b\.region"),
        (empty_, "of a must be a header name"),
        (space_, "of a must be a header name"),
        (colon_, "of a must be a header name"),
        (line_, "of a must be a header name"),
        (foreign_, "of a must be a header name"),
        (number_, "of a must be a header name"),
    ],
)
def test_annotations_that_make_clients_drop_the_tool(function: Any, text: str) -> None:
    with pytest.raises(DeclarationError, match=text) as caught:
        signature(function)
    assert str(caught.value).startswith("tool 't': x-mcp-header")


def header(name: Any = "Region", **more: Any) -> dict[str, Any]:
    return {"type": "string", "x-mcp-header": name, **more}


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [{"properties": {"a": header()}}]},
        {"oneOf": [{"properties": {"a": header()}}]},
        {"allOf": [{"properties": {"a": header()}}]},
        {"not": {"properties": {"a": header()}}},
        {"if": {"properties": {"a": header()}}},
        {"then": {"properties": {"a": header()}}},
        {"else": {"properties": {"a": header()}}},
        {"$defs": {"a": header()}},
        {"patternProperties": {"a": header()}},
        {"additionalProperties": header()},
        {"dependentSchemas": {"a": {"properties": {"a": header()}}}},
        {"properties": {"a": {"type": "array", "items": header()}}},
        {"properties": {"a": {"type": "array", "prefixItems": [header()]}}},
        {"properties": {"a": {"anyOf": [header()]}}},
        {"x-mcp-header": "Root"},
    ],
    ids=str,
)
def test_out_of_reach(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="stands where clients do not look"):
        headers_of({"type": "object", **schema})


def test_values_and_names_that_only_look_like_annotations() -> None:
    schema = {
        "type": "object",
        "properties": {
            "x-mcp-header": {"type": "object", "default": {"x-mcp-header": "no"}, "examples": [{"x-mcp-header": 1}]},
            "a": {"type": "object", "enum": [{"x-mcp-header": "no"}], "const": {"x-mcp-header": "no"}},
        },
    }
    assert headers_of(schema) == ()


def test_a_property_of_that_name_can_carry_the_annotation() -> None:
    schema = {"type": "object", "properties": {"x-mcp-header": header("Yes")}}
    assert headers_of(schema) == (HeaderParameter("Yes", ("x-mcp-header",), "string"),)


TCHAR = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


@given(st.text(max_size=8) | st.text("!#$%&'*+-.^_`|~09AZaz :\r\n\0é", max_size=8))
def test_exactly_the_tokens_are_names(name: str) -> None:
    schema = {"type": "object", "properties": {"a": header(name)}}
    if TCHAR.fullmatch(name):
        assert headers_of(schema)[0].name == name
    else:
        with pytest.raises(ValueError, match="must be a header name"):
            headers_of(schema)


@given(st.lists(st.from_regex(r"[A-Za-z]{1,2}", fullmatch=True), min_size=1, max_size=5))
def test_names_are_unique_without_case(names: list[str]) -> None:
    schema = {"type": "object", "properties": {f"p{number}": header(name) for number, name in enumerate(names)}}
    if len({name.lower() for name in names}) == len(names):
        assert [found.name for found in headers_of(schema)] == names
    else:
        with pytest.raises(ValueError, match="is on both"):
            headers_of(schema)
