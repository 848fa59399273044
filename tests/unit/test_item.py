"""The item that holds a task: nothing is lost on the way there and back, and no user's number is bent."""

from __future__ import annotations

import json
import re

from hypothesis import example, given
from hypothesis import strategies as st

from taskrail.store import from_item, to_item
from taskrail.task import Progress, Task
from tests.sample_tasks import START, TASK_ID, made, tasks


@given(tasks())
@example(made())
@example(made(status_message="", arguments="", client={"": ""}, progress=Progress(0.1, 1e308)))
@example(made(status_message="\x00 \u2028 \U0001f600 e\u0301", progress=Progress(5e-324)))
def test_item_round_trip(task: Task) -> None:
    """A task comes back from its item as it was, over the same JSON that botocore sends."""
    assert from_item(json.loads(json.dumps(to_item(task)))) == task


@given(tasks())
def test_no_number_of_the_users_becomes_a_number_of_dynamodbs(task: Task) -> None:
    """Numbers are counters, moments and durations of ours; user data is text. Nothing is a map or a list."""
    item = to_item(task)
    assert {kind for value in item.values() for kind in value} <= {"S", "N", "BOOL"}
    for name, value in item.items():
        if "N" in value:
            assert re.fullmatch(r"-?\d{1,19}", value["N"]), name
    assert {"arguments", "result", "progress", "answers", "steps", "client", "questions"}.isdisjoint(
        name for name, value in item.items() if "S" not in value
    )


@given(st.integers(1, 10**10))
def test_ttl_attribute_is_in_seconds_rounded_up(ttl_ms: int) -> None:
    """It never cuts into the life that was promised, nor outlives it by a second."""
    seconds = int(to_item(made(ttl_ms=ttl_ms))["expiresAt"]["N"])
    assert 0 <= seconds * 1000 - (START + ttl_ms) < 1000


def test_a_key_of_ours_is_prefixed() -> None:
    """Other kinds of record have prefixes of their own."""
    assert to_item(made())["pk"] == {"S": f"task#{TASK_ID}"}
