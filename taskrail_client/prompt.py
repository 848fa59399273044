"""Forms in a terminal: one line per field, checked as it is filled in."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

from taskrail_client.errors import TaskrailError
from taskrail_client.questions import Answer, Question, form_problem
from taskrail_client.screen import plain
from taskrail_client.values import BadValue, value_of

DECLINE, LATER = "!no", "!later"


class Interrupted(TaskrailError):
    """Ctrl-C while a question was on the screen."""


class _Decline(Exception):
    pass


class _Later(Exception):
    pass


class Prompt:
    """Asks a person.

    Parameters
    ----------
    read
        Shows a prompt and returns the line that was typed.
    say
        Shows a line.
    """

    def __init__(self, read: Callable[[str], str] | None = None, say: Callable[[str], None] | None = None) -> None:
        self._read = read or read_line
        self._say = say or (lambda text: print(text, file=sys.stderr, flush=True))

    def ask(self, question: Question) -> Answer | None:
        """One question; None for "not now".

        Raises
        ------
        Interrupted
            Ctrl-C.
        """
        if question.method != "elicitation/create":
            self._say(f"The server asks for {plain(question.method)}, which no person can answer here.")
            return None
        self._say(f"\n? {plain(question.message)}")
        properties: Mapping[str, Any] = question.schema.get("properties", {})
        try:
            if question.url is not None:
                self._say(f"  Open this page yourself, if you trust it: {plain(question.url)}")
            if question.url is not None or not properties:
                return Answer("accept", {} if question.url is None else None) if self._yes() else Answer("decline")
            self._say(f"  ({DECLINE} declines, {LATER} leaves the question open)")
            return Answer("accept", self._filled(question.schema))
        except _Decline:
            return Answer("decline")
        except (_Later, EOFError):
            return None

    def _yes(self) -> bool:
        while True:
            try:
                return bool(value_of(self._line("  yes or no: "), {"type": "boolean"}))
            except BadValue as error:
                self._say(f"  {error}.")

    def _filled(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        content: dict[str, Any] = {}
        for name, field in schema["properties"].items():
            required = name in schema.get("required", ())
            value = self._field(name, field, required)
            if value is not None:
                content[name] = value
        return content

    def _field(self, name: str, field: Mapping[str, Any], required: bool) -> Any:
        """One field; None to leave it out."""
        options = choices(field)
        many = field.get("type") == "array"
        label = plain(str(field.get("description") or field.get("title") or name))
        self._say(f"  {label}")
        for number, (_, title) in enumerate(options, 1):
            self._say(f"    {number}  {plain(title)}")
        default = field.get("default")
        while True:
            text = self._line(f"  {plain(name)} ({_hint(field, options)}{_leave(default, required)}): ").strip()
            if not text:
                if default is not None or not required:
                    return default
                if not (many and not field.get("minItems")):
                    self._say("  This field must be filled in.")
                    continue
            try:
                value = _value(text, field, options)
            except BadValue as error:
                self._say(f"  {error}.")
                continue
            problem = form_problem({"type": "object", "properties": {name: field}}, {name: value})
            if problem is None:
                return value
            self._say(f"  {problem}.")

    def _line(self, prompt: str) -> str:
        line = self._read(prompt)
        match line.strip():
            case "!no":
                raise _Decline
            case "!later":
                raise _Later
        return line


def read_line(prompt: str) -> str:
    """A line from the terminal; the prompt goes to standard error, as all that is no result does.

    Raises
    ------
    Interrupted
        Ctrl-C. The event loop's own handler would wait for the line to be over.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        print(prompt, end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
    except KeyboardInterrupt:
        raise Interrupted("Interrupted.") from None
    finally:
        signal.signal(signal.SIGINT, before)
    if not line:
        raise EOFError
    return line.rstrip("\r\n")


def choices(field: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The values of a choice with their titles; empty when the field is none."""
    inner = field.get("items", {}) if field.get("type") == "array" else field
    titled = inner.get("oneOf") or inner.get("anyOf")
    if titled:
        return [(str(option["const"]), str(option.get("title", option["const"]))) for option in titled]
    names = inner.get("enumNames") or inner.get("enum") or ()
    return [(str(value), str(title)) for value, title in zip(inner.get("enum", ()), names, strict=False)]


def _value(text: str, field: Mapping[str, Any], options: list[tuple[str, str]]) -> Any:
    if field.get("type") == "array":
        return [_chosen(part.strip(), options) for part in text.split(",") if part.strip()]
    return _chosen(text, options) if options else value_of(text, field)


def _chosen(text: str, options: list[tuple[str, str]]) -> str:
    # A value that looks like a number is itself before it is the number of another.
    for value, _ in options:
        if text == value:
            return value
    if text.isascii() and text.isdigit() and 1 <= int(text) <= len(options):
        return options[int(text) - 1][0]
    for value, title in options:
        if text.lower() in (value.lower(), title.lower()):
            return value
    raise BadValue(f"{text[:40]!r} is none of the choices")


def _hint(field: Mapping[str, Any], options: list[tuple[str, str]]) -> str:
    if options:
        return "numbers, with commas" if field.get("type") == "array" else f"1 to {len(options)}"
    words = {"boolean": "yes or no", "integer": "whole number", "number": "number"}
    hint = words.get(str(field.get("type")), str(field.get("format", "text")))
    low, high = field.get("minimum"), field.get("maximum")
    limits = [f"from {low}" if low is not None else "", f"to {high}" if high is not None else ""]
    return " ".join([hint, *filter(None, limits)])


def _leave(default: Any, required: bool) -> str:
    if default is not None:
        shown = {True: "yes", False: "no"}.get(default, default) if isinstance(default, bool) else default
        return f"; empty for {plain(str(shown))}"
    return "" if required else "; may be left empty"
