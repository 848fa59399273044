"""Requests that were valid once: values swapped for others; bytes cut, flipped, repeated, spliced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

JUNK: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    10**40,
    -(2**63) - 1,
    1e308,
    "",
    " ",
    "\x00",
    "\ud800",
    "x" * 200,
    "2026-07-28",
    "2025-11-25",
    "tasks/cancel",
    "tools/call",
    "../../etc/passwd",
    "s3://elsewhere/inputs/other/secret",
    "' OR 1=1 --",
    "task#" + "0" * 32,
    "F" * 32,
    "0" * 31 + "\u0661",
    [],
    [None],
    [[]],
    {},
    {"": None},
    {"action": "accept"},
    {"action": "accept", "content": {"publish": True}},
    {"action": "accept", "content": {"publish": "yes"}},
    {"action": "accept", "content": []},
    {"action": ["accept"]},
    {"approval": {"action": "accept"}, "first": None},
    {"action": "decline", "content": 5},
    {"io.modelcontextprotocol/tasks": {}},
    {"io.modelcontextprotocol/tasks": True},
    {"extensions": {"io.modelcontextprotocol/tasks": {}}},
    {"elicitation": {"url": {}}},
    {"taskIds": [1]},
    {"name": "greet", "taskId": "f" * 32},
)
"""What stands in the place of a value."""

TOKENS = tuple(
    token.encode("utf-8", "surrogatepass")
    for token in (
        "NaN",
        "-Infinity",
        "1e999",
        "-0",
        "1E+2",
        "0x10",
        "01",
        "9" * 400,
        "9" * 5_000,
        "0.1e-400",
        "null",
        "true",
        "[]",
        "{}",
        '""',
        '"\\ud800"',
        '"\\ud83d\\ude00\\udc00"',
        "\ud800",
        '"\\u0000"',
        "\x00",
        "\x7f",
        "\ufeff",
        "'",
        "//",
        ",",
        ":",
        '"',
        "\\",
        "{",
        "}",
        "[",
        "]",
        "[" * 70,
        "[" * 2_000,
        '{"a":' * 70,
        '"id":null,',
        '"id":1.5,',
        '"id":{"a":1},',
        '"id":true,',
        '"jsonrpc":"1.0",',
        '"method":"tasks/cancel",',
        '"method":["tasks/cancel"],',
        '"params":[],',
        '"params":null,',
        '"_meta":null,',
        '"taskId":0,',
        '"taskId":["x"],',
        '"extensions":null,',
        '"inputResponses":[],',
        '"action":"accept",',
        '"__proto__":{},',
        '"__class__":"x",',
        "\r\n",
        "\r\n\r\n",
        "\n",
        " " * 300,
    )
)
"""What is put between the bytes, or in the place of some."""


def places(value: Any, rebuild: Callable[[Any], Any] = lambda new: new) -> Iterator[Callable[[Any], Any]]:
    """For every place in a JSON value: what gives the whole with another value there, or with one more key."""
    yield rebuild
    if isinstance(value, dict):
        yield lambda new: rebuild({**value, "more": new})
        for key in value:
            yield from places(value[key], lambda new, key=key: rebuild({**value, key: new}))  # type: ignore[misc]
    elif isinstance(value, list):
        for index in range(min(len(value), 2)):
            rest = lambda new, index=index: rebuild([*value[:index], new, *value[index + 1 :]])  # noqa: E731
            yield from places(value[index], rest)


def swapped(message: Any, random: Random, others: tuple[Any, ...]) -> Any:
    """The message with one or two values swapped: for junk, or for a value of another message.

    Parameters
    ----------
    message
        What is changed.
    random
        Chooses; the same seed makes the same changes.
    others
        Values to choose from besides `JUNK`.
    """
    for _ in range(random.choice((1, 1, 2))):
        put = random.choice(list(places(message)))
        message = put(random.choice(others) if random.randrange(3) == 0 else random.choice(JUNK))
    return message


def mutated(data: bytes, random: Random, others: tuple[bytes, ...], tokens: tuple[bytes, ...] = TOKENS) -> bytes:
    """A few changes of bytes.

    Parameters
    ----------
    data
        What is changed.
    random
        Chooses; the same seed makes the same changes.
    others
        Where pieces to splice in come from.
    tokens
        What is put in.
    """
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 5))):
        data = _once(data, random, others, tokens)
    return data


def _once(data: bytes, random: Random, others: tuple[bytes, ...], tokens: tuple[bytes, ...]) -> bytes:
    start = random.randint(0, len(data))
    end = min(len(data), start + random.choice((0, 1, 1, 2, 4, 8, 16, 64)))
    match random.randrange(9):
        case 0:
            return data[:start]
        case 1:
            return data[:start] + data[end:]
        case 2:
            return data[:start] + bytes(random.randrange(256) for _ in range(end - start or 1)) + data[end:]
        case 3:
            return data[:end] + data[start:end] * random.choice((1, 2, 10)) + data[end:]
        case 4:
            other = random.choice(others)
            cut = random.randint(0, len(other))
            return data[:start] + other[cut : cut + random.choice((1, 8, 40, 200))] + data[end:]
        case 5:
            # In place of a whole value, which keeps the rest well-formed more often than not.
            return _swapped_value(data, random, random.choice(tokens))
        case 6:
            # At the beginning of an object: a key twice.
            return _at(data, random, b"{", random.choice(tokens))
        case _:
            return data[:start] + random.choice(tokens) + data[end:]


def _at(data: bytes, random: Random, mark: bytes, token: bytes) -> bytes:
    places = [place for place in range(len(data)) if data[place : place + 1] == mark]
    if not places:
        return data + token
    place = random.choice(places) + 1
    return data[:place] + token + data[place:]


def _swapped_value(data: bytes, random: Random, token: bytes) -> bytes:
    places = [place for place in range(len(data)) if data[place : place + 1] == b":"]
    if not places:
        return token + data
    place = random.choice(places) + 1
    ends = [end for end in range(place, len(data)) if data[end : end + 1] in (b",", b"}")]
    return data[:place] + token + data[ends[0] if ends else len(data) :]
