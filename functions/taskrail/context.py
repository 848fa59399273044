"""`TaskContext`: what a job can do while it runs."""

from __future__ import annotations

import base64
import json
import mimetypes
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from datetime import timedelta
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeVar

from taskrail.caller import Caller
from taskrail.clock import milliseconds
from taskrail.errors import QuestionError, ToolError
from taskrail.questions import Answer, Question, form_question, make_answer, roots_question, sampling_question
from taskrail.texts import ResultError, sendable

if TYPE_CHECKING:
    from pydantic import BaseModel

    from taskrail.task import Task

T = TypeVar("T")

_LONGEST_MESSAGE = 500
_LONGEST_NAME = 255
_MOST_FILES = 500
"""Each is a link of some kilobytes in the answer, which has a limit."""
_MOST_STEPS = 150_000
_MOST_QUESTIONS = 60_000
"""Bytes, escaped, of the 400 KB that an item takes; large outcomes and answers are in the bucket (see `Payloads`)."""


class Unwind(BaseException):
    """Leaves a job's code without being an error: `except Exception` does not stop it, `finally` runs."""


class JobCancelled(Unwind):
    """The caller cancelled. Clean up in `finally`; the task ends as cancelled."""


class RunSuspended(Unwind):
    """A question is open: this run ends here, and the answer starts the next one."""


class RunSuperseded(Unwind):
    """The run is no longer this worker's; nothing that it still says counts."""


class RunInterrupted(Unwind):
    """This process has to end, the run does not: the next attempt goes on after the last finished step."""


@dataclass(frozen=True)
class Attachment:
    """A file beside the result: where it is, and how the client sees it."""

    pointer: str
    name: str
    mime_type: str
    size: int | None
    description: str | None

    def block(self) -> dict[str, Any]:
        """The resource link that stands for it in the stored result."""
        link: dict[str, Any] = {
            "type": "resource_link",
            "uri": self.pointer,
            "name": self.name,
            "mimeType": self.mime_type,
        }
        if self.size is not None:
            link["size"] = self.size
        if self.description is not None:
            link["description"] = self.description
        return link


class Channel(Protocol):
    """The line from a job to its task. Every call may raise `Unwind`."""

    @property
    def task(self) -> Task:
        """The task as the worker last saw it."""
        ...

    def check(self) -> None:
        """Leave the job if it was cancelled."""
        ...

    def progress(self, done: float | None, total: float | None, message: str | None) -> None:
        """Tell how far the job is; written when it is due."""
        ...

    def step(self, name: str, outcome: str) -> None:
        """Remember a step's outcome."""
        ...

    def ask(self, questions: Mapping[str, Question], wait_ms: int) -> None:
        """Open questions; comes back only if all of them are answered within `wait_ms`."""
        ...

    def load(self, stored: str) -> Any:
        """The value of a stored text."""
        ...

    def put(self, data: bytes | IO[bytes], mime_type: str, label: str) -> str:
        """Store a file under a new key; its pointer comes back."""
        ...

    def open_input(self, uri: str) -> IO[bytes]:
        """A document under the caller's own input prefix."""
        ...


class TaskContext:
    """What a job can do while it runs: tell its progress, remember steps, ask, attach.

    Every call is also the moment at which a cancellation reaches the job, as an exception that
    `except Exception` does not catch; `finally` and context managers clean up as usual.

    Parameters
    ----------
    channel
        The line to the task; the runner makes it.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._attachments: dict[str, Attachment] = {}
        self._step_attachments: list[Attachment] | None = None

    @property
    def task_id(self) -> str:
        """The task's id."""
        return self._channel.task.task_id

    @property
    def owner(self) -> str:
        """The opaque key of whoever called; also the name of their input prefix."""
        return self._channel.task.owner

    @property
    def caller(self) -> Caller:
        """What was known of the caller when it called: subject, tenant, scopes, chosen claims; never a token."""
        task = self._channel.task
        return Caller.from_json(task.owner, task.caller)

    @property
    def run(self) -> int:
        """Number of this run, from 1: every answer starts the next one."""
        return self._channel.task.run

    @property
    def attempt(self) -> int:
        """Number of this attempt of the run, from 1: engines may retry."""
        return self._channel.task.attempt

    @property
    def traceparent(self) -> str | None:
        """The caller's W3C trace context, if it sent one."""
        return self._channel.task.traceparent

    @property
    def cancelled(self) -> bool:
        """Whether the caller has asked for the end, as far as this worker has heard."""
        return self._channel.task.cancel_requested_at is not None

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """What is attached so far."""
        return tuple(self._attachments.values())

    def check(self) -> None:
        """Leave the job here if it was cancelled; for long stretches that tell no progress."""
        self._channel.check()

    def progress(self, done: float | None = None, total: float | None = None, message: str | None = None) -> None:
        """Tell how far the job is.

        Written at most every half poll interval, the last one always: call it as often as you like.

        Parameters
        ----------
        done, total
            In units of your own; finite numbers.
        message
            For the people who watch; made from the numbers when left out.
        """
        self._channel.progress(done, total, None if message is None else message[:_LONGEST_MESSAGE])

    def track(self, items: Iterable[T], message: str = "", total: int | None = None) -> Iterator[T]:
        """Go through `items` and tell the progress after each.

        Parameters
        ----------
        items
            Anything that can be iterated.
        message
            What is being done, as in "Rendering page"; the count is added.
        total
            How many there are, when `items` cannot say.
        """
        if total is None and isinstance(items, Sized):
            total = len(items)
        of = "" if total is None else f" of {total}"
        self.progress(0, total, f"{message} 0{of}".strip())
        for count, item in enumerate(items, start=1):
            yield item
            self.progress(count, total, f"{message} {count}{of}".strip())

    def step(self, name: str, work: Callable[[], T]) -> T:
        """Do a piece of work once per task, whatever runs and attempts it takes.

        The outcome is remembered before it is returned, as JSON or bytes; later runs get it without
        doing the work. A crash between the work and its record repeats it: a step happens at least
        once, and is paid twice only then. Files attached inside the step are remembered with it.

        Parameters
        ----------
        name
            Names the step within the task.
        work
            Does it; returns bytes or something that JSON can carry (which comes back as JSON reads it).

        Raises
        ------
        ToolError
            The outcome cannot be carried as JSON.
        """
        stored = self._channel.task.steps.get(name)
        if stored is None:
            self.check()
            self._step_attachments = []
            try:
                stored = self._record(name, work())
            finally:
                self._step_attachments = None
            return self._outcome(json.loads(stored))  # type: ignore[no-any-return]
        return self._outcome(self._channel.load(stored))  # type: ignore[no-any-return]

    async def step_async(self, name: str, work: Callable[[], Awaitable[T]]) -> T:
        """`step` for work that is awaited."""
        import asyncio

        stored = self._channel.task.steps.get(name)
        if stored is None:
            self.check()
            self._step_attachments = []
            try:
                outcome = await work()
                stored = await asyncio.to_thread(self._record, name, outcome)
            finally:
                self._step_attachments = None
            return self._outcome(json.loads(stored))  # type: ignore[no-any-return]
        return self._outcome(self._channel.load(stored))  # type: ignore[no-any-return]

    def ask(
        self, key: str, message: str, model: type[BaseModel] | None = None, *, wait: timedelta | None = None
    ) -> Answer[Any]:
        """Ask the caller; the recorded answer when it was asked before.

        Without an answer yet the run ends here, and the answer starts the next one, which comes by
        again: put costly work before the question into a `step`.

        Parameters
        ----------
        key
            Names the question within the task; never reuse it for another.
        message
            The question, for a person.
        model
            Fields of the answer, flat and primitive; None for a plain confirmation.
        wait
            Hold the run open for that long before ending it.

        Raises
        ------
        QuestionError
            The key stands for another question, the form cannot be asked, or the client cannot
            answer questions of this kind.
        """
        return self._answers({key: form_question(key, message, model)}, {key: model}, wait)[key]

    def ask_all(
        self, questions: Mapping[str, tuple[str, type[BaseModel] | None]], *, wait: timedelta | None = None
    ) -> dict[str, Answer[Any]]:
        """Ask several questions at once: by key, the message and the fields of the answer.

        Raises
        ------
        QuestionError
            As in `ask`.
        """
        forms = {key: form_question(key, message, model) for key, (message, model) in questions.items()}
        return self._answers(forms, {key: model for key, (_, model) in questions.items()}, wait)

    def sample(self, key: str, messages: list[dict[str, Any]], max_tokens: int, **more: Any) -> Answer[Any]:
        """Have the client's model complete `messages` (elicitation's sibling, ``sampling/createMessage``).

        Raises
        ------
        QuestionError
            As in `ask`.
        """
        return self._answers({key: sampling_question(key, messages, max_tokens, **more)}, {key: None}, None)[key]

    def roots(self, key: str = "roots") -> Answer[Any]:
        """Ask the client for its roots (``roots/list``).

        Raises
        ------
        QuestionError
            As in `ask`.
        """
        return self._answers({key: roots_question(key)}, {key: None}, None)[key]

    def attach(
        self,
        name: str,
        data: bytes | bytearray | memoryview | str | os.PathLike[str] | IO[bytes],
        *,
        mime_type: str | None = None,
        description: str | None = None,
    ) -> None:
        """Add a file to the result; the client gets a link to it that is fresh at every read.

        Attached again under the same name, the last one counts.

        Parameters
        ----------
        name
            File name that the client sees, at most 255 characters.
        data
            Bytes, text, a path, or an open binary file; files are streamed in bounded memory.
        mime_type
            Guessed from the name when left out.
        description
            For the client.

        Raises
        ------
        ResultError
            JSON or HTTP cannot carry the name, the type, the description or the text, or there are too many files.
        """
        from taskrail.content import Link

        self.check()
        if len(sendable(name, "the name of an attached file")) > _LONGEST_NAME:
            raise ResultError(f"the name of an attached file has at most {_LONGEST_NAME} characters")
        if name not in self._attachments and len(self._attachments) == _MOST_FILES:
            raise ResultError(f"a task takes {_MOST_FILES} attached files; put more of them into one archive")
        mime = mime_type or _guessed(name) or "application/octet-stream"
        # Whatever of this a result cannot carry shows here, before anything is stored.
        Link("file:", name, mime, description)
        size: int | None = None
        if isinstance(data, str):
            data = sendable(data, f"the text of the attached file {name!r}").encode()
        if isinstance(data, (bytes, bytearray, memoryview)):
            data = bytes(data)
            size = len(data)
            pointer = self._channel.put(data, mime, name)
        elif isinstance(data, os.PathLike):
            size = os.stat(data).st_size
            with open(data, "rb") as file:
                pointer = self._channel.put(file, mime, name)
        else:
            pointer = self._channel.put(data, mime, name)
        self._keep(Attachment(pointer, name, mime, size, description))

    def open_input(self, uri: str) -> IO[bytes]:
        """A document that the caller handed in by ``s3://`` URI, as a stream of bytes.

        Raises
        ------
        ToolError
            It does not lie under the caller's own input prefix, or is not there.
        """
        self.check()
        return self._channel.open_input(uri)

    def _answers(
        self, questions: Mapping[str, Question], models: Mapping[str, Any], wait: timedelta | None
    ) -> dict[str, Answer[Any]]:
        self.check()
        task = self._channel.task
        self._check_size({**questions, **task.questions})
        for key, question in questions.items():
            known = task.questions.get(key)
            if known is not None and known != question:
                raise QuestionError(
                    f"The key {key!r} already stands for another question; give this one a key of its own."
                )
            if not question.allowed(task.client):
                kind = ", ".join(question.requires())
                raise QuestionError(f"The client that made this task did not declare {kind}, so it cannot be asked.")
        if any(key not in task.answers for key in questions):
            self._channel.ask(questions, 0 if wait is None else milliseconds(wait))
            task = self._channel.task
        return {
            key: make_answer(question, self._channel.load(task.answers[key]), models[key])
            for key, question in questions.items()
        }

    def _check_size(self, questions: Mapping[str, Question]) -> None:
        try:
            text = json.dumps([question.to_json() for question in questions.values()], allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise QuestionError("A question of this task cannot be written as JSON.") from error
        if len(text) > _MOST_QUESTIONS:
            raise QuestionError("The questions of this task are too long to be stored: ask in fewer words.")

    def _record(self, name: str, outcome: Any) -> str:
        steps = {**self._channel.task.steps, name: ""}
        if not isinstance(name, str) or len(json.dumps(steps)) > _MOST_STEPS:
            raise ToolError("A step has a name, and a task remembers some hundreds of steps: do more in each of them.")
        record: dict[str, Any] = {}
        if isinstance(outcome, (bytes, bytearray)):
            record["bytes"] = base64.b64encode(outcome).decode()
        else:
            record["value"] = outcome
        if self._step_attachments:
            record["attachments"] = [vars(attachment) for attachment in self._step_attachments]
        try:
            text = json.dumps(record, separators=(",", ":"), allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ToolError(
                f"The outcome of the step {name!r} cannot be remembered: it must be bytes or JSON."
            ) from error
        self._channel.step(name, text)
        return text

    def _outcome(self, record: dict[str, Any]) -> Any:
        for attachment in record.get("attachments", ()):
            self._keep(Attachment(**attachment))
        return base64.b64decode(record["bytes"]) if "bytes" in record else record["value"]

    def _keep(self, attachment: Attachment) -> None:
        self._attachments[attachment.name] = attachment
        if self._step_attachments is not None:
            self._step_attachments.append(attachment)


def _guessed(name: str) -> str | None:
    try:
        return mimetypes.guess_type(name)[0]
    except ValueError:
        # It reads names as URLs, and some are broken ones.
        return None
