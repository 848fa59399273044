"""What can go wrong, in words for the person who reads it; never with a credential, an argument or an answer."""

from __future__ import annotations


class TaskrailError(Exception):
    """Base of all errors of this client; the message says what to do."""


class StoreError(TaskrailError):
    """The file that remembers the tasks cannot be used."""


class InvalidAnswer(TaskrailError):
    """An answer does not fit the form that was asked with; nothing was sent."""


class InvalidArguments(TaskrailError):
    """The arguments of a call cannot be what the tool takes; nothing was sent."""


class UnknownTool(TaskrailError):
    """The server lists no tool of that name; nothing was called."""


class NoAnswer(TaskrailError):
    """The server gave no usable answer for too long. Tasks are not touched by that: ask again later."""


class CallUnanswered(TaskrailError):
    """A call got no usable answer, and whether the server took it is unknown.

    Only a call with an idempotency key is repeated by itself.
    """


class Refused(TaskrailError):
    """The server does not serve the request, and a repetition would not change that.

    Attributes
    ----------
    code
        JSON-RPC error code, or None when the refusal was of HTTP alone.
    """

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class TaskEnded(TaskrailError):
    """A task is over without a result.

    Attributes
    ----------
    task_id
        The task.
    """

    def __init__(self, task_id: str, message: str) -> None:
        super().__init__(message)
        self.task_id = task_id


class TaskFailed(TaskEnded):
    """A task ended in a JSON-RPC error.

    Attributes
    ----------
    code
        Code of that error.
    """

    def __init__(self, task_id: str, code: int, message: str) -> None:
        super().__init__(task_id, f"Task {task_id} failed: {message} ({code})")
        self.code = code


class TaskCancelled(TaskEnded):
    """A task was cancelled, and its work has stopped."""

    def __init__(self, task_id: str) -> None:
        super().__init__(task_id, f"Task {task_id} was cancelled.")


class TaskGone(TaskEnded):
    """The server knows no such task: it expired, never was, or belongs to another caller."""

    def __init__(self, task_id: str) -> None:
        super().__init__(task_id, f"The server has no task {task_id}: it has expired, or it is another caller's.")
