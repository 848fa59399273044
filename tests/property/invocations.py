"""Lambda with trouble in it: every start is one more event, and nothing can be asked or stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from taskrail.engines import RunOrder, RunReport, RunState, parse_run_name
from taskrail.errors import StartRefused
from tests.property.outside import Outside, unavailable


@dataclass
class Invocation:
    """An event in Lambda's queue.

    Parameters
    ----------
    request_id, name
        Its own id, and the run that it is about.
    over
        Whether it is not delivered any more.
    """

    request_id: str
    name: str
    over: bool = False

    def record(self) -> RunReport:
        """What the failure destination gets once Lambda has given it up."""
        self.over = True
        return RunReport(RunState.FAILED, "Runtime.ExitError", run_id=self.request_id, attempt=1)


class TroubledFunctions:
    """An engine like Lambda.

    Parameters
    ----------
    outside
        Where its calls pass.
    check_start
        Called with the task and number of a run when an event is really queued.
    """

    records_ids = False
    stops_gently = False
    by_lease = True

    def __init__(self, outside: Outside, check_start: Callable[[str, int], None]) -> None:
        self._outside = outside
        self._check_start = check_start
        self.all: dict[str, Invocation] = {}
        self.telling: str | None = None
        """The event whose failure record is being told."""

    def start(self, order: RunOrder) -> str:
        """As `Engine.start`."""
        refused = self._outside.refuses()
        unknown: Callable[[], Exception] = (lambda: StartRefused("refused")) if refused else unavailable
        answer: str = self._outside.call(
            order.name.partition("-")[0], lambda: self._start(order), unknown, writes=False
        )
        return answer

    def stop(self, tool: str, name: str, run_id: str | None) -> bool:
        """As `Engine.stop`."""
        raise AssertionError("it cannot be stopped")

    def describe(self, tool: str, name: str, run_id: str | None) -> RunReport:
        """As `Engine.describe`."""
        raise AssertionError("it cannot be asked")

    def resume(self, token: str, output: str) -> None:
        """As `Engine.resume`: no function waits with a token."""

    def log_tail(self, tool: str, log: str, lines: int) -> tuple[str, ...]:
        """As `Engine.log_tail`: there is none."""
        return ()

    def of(self, name: str) -> list[Invocation]:
        """The events of a run, the first queued first."""
        return [event for event in self.all.values() if event.name == name]

    @contextmanager
    def tells(self, event: Invocation) -> Iterator[RunReport]:
        """While the failure record of an event that is given up is told."""
        before, self.telling = self.telling, event.request_id
        try:
            yield event.record()
        finally:
            self.telling = before

    def waits(self, name: str) -> bool:
        """Whether a run is still to be delivered."""
        return any(not event.over for event in self.of(name))

    def _start(self, order: RunOrder) -> str:
        parsed = parse_run_name(order.name)
        assert parsed is not None and (order.input["taskId"], order.input["run"]) == parsed
        self._check_start(*parsed)
        request_id = f"request-{len(self.all) + 1}"
        self.all[request_id] = Invocation(request_id, order.name)
        return order.name


def over(event: Invocation | None) -> None:
    """A function has come to its end: its event is done with."""
    if event is not None:
        event.over = True
