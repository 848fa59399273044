"""Sealed state: believed only unchanged, for its own call, and in time."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskrail.errors import InvalidParams
from taskrail.wire.seal import Sealer, State, Subject

CALL = Subject("o", "t", {"a": 1, "b": "\ud800"})
STATE = State(1_000, {"k": {"action": "accept", "content": {"n": 1.5}}}, "0" * 32, started=True)
SEALER = Sealer(lambda: "0123456789abcdef")
SEALED = SEALER.seal(STATE, CALL)


def test_what_was_sealed_comes_back() -> None:
    assert SEALER.open(SEALED, CALL, 999) == STATE
    assert SEALER.open(SEALED, Subject("o", "t", {"b": "\ud800", "a": 1}), 0) == STATE


@pytest.mark.parametrize(
    ("subject", "now"),
    [
        (replace(CALL, owner="x"), 0),
        (replace(CALL, tool="x"), 0),
        (replace(CALL, arguments={}), 0),
        (replace(CALL, arguments={"a": 1.0, "b": "\ud800"}), 0),
        (CALL, 1_000),
    ],
)
def test_it_is_bound_to_its_call_and_its_time(subject: Subject, now: int) -> None:
    with pytest.raises(InvalidParams):
        SEALER.open(SEALED, subject, now)


def test_another_secret_does_not_open_it() -> None:
    with pytest.raises(InvalidParams):
        Sealer(lambda: "fedcba9876543210").open(SEALED, CALL, 0)


def flipped_last_bits() -> str:
    """A signature that decodes to the same bytes: only its unused bits differ."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return SEALED[:-1] + alphabet[alphabet.index(SEALED[-1]) ^ 1]


@pytest.mark.parametrize(
    "forged",
    [
        SEALED + "-TAMPERED",
        SEALED + "=",
        SEALED + "\n",
        " " + SEALED,
        SEALED[:-1],
        SEALED.replace(".", ".."),
        SEALED.replace(".", "!."),
        flipped_last_bits(),
        "",
        ".",
        "a.b",
        None,
        5,
        [],
        "é" * 50,
        "\ud800",
    ],
)
def test_a_changed_text_is_refused(forged: Any) -> None:
    with pytest.raises(InvalidParams):
        SEALER.open(forged, CALL, 0)


@given(st.integers(0, len(SEALED) - 1), st.characters(codec="utf-8"))
def test_every_changed_character_is_noticed(place: int, character: str) -> None:
    forged = SEALED[:place] + character + SEALED[place + 1 :]
    if forged != SEALED:
        with pytest.raises(InvalidParams):
            SEALER.open(forged, CALL, 0)


def test_the_text_tells_neither_owner_nor_arguments() -> None:
    payload = SEALED.split(".")[0]
    told = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    assert set(told) == {"v", "call", "answers", "task", "started", "until"}
