"""Questions of a task or a call, and what a person, or code in a person's place, answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mcp_types import InputRequest

from taskrail_client.errors import InvalidAnswer, TaskrailError

Action = Literal["accept", "decline", "cancel"]


@dataclass(frozen=True)
class Question:
    """One question.

    Parameters
    ----------
    key
        Its name within the task or the call.
    method
        ``elicitation/create`` for a form or a page; others for a model or for folders.
    message
        What the person reads.
    schema
        The form: a JSON Schema of an object with flat fields. Empty for a plain confirmation.
    url
        The page that the person is to open, in place of a form.
    task_id
        The task, or None when the question comes before there is one.
    """

    key: str
    method: str
    message: str
    schema: Mapping[str, Any] = field(default_factory=dict)
    url: str | None = None
    task_id: str | None = None


@dataclass(frozen=True)
class Answer:
    """What is answered.

    Parameters
    ----------
    action
        ``accept``, ``decline`` (an answer: no) or ``cancel`` (an answer: dismissed).
    content
        The form's fields, with ``accept`` only.
    """

    action: Action
    content: Mapping[str, Any] | None = None

    def response(self) -> dict[str, Any]:
        """As it goes over the wire."""
        if self.action != "accept":
            return {"action": self.action}
        return {"action": "accept", "content": dict(self.content or {})}


class AnswersNeeded(TaskrailError):
    """Questions are open and nobody is there to answer them; the task, if there is one, waits for the answers.

    Attributes
    ----------
    task_id
        The task, or None when the questions come before there is one.
    questions
        What is asked.
    """

    def __init__(self, task_id: str | None, questions: Sequence[Question]) -> None:
        keys = ", ".join(question.key for question in questions)
        who = f"Task {task_id}" if task_id else "The tool"
        super().__init__(f"{who} waits for an answer to: {keys}.")
        self.task_id = task_id
        self.questions = tuple(questions)


Reply = Answer | Mapping[str, Any] | None
"""What `on_question` returns: an answer, the fields of an accepted form, or None for "not now"."""

OnQuestion = Callable[[Question], Reply | Awaitable[Reply]]


def question_of(key: str, request: InputRequest, task_id: str | None = None) -> Question:
    """A question as it came over the wire.

    Parameters
    ----------
    key, request
        An entry of ``inputRequests``.
    task_id
        The task that asks.
    """
    params: dict[str, Any] = (
        request.params.model_dump(by_alias=True, mode="json", exclude_none=True) if request.params else {}
    )
    return Question(
        key,
        request.method,
        str(params.get("message", f"({request.method})")),
        params.get("requestedSchema") or {},
        params.get("url") if params.get("mode") == "url" else None,
        task_id,
    )


def answer_of(question: Question, reply: Answer | Mapping[str, Any]) -> Answer:
    """The answer in what `on_question` returned.

    Raises
    ------
    InvalidAnswer
        It does not fit the form; the text names the fields and never a value.
    """
    answer = reply if isinstance(reply, Answer) else Answer("accept", reply)
    if answer.action == "accept" and question.schema and (problem := form_problem(question.schema, answer.content)):
        raise InvalidAnswer(f"The answer to {question.key!r} does not fit its form: {problem}.")
    return answer


def form_problem(schema: Mapping[str, Any], content: Mapping[str, Any] | None) -> str | None:
    """What is wrong with a filled-in form; None if nothing is.

    Parameters
    ----------
    schema
        The form.
    content
        Its fields.
    """
    from jsonschema import Draft202012Validator

    found = []
    for error in Draft202012Validator(schema).iter_errors(dict(content or {})):
        where = ".".join(str(part) for part in error.absolute_path)
        match error.validator:
            case "required":
                missing = [name for name in error.validator_value if name not in error.instance]
                found.append(f"{', '.join(map(repr, missing))} must be filled in")
            case "additionalProperties":
                unknown = sorted(set(error.instance) - set(schema.get("properties", {})))
                found.append(f"it has no field {', '.join(map(repr, unknown))}")
            case _:
                found.append(f"{where!r} breaks {error.validator}: {error.validator_value!r}")
    return "; ".join(dict.fromkeys(found)) or None
