"""Questions: the forms that clients can show, who may be asked, and what counts as an answer."""

from __future__ import annotations

import enum
from datetime import date, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AnyUrl, BaseModel, ConfigDict, Field, SecretStr, field_validator

from taskrail.errors import QuestionError
from taskrail.questions import (
    Question,
    check_response,
    form_question,
    make_answer,
    roots_question,
    sampling_question,
)


class Colour(enum.Enum):
    """Colours that we have."""

    RED = "red"
    BLUE = "blue"


class Order(BaseModel):
    """An order."""

    name: str = Field(min_length=2, max_length=10, description="Who orders?")
    count: int = Field(gt=0, lt=10)
    price: float = Field(ge=0.5, le=99.5)
    sure: bool = False
    colour: Colour = Colour.BLUE
    size: Literal["S", "M"]
    extras: Annotated[list[Literal["bow", "box"]], Field(min_length=1, max_length=2)] = ["bow"]
    day: date | None = None
    at: datetime | None
    site: AnyUrl | None = Field(default=None, title="Web site")


def requested(model: type[BaseModel]) -> dict[str, Any]:
    schema = form_question("q", "Fill in", model).params["requestedSchema"]
    assert isinstance(schema, dict)
    return schema


def test_form_is_flat_and_keeps_what_the_protocol_knows() -> None:
    question = form_question("order", "Your order?", Order)
    assert question.request()["method"] == "elicitation/create"
    assert question.params["mode"] == "form"
    assert question.params["message"] == "Your order?"
    schema = question.params["requestedSchema"]
    assert set(schema) == {"type", "properties", "required"}
    assert schema["required"] == ["name", "count", "price", "size"]
    fields = schema["properties"]
    assert fields["name"] == {
        "type": "string",
        "minLength": 2,
        "maxLength": 10,
        "title": "Name",
        "description": "Who orders?",
    }
    assert fields["count"] == {"type": "integer", "minimum": 1, "maximum": 9, "title": "Count"}
    assert fields["price"] == {"type": "number", "minimum": 0.5, "maximum": 99.5, "title": "Price"}
    assert fields["sure"] == {"type": "boolean", "title": "Sure", "default": False}
    assert fields["colour"] == {"type": "string", "enum": ["red", "blue"], "default": "blue"}
    assert fields["size"] == {"type": "string", "enum": ["S", "M"], "title": "Size"}
    assert fields["extras"] == {
        "type": "array",
        "items": {"type": "string", "enum": ["bow", "box"]},
        "minItems": 1,
        "maxItems": 2,
        "title": "Extras",
        "default": ["bow"],
    }
    assert fields["day"] == {"type": "string", "format": "date", "title": "Day"}
    assert fields["at"] == {"type": "string", "format": "date-time", "title": "At"}
    assert fields["site"]["format"] == "uri"
    assert fields["site"]["title"] == "Web site"


def test_choices_with_titles() -> None:
    class Pick(BaseModel):
        plan: str = Field(json_schema_extra={"oneOf": [{"const": "a", "title": "Plan A"}, {"const": "b"}]})

    assert requested(Pick)["properties"]["plan"] == {
        "type": "string",
        "oneOf": [{"const": "a", "title": "Plan A"}, {"const": "b", "title": "b"}],
        "title": "Plan",
    }


def test_single_choice_and_alias() -> None:
    class Pick(BaseModel):
        only: Literal["yes"] = Field(alias="theOnly")

    schema = requested(Pick)
    assert schema["properties"]["theOnly"]["enum"] == ["yes"]
    assert schema["required"] == ["theOnly"]


def test_a_model_that_forbids_more_says_so() -> None:
    class Closed(BaseModel):
        model_config = ConfigDict(extra="forbid")
        name: str

    question = form_question("q", "Name?", Closed)
    assert question.params["requestedSchema"]["additionalProperties"] is False
    assert check_response(question, {"action": "accept", "content": {"name": "a", "more": 1}}) is not None


class Inner(BaseModel):
    deep: str


@pytest.mark.parametrize(
    "annotation",
    [
        Inner,
        list[str],
        list[Inner],
        dict[str, int],
        int | str,
        Literal[1, 2],
        UUID,
        SecretStr,
        bytes,
        Annotated[str, Field(pattern="^a")],
        Annotated[float, Field(gt=0)],
        Annotated[int, Field(multiple_of=3)],
        Any,
        None,
    ],
    ids=str,
)
def test_a_field_that_no_client_could_show_is_refused_by_name(annotation: Any) -> None:
    model = type("Form", (BaseModel,), {"__annotations__": {"thing": annotation}, "__module__": __name__})
    with pytest.raises(QuestionError, match=r"question 'q', field 'thing': "):
        form_question("q", "Well?", model)


@pytest.mark.parametrize("model", [dict, Inner(deep="x"), "Inner", int])
def test_a_form_is_a_model(model: Any) -> None:
    with pytest.raises(QuestionError, match="pydantic model"):
        form_question("q", "Well?", model)


def test_a_confirmation_has_no_fields_and_needs_no_content() -> None:
    question = form_question("sure", "Go on?")
    assert question.params["requestedSchema"] == {"type": "object", "properties": {}}
    for response in ({"action": "accept"}, {"action": "accept", "content": None}, {"action": "accept", "content": {}}):
        assert check_response(question, response) is None
        answer = make_answer(question, response)
        assert (answer.accepted, answer.content) == (True, {})


@pytest.mark.parametrize("key", ["", "a b", "x" * 65, "ä", "a/b", "a\n", None, 5])
def test_bad_keys(key: Any) -> None:
    with pytest.raises(QuestionError, match="1 to 64"):
        form_question(key, "Well?")


@pytest.mark.parametrize("key", ["a", "user_name", "step-1.b", "x" * 64])
def test_good_keys(key: str) -> None:
    assert roots_question(key).key == key


@pytest.mark.parametrize("message", ["", "  ", None])
def test_a_form_needs_a_message(message: Any) -> None:
    with pytest.raises(QuestionError, match="message"):
        form_question("q", message)


def test_unknown_method() -> None:
    with pytest.raises(QuestionError, match="no way to ask"):
        Question("q", "prompts/get", {})


def test_stored_and_read_back() -> None:
    question = form_question("order", "Your order?", Order)
    assert Question.from_json(question.to_json()) == question


def test_fingerprint_is_about_what_is_asked_not_about_the_key() -> None:
    assert form_question("a", "Go?").fingerprint == form_question("b", "Go?").fingerprint
    assert form_question("a", "Go?").fingerprint != form_question("a", "Stay?").fingerprint
    assert form_question("a", "Go?", Inner).fingerprint != form_question("a", "Go?").fingerprint
    assert Question("a", "roots/list", {}).fingerprint != Question("a", "sampling/createMessage", {}).fingerprint


@pytest.mark.parametrize(
    ("capabilities", "allowed"),
    [
        ({"elicitation": {}}, True),
        ({"elicitation": {"form": {}}}, True),
        ({"elicitation": {"form": {}, "url": {}}}, True),
        ({"elicitation": {"url": {}}}, False),
        ({"elicitation": None}, False),
        ({"elicitation": True}, False),
        ({"sampling": {}}, False),
        ({}, False),
    ],
)
def test_who_may_be_asked_with_a_form(capabilities: dict[str, Any], allowed: bool) -> None:
    question = form_question("q", "Well?")
    assert question.allowed(capabilities) is allowed
    assert question.requires() == {"elicitation": {}}


def test_who_may_be_asked_for_sampling_and_roots() -> None:
    sampling, roots = sampling_question("s", "Hello", 10), roots_question("r")
    assert sampling.requires() == {"sampling": {}}
    assert roots.requires() == {"roots": {}}
    assert sampling.allowed({"sampling": {}})
    assert not sampling.allowed({"elicitation": {}})
    assert roots.allowed({"roots": {}})
    assert not roots.allowed({"roots": False})


def test_sampling_with_tools_needs_a_client_that_knows_tools() -> None:
    question = sampling_question("s", "Hello", 10, tools=[])
    assert not question.allowed({"sampling": {}})
    assert question.requires() == {"sampling": {"tools": {}}}
    assert question.allowed({"sampling": {"tools": {}}})


def test_sampling_question() -> None:
    question = sampling_question("s", "Hello", 10, systemPrompt="Be kind")
    assert question.params == {
        "messages": [{"role": "user", "content": {"type": "text", "text": "Hello"}}],
        "maxTokens": 10,
        "systemPrompt": "Be kind",
    }
    for messages, tokens in (([], 10), ("Hello", 0), ("Hello", True), ("Hello", 1.5)):
        with pytest.raises(QuestionError, match="question 's'"):
            sampling_question("s", messages, tokens)  # type: ignore[arg-type]


GOOD = {"name": "Ada", "count": 3, "price": 1, "size": "S"}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"count": 3.0},
        {"surplus": {"deep": [1]}},
        {"day": "2026-02-28", "at": "2026-02-28T10:00:00Z", "site": "https://example.com"},
        {"day": None, "at": None},
        {"extras": ["box", "bow"]},
    ],
    ids=str,
)
def test_usable_answers(change: dict[str, Any]) -> None:
    question = form_question("order", "Your order?", Order)
    response = {"action": "accept", "content": {**GOOD, **change}}
    assert check_response(question, response) is None
    answer = make_answer(question, response, Order)
    assert isinstance(answer.content, Order)
    assert answer.content.name == "Ada"
    assert answer.content.count == 3
    assert answer.raw == response


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "A"}, "name"),
        ({"name": 5}, "name"),
        ({"name": None}, "name"),
        ({"count": True}, "count"),
        ({"count": "3"}, "count"),
        ({"count": 0}, "count"),
        ({"count": 10}, "count"),
        ({"count": 2.5}, "count"),
        ({"price": 0.1}, "price"),
        ({"sure": "yes"}, "sure"),
        ({"colour": "green"}, "colour"),
        ({"size": "XL"}, "size"),
        ({"extras": []}, "extras"),
        ({"extras": ["bow", "secret-thing"]}, "extras[1]"),
        ({"day": "20260228"}, "day"),
        ({"day": "2026-02-30"}, "day"),
        ({"at": "yesterday"}, "at"),
        ({"site": "not a uri"}, "site"),
    ],
    ids=str,
)
def test_unusable_answers_are_told_by_field_and_without_the_value(change: dict[str, Any], field: str) -> None:
    question = form_question("order", "Your order?", Order)
    problem = check_response(question, {"action": "accept", "content": {**GOOD, **change}})
    assert problem is not None
    assert problem.startswith(f"{field}: ")
    assert "secret-thing" not in problem
    assert "yesterday" not in problem


def test_a_required_field_left_out() -> None:
    problem = check_response(form_question("order", "?", Order), {"action": "accept", "content": {}})
    assert problem is not None
    assert "required but missing: name, count, price, size" in problem
    assert check_response(form_question("order", "?", Order), {"action": "accept"}) is not None


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_no_is_an_answer(action: str) -> None:
    question = form_question("order", "Your order?", Order)
    response = {"action": action}
    assert check_response(question, response) is None
    answer = make_answer(question, response, Order)
    assert (answer.action, answer.accepted, answer.content) == (action, False, None)


@pytest.mark.parametrize(
    "response",
    [None, 5, "accept", [], {}, {"action": "yes"}, {"action": None}, {"action": "accept", "content": [1]}],
    ids=str,
)
def test_no_answer_to_a_form(response: Any) -> None:
    assert check_response(form_question("q", "Well?"), response) is not None


@pytest.mark.parametrize(
    ("response", "usable"),
    [
        ({"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"}, True),
        ({"role": "assistant", "content": [{"type": "text", "text": "Paris"}]}, True),
        ({"role": "system", "content": {"type": "text", "text": "Paris"}}, False),
        ({"role": "assistant", "content": "Paris"}, False),
        ({"role": "assistant", "content": []}, False),
        ({"role": "assistant"}, False),
        ({"content": {"type": "text"}}, False),
        ({"action": "accept"}, False),
        (None, False),
    ],
    ids=str,
)
def test_answers_to_sampling(response: Any, usable: bool) -> None:
    question = sampling_question("s", "Capital of France?", 10)
    assert (check_response(question, response) is None) is usable
    if usable:
        answer = make_answer(question, response)
        assert (answer.action, answer.accepted, answer.content) == ("accept", True, response)


@pytest.mark.parametrize(
    ("response", "usable"),
    [
        ({"roots": []}, True),
        ({"roots": [{"uri": "file:///a", "name": "a"}]}, True),
        ({"roots": [{"name": "a"}]}, False),
        ({"roots": {"uri": "file:///a"}}, False),
        ({}, False),
    ],
    ids=str,
)
def test_answers_to_roots(response: Any, usable: bool) -> None:
    assert (check_response(roots_question("r"), response) is None) is usable


def test_an_optional_field_without_default_may_be_left_out() -> None:
    class Form(BaseModel):
        note: str | None
        named: str | None = Field(alias="theName")

    question = form_question("q", "Note?", Form)
    assert "required" not in question.params["requestedSchema"]
    assert check_response(question, {"action": "accept", "content": {}}) is None
    content = make_answer(question, {"action": "accept", "content": {}}, Form).content
    assert (content.note, content.named) == (None, None)


def test_a_rule_that_a_form_cannot_carry() -> None:
    class Even(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def even(cls, number: int) -> int:
            if number % 2:
                raise ValueError("odd")
            return number

    question = form_question("q", "Number?", Even)
    response = {"action": "accept", "content": {"number": 12345}}
    assert check_response(question, response) is None
    with pytest.raises(QuestionError, match=r"fits its form but not Even \(number\)") as caught:
        make_answer(question, response, Even)
    assert "12345" not in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@given(JSON, JSON)
def test_any_response_is_either_usable_or_told_what_is_wrong(response: Any, content: Any) -> None:
    for question in (form_question("q", "?", Order), sampling_question("s", "?", 1), roots_question("r")):
        for value in (response, {"action": "accept", "content": content}):
            problem = check_response(question, value)
            assert problem is None or problem
            if problem is None:
                make_answer(question, value)


FORM_CONTENT = st.fixed_dictionaries(
    {
        "name": st.text(),
        "count": st.integers(-2, 12) | st.booleans(),
        "price": st.floats(0, 100),
        "size": st.text("SM"),
    },
    optional={
        "sure": st.booleans() | st.none(),
        "colour": st.sampled_from(["red", "blue", "green", None]),
        "extras": st.lists(st.sampled_from(["bow", "box", "bag"]), max_size=3),
        "day": st.none() | st.dates().map(str) | st.text("0123456789-", max_size=10),
        "at": st.none() | st.datetimes().map(lambda moment: moment.isoformat()) | st.text(max_size=5),
    },
)


@given(FORM_CONTENT)
def test_what_the_check_lets_pass_is_an_instance_of_the_model(content: dict[str, Any]) -> None:
    question = form_question("q", "?", Order)
    response = {"action": "accept", "content": content}
    if check_response(question, response) is None:
        assert isinstance(make_answer(question, response, Order).content, Order)
