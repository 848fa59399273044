"""What an error of a request means: wait and ask again, doubt, or give up.

A poll, an update and a cancel can be repeated without harm, so everything that may pass is ridden out. What
would be final is believed only when it is told several times in a row: a proxy in between may answer anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from mcp import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, REQUEST_TIMEOUT
from pydantic import ValidationError

SURE_AFTER = 3
"""How often in a row a final word must come before it is believed."""

TROUBLE_KEY = "io.taskrail/trouble"
"""Key, in an error's data, under which `taskrail_client.transport` says what became of an HTTP request."""

NO_ANSWER = 1
"""Code of errors that this client makes up for requests without a JSON-RPC answer; outside JSON-RPC's own range."""


class Kind(Enum):
    """What to do about it."""

    PASSING = "passing"
    """Ask again, for as long as it takes."""
    DOUBTFUL = "doubtful"
    """Ask again; believe it when it repeats itself."""
    DENIED = "denied"
    """Believe it: the credentials are missing, wrong or not enough."""


@dataclass(frozen=True)
class Trouble:
    """An error, judged.

    Parameters
    ----------
    kind
        What to do about it.
    reason
        For the person who waits.
    retry_after_ms
        How long the server asked to be left alone, in milliseconds.
    never_arrived
        Whether the server certainly did nothing: it refused the connection or the rate.
    unknown_task
        Whether it is the answer to an id that the server does not know.
    """

    kind: Kind
    reason: str
    retry_after_ms: int = 0
    never_arrived: bool = False
    unknown_task: bool = False

    def data(self) -> dict[str, Any]:
        """As it travels in the data of an error."""
        return {
            TROUBLE_KEY: {
                "kind": self.kind.value,
                "reason": self.reason,
                "retryAfterMs": self.retry_after_ms,
                "neverArrived": self.never_arrived,
            }
        }


# The official client's own transport makes its errors for a bad status, bad JSON and a wrong content type out of
# the first three; servers answer the first one when they stumble.
_PASSING = {
    INTERNAL_ERROR: "the server had an internal error",
    PARSE_ERROR: "the answer was garbage",
    INVALID_REQUEST: "the answer was garbage",
    REQUEST_TIMEOUT: "no answer in time",
}


def judge(error: MCPError | ValidationError) -> Trouble:
    """What an error of a request means.

    Parameters
    ----------
    error
        As the official client raised it.
    """
    if isinstance(error, ValidationError):
        return Trouble(Kind.PASSING, "the answer was garbage")
    if error.code == NO_ANSWER and isinstance(error.data, Mapping) and TROUBLE_KEY in error.data:
        told = error.data[TROUBLE_KEY]
        return Trouble(Kind(told["kind"]), told["reason"], told["retryAfterMs"], told["neverArrived"])
    if error.code in _PASSING:
        return Trouble(Kind.PASSING, _PASSING[error.code])
    reason = f"the server answered {error.code}: {error.message}"
    return Trouble(Kind.DOUBTFUL, reason, unknown_task=error.code == INVALID_PARAMS)
