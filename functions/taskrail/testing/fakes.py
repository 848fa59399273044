"""Stand-ins for what a deployment stands on: a clock, ids, and an engine whose runs a test lets happen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from taskrail.engines import RunOrder, RunReport, RunState
from taskrail.errors import EngineUnavailable, StartRefused

START = 1_780_000_000_000
"""The moment at which a harness's clock stands at first, in milliseconds since the epoch."""


class StandingClock:
    """A clock that moves only when told.

    Parameters
    ----------
    now
        Where it stands, in milliseconds since the epoch.
    """

    def __init__(self, now: int = START) -> None:
        self._now = now
        self.on_sleep: Callable[[], None] = lambda: None

    def now(self) -> int:
        """Milliseconds since the epoch."""
        return self._now

    def sleep(self, milliseconds: int) -> None:
        """Move on at once; whatever waits for its turn gets it."""
        self._now += max(0, milliseconds)
        self.on_sleep()

    def advance(self, milliseconds: int) -> None:
        """Move on; nothing else happens."""
        self._now += milliseconds


class CountingIds:
    """Ids that a test can foretell; every one is new."""

    def __init__(self) -> None:
        self._count = 0

    def task_id(self) -> str:
        """The next task id."""
        self._count += 1
        return f"{self._count:032x}"

    def nonce(self) -> str:
        """The next nonce."""
        self._count += 1
        return f"n{self._count:x}"


@dataclass
class QueueEngine:
    """An engine whose runs happen when the test says so.

    Parameters
    ----------
    refuse
        Set it to have starts refused, as an engine without permission or capacity does.
    records_ids
        Whether it is like Batch: a name that is started twice is two jobs, each with an id of its own, and a
        stop tells the job and leaves it time.
    by_lease
        Whether it is like Lambda: it cannot be asked, it cannot stop a run, and a name that is started again is
        invoked again, under another id.
    """

    refuse: bool = False
    records_ids: bool = False
    by_lease: bool = False
    waiting: list[str] = field(default_factory=list)
    states: dict[str, RunReport] = field(default_factory=dict)
    starts: list[str] = field(default_factory=list)
    orders: dict[str, RunOrder] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    resumed: dict[str, str] = field(default_factory=dict)
    logs: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def stops_gently(self) -> bool:
        """Whether a stop leaves the work time."""
        return self.records_ids

    def start(self, order: RunOrder) -> str:
        """Queue the run; a name that was seen before changes nothing."""
        if self.refuse:
            raise StartRefused("The test refuses starts.")
        name = order.name
        if self.by_lease:
            self._invoke(order)
        elif name not in self.states:
            self.states[name] = RunReport(RunState.RUNNING)
            self.waiting.append(name)
            self.starts.append(name)
            self.orders[name] = order
            self.ids[name] = f"job-{name}" if self.records_ids else name
        return self.ids[name]

    def _invoke(self, order: RunOrder) -> None:
        self.starts.append(order.name)
        self.orders[order.name] = order
        # Of several events of a run that wait, all but one will find nothing to do.
        if order.name not in self.waiting:
            self.waiting.append(order.name)
            self.ids[order.name] = f"request-{self.starts.count(order.name)}-{order.name}"

    def stop(self, tool: str, name: str, run_id: str | None) -> bool:
        """Take the run out of the queue."""
        if self.by_lease:
            return False
        waited = name in self.waiting
        if waited:
            self.waiting.remove(name)
        if name in self.states and not self.states[name].ended:
            self.states[name] = RunReport(RunState.STOPPED)
        return waited or not self.stops_gently or self.describe(tool, name, run_id).ended

    def describe(self, tool: str, name: str, run_id: str | None) -> RunReport:
        """How the run stands."""
        if self.by_lease:
            raise AssertionError("An engine by lease cannot be asked.")
        report = self.states.get(name, RunReport(RunState.NOT_FOUND))
        known = self.records_ids and report.state is not RunState.NOT_FOUND and report.run_id is None
        return replace(report, run_id=self.ids[name]) if known else report

    def resume(self, token: str, output: str) -> None:
        """Keep the answer for the test to see; the first one stays."""
        if self.refuse:
            raise EngineUnavailable("The test refuses answers.")
        self.resumed.setdefault(token, output)

    def log_tail(self, tool: str, log: str, lines: int) -> tuple[str, ...]:
        """The last lines that the test put under that name."""
        return self.logs.get(log, ())[-lines:]

    def clear(self) -> None:
        """Forget every run, and refuse nothing."""
        self.refuse = False
        for kept in (self.waiting, self.states, self.starts, self.orders, self.ids, self.resumed, self.logs):
            kept.clear()

    def end(self, name: str, report: RunReport) -> None:
        """Let a run be over that way, its worker unheard."""
        self.states[name] = report
        if name in self.waiting:
            self.waiting.remove(name)
