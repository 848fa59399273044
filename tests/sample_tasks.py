"""Tasks to test with: a plain one, and any that the type allows."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from hypothesis import strategies as st

from taskrail.questions import ROOTS, SAMPLING, Question
from taskrail.task import SCHEMA, Progress, Status, Task

START = 1_780_000_000_000
TASK_ID = "0123456789abcdef" * 2


def made(**changes: object) -> Task:
    """A task as its creation leaves it."""
    task = Task(
        task_id=TASK_ID,
        owner="anna",
        tool="count",
        engine="step_functions",
        created_at=START,
        updated_at=START,
        ttl_ms=720_000,
        keep_ms=600_000,
        poll_ms=5_000,
        run_started_at=START,
        run_deadline=START + 120_000,
        arguments="{}",
        nonce="n0",
    )
    return replace(task, **changes)  # type: ignore[arg-type]


_texts = st.text(max_size=30)
"""Any characters but lone surrogates: DynamoDB's strings are UTF-8."""
_moments = st.integers(START, START + 10**11)
_durations = st.integers(1, 10**10)
_numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**18), 10**18)
_json = st.recursive(
    st.none() | st.booleans() | _numbers | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=6,
)
_keys = st.from_regex(r"[A-Za-z0-9_.-]{1,64}", fullmatch=True)
_questions = st.builds(
    Question,
    _keys,
    st.sampled_from([ROOTS, SAMPLING, "elicitation/create"]),
    st.dictionaries(_texts, _json, max_size=3),
)
_TYPES: dict[str, st.SearchStrategy[Any]] = {
    "str": _texts,
    "int": _moments,
    "bool": st.booleans(),
    "Status": st.sampled_from(Status),
    "Progress": st.builds(Progress, _numbers, st.none() | _numbers),
    "Mapping[str, str]": st.dictionaries(_texts, _texts, max_size=3),
    "Mapping[str, Any]": st.dictionaries(_texts, _json, max_size=3),
    "Mapping[str, Question]": st.lists(_questions, max_size=3).map(lambda asked: {one.key: one for one in asked}),
}


def tasks() -> st.SearchStrategy[Task]:
    """Every field by its type, so that a new one is covered from its first day on."""
    strategies: dict[str, st.SearchStrategy[Any]] = {}
    for field in fields(Task):
        kind, _, none = str(field.type).partition(" | ")
        strategies[field.name] = st.none() | _TYPES[kind] if none else _TYPES[kind]
    strategies |= {"task_id": st.just(TASK_ID), "ttl_ms": st.none() | _durations, "schema": st.just(SCHEMA)}
    return st.builds(Task, **strategies)
