"""Forms in a terminal, and what is shown there."""

from __future__ import annotations

import io
from typing import Any

import pytest
from mcp_types import CallToolResult, ImageContent, ResourceLink, TextContent

from taskrail_client import Answer, Progress, Question
from taskrail_client.prompt import Prompt
from taskrail_client.screen import Screen, line_of, plain, text_of

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["publish", "copies", "address", "paper"],
    "properties": {
        "publish": {"type": "boolean", "description": "Publish it?"},
        "copies": {"type": "integer", "minimum": 1, "maximum": 9},
        "share": {"type": "number"},
        "address": {"type": "string", "minLength": 3},
        "paper": {"type": "string", "oneOf": [{"const": "a", "title": "Thin"}, {"const": "b", "title": "Thick"}]},
        "colours": {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}, "maxItems": 1},
        "note": {"type": "string", "default": "none"},
    },
}


def play(schema: dict[str, Any], *typed: str, **more: Any) -> tuple[Answer | None, str]:
    """What is answered when that is typed, and what was shown."""
    shown: list[str] = []
    lines = iter(typed)

    def read(prompt: str) -> str:
        shown.append(prompt)
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    question = Question("q", more.pop("method", "elicitation/create"), "Well?", schema, **more)
    answer = Prompt(read, shown.append).ask(question)
    return answer, "\n".join(shown)


def test_a_form_is_filled_in_and_checked_field_by_field() -> None:
    """Each mistake is told, and the field asked again."""
    typed = ("maybe", "y", "99", "x", "3", "half", "", "", "no", "here", "7", "thick", "1,2", "blue", "")
    answer, shown = play(SCHEMA, *typed)
    assert answer == Answer(
        "accept",
        {"publish": True, "copies": 3, "address": "here", "paper": "b", "colours": ["blue"], "note": "none"},
    )
    for words in (
        "Publish it?",
        "'maybe' is not yes or no",
        "'copies' breaks maximum: 9",
        "'x' is not a whole number",
        "'half' is not a number",
        "must be filled in",
        "'address' breaks minLength: 3",
        "1  Thin",
        "'7' is none of the choices",
        "'colours' breaks maxItems: 1",
        "whole number from 1 to 9",
        "empty for none",
    ):
        assert words in shown, words


@pytest.mark.parametrize(("typed", "expected"), [("!no", Answer("decline")), ("!later", None)])
def test_a_form_can_be_declined_or_left(typed: str, expected: Answer | None) -> None:
    """At any field."""
    assert play(SCHEMA, "yes", typed)[0] == expected


def test_the_end_of_the_input_leaves_the_question_open() -> None:
    """Ctrl-D is no answer."""
    assert play(SCHEMA, "yes")[0] is None


@pytest.mark.parametrize(("typed", "expected"), [("yes", Answer("accept", {})), ("n", Answer("decline"))])
def test_a_confirmation_is_yes_or_no(typed: str, expected: Answer) -> None:
    """No form, no fields."""
    assert play({}, "what", typed)[0] == expected


def test_a_page_is_named_and_never_opened() -> None:
    """The person decides."""
    answer, shown = play({}, "yes", url="https://example.com/consent")
    assert answer == Answer("accept")
    assert "https://example.com/consent" in shown


def test_what_no_person_can_answer_is_left_open() -> None:
    """A question for a model, say."""
    assert play({}, method="sampling/createMessage")[0] is None


def test_texts_of_the_server_cannot_steer_the_terminal() -> None:
    """No escape sequence, no carriage return, no bell; also not those of eight bits."""
    assert plain("a\x1b[2Jb\rc\x07d\x9b2Je\u202ef\n\tg") == "a[2Jbcd2Jef\n\tg"
    progress = Progress("t", "tool", "working", "a\nb\x1b[31m")
    assert line_of(progress) == "tool  working  a b[31m"


def test_one_line_says_how_a_task_stands() -> None:
    """With a bar where there is a whole, and the trouble on the way."""
    assert line_of(Progress("t", "tool", "working", "Rendering", 5, 20)) == (
        "tool  working  [#####---------------] 25%  Rendering"
    )
    assert line_of(Progress("t", None, "cancelling", done=5, note="x")) == "t  cancelling  5  (x)"
    assert "100%" in line_of(Progress("t", None, "working", done=30, total=20))


def test_the_line_is_drawn_again_and_taken_away() -> None:
    """Nothing of a longer line stays; nothing at all is drawn off a terminal."""
    stream = io.StringIO()
    screen = Screen(stream, live=True)
    screen.show(Progress("t", "tool", "working", "long long"))
    screen.show(Progress("t", "tool", "done"))
    assert stream.getvalue() == "\rtool  working  long long" + "\rtool  done" + " " * len("ing  long long")
    screen.clear()
    assert stream.getvalue().endswith("\r" + " " * len("tool  done") + "\r")
    quiet = io.StringIO()
    Screen(quiet, live=False).show(Progress("t", "tool", "working"))
    assert quiet.getvalue() == ""


def test_a_result_in_words() -> None:
    """Texts as they are, a line for each other part, JSON when there is nothing else."""
    result = CallToolResult(
        content=[
            TextContent(type="text", text="done"),
            ResourceLink(type="resource_link", name="a.csv", uri="https://example.com/a.csv"),
            ImageContent(type="image", data="AAAA", mime_type="image/png"),
        ]
    )
    assert text_of(result) == "done\na.csv: https://example.com/a.csv\n(image, image/png, 3 bytes)"
    assert text_of(CallToolResult(content=[], structured_content={"a": 1})) == '{\n  "a": 1\n}'
