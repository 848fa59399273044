"""Questions to the person or the model behind a client, and what counts as an answer to one.

Pure values: the rail stores them, the wire sends them, jobs and hooks ask them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from taskrail.errors import QuestionError
from taskrail.forms import form_by_hand, form_problem, form_schema

if TYPE_CHECKING:
    from pydantic import BaseModel

ELICITATION = "elicitation/create"
SAMPLING = "sampling/createMessage"
ROOTS = "roots/list"

_CAPABILITIES = {ELICITATION: "elicitation", SAMPLING: "sampling", ROOTS: "roots"}
_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_ACTIONS = ("accept", "decline", "cancel")

M = TypeVar("M")


@dataclass(frozen=True)
class Question:
    """One question, as it is stored and as it goes over the wire.

    Parameters
    ----------
    key
        Name of the question within its task or call: 1 to 64 of ``A-Z a-z 0-9 _ . -``.
    method
        ``elicitation/create``, ``sampling/createMessage`` or ``roots/list``.
    params
        Parameters of that request.

    Raises
    ------
    QuestionError
        If the key or the method cannot be used.
    """

    key: str
    method: str
    params: dict[str, Any]

    def __post_init__(self) -> None:
        if not isinstance(self.key, str) or not _KEY.fullmatch(self.key):
            raise QuestionError("the key of a question is 1 to 64 letters, digits, '_', '.' or '-'")
        if self.method not in _CAPABILITIES:
            raise QuestionError(f"question {self.key!r}: there is no way to ask with {self.method!r}")

    def request(self) -> dict[str, Any]:
        """The question as an ``InputRequest`` on the wire."""
        return {"method": self.method, "params": self.params}

    def to_json(self) -> dict[str, Any]:
        """The question as it is stored."""
        return {"key": self.key, "method": self.method, "params": self.params}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Question:
        """The question that `to_json` wrote."""
        return cls(stored["key"], stored["method"], stored["params"])

    @property
    def fingerprint(self) -> tuple[str, str]:
        """What makes two questions the same, whatever their keys: method and parameters."""
        import json

        return self.method, json.dumps(self.params, sort_keys=True)

    def requires(self) -> dict[str, Any]:
        """What a client must declare to be asked, shaped like ``ClientCapabilities``."""
        return {_CAPABILITIES[self.method]: {"tools": {}} if self._samples_with_tools else {}}

    def allowed(self, capabilities: Mapping[str, Any]) -> bool:
        """Whether a client with these capabilities may be asked.

        Parameters
        ----------
        capabilities
            What the client declared. ``elicitation: {}`` means forms only; ``{"url": {}}``
            alone means no forms (specification 2026-07-28, client, elicitation).
        """
        declared = capabilities.get(_CAPABILITIES[self.method])
        if not isinstance(declared, Mapping):
            return False
        if self.method == ELICITATION:
            return isinstance(declared.get("form"), Mapping) or "url" not in declared
        return not self._samples_with_tools or isinstance(declared.get("tools"), Mapping)

    @property
    def _samples_with_tools(self) -> bool:
        return self.method == SAMPLING and ("tools" in self.params or "toolChoice" in self.params)


@dataclass(frozen=True)
class Answer(Generic[M]):
    """What came back for a question.

    Parameters
    ----------
    key
        Key of the question.
    action
        ``accept``, ``decline`` or ``cancel``; sampling and roots are always accepted.
    content
        The form as the model it was asked with, or as a dict without one; for sampling and
        roots the response itself. None unless accepted: look at `accepted` first.
    raw
        The response as the client sent it.
    """

    key: str
    action: str
    content: M
    raw: dict[str, Any]

    @property
    def accepted(self) -> bool:
        """Whether the answer is a yes with content."""
        return self.action == "accept"


def form_question(key: str, message: str, model: type[BaseModel] | None = None) -> Question:
    """A question that a person answers by filling in a form.

    Parameters
    ----------
    key
        Name of the question.
    message
        What the person reads.
    model
        The form: a pydantic model whose fields are text, numbers, yes or no, or choices. Without
        one the question is a plain confirmation: accept or decline.

    Raises
    ------
    QuestionError
        If a client could not show the form; the text names the field and what to do.
    """
    if not isinstance(message, str) or not message.strip():
        raise QuestionError(f"question {key!r}: it needs a message for the person who answers it")
    schema = {"type": "object", "properties": {}} if model is None else form_schema(key, model)
    return Question(key, ELICITATION, {"mode": "form", "message": message, "requestedSchema": schema})


def form_question_by_hand(key: str, message: str, schema: Mapping[str, Any] | None = None) -> Question:
    """A question that a person answers by filling in a form that a JSON Schema describes.

    Parameters
    ----------
    key, message
        As for `form_question`.
    schema
        Schema of an object with flat, primitive properties; without one the question is a plain confirmation.

    Raises
    ------
    QuestionError
        If a client could not show the form; the text names the field and what to do.
    """
    if schema is None:
        return form_question(key, message)
    question = form_question(key, message)
    return Question(key, ELICITATION, {**question.params, "requestedSchema": form_by_hand(key, schema)})


def sampling_question(key: str, messages: Sequence[Mapping[str, Any]] | str, max_tokens: int, **more: Any) -> Question:
    """A question for the client's model.

    Parameters
    ----------
    key
        Name of the question.
    messages
        ``SamplingMessage`` objects, or one text that the user is to have said.
    max_tokens
        The most tokens that the model may write.
    more
        Other parameters of ``sampling/createMessage``, such as ``systemPrompt``.

    Raises
    ------
    QuestionError
        If there is no message or the number of tokens is not positive.
    """
    if isinstance(messages, str):
        messages = [{"role": "user", "content": {"type": "text", "text": messages}}]
    if not messages:
        raise QuestionError(f"question {key!r}: sampling needs at least one message")
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:
        raise QuestionError(f"question {key!r}: max_tokens is a whole number of at least 1")
    params = {"messages": [dict(message) for message in messages], "maxTokens": max_tokens, **more}
    return Question(key, SAMPLING, params)


def roots_question(key: str) -> Question:
    """A question for the folders that the client shares.

    Parameters
    ----------
    key
        Name of the question.
    """
    return Question(key, ROOTS, {})


def check_response(question: Question, response: object) -> str | None:
    """Whether a response answers its question.

    Parameters
    ----------
    question
        The question.
    response
        What the client sent for it: any JSON value.

    Returns
    -------
    str or None
        None if it does, otherwise what is wrong with it; never a value out of it.
    """
    if not isinstance(response, Mapping):
        return "the response must be an object"
    if question.method == SAMPLING:
        return _sampling_problem(response)
    if question.method == ROOTS:
        return _roots_problem(response)
    if response.get("action") not in _ACTIONS:
        return f"action must be one of {', '.join(_ACTIONS)}"
    if response["action"] != "accept":
        return None
    return form_problem(question.params["requestedSchema"], response.get("content"))


def _sampling_problem(response: Mapping[str, Any]) -> str | None:
    if response.get("role") not in ("user", "assistant"):
        return "role must be user or assistant"
    content = response.get("content")
    blocks = content if isinstance(content, list) else [content]
    if not blocks or not all(isinstance(block, Mapping) and isinstance(block.get("type"), str) for block in blocks):
        return "content must be a content block or a list of them"
    return None


def _roots_problem(response: Mapping[str, Any]) -> str | None:
    roots = response.get("roots")
    if not isinstance(roots, list):
        return "roots must be a list"
    if not all(isinstance(root, Mapping) and isinstance(root.get("uri"), str) for root in roots):
        return "each of roots must be an object with a uri"
    return None


def make_answer(question: Question, response: Mapping[str, Any], model: type[Any] | None = None) -> Answer[Any]:
    """The answer that a usable response holds.

    Parameters
    ----------
    question
        The question.
    response
        A response that `check_response` found nothing wrong with.
    model
        The model that the form was made of.

    Returns
    -------
    Answer
        With its content as an instance of the model if there is one.

    Raises
    ------
    QuestionError
        If the content fits the form but not the model: a rule that a form cannot carry, such as
        a validator of the model's own. Check such rules in the job and ask again under a new key.
    """
    raw = dict(response)
    if question.method != ELICITATION:
        return Answer(question.key, "accept", raw, raw)
    action = str(raw["action"])
    if action != "accept":
        return Answer(question.key, action, cast("Any", None), raw)
    content = raw.get("content") or {}
    if model is None:
        return Answer(question.key, action, dict(content), raw)
    return Answer(question.key, action, _parsed(question, content, model), raw)


def _parsed(question: Question, content: Mapping[str, Any], model: type[BaseModel]) -> BaseModel:
    """The content as an instance of the model; optional fields left out count as None."""
    import json

    from pydantic import ValidationError

    required = question.params["requestedSchema"].get("required", [])
    filled = {name: value for name, value in content.items() if value is not None or name in required}
    for name, field in model.model_fields.items():
        wire_name = field.validation_alias if isinstance(field.validation_alias, str) else name
        if field.is_required() and wire_name not in required:
            filled.setdefault(wire_name, None)
    try:
        return model.model_validate_json(json.dumps(filled))
    except ValidationError as error:
        fields = sorted({".".join(str(part) for part in fault["loc"]) for fault in error.errors(include_input=False)})
        raise QuestionError(
            f"the answer to question {question.key!r} fits its form but not {model.__name__} "
            f"({', '.join(fields) or 'as a whole'}): a form cannot carry every rule of a model"
        ) from None
