"""Lambda's asynchronous invocation as the wire sees it: events that are delivered when a test says so."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from botocore.awsrequest import AWSResponse

from taskrail.engines import run_name
from tests.faults.faults import answer

FUNCTION = "arn:aws:lambda:eu-central-1:123456789012:function:"
"""What the ARN of a tool's function begins with; the tool's name follows."""
RETRY_AFTER_MS = 60_000
"""How long Lambda waits before it invokes a function again that has failed."""

_numbers = itertools.count(1)
"""A request's id never comes again, not even in a world that was taken back."""


@dataclass
class Event:
    """One event in the queue of a function.

    Parameters
    ----------
    request_id, tool, payload
        Its own id, the function's tool, and what it carries.
    delivered
        How often the function was invoked with it.
    over
        Whether it is not delivered any more.
    """

    request_id: str
    tool: str
    payload: dict[str, Any]
    delivered: int = 0
    over: bool = False

    @property
    def name(self) -> str:
        """The name of the run that it is about."""
        return run_name(self.payload["taskId"], self.payload["run"])

    def record(self) -> dict[str, Any]:
        """What the failure destination gets once Lambda has given it up."""
        return {
            "version": "1.0",
            "requestContext": {
                "requestId": self.request_id,
                "functionArn": f"{FUNCTION}{self.tool}:$LATEST",
                "condition": "RetriesExhausted",
                "approximateInvokeCount": max(self.delivered, 1),
            },
            "requestPayload": self.payload,
            "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
            "responsePayload": {"errorType": "Runtime.ExitError", "errorMessage": "secret-detail-of-aws"},
        }


@dataclass
class Invocations:
    """Answers Invoke as its API reference has it, for asynchronous invocations."""

    all: list[Event] = field(default_factory=list)
    refuse: bool = False

    def __call__(self, event_name: str, request: Any) -> AWSResponse:
        """Perform a request."""
        if self.refuse:
            body = json.dumps({"__type": "AccessDeniedException", "Message": "secret-detail-of-aws"})
            return answer(request.url, 403, body)
        if request.headers["X-Amz-Invocation-Type"] not in ("Event", b"Event"):
            raise AssertionError("The kit invokes asynchronously.")
        function = unquote(request.url).partition("/functions/")[2].removesuffix("/invocations")
        event = Event(f"request-{next(_numbers)}", function.removeprefix(FUNCTION), json.loads(request.body))
        self.all.append(event)
        return answer(request.url, 202, "")

    def of(self, name: str) -> list[Event]:
        """The events of a run, the first invoked first."""
        return [event for event in self.all if event.name == name]

    def waiting(self) -> Iterator[Event]:
        """The events that have not been delivered yet."""
        return iter([event for event in self.all if not event.over and not event.delivered])

    def time_out(self) -> None:
        """Their time is long over."""
        for event in self.all:
            event.over = True
