"""`subscriptions/listen`: acknowledged, told of changes of tasks, and ended gracefully (ext-tasks, "Task Status
Notifications"; basic/patterns/subscriptions).

Polls stay what is believed: whatever a stream leaves out, the next `tasks/get` tells.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taskrail.errors import InvalidParams, StoreUnavailable
from taskrail.ids import is_task_id
from taskrail.task import Status
from taskrail.wire import protocol
from taskrail.wire.envelope import Event, Reply, sendable_task
from taskrail.wire.http import LARGEST_ANSWER, escaped_size
from taskrail.wire.jsonrpc import RequestId, dumps

if TYPE_CHECKING:
    from taskrail.caller import Caller
    from taskrail.clock import Clock
    from taskrail.rail.rail import Rail
    from taskrail.task import Task
    from taskrail.wire.ladder import Route

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
CHANGED = "notifications/tasks"

MOST_TASKS = 50
"""Tasks that one request may listen to: each costs a read at every look."""

KEEP_ALIVE_MS = 15_000
"""Milliseconds without news after which a stream sends a comment, so that nothing between takes it for dead."""

_COMMENT = ": nothing new\n\n"
_ENVELOPE = 50_000
"""Bytes that the acknowledgement and the end of a stream may take, escaped."""


@dataclass(frozen=True)
class Pace:
    """How often somebody looks: soon, then ever less often, and soon again after news.

    Parameters
    ----------
    first_ms, longest_ms
        The shortest and the longest pause, in milliseconds.
    """

    first_ms: int
    longest_ms: int


HELD = Pace(1_000, 5_000)
"""Every look is billed: one a second at most."""
LIVE = Pace(250, 1_000)
"""On one machine a look costs nothing but the time."""


class Listening:
    """Serves the method.

    Parameters
    ----------
    rail, clock
        Where the tasks are; time, and its passing.
    mode
        ``off``, ``hold`` or ``stream``.
    longest_ms
        How long a request may listen, in milliseconds.
    """

    def __init__(self, rail: Rail, clock: Clock, mode: str, longest_ms: int) -> None:
        self._rail = rail
        self._clock = clock
        self._mode = mode
        self._longest_ms = longest_ms

    def needs_caller(self, route: Route) -> bool:
        """Whether the request is about tasks, which belong to somebody.

        Raises
        ------
        InvalidParams
            The filter is malformed.
        """
        return self._mode != "off" and bool(_wanted(route.params))

    def listen(self, route: Route, caller: Caller | None, deadline: int) -> Reply:
        """The stream: what is honoured, what happened, and the end.

        Parameters
        ----------
        route
            The request.
        caller
            Who is calling; needed where `needs_caller` says so.
        deadline
            Moment at which an answer in one piece must be on its way, in milliseconds since the epoch.

        Raises
        ------
        InvalidParams
            The filter is malformed, or names too many tasks.
        StoreUnavailable
            The tasks cannot be read just now.
        """
        wanted = _wanted(route.params)
        # The id keeps its JSON type: clients compare it with the one that they sent.
        meta = {protocol.SUBSCRIPTION_KEY: route.id}
        if self._mode == "off" or caller is None or not wanted:
            return Reply({"_meta": meta}, notifications=(_acknowledgement(meta, ()),))
        until = self._clock.now() + self._longest_ms
        if self._mode == "hold":
            until = min(until, deadline)
        watch = _Watch(self._rail, self._clock, caller.owner, route.id, until)
        news = watch.begin(wanted)
        acknowledgement = _acknowledgement(meta, watch.task_ids)
        if not watch.task_ids:
            return Reply({"_meta": meta}, notifications=(acknowledgement,))
        if self._mode == "stream":
            live = self._live(watch, until, news)
            return Reply({"_meta": meta}, notifications=(acknowledgement,), live=live)
        if not watch.ended:
            # Whoever came too late to hear of an end is not kept waiting for another.
            news += next(filter(None, self._looks(watch, until, HELD)), [])
        return Reply({"_meta": meta}, notifications=(acknowledgement, *_fitting(news)))

    def _looks(self, watch: _Watch, until: int, pace: Pace) -> Iterator[list[Event]]:
        """What each look at the tasks finds, until all of them have ended or the time is over."""
        pause = pace.first_ms
        while watch.open and (left := until - self._clock.now()) > 0:
            self._clock.sleep(min(pause, left))
            news = watch.look()
            pause = pace.first_ms if news else min(pause * 3 // 2, pace.longest_ms)
            yield news

    def _live(self, watch: _Watch, until: int, first: list[Event]) -> Iterator[Event]:
        yield from first
        spoken = self._clock.now()
        for news in self._looks(watch, until, LIVE):
            now = self._clock.now()
            if not news:
                news = [_COMMENT if now - spoken >= KEEP_ALIVE_MS else ""]
            if news != [""]:
                spoken = now
            yield from news


class _Watch:
    """Tasks of one caller, what their listener was told of each last, and when each was looked at as a poll does."""

    def __init__(self, rail: Rail, clock: Clock, owner: str, subscription: RequestId, until: int) -> None:
        self._rail = rail
        self._clock = clock
        self._until = until
        self._owner = owner
        self._meta = {protocol.SUBSCRIPTION_KEY: subscription}
        self._tasks: dict[str, Task] = {}
        self._told: dict[str, tuple[Status, int]] = {}
        self._polled: dict[str, int] = {}

    @property
    def task_ids(self) -> tuple[str, ...]:
        """The tasks that there are."""
        return tuple(self._tasks)

    @property
    def open(self) -> bool:
        """Whether one of them can still change, or its end is still to be told."""
        return any(task.open or self._told.get(task_id) != _seen(task) for task_id, task in self._tasks.items())

    @property
    def ended(self) -> bool:
        """Whether one of them has ended."""
        return any(not task.open for task in self._tasks.values())

    def begin(self, task_ids: list[str]) -> list[Event]:
        """Read the tasks; what is told at once: that one has a question, or has ended.

        Raises
        ------
        StoreUnavailable
            They cannot be read just now.
        """
        now = self._clock.now()
        self._tasks = self._rail.read_many(self._owner, task_ids, repair=self._while_there_is_time(task_ids))
        self._polled = dict.fromkeys(self._tasks, now)
        self._told = {task_id: _seen(task) for task_id, task in self._tasks.items() if task.status is Status.WORKING}
        return self._news()

    def look(self) -> list[Event]:
        """What has changed since the last look; nothing where the tasks cannot be read just now."""
        now = self._clock.now()
        # A poll asks the engine about a silent run: this does so as often as polls would, no more.
        due = [
            task_id for task_id, task in self._tasks.items() if now - self._polled[task_id] >= task.poll_interval(now)
        ]
        open_ids = [task_id for task_id, task in self._tasks.items() if task.open]
        try:
            found = self._rail.read_many(self._owner, open_ids, repair=self._while_there_is_time(due))
        except StoreUnavailable:
            return self._news()
        self._polled.update(dict.fromkeys(due, now))
        ended = {task_id: task for task_id, task in self._tasks.items() if not task.open}
        self._tasks = {**ended, **found}
        return self._news()

    def _while_there_is_time(self, task_ids: list[str]) -> Container[str]:
        """These ids, until the time is over: an engine that answers slowly would be asked once for each of them."""
        return _Until(frozenset(task_ids), self._clock, self._until)

    def _news(self) -> list[Event]:
        news: list[Event] = []
        for task_id, task in self._tasks.items():
            if self._told.get(task_id) == _seen(task):
                continue
            try:
                detail = sendable_task(self._rail.detail(task))
            except StoreUnavailable:
                # Its result cannot be read just now: the next look tries again.
                continue
            self._told[task_id] = _seen(task)
            params = {**detail, "_meta": {**detail.get("_meta", {}), **self._meta}}
            news.append({"method": CHANGED, "params": params})
        return news


@dataclass(frozen=True)
class _Until(Container[str]):
    """Ids that are in it until a moment, in milliseconds since the epoch."""

    ids: frozenset[str]
    clock: Clock
    moment: int

    def __contains__(self, item: object) -> bool:
        return item in self.ids and self.clock.now() < self.moment


def _seen(task: Task) -> tuple[Status, int]:
    """What tells one state of a task from the next, as clients see it."""
    return task.status, task.updated_at


def _wanted(params: Mapping[str, Any]) -> list[str]:
    """The ids that a filter names and that may be a task's, each once."""
    wanted = params.get("notifications")
    if not isinstance(wanted, dict):
        raise InvalidParams("params.notifications must be an object.")
    task_ids = wanted.get("taskIds")
    if task_ids is None:
        return []
    if not isinstance(task_ids, list) or not all(isinstance(item, str) for item in task_ids):
        raise InvalidParams("params.notifications.taskIds must be a list of strings.")
    if len(task_ids) > MOST_TASKS:
        raise InvalidParams(f"params.notifications.taskIds must name at most {MOST_TASKS} tasks.")
    return [task_id for task_id in dict.fromkeys(task_ids) if is_task_id(task_id)]


def _acknowledgement(meta: Mapping[str, Any], task_ids: tuple[str, ...]) -> dict[str, Any]:
    honoured = {"taskIds": list(task_ids)} if task_ids else {}
    return {"method": ACKNOWLEDGED, "params": {"_meta": meta, "notifications": honoured}}


def _fitting(news: list[Event]) -> list[Mapping[str, Any]]:
    """Those notifications that one answer can carry: results may be large, and each alone fits in `tasks/get`."""
    kept: list[Mapping[str, Any]] = []
    left = LARGEST_ANSWER - _ENVELOPE
    for event in news:
        size = escaped_size(dumps(event))
        if not isinstance(event, str) and size <= left:
            kept.append(event)
            left -= size
    return kept
