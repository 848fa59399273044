"""Inside a request: asking, being answered over several rounds, and clients that cannot be asked."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from taskrail.call import Call, ClientInfo, NeedInput
from taskrail.calling import call_through
from taskrail.errors import TASKS_EXTENSION, MissingCapability, QuestionError
from taskrail.questions import Question, form_question, roots_question, sampling_question

EVERYTHING: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}


class Name(BaseModel):
    name: str


def call(answers: dict[str, Any] | None = None, capabilities: dict[str, Any] | None = None) -> Call:
    declared = EVERYTHING if capabilities is None else capabilities
    return Call("owner", ClientInfo("client", "1", declared), answers)


def accept(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


def test_a_question_without_an_answer_ends_the_request() -> None:
    with pytest.raises(NeedInput) as caught:
        call().ask("user_name", "Your name?", Name)
    assert caught.value.questions == (form_question("user_name", "Your name?", Name),)


def test_a_tool_that_catches_exceptions_cannot_swallow_the_question() -> None:
    def careless() -> None:
        try:
            call().ask("user_name", "Your name?", Name)
        except Exception:
            pytest.fail("swallowed")

    with pytest.raises(NeedInput):
        careless()


def test_an_answered_question_returns_its_answer() -> None:
    request = call({"user_name": accept(name="Ada"), "stranger": accept(name="Eve")})
    answer = request.ask("user_name", "Your name?", Name)
    assert answer.accepted
    assert answer.content.name == "Ada"
    assert request.answered == {"user_name": accept(name="Ada")}


@pytest.mark.parametrize("response", [None, 5, {}, accept(), accept(name=5), accept(name=None), {"action": "maybe"}])
def test_an_unusable_answer_is_asked_for_again(response: Any) -> None:
    request = call({"user_name": response})
    with pytest.raises(NeedInput):
        request.ask("user_name", "Your name?", Name)
    assert request.answered == {}


def test_an_answer_that_breaks_a_rule_of_the_model_is_asked_for_again() -> None:
    class Even(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def even(cls, number: int) -> int:
            if number % 2:
                raise ValueError("odd")
            return number

    with pytest.raises(NeedInput):
        call({"n": accept(number=3)}).ask("n", "Number?", Even)
    assert call({"n": accept(number=4)}).ask("n", "Number?", Even).content.number == 4


def test_a_no_comes_back_as_an_answer() -> None:
    answer = call({"sure": {"action": "decline"}}).ask("sure", "Go on?")
    assert (answer.accepted, answer.action) == (False, "decline")


def test_rounds_add_up() -> None:
    def hook(request: Call) -> tuple[str, str]:
        first = request.ask("one", "First?", Name)
        second = request.ask("two", "Second?", Name)
        return first.content.name, second.content.name

    with pytest.raises(NeedInput) as caught:
        hook(call())
    assert [question.key for question in caught.value.questions] == ["one"]
    later = call({"one": accept(name="a")})
    with pytest.raises(NeedInput) as caught:
        hook(later)
    assert [question.key for question in caught.value.questions] == ["two"]
    assert set(later.answered) == {"one"}
    last = call({"one": accept(name="a"), "two": accept(name="b")})
    assert hook(last) == ("a", "b")
    assert set(last.answered) == {"one", "two"}


def test_several_at_once_ask_only_for_what_is_missing() -> None:
    request = call({"b": accept(name="B")})
    with pytest.raises(NeedInput) as caught:
        request.ask_all({"a": ("A?", Name), "b": ("B?", Name), "c": ("C?", None)})
    assert [question.key for question in caught.value.questions] == ["a", "c"]
    assert set(request.answered) == {"b"}
    answers = call({"a": accept(name="A"), "b": accept(name="B"), "c": accept()}).ask_all(
        {"a": ("A?", Name), "b": ("B?", Name), "c": ("C?", None)}
    )
    assert answers["a"].content.name == "A"
    assert answers["c"].content == {}


@pytest.mark.parametrize(
    ("ask", "required"),
    [
        (lambda request: request.ask("q", "?"), {"elicitation": {}}),
        (lambda request: request.sample("q", "?", 5), {"sampling": {}}),
        (lambda request: request.roots("q"), {"roots": {}}),
        (
            lambda request: request.gather(form_question("a", "?"), sampling_question("b", "?", 1)),
            {"elicitation": {}, "sampling": {}},
        ),
    ],
)
def test_a_client_that_cannot_be_asked(ask: Any, required: dict[str, Any]) -> None:
    with pytest.raises(MissingCapability) as caught:
        ask(call(capabilities={}))
    assert caught.value.data == {"requiredCapabilities": required}


def mixed() -> tuple[Question, ...]:
    return form_question("form", "?", Name), sampling_question("model", "?", 5), roots_question("folders")


def test_kinds_that_were_not_declared_are_left_out() -> None:
    with pytest.raises(NeedInput) as caught:
        call(capabilities={"sampling": {}}).gather(*mixed())
    assert [question.key for question in caught.value.questions] == ["model"]
    sampled = {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"}
    answers = call({"model": sampled}, {"sampling": {}}).gather(*mixed())
    assert set(answers) == {"model"}
    assert answers["model"].content == sampled


def test_all_kinds_at_once() -> None:
    answers = {
        "form": accept(name="Ada"),
        "model": {"role": "assistant", "content": {"type": "text", "text": "x"}},
        "folders": {"roots": [{"uri": "file:///a"}]},
    }
    got = call(answers).gather(*mixed(), models={"form": Name})
    assert got["form"].content == Name(name="Ada")
    assert got["folders"].content == answers["folders"]
    assert call(answers).roots("folders").content == answers["folders"]
    assert call(answers).sample("model", "?", 5).content == answers["model"]


def test_a_key_stands_for_one_question() -> None:
    request = call({"q": accept(name="Ada")})
    request.ask("q", "Your name?", Name)
    assert request.ask("q", "Your name?", Name).content.name == "Ada"
    with pytest.raises(QuestionError, match="'q' was asked before with other words"):
        request.ask("q", "Another?", Name)
    with pytest.raises(QuestionError, match="'q'"):
        call().gather(form_question("q", "One?"), form_question("q", "Two?"))


@pytest.mark.parametrize(
    ("capabilities", "knows_tasks"),
    [
        ({"extensions": {TASKS_EXTENSION: {}}}, True),
        ({"extensions": {TASKS_EXTENSION: None}}, False),
        ({"extensions": {TASKS_EXTENSION: True}}, False),
        ({"extensions": None}, False),
        ({"extensions": [TASKS_EXTENSION]}, False),
        ({"tasks": {}}, False),
        ({TASKS_EXTENSION: {}}, False),
        ({}, False),
    ],
    ids=str,
)
def test_only_an_object_declares_the_extension(capabilities: dict[str, Any], knows_tasks: bool) -> None:
    assert ClientInfo(capabilities=capabilities).tasks is knows_tasks


def test_plain_and_async_functions_are_called_alike() -> None:
    def plain(value: int) -> int:
        return value + 1

    async def later(value: int) -> int:
        return value + 1

    assert call_through(plain, {"value": 1}) == call_through(later, {"value": 1}) == 2


def test_a_question_comes_out_of_an_async_function() -> None:
    async def hook(request: Call) -> None:
        request.ask("q", "?")

    with pytest.raises(NeedInput):
        call_through(hook, {"request": call()})


def test_an_async_function_runs_where_a_loop_is_busy() -> None:
    import asyncio

    async def tool() -> str:
        await asyncio.sleep(0)
        return "done"

    async def failing() -> None:
        raise LookupError("x")

    async def test() -> str:
        with pytest.raises(LookupError):
            call_through(failing, {})
        value: str = call_through(tool, {})
        return value

    assert asyncio.run(test()) == "done"
