"""`key=value` by a tool's schema."""

from __future__ import annotations

from typing import Any

import pytest

from taskrail_client.values import BadValue, pairs

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "deep": {"type": "boolean"},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "names": {"type": "array", "items": {"type": "string"}},
        "sizes": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
        "place": {"$ref": "#/$defs/Place"},
        "level": {"enum": [1, 2]},
        "free": {},
    },
    "$defs": {"Place": {"type": "object", "properties": {"x": {"type": "integer"}}}},
}


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["text=5"], {"text": "5"}),
        (["text=a=b"], {"text": "a=b"}),
        (["text="], {"text": ""}),
        (["count=-5"], {"count": -5}),
        (["share=2.5", "deep=yes"], {"share": 2.5, "deep": True}),
        (["share=2"], {"share": 2}),
        (["deep=False"], {"deep": False}),
        (["maybe=null"], {"maybe": None}),
        (["maybe=7"], {"maybe": 7}),
        (["names=a"], {"names": ["a"]}),
        (["names=a", "names=b"], {"names": ["a", "b"]}),
        (['names=["a", "b"]'], {"names": ["a", "b"]}),
        (["names:=[]"], {"names": []}),
        (['place={"x": 1}'], {"place": {"x": 1}}),
        (["level=2"], {"level": 2}),
        (["free=5"], {"free": "5"}),
        (["free:=5"], {"free": 5}),
        (['free:={"a": [null]}'], {"free": {"a": [None]}}),
    ],
)
def test_what_is_typed_becomes_what_the_tool_takes(texts: list[str], expected: dict[str, Any]) -> None:
    """Numbers, yes and no, JSON, and lists by repetition."""
    assert pairs(texts, SCHEMA) == expected


def test_the_items_of_a_nullable_list_are_texts() -> None:
    """A list behind a choice of types takes JSON, or the texts as they are."""
    assert pairs(["sizes=[1, 2]"], SCHEMA) == {"sizes": [1, 2]}
    assert pairs(["sizes=1", "sizes=2"], SCHEMA) == {"sizes": [1, 2]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("count=many", "count: 'many' is not a whole number"),
        ("count=1.5", "whole number"),
        ("deep=perhaps", "yes or no"),
        ("maybe=x", "a whole number or null"),
        ("names:=[", "names is no JSON"),
        ("place=here", "JSON"),
        ("nothing", "is no key=value"),
        ("=5", "is no key=value"),
        ("other=5", "there is no 'other'; there are: text, count"),
    ],
)
def test_what_cannot_be_is_told(text: str, words: str) -> None:
    """Which key, and what is wanted."""
    with pytest.raises(BadValue, match=words):
        pairs([text], SCHEMA)
