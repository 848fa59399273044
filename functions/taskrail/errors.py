"""Every error the kit raises on purpose, with its JSON-RPC code and HTTP status as data.

A person reads each message: it says what was wrong, where, and what to do. Nothing here ever
carries an argument's value, a token or a trace.
"""

from __future__ import annotations

from typing import Any, ClassVar

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

TASKS_EXTENSION = "io.modelcontextprotocol/tasks"


class TaskrailError(Exception):
    """Base of every error the kit raises on purpose."""


class DeclarationError(TaskrailError):
    """A tool is declared in a way that cannot work; raised while the catalogue is imported.

    Parameters
    ----------
    tool
        Name of the tool, or of the server when the fault lies between tools.
    problem
        What is wrong and what to do about it.
    """

    def __init__(self, tool: str, problem: str) -> None:
        super().__init__(f"tool {tool!r}: {problem}")
        self.tool = tool
        self.problem = problem


class ArgumentsError(TaskrailError):
    """The arguments of a call do not fit the tool's schema.

    Parameters
    ----------
    problems
        One sentence per fault, each naming the argument; never the value that was sent.
    """

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class ToolError(TaskrailError):
    """Raise it in a tool to tell the caller what went wrong: the result has ``isError: true``.

    Parameters
    ----------
    message
        Text for the caller, shown as it is.
    structured
        A partial result to keep beside the text; sent as a second text block.
    """

    def __init__(self, message: str, *, structured: Any = None) -> None:
        # Another exception is often given as the message, and must not fail where it is told.
        super().__init__(str(message))
        self.message = str(message)
        self.structured = structured


class ProtocolError(TaskrailError):
    """Raise it in a tool to answer with a JSON-RPC error; a task then ends as ``failed``.

    Parameters
    ----------
    code
        JSON-RPC error code. Codes of one's own lie outside -32768..-32000.
    message
        Text for the caller.
    data
        JSON value for the error's ``data``; left out when None.

    Raises
    ------
    TypeError
        If `code` is no whole number: JSON-RPC has no other codes.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        if isinstance(code, bool) or not isinstance(code, int):
            raise TypeError(f"ProtocolError: code is a whole number, not {type(code).__name__}")
        super().__init__(str(message))
        self.code = code
        self.message = str(message)
        self.data = data


class QuestionError(TaskrailError):
    """A job or a hook asked in a way that cannot work; the message says how to ask instead."""


class RpcError(TaskrailError):
    """An error that is the answer to a request: code, message, data and HTTP status.

    Parameters
    ----------
    message
        Text for the client.
    data
        JSON value for the error's ``data``; left out when None.
    """

    code: ClassVar[int] = INTERNAL_ERROR
    http_status: ClassVar[int] = 500

    def __init__(self, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.data = data


class ParseError(RpcError):
    """The body is not JSON."""

    code = PARSE_ERROR
    http_status = 400


class InvalidRequest(RpcError):
    """The body is JSON but no JSON-RPC request."""

    code = INVALID_REQUEST
    http_status = 400


class MethodNotFound(RpcError):
    """The method does not exist here."""

    code = METHOD_NOT_FOUND
    http_status = 404


class InvalidParams(RpcError):
    """A parameter is missing or wrong; the message names it."""

    code = INVALID_PARAMS
    http_status = 400


class HeaderMismatch(RpcError):
    """A header that mirrors the body is missing or says something else than the body."""

    code = HEADER_MISMATCH
    http_status = 400


class UnsupportedVersion(RpcError):
    """The request speaks a protocol revision that this server does not."""

    code = UNSUPPORTED_VERSION
    http_status = 400


class Forbidden(RpcError):
    """The caller may not do this.

    Parameters
    ----------
    message
        Text for the client.
    scopes
        The scopes that would allow it, for the challenge (basic/authorization, "Scope Challenge Handling").
    """

    code = INVALID_REQUEST
    http_status = 403

    def __init__(self, message: str, scopes: tuple[str, ...] = ()) -> None:
        super().__init__(message, {"requiredScopes": list(scopes)} if scopes else None)
        self.scopes = scopes


class MissingCapability(RpcError):
    """The request needs a capability that the client did not declare on it.

    Parameters
    ----------
    required
        The missing part of ``ClientCapabilities``, for ``data.requiredCapabilities``.
    """

    code = MISSING_CAPABILITY
    http_status = 400

    def __init__(self, required: dict[str, Any]) -> None:
        super().__init__(
            "The request needs a client capability that was not declared.",
            {"requiredCapabilities": required},
        )


class TaskNotFound(InvalidParams):
    """No such task: unknown, expired and another caller's are the same, byte for byte."""

    def __init__(self) -> None:
        super().__init__("Unknown task: no task with this taskId is available to this caller.")


class InternalError(RpcError):
    """Something of ours failed; the message carries no detail."""

    def __init__(self, message: str = "Internal error.") -> None:
        super().__init__(message)


class NotStarted(RpcError):
    """The work was refused by its engine: nothing was stored, the call may be repeated."""

    def __init__(self) -> None:
        super().__init__(
            "The work could not be started. Nothing was stored; the call may be repeated.",
            {"retryable": True},
        )


class StartRefused(TaskrailError):
    """An engine answered that it will not start the run; no run of that name exists."""


class EngineUnavailable(TaskrailError):
    """An engine gave no clear answer (time-out, throttle, server error): the outcome is unknown."""


class StoreUnavailable(TaskrailError):
    """The table or the bucket gave no clear answer after the client's own retries."""


class PayloadGone(TaskrailError):
    """An object that an item points to is no longer in the bucket."""
