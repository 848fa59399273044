"""Binding arguments, for any JSON: they fit exactly when the schema says so, and no value is ever quoted."""

from __future__ import annotations

import enum
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from taskrail.errors import ArgumentsError
from taskrail.signature import signature_of


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Page(BaseModel):
    number: int
    words: list[str] = []


class Node(BaseModel):
    name: str
    inside: list[Node] = []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=10,
)


def everything(
    a: int,
    b: str | None = None,
    c: float = 1,
    d: list[Page] = [],  # noqa: B006
    e: Literal["x", 3] = "x",
    f: dict[str, bool] = {},  # noqa: B006
    g: Level = Level.LOW,
    h: Annotated[int, Field(ge=0, le=9)] | None = None,
    i: Node | None = None,
    j: int | list[int] | Colour = 0,
) -> None: ...


EVERYTHING = signature_of("t", everything)
VALIDATOR = jsonschema.Draft202012Validator(EVERYTHING.input_schema)
NEARLY = st.fixed_dictionaries(
    {"a": st.integers() | st.floats(-9, 9) | JSON},
    optional={
        "b": st.text() | JSON,
        "c": st.integers() | st.floats(allow_nan=False, allow_infinity=False) | JSON,
        "d": st.lists(st.fixed_dictionaries({"number": st.integers() | JSON}, optional={"words": JSON}), max_size=2),
        "e": st.sampled_from(["x", 3, 3.0, True, "y"]),
        "f": st.dictionaries(st.text(max_size=3), st.booleans() | JSON, max_size=2),
        "g": st.sampled_from([1, 2, 2.0, 3, True, "1", None]),
        "h": st.integers(-1, 10) | st.none() | st.floats(-1, 10),
        "i": st.fixed_dictionaries({"name": st.text()}, optional={"inside": JSON}),
        "j": st.lists(st.integers() | st.floats(-3, 3), max_size=3) | st.sampled_from(["red", 1, 1.0]) | JSON,
    },
)


@given(NEARLY | JSON)
def test_arguments_fit_exactly_when_the_schema_says_so(arguments: Any) -> None:
    try:
        EVERYTHING.bind(arguments)
    except ArgumentsError as error:
        assert error.problems
        assert not VALIDATOR.is_valid(arguments)
    else:
        VALIDATOR.validate(arguments)


def depth(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("value", [depth(3000), depth(250), 10**5000, "\ud800", {"\ud800": 1}], ids=lambda _: "value")
def test_json_at_its_limits(value: Any) -> None:
    def tool(value: Any) -> None: ...

    with pytest.raises(ArgumentsError):
        signature_of("t", tool).bind({"value": value})


SECRET = st.text("0123456789abcdef", min_size=12, max_size=12).map(lambda text: f"zq{text}")


@given(st.sampled_from(sorted(everything.__annotations__.keys() - {"return"})), SECRET, st.integers(0, 4))
def test_no_value_is_ever_quoted(name: str, secret: str, wrapping: int) -> None:
    wrapped: Any = [secret, [secret], {"number": secret}, [{"number": secret}], {"name": {"deep": secret}}][wrapping]
    try:
        EVERYTHING.bind({"a": 1, name: wrapped})
    except ArgumentsError as error:
        assert secret not in str(error)
