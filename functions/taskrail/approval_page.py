"""The page behind an approval link: a question as an HTML form, and what was filled in as a response.

Opening the page answers nothing: mail scanners and chat previews open links. Only the form's POST does.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any
from urllib.parse import parse_qs

from taskrail.questions import Question

HEADERS: Mapping[str, str] = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""The link's token is in the page's address: it must not leave with a referrer, stay in a cache or be framed."""

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:3rem auto;padding:0 1rem}"
    "label{display:block;margin:1rem 0 .25rem}input,select{font:inherit;padding:.3rem}"
    "button{font:inherit;padding:.4rem 1.2rem;margin:1.5rem .5rem 0 0}p.note{color:#555}"
)
_INPUTS = {"email": "email", "uri": "url", "date": "date", "date-time": "datetime-local"}
_NUMBERS = ("number", "integer")


def page(title: str, body: str) -> str:
    """A whole page; `body` is HTML, `title` is text."""
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    return f"<!doctype html><html lang=en><head>{head}<style>{_STYLE}</style></head><body>{body}</body></html>"


def note(text: str) -> str:
    """A page that only says something."""
    return page("Taskrail", f"<p>{escape(text)}</p>")


def question_page(question: Question, token: str, problem: str | None = None) -> str:
    """The page that asks.

    Parameters
    ----------
    question
        An open question that a person answers.
    token
        The approval token, which the form sends along.
    problem
        What was wrong with the last answer.
    """
    schema = question.params.get("requestedSchema", {})
    required = schema.get("required", ())
    fields = "".join(_field(name, shape, name in required) for name, shape in schema.get("properties", {}).items())
    wrong = "" if problem is None else f"<p role=alert><strong>{escape(problem)}</strong></p>"
    buttons = (
        '<button name="action" value="accept">Accept</button>'
        '<button name="action" value="decline" formnovalidate>Decline</button>'
    )
    return page(
        "A question waits",
        f"<h1>{escape(str(question.params.get('message', '')))}</h1>{wrong}"
        f'<form method="post"><input type="hidden" name="token" value="{escape(token)}">{fields}{buttons}</form>'
        '<p class="note">The job goes on once you have answered. Whoever has this link can answer.</p>',
    )


def response_of(body: str, question: Question) -> dict[str, Any]:
    """The response that a form's body stands for; the question's own check finds what is wrong with it.

    Parameters
    ----------
    body
        ``application/x-www-form-urlencoded``.
    question
        The question that the form asked.
    """
    values = parse_qs(body, keep_blank_values=True)
    action = values.get("action", [""])[-1]
    if action != "accept":
        return {"action": "decline" if action == "decline" else action}
    content: dict[str, Any] = {}
    for name, shape in question.params.get("requestedSchema", {}).get("properties", {}).items():
        given = [text for text in values.get(f"field.{name}", []) if text != ""]
        if shape.get("type") == "array":
            content[name] = given
        elif shape.get("type") == "boolean":
            content[name] = given[-1:] == ["true"]
        elif given:
            content[name] = _number(given[-1], shape["type"]) if shape.get("type") in _NUMBERS else given[-1]
    return {"action": "accept", "content": content}


def token_of(query_or_body: str) -> str | None:
    """The token in a query or a form's body."""
    return parse_qs(query_or_body).get("token", [None])[-1]


def _field(name: str, shape: Mapping[str, Any], required: bool) -> str:
    label = escape(str(shape.get("title", name)))
    hint = f' <span class="note">{escape(str(shape["description"]))}</span>' if shape.get("description") else ""
    return f"<label>{label}{hint}<br>{_control(name, shape, required)}</label>"


def _control(name: str, shape: Mapping[str, Any], required: bool) -> str:
    called = f'name="field.{escape(name)}"'
    default, kind = shape.get("default"), shape.get("type")
    if kind == "boolean":
        return f'<input type="checkbox" value="true" {called}{" checked" if default is True else ""}>'
    choices = _choices(shape)
    if choices is not None:
        many = kind == "array"
        chosen = default if isinstance(default, list) else [default]
        blank = [] if required or many else [("", "")]
        options = "".join(
            f'<option value="{escape(value)}"{" selected" if value in chosen else ""}>{escape(title)}</option>'
            for value, title in [*blank, *choices]
        )
        return f"<select {called}{' multiple' if many else ''}>{options}</select>"
    limits = "".join(
        f' {attribute}="{escape(str(shape[word]))}"'
        for word, attribute in (
            ("minimum", "min"),
            ("maximum", "max"),
            ("minLength", "minlength"),
            ("maxLength", "maxlength"),
        )
        if word in shape
    )
    typed = "number" if kind in _NUMBERS else _INPUTS.get(str(shape.get("format")), "text")
    step = ' step="any"' if kind == "number" else ""
    value = "" if default is None else f' value="{escape(str(default))}"'
    return f'<input type="{typed}" {called}{limits}{step}{value}{" required" if required else ""}>'


def _choices(shape: Mapping[str, Any]) -> list[tuple[str, str]] | None:
    where = shape.get("items", {}) if shape.get("type") == "array" else shape
    if "enum" in where:
        return [(value, value) for value in where["enum"]]
    titled = where.get("oneOf", where.get("anyOf"))
    return None if titled is None else [(one["const"], one.get("title", one["const"])) for one in titled]


def _number(text: str, kind: str) -> Any:
    try:
        return int(text) if kind == "integer" else float(text)
    except ValueError:
        # Not a number: the form's own check says so.
        return text
