"""Runs what users wrote, inside a request, and maps every way in which it can end."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from typing import Any

from taskrail.calling import call_through
from taskrail.errors import ProtocolError, RpcError, ToolError
from taskrail.results import error_result
from taskrail.wire.jsonrpc import dumps

_log = logging.getLogger("taskrail")


class ToolEnded(Exception):
    """The user's code ended the call with an error for the caller.

    Parameters
    ----------
    result
        The call's result, with ``isError: true``.
    """

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__("the tool ended with an error")
        self.result = result


def run(tool: str, function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """What the function returns, awaited if need be.

    Parameters
    ----------
    tool
        Name of the tool, for the log.
    function
        The tool's body or its hook.
    arguments
        Its keyword arguments.

    Raises
    ------
    ToolEnded
        It raised `ToolError`, or anything that it should not have: the trace goes to the log only.
    ProtocolError, RpcError
        It wants a JSON-RPC error, or needs a capability that the client has not declared.
    """
    try:
        return call_through(function, arguments)
    except RpcError:
        raise
    except ProtocolError as error:
        if not _is_json([error.code, error.message, error.data]):
            raise ToolEnded(unexpected(tool)) from error
        raise
    except ToolError as error:
        raise ToolEnded(error_result(str(error.message), _partial(error.structured))) from error
    except (Exception, SystemExit) as error:
        raise ToolEnded(unexpected(tool)) from error


def unexpected(tool: str) -> dict[str, Any]:
    """Log the exception being handled, and tell the caller nothing but where to find it.

    Parameters
    ----------
    tool
        Name of the tool.
    """
    reference = os.urandom(6).hex()
    _log.exception("tool %s failed, reference %s", tool, reference)
    return error_result(f"The tool failed unexpectedly. The server's log has the details under reference {reference}.")


def _partial(value: Any) -> list[str]:
    """The text of a partial result, if there is one that JSON can carry."""
    return [dumps(value)] if value is not None and _is_json(value) else []


def _is_json(value: Any) -> bool:
    try:
        dumps(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True
