"""What JSON cannot carry is a clear error of the job, wherever the job put it; never null, never a stuck task."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest

from taskrail.testing import Called, Kit, harness
from tests.functional import payload_tools

CAPABILITIES = {"elicitation": {}, "sampling": {}}
NOT_FINITE = [float("nan"), float("inf"), float("-inf")]
NEUTRAL = "Its log has the details"
"""What a job's unforeseen exception is told as: the author of the job would have to look the fault up."""


def cycle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


UNWRITABLE: dict[str, Any] = {
    "nan": float("nan"),
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
    "an object": object(),
    "bytes that are no text": b"\xff\xfe",
    "itself": cycle(),
    "nested in 900 levels": nested(900),
    "nested in 5,000 levels": nested(5_000),
    "a number of 5,000 digits": 10**5_000,
    "a lone surrogate": "\ud800",
    "a class": dict,
    "a function": len,
}
IN_RESULTS = [
    "give_any",
    "give_bare",
    "give_dict",
    "give_open_model",
    "give_model_as_any",
    "give_structured",
    "give_structured_model",
    "give_meta",
    "give_annotation",
    "give_floats",
    "give_share",
]


@pytest.fixture(scope="module")
def kit() -> Iterator[Kit]:
    with harness(payload_tools.server) as made:
        strict(made)
        yield made


def strict(kit: Kit) -> None:
    """From now on every answer must be JSON to the letter, which Python's own reader does not ask for."""
    post = kit.post

    def posted(body: str, headers: Any) -> dict[str, Any]:
        answer = post(body, headers)
        json.loads(answer["body"], parse_constant=_no_json)
        answer["body"].encode("utf-8")
        assert answer["statusCode"] < 500
        return answer

    kit.post = posted  # type: ignore[method-assign]


def _no_json(name: str) -> NoReturn:
    raise AssertionError(f"{name} is no JSON")


def ended(kit: Kit, tool: str, value: Any) -> Called:
    """The task of a job that handled the value, ended."""
    payload_tools.given[0] = value
    task = kit.call(tool, capabilities=CAPABILITIES).run()
    assert task.status in ("completed", "failed"), task.poll()
    return task


def explained(task: Called) -> None:
    """The task ended as an error that says what was wrong."""
    assert task.status == "completed"
    assert task.is_error
    assert "structuredContent" not in task.result
    assert NEUTRAL not in task.text


@pytest.mark.parametrize("value", UNWRITABLE)
@pytest.mark.parametrize("tool", IN_RESULTS)
def test_in_a_result_it_is_an_error_that_says_so_and_never_null(kit: Kit, tool: str, value: str) -> None:
    task = ended(kit, tool, UNWRITABLE[value])
    explained(task)
    words = ("JSON", "surrogate", "annotation")
    assert any(word in task.text for word in words), task.text
    if isinstance(UNWRITABLE[value], float):
        assert "NaN or infinity" in task.text
        assert "null" not in json.dumps(task.poll())


@pytest.mark.parametrize("name", UNWRITABLE)
def test_as_a_steps_outcome_it_is_an_error_that_says_so(kit: Kit, name: str) -> None:
    task = ended(kit, "remember", UNWRITABLE[name])
    if name == "a lone surrogate" or name.startswith("nested"):
        # Escaped, the one can be stored and read again; how deep the other may be is up to Python's version.
        assert task.text == "remembered" or "cannot be remembered" in task.text
        return
    explained(task)
    assert "'value' cannot be remembered: it must be bytes or JSON" in task.text


@pytest.mark.parametrize("tool", ["progress_done", "progress_total"])
@pytest.mark.parametrize("value", [*NOT_FINITE, 10**400, -(10**400), True, "5", [1], object(), None])
def test_progress_in_no_finite_number_is_an_error_that_says_so(kit: Kit, tool: str, value: Any) -> None:
    task = ended(kit, tool, 10**5_000 if value is None else value)
    explained(task)
    assert "must be a finite number" in task.text


@pytest.mark.parametrize("tool", ["attach_named", "attach_described", "attach_typed"])
@pytest.mark.parametrize("value", [5, float("nan"), b"x", object(), "\ud800", ["a"]])
def test_a_file_whose_label_is_no_text_is_an_error_that_says_so(kit: Kit, tool: str, value: Any) -> None:
    before = kit.s3.list_objects_v2(Bucket="payloads")["KeyCount"]
    explained(ended(kit, tool, value))
    assert kit.s3.list_objects_v2(Bucket="payloads")["KeyCount"] == before


@pytest.mark.parametrize("value", UNWRITABLE)
def test_in_a_tool_error_the_error_still_gets_through(kit: Kit, value: str) -> None:
    explained(ended(kit, "tool_error", UNWRITABLE[value]))


def test_another_exception_may_be_the_message_of_a_tool_error(kit: Kit) -> None:
    task = ended(kit, "tool_error", ValueError("The cause."))
    explained(task)
    assert task.text.startswith("The cause.")


@pytest.mark.parametrize("value", UNWRITABLE)
def test_in_a_protocol_error_the_code_and_the_text_get_through(kit: Kit, value: str) -> None:
    task = ended(kit, "protocol_error", UNWRITABLE[value])
    assert task.status == "failed"
    assert (task.error["code"], task.error["message"]) == (4711, "Refused.")


@pytest.mark.parametrize("value", [*NOT_FINITE, object(), {1, 2}, cycle()])
def test_in_a_question_it_is_an_error_that_says_so(kit: Kit, value: Any) -> None:
    task = ended(kit, "sample_with", value)
    explained(task)
    assert "cannot be written as JSON" in task.text


@pytest.mark.parametrize("code", ["4711", 4711.0, True, None])
def test_a_code_that_is_no_whole_number_fails_where_it_is_raised(kit: Kit, code: Any) -> None:
    from taskrail import ProtocolError

    def refuse(task: Any) -> None:
        raise ProtocolError(code, "Refused.")

    task = ended(kit, "anything", refuse)
    assert task.is_error
    assert NEUTRAL in task.text


@pytest.mark.parametrize("value", [0, -0.0, 0.1, 1e308, 2**63, 2**1000, -1e-300])
def test_every_finite_number_is_carried_as_it_is(kit: Kit, value: float) -> None:
    assert ended(kit, "give_any", {"value": value}).structured == {"value": value}
    assert ended(kit, "give_dict", value).structured == {"list": [{"value": value}]}
    assert ended(kit, "remember", value).text == "remembered"
    assert ended(kit, "progress_done", min(value, 1e308)).text == "told"


def test_a_result_of_as_many_levels_as_are_allowed_is_carried(kit: Kit) -> None:
    assert ended(kit, "give_any", {"value": nested(198)}).structured == {"value": nested(198)}
    explained(ended(kit, "give_any", {"value": nested(200)}))
