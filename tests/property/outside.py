"""The outside of one process, with trouble in it: the table, the bucket and the engine behind one counter.

Every call of the process is counted. What is planned for a call happens there, whichever outside
thing the call goes to.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError

from taskrail.engines import RunOrder, RunReport, RunState, parse_run_name
from taskrail.errors import EngineUnavailable, StartRefused
from taskrail.testing import StandingClock


class Died(BaseException):
    """The process is gone. Nothing that it goes on to do has any effect."""


class Trouble(Enum):
    """What may befall a call."""

    DIES_BEFORE = "dies before"
    DIES_AFTER = "dies after"
    UNKNOWN_BEFORE = "no answer, no effect"
    UNKNOWN_AFTER = "no answer, but it took effect"
    REPEATED = "the SDK repeats it, since the first answer was lost"
    REFUSED = "the engine refuses (other calls: no answer, no effect)"


class Meanwhile(Enum):
    """What another process may do to the same task just before a call."""

    POLLS = "its owner reads it"
    ANSWERS = "its owner answers all that is open"
    CANCELS = "its owner wants the end"
    REPLAYS = "its creation comes again"
    CLAIMS = "a higher attempt takes over"
    ASKS = "its worker asks"
    FINISHES = "its worker reports the end"
    ENDS = "its run is over, and the event comes"


Plan = Mapping[int, Trouble | Meanwhile]
"""What happens at which call of a process, from 0."""


class Outside:
    """Where all calls of the process pass.

    Parameters
    ----------
    observe
        Called after every call that may have changed the table, with the id of the task.
    meanwhile
        Lets another process do something to a task.
    """

    def __init__(self, observe: Callable[[str], None], meanwhile: Callable[[Meanwhile, str], None]) -> None:
        self._observe = observe
        self._meanwhile = meanwhile
        self._plan: Plan = {}
        self._dead = False
        self.actor = "client"
        """Who the process is: client, worker or event."""
        self.calls = 0
        """How many calls the process has made."""
        self.struck = False
        """Whether something of the plan has come."""
        self.overtaken = False
        """Whether another process has done something in between."""

    def new_process(self, actor: str, plan: Plan | None = None) -> None:
        """A process begins, with what it will meet."""
        self.actor, self._plan = actor, plan or {}
        self.calls, self._dead, self.struck, self.overtaken = 0, False, False, False

    def aside(self, act: Callable[[], None]) -> None:
        """Let other processes do something, in the middle of this one's call."""
        mine = vars(self).copy()
        try:
            act()
        finally:
            vars(self).update(mine)

    def call(self, task_id: str, act: Callable[[], Any], unknown: Callable[[], Exception], *, writes: bool) -> Any:
        """Perform a call, or what is planned in its place."""
        if self._dead:
            raise Died
        plan = self._plan.get(self.calls)
        self.calls += 1
        if isinstance(plan, Meanwhile):
            self.struck = self.overtaken = True
            self.aside(functools.partial(self._meanwhile, plan, task_id))
            plan = None
        if plan is not None:
            self.struck = True
        if plan is Trouble.DIES_BEFORE:
            self._dead = True
            raise Died
        if plan in (Trouble.UNKNOWN_BEFORE, Trouble.REFUSED):
            raise unknown()
        if plan is Trouble.REPEATED:
            self._act(task_id, act, writes, unheard=True)
        answer = self._act(task_id, act, writes, unheard=plan in (Trouble.DIES_AFTER, Trouble.UNKNOWN_AFTER))
        if plan is Trouble.DIES_AFTER:
            self._dead = True
            raise Died
        if plan is Trouble.UNKNOWN_AFTER:
            raise unknown()
        return answer

    def refuses(self) -> bool:
        """Whether the next call meets a refusal."""
        return not self._dead and self._plan.get(self.calls) is Trouble.REFUSED

    def _act(self, task_id: str, act: Callable[[], Any], writes: bool, *, unheard: bool) -> Any:
        answer = None
        try:
            answer = act()
        except ClientError:
            if not unheard:
                raise
        finally:
            if writes:
                self._observe(task_id)
        return answer


class TroubledTable:
    """A DynamoDB client, as far as the store uses it."""

    def __init__(self, outside: Outside, client: Any) -> None:
        self._outside = outside
        self._client = client

    def get_item(self, **parameters: Any) -> Any:
        """Read."""
        return self._call(self._client.get_item, parameters, parameters["Key"], writes=False)

    def put_item(self, **parameters: Any) -> Any:
        """Create."""
        return self._call(self._client.put_item, parameters, parameters["Item"])

    def update_item(self, **parameters: Any) -> Any:
        """Change."""
        return self._call(self._client.update_item, parameters, parameters["Key"])

    def delete_item(self, **parameters: Any) -> Any:
        """Take back."""
        return self._call(self._client.delete_item, parameters, parameters["Key"])

    def _call(self, method: Callable[..., Any], parameters: Any, key: Any, *, writes: bool = True) -> Any:
        task_id = key["pk"]["S"].removeprefix("task#")
        return self._outside.call(task_id, lambda: method(**parameters), _timeout, writes=writes)


class TroubledBucket:
    """An S3 client, as far as payloads use it, that never lets an object be overwritten."""

    def __init__(self, outside: Outside, client: Any) -> None:
        self._outside = outside
        self._client = client
        self._keys: set[str] = set()

    def put_object(self, **parameters: Any) -> Any:
        """Store an object; every key is new, but for what a container leaves behind."""
        assert parameters["Key"] not in self._keys or "/results/" in parameters["Key"], "an object was overwritten"
        self._keys.add(parameters["Key"])
        return self._call(self._client.put_object, parameters)

    def get_object(self, **parameters: Any) -> Any:
        """Read an object."""
        return self._call(self._client.get_object, parameters)

    def get_paginator(self, operation: str) -> TroubledBucket:
        """What lists the objects of a task."""
        assert operation == "list_objects_v2"
        return self

    def paginate(self, **parameters: Any) -> list[Any]:
        """All pages of a list; a task has few objects."""
        return [self._call(self._client.list_objects_v2, parameters, parameters["Prefix"])]

    def delete_objects(self, **parameters: Any) -> Any:
        """Delete objects of a task."""
        return self._call(self._client.delete_objects, parameters, parameters["Delete"]["Objects"][0]["Key"])

    def _call(self, method: Callable[..., Any], parameters: Any, key: str = "") -> Any:
        task_id = (key or parameters["Key"]).split("/")[1]
        return self._outside.call(task_id, lambda: method(**parameters), _timeout, writes=False)


class TroubledEngine:
    """An engine whose runs live until the test ends them, and whose answers lag after a start.

    Parameters
    ----------
    outside, clock
        Where its calls pass, and the time.
    check_start, check_stop
        Called with the task and number of a run when it is really started, or really stopped.
    """

    LAG_MS = 20_000
    """For how long a run may still be unknown: the first look of a repair may come earlier."""

    def __init__(
        self,
        outside: Outside,
        clock: StandingClock,
        check_start: Callable[[str, int], None],
        check_stop: Callable[[str, int], None],
    ) -> None:
        self._outside = outside
        self._clock = clock
        self._check_start = check_start
        self._check_stop = check_stop
        self._known_from: dict[str, int] = {}
        self.lags = False
        self.runs: dict[str, RunReport] = {}
        self.orders: dict[str, RunOrder] = {}
        self.handed: dict[str, set[str]] = {}
        """What states that wait were handed, by their token."""

    records_ids = False
    stops_gently = False
    by_lease = False

    def start(self, order: RunOrder) -> str:
        """As `Engine.start`."""
        refused = self._outside.refuses()
        answer: str = self._call(
            order.name, lambda: self._start(order), (lambda: StartRefused("refused")) if refused else unavailable
        )
        return answer

    def stop(self, tool: str, name: str, run_id: str | None) -> bool:
        """As `Engine.stop`."""
        answer: bool = self._call(name, lambda: self._stop(name), unavailable)
        return answer

    def describe(self, tool: str, name: str, run_id: str | None) -> RunReport:
        """As `Engine.describe`."""
        report: RunReport = self._call(name, lambda: self._describe(name), unavailable)
        return report

    def resume(self, token: str, output: str) -> None:
        """As `Engine.resume`; the task's id is the first part of a token here."""
        self._call(token, lambda: self.handed.setdefault(token, set()).add(output), unavailable)

    def log_tail(self, tool: str, log: str, lines: int) -> tuple[str, ...]:
        """As `Engine.log_tail`: there is none."""
        return ()

    def lives(self, name: str) -> bool:
        """Whether the run was started and is not over."""
        return name in self.runs and not self.runs[name].ended

    def _call(self, name: str, act: Callable[[], Any], unknown: Callable[[], Exception]) -> Any:
        return self._outside.call(name.partition("-")[0], act, unknown, writes=False)

    def _start(self, order: RunOrder) -> str:
        name = order.name
        parsed = parse_run_name(name)
        assert parsed is not None and (order.input["taskId"], order.input["run"]) == parsed
        assert self.orders.setdefault(name, order) == order, "a run was started with another input"
        if name not in self.runs:
            self._check_start(*parsed)
            self.runs[name] = RunReport(RunState.RUNNING)
            self._known_from[name] = self._clock.now() + (self.LAG_MS if self.lags else 0)
        return f"run:{name}"

    def _stop(self, name: str) -> bool:
        parsed = parse_run_name(name)
        assert parsed is not None
        if self.lives(name):
            self._check_stop(*parsed)
            self.runs[name] = RunReport(RunState.STOPPED)
        return True

    def _describe(self, name: str) -> RunReport:
        if name not in self.runs or self._clock.now() < self._known_from[name]:
            return RunReport(RunState.NOT_FOUND)
        return self.runs[name]


def _timeout() -> Exception:
    return ReadTimeoutError(endpoint_url="https://aws.invalid")


def unavailable() -> Exception:
    """Nobody knows what became of a call to an engine."""
    return EngineUnavailable("no answer")
