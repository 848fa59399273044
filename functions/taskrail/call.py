"""Inside a request: what a `before` hook and an inline tool know, and how they ask.

Nothing waits here. A question without an answer ends the request; the client comes back with
the answers and the hook runs again from its start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar, overload

from taskrail.caller import Caller
from taskrail.errors import TASKS_EXTENSION, MissingCapability, QuestionError
from taskrail.questions import (
    Answer,
    Question,
    check_response,
    form_question,
    make_answer,
    roots_question,
    sampling_question,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

M = TypeVar("M", bound="BaseModel")

_MODES = {"elicitation": ("form", "url"), "sampling": ("tools",), "roots": ()}
"""The capabilities that questions need, and what of each tells them apart (`Question.allowed`)."""


class NeedInput(BaseException):
    """The request cannot go on without these answers; the wire turns it into ``input_required``.

    It is no `Exception`, so that a tool's own ``except Exception`` does not swallow it.

    Parameters
    ----------
    questions
        The questions to send, in the order they were asked.
    """

    def __init__(self, questions: tuple[Question, ...]) -> None:
        super().__init__("the request waits for answers")
        self.questions = questions


@dataclass(frozen=True)
class ClientInfo:
    """The client as it describes itself on a request. It proves nothing about who is calling.

    Parameters
    ----------
    name
        Name of the client, if it gave one.
    version
        Its version, if it gave one.
    capabilities
        Its ``ClientCapabilities``.
    """

    name: str | None = None
    version: str | None = None
    capabilities: dict[str, Any] = field(default_factory=dict)

    @property
    def tasks(self) -> bool:
        """Whether it declared the tasks extension: as an object, nothing else counts."""
        extensions = self.capabilities.get("extensions")
        return isinstance(extensions, Mapping) and isinstance(extensions.get(TASKS_EXTENSION), Mapping)

    def with_forms(self) -> ClientInfo:
        """The same client as one that can be asked by form: its model asks the user, through a tool."""
        declared = self.capabilities.get("elicitation")
        forms = {**(declared if isinstance(declared, Mapping) else {}), "form": {}}
        return replace(self, capabilities={**self.capabilities, "elicitation": forms})

    @property
    def askable(self) -> dict[str, Any]:
        """What decides which questions the client can be asked: all of its capabilities that a task keeps.

        A client may declare anything besides, of any size, and an item has a limit.
        """
        kept: dict[str, Any] = {}
        for name, modes in _MODES.items():
            declared = self.capabilities.get(name)
            if isinstance(declared, Mapping):
                said = {mode: declared[mode] for mode in modes if mode in declared}
                kept[name] = {mode: {} if isinstance(value, Mapping) else None for mode, value in said.items()}
        return kept


class Call:
    """The request that a hook or an inline tool answers.

    Parameters
    ----------
    owner
        Opaque key of the caller.
    client
        The client that sent the request.
    answers
        Responses to questions so far, by key: those carried in the sealed state and those that
        came with this request. Unknown keys are ignored, unusable ones are asked for again.
    caller
        What is known of the caller: subject, tenant, scopes, chosen claims.
    """

    def __init__(
        self,
        owner: str,
        client: ClientInfo,
        answers: Mapping[str, Any] | None = None,
        caller: Caller | None = None,
    ) -> None:
        self.owner = owner
        self.client = client
        self.caller = caller or Caller(owner)
        self._answers = dict(answers or {})
        self._asked: dict[str, Question] = {}
        self._used: dict[str, dict[str, Any]] = {}

    @property
    def answered(self) -> Mapping[str, dict[str, Any]]:
        """The usable responses that were asked for so far, by key: what the next round must carry."""
        return dict(self._used)

    @overload
    def ask(self, key: str, message: str, model: None = None) -> Answer[dict[str, Any]]: ...

    @overload
    def ask(self, key: str, message: str, model: type[M]) -> Answer[M]: ...

    def ask(self, key: str, message: str, model: type[BaseModel] | None = None) -> Answer[Any]:
        """Ask the person behind the client.

        Parameters
        ----------
        key
            Name of the question; ask one thing under it, always in the same words.
        message
            What the person reads.
        model
            The form, a pydantic model of plain fields; without one, a plain yes or no.

        Returns
        -------
        Answer
            Accepted with the model as its content, declined or cancelled.

        Raises
        ------
        MissingCapability
            If the client did not declare that it can be asked.
        QuestionError
            If the question cannot be put as a form.
        """
        question = form_question(key, message, model)
        return self.gather(question, models={key: model})[key]

    def ask_all(self, questions: Mapping[str, tuple[str, type[BaseModel] | None]]) -> dict[str, Answer[Any]]:
        """Ask several things at once.

        Parameters
        ----------
        questions
            Message and form of each question, by key.

        Returns
        -------
        dict
            An answer for each key.

        Raises
        ------
        MissingCapability
            If the client did not declare that it can be asked.
        QuestionError
            If a question cannot be put as a form.
        """
        asked = [form_question(key, message, model) for key, (message, model) in questions.items()]
        return self.gather(*asked, models={key: model for key, (_, model) in questions.items()})

    def sample(
        self, key: str, messages: Sequence[Mapping[str, Any]] | str, max_tokens: int, **more: Any
    ) -> Answer[dict[str, Any]]:
        """Ask the client's model.

        Parameters
        ----------
        key
            Name of the question.
        messages
            ``SamplingMessage`` objects, or one text of the user.
        max_tokens
            The most tokens that the model may write.
        more
            Other parameters of ``sampling/createMessage``.

        Returns
        -------
        Answer
            With the response (role, content, model) as its content.

        Raises
        ------
        MissingCapability
            If the client did not declare sampling.
        """
        return self.gather(sampling_question(key, messages, max_tokens, **more))[key]

    def roots(self, key: str = "roots") -> Answer[dict[str, Any]]:
        """Ask for the folders that the client shares.

        Parameters
        ----------
        key
            Name of the question.

        Returns
        -------
        Answer
            With ``roots`` in its content.

        Raises
        ------
        MissingCapability
            If the client did not declare roots.
        """
        return self.gather(roots_question(key))[key]

    def gather(
        self, *questions: Question, models: Mapping[str, type[BaseModel] | None] | None = None
    ) -> dict[str, Answer[Any]]:
        """Ask questions of any kinds at once.

        Parameters
        ----------
        questions
            From `form_question`, `sampling_question` and `roots_question`.
        models
            The models that forms were made of, by key.

        Returns
        -------
        dict
            Answers by key. What this client cannot be asked is left out.

        Raises
        ------
        MissingCapability
            If the client can be asked none of them.
        QuestionError
            If two questions share a key.
        """
        answers: dict[str, Answer[Any]] = {}
        waiting: list[Question] = []
        refused: list[Question] = []
        for question in questions:
            self._remember(question)
        for question in questions:
            answer = self._answer(question, (models or {}).get(question.key))
            if answer is not None:
                answers[question.key] = answer
            elif question.allowed(self.client.capabilities):
                waiting.append(question)
            else:
                refused.append(question)
        if waiting:
            raise NeedInput(tuple(waiting))
        if refused and not answers:
            required: dict[str, Any] = {}
            for question in refused:
                required.update(question.requires())
            raise MissingCapability(required)
        return answers

    def _remember(self, question: Question) -> None:
        """Hold a key to one question, also when a hook asks it twice."""
        known = self._asked.setdefault(question.key, question)
        if known.fingerprint != question.fingerprint:
            raise QuestionError(f"question {question.key!r} was asked before with other words; give it its own key")

    def _answer(self, question: Question, model: type[BaseModel] | None) -> Answer[Any] | None:
        """The answer to a question if a usable one has come."""
        response = self._answers.get(question.key)
        if response is None or check_response(question, response) is not None:
            return None
        try:
            answer = make_answer(question, response, model)
        except QuestionError:
            # The form was kept but not a rule of the model's own: ask again, as for any unusable answer.
            return None
        self._used[question.key] = answer.raw
        return answer
