"""Schemas given by hand: they travel unaltered, are checked at load, and bind."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskrail import TaskContext
from taskrail.errors import ArgumentsError, DeclarationError
from taskrail.schema_headers import HeaderParameter
from taskrail.signature import Signature, signature_of

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"size": {"$anchor": "size", "type": "object", "properties": {"w": {"type": "integer", "minimum": 1}}}},
    "properties": {
        "name": {"type": "string", "minLength": 2, "pattern": "^[a-z]+$"},
        "size": {"$ref": "#/$defs/size"},
        "kind": {"enum": ["a", 1, None]},
        "way": {"anyOf": [{"type": "integer"}, {"type": "object", "required": ["to"]}]},
        "first": {"$ref": "#size"},
    },
    "required": ["name"],
    "if": {"properties": {"kind": {"const": "a"}}, "required": ["kind"]},
    "then": {"required": ["size"]},
    "additionalProperties": False,
}


def everything(arguments: dict[str, Any]) -> None: ...
def more(**rest: Any) -> None: ...
def named(name: str, size: Any = None, kind: Any = None, way: Any = None, first: Any = None) -> None: ...


def signature(function: Any, schema: Any = SCHEMA, **other: Any) -> Signature:
    return signature_of("t", function, schema=schema, **other)


def problems(arguments: Any, schema: Any = SCHEMA) -> tuple[str, ...]:
    with pytest.raises(ArgumentsError) as caught:
        signature(everything, schema).bind(arguments)
    return caught.value.problems


def test_it_travels_unaltered() -> None:
    before = copy.deepcopy(SCHEMA)
    assert signature(everything).input_schema is SCHEMA
    assert before == SCHEMA


def test_arguments_come_as_one_dict_or_by_name() -> None:
    sent = {"name": "ada", "size": {"w": 1}}
    assert signature(everything).bind(sent) == {"arguments": sent}
    assert signature(more).bind(sent) == sent
    assert signature(named).bind(sent) == sent
    made = signature(more)
    assert made.keywords(made.bind(sent)) == sent


def test_a_property_called_arguments_is_a_property() -> None:
    schema = {"type": "object", "properties": {"arguments": {"type": "integer"}}, "required": ["arguments"]}
    assert signature(everything, schema).bind({"arguments": 3}) == {"arguments": 3}


def test_arguments_that_the_schema_allows_but_nobody_takes_are_dropped() -> None:
    def tool(name: str) -> None: ...

    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    assert signature(tool, schema).bind({"name": "a", "other": 1}) == {"name": "a"}


def test_what_the_kit_hands_in_stands_beside() -> None:
    def job(task: TaskContext, arguments: dict[str, Any]) -> None: ...

    made = signature(job, allowed=frozenset(("task",)))
    assert made.keywords(made.bind({"name": "ada"}), task=1) == {"arguments": {"name": "ada"}, "task": 1}


def test_headers_by_hand() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "A"}}}
    assert signature(everything, schema).headers == (HeaderParameter("A", ("a",), "string"),)
    with pytest.raises(DeclarationError, match="tool 't': x-mcp-header of a"):
        signature(everything, {"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}})


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "arguments: required but missing: name"),
        ({"name": 5}, "name: must be of type string"),
        ({"name": "q"}, "name: must satisfy minLength 2"),
        ({"name": "QUOKKA"}, "name: must satisfy pattern ^[a-z]+$"),
        ({"name": "ada", "size": {"w": 0}}, "size.w: must satisfy minimum 1"),
        ({"name": "ada", "first": {"w": "quokka"}}, "first.w: must be of type integer"),
        ({"name": "ada", "kind": "quokka"}, 'kind: must be one of "a", 1, null'),
        ({"name": "ada", "way": "quokka"}, "way: must be of type integer or must be of type object"),
        ({"name": "ada", "way": {}}, "way: must be of type integer or required but missing: to"),
        ({"name": "ada", "kind": "a"}, "arguments: required but missing: size"),
        ({"name": "ada", "more": "quokka"}, "arguments: not expected here: more"),
        ([], "arguments: must be of type object"),
        (None, "arguments: must be of type object"),
    ],
    ids=str,
)
def test_faults_are_told_by_place_and_never_quoted(arguments: Any, told: str) -> None:
    found = problems(arguments)
    assert told in found
    assert "quokka" not in " ".join(found).lower()


def test_draft_07() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "definitions": {"n": {"type": "integer"}},
        "properties": {"a": {"$ref": "#/definitions/n"}, "pair": {"items": [{"type": "string"}]}},
    }
    assert signature(everything, schema).bind({"a": 1})
    assert problems({"a": "x"}, schema) == ("a: must be of type integer",)
    assert problems({"pair": [1]}, schema) == ("pair[0]: must be of type string",)


def test_formats_are_words_only() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "format": "date"}}}
    assert signature(everything, schema).bind({"a": "someday"})


def obj(**more: Any) -> dict[str, Any]:
    return {"type": "object", **more}


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ([], "is an object"),
        ({}, 'must say "type": "object"'),
        ({"type": "array"}, 'must say "type": "object"'),
        ({"type": ["object", "null"]}, 'must say "type": "object"'),
        (obj(**{"$schema": "https://json-schema.org/draft/2019-09/schema"}), "dialect is unknown"),
        (obj(**{"$schema": "https://example.com/mine"}), "dialect is unknown"),
        (obj(**{"$schema": 5}), "dialect is unknown"),
        (obj(properties={"a": {"$schema": "https://example.com/mine"}}), "dialect is unknown"),
        (obj(properties={"a": {"type": "strange"}}), "not valid at properties/a/type"),
        (obj(properties={"a": {"pattern": "("}}), "not valid at properties/a/pattern"),
        (obj(required="a"), "not valid at required"),
        (obj(properties={"a": {"$ref": "https://example.com/s.json"}}), "leads out of it"),
        (obj(properties={"a": {"$ref": "other.json#/x"}}), "leads out of it"),
        (obj(properties={"a": {"$ref": "#/$defs/none"}}), "leads out of it"),
        (obj(allOf=[{"$ref": "file:///etc/passwd"}]), "leads out of it"),
    ],
    ids=str,
)
def test_schemas_that_cannot_work(schema: Any, text: str) -> None:
    with pytest.raises(DeclarationError, match=text) as caught:
        signature(everything, schema)
    assert str(caught.value).startswith("tool 't': ")


def test_a_reference_by_its_own_identifier_is_no_way_out() -> None:
    schema = {
        "$id": "https://example.com/mine",
        **obj(properties={"a": {"$ref": "https://example.com/mine#/$defs/n"}}),
        "$defs": {"n": {"type": "integer"}},
    }
    assert problems({"a": "x"}, schema) == ("a: must be of type integer",)


def two(a: int, b: int) -> None: ...
def other(c: int) -> None: ...


@pytest.mark.parametrize(
    ("function", "schema", "text"),
    [
        (other, obj(properties={"a": {}}, required=["a"]), "no parameter for 'a'"),
        (two, obj(properties={"a": {}, "b": {}}, required=["a"]), "'b' has no default"),
        (other, obj(), "'c' has no default"),
    ],
)
def test_functions_that_do_not_fit_their_schema(function: Any, schema: dict[str, Any], text: str) -> None:
    with pytest.raises(DeclarationError, match=text):
        signature(function, schema)


def test_nesting_without_end() -> None:
    schema = {**obj(properties={"a": {"$ref": "#"}})}
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    assert problems(deep, schema) == ("arguments: nested too deeply",)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["w", "to", "x"]), inner, max_size=3),
    max_leaves=6,
)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


@given(
    st.fixed_dictionaries(
        {},
        optional={name: JSON | st.sampled_from(["ada", "a", {"w": 2}]) for name in [*SCHEMA["properties"], "extra"]},
    )
    | JSON
)
def test_arguments_fit_exactly_when_the_schema_says_so(arguments: Any) -> None:
    try:
        signature(everything).bind(arguments)
    except ArgumentsError:
        assert not VALIDATOR.is_valid(arguments)
    else:
        VALIDATOR.validate(arguments)
