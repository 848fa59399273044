"""Faults below botocore's retry handler: what a try of an AWS call meets in place of its answer.

A `Wire` stands where the network would be: under one process's clients. It counts the API calls that the
process makes (botocore's own tries of a call are one call), and lets the chosen one meet its fault.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any
from unittest.mock import patch

from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError

from taskrail.testing import StandingClock

Effect = Callable[[str, Any], AWSResponse]
"""Performs a request for real: event name and prepared request in, the service's answer out."""


class Killed(BaseException):
    """The process is dead: nothing that it goes on to do reaches AWS any more."""


class Fault(Enum):
    """What happens to a try: whether it takes effect, and what comes back."""

    ERROR_BEFORE = "error before effect"
    ERROR_AFTER = "error after effect"
    THROTTLE = "throttle"
    TIMEOUT_BEFORE = "time-out before effect"
    TIMEOUT_AFTER = "time-out after effect"
    KILLED_BEFORE = "killed before effect"
    KILLED_AFTER = "killed after effect"

    @property
    def takes_effect(self) -> bool:
        """Whether the service did what was asked."""
        return self in (Fault.ERROR_AFTER, Fault.TIMEOUT_AFTER, Fault.KILLED_AFTER)

    @property
    def kills(self) -> bool:
        """Whether the process ends there."""
        return self in (Fault.KILLED_BEFORE, Fault.KILLED_AFTER)


class Lasting(Enum):
    """How many tries meet the fault."""

    ONE_TRY = "one try"
    """botocore's next try gets through."""
    ONE_CALL = "one call"
    """Every try of that call; what the process calls next gets through."""
    OUTAGE = "outage"
    """That call and all that the process asks of the same service afterwards."""


@dataclass(frozen=True)
class Plan:
    """Which call of a process meets which fault, and how long that lasts. Calls count from 0."""

    call: int
    fault: Fault
    lasting: Lasting = Lasting.ONE_TRY

    def hits(self, calls: Sequence[str], tried: int) -> bool:
        """Whether a try, counted from 0, of the last of these calls meets the fault."""
        last = len(calls) - 1
        if self.lasting is Lasting.OUTAGE and last >= self.call:
            return service_of(calls[last]) == service_of(calls[self.call])
        return last == self.call and (self.lasting is not Lasting.ONE_TRY or tried == 0)


def service_of(call: str) -> str:
    """The service of a call that is written ``service:Operation``."""
    return call.partition(":")[0]


class Wire:
    """The network under one process's clients.

    Parameters
    ----------
    effect
        Performs requests.
    clock
        Stands while all is well; a try that times out takes as long as the client waits.
    plan
        The fault to come; None for an undisturbed process.
    """

    def __init__(self, effect: Effect, clock: StandingClock, plan: Plan | None = None) -> None:
        self.calls: list[str] = []
        """The API calls so far, as ``service:Operation``."""
        self.struck = False
        """Whether the fault has come."""
        self._effect = effect
        self._clock = clock
        self._plan = plan
        self._tried = 0
        self._dead = False

    def called(self, call: str) -> None:
        """An API call begins."""
        self.calls.append(call)
        self._tried = 0

    def sent(self, event_name: str, request: Any, patience_ms: int) -> AWSResponse:
        """A try of it is sent; whoever sends it waits so long for an answer."""
        if self._dead:
            raise Killed
        tried, self._tried = self._tried, self._tried + 1
        plan = self._plan
        if plan is None or not plan.hits(self.calls, tried):
            return self._effect(event_name, request)
        self.struck = True
        if plan.fault.takes_effect:
            self._effect(event_name, request)
        return self._answer(plan.fault, event_name, request.url, patience_ms)

    def _answer(self, fault: Fault, event_name: str, url: str, patience_ms: int) -> AWSResponse:
        match fault:
            case Fault.ERROR_BEFORE:
                return _refusal(event_name, url, 500, "InternalServerError", "InternalError")
            case Fault.THROTTLE if "s3" in event_name:
                return _refusal(event_name, url, 503, "", "SlowDown")
            case Fault.THROTTLE:
                return _refusal(event_name, url, 400, "ThrottlingException", "")
            case Fault.ERROR_AFTER:
                raise ConnectionClosedError(endpoint_url=url)
            case Fault.TIMEOUT_BEFORE | Fault.TIMEOUT_AFTER:
                self._clock.advance(patience_ms)
                raise ReadTimeoutError(endpoint_url=url)
            case Fault.KILLED_BEFORE | Fault.KILLED_AFTER:
                self._dead = True
                raise Killed


class Clients:
    """Clients for one process after the other: making them takes longer than all else that a cell does.

    Parameters
    ----------
    make
        Makes a client of a service.
    """

    def __init__(self, make: Callable[[str], Any]) -> None:
        self.wire: Wire
        """The network of the process that has them now."""
        self._make = make
        self._made: dict[str, Any] = {}

    def __call__(self, service: str) -> Any:
        """A client of a service, moto's own in-process answers taken away."""
        if service not in self._made:
            self._made[service] = self._attached(service)
        return self._made[service]

    def _attached(self, service: str) -> Any:
        from botocore.retries import quota
        from moto.core.models import botocore_stubber

        # A process begins with its full quota of retries: none may be used up by the processes before it.
        with patch.object(quota, "RetryQuota", partial(quota.RetryQuota, initial_capacity=1_000_000_000)):
            made = self._make(service)
        patience_ms = round((made.meta.config.connect_timeout + made.meta.config.read_timeout) * 1000)

        def called(model: Any, **_: Any) -> None:
            self.wire.called(f"{service}:{model.name}")

        def sent(event_name: str, request: Any, **_: Any) -> AWSResponse:
            return self.wire.sent(event_name, request, patience_ms)

        made.meta.events.unregister("before-send", botocore_stubber)
        made.meta.events.register("before-call", called)
        made.meta.events.register("before-send", sent)
        return made


def answer(url: str, status: int, body: str, content_type: str = "application/x-amz-json-1.0") -> AWSResponse:
    """A service's answer as botocore's HTTP session would bring it."""
    return AWSResponse(url, status, {"content-type": content_type}, _Body(body.encode()))  # type: ignore[arg-type]


def _refusal(event_name: str, url: str, status: int, json_code: str, xml_code: str) -> AWSResponse:
    if event_name.startswith("before-send.s3"):
        body = f"<Error><Code>{xml_code}</Code><Message>secret-detail-of-aws</Message></Error>"
        return answer(url, status, body, "application/xml")
    return answer(url, status, f'{{"__type": "{json_code}", "message": "secret-detail-of-aws"}}')


class _Body(io.BytesIO):
    """A raw body as urllib3 hands it over."""

    def stream(self, **_: Any) -> Any:
        while chunk := self.read():
            yield chunk
