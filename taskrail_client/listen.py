"""Listening: a stream that tells of changes sooner than the next poll would. Polls stay what is believed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

import anyio
from mcp import MCPError
from mcp.client.session import ClientSession
from pydantic import ValidationError

from taskrail_client.messages import Listen, ListenEnd, ListenParams, TaskNotice
from taskrail_client.pace import Pace
from taskrail_client.trouble import Kind, judge

STREAM_SECONDS = 3_600.0
"""Longest life of one stream."""

REST_MS = 1_000
"""Milliseconds between one stream and the next; one that ended sooner than this and told nothing is no offer."""

MOST_STREAMS = 20
"""Streams at a time; the tasks beyond them are polled only, so that connections are left for the polls."""

SAFETY_POLL_MS = 60_000
"""Milliseconds between polls while a stream has shown that it tells of changes."""


class Bell:
    """Rings when something was heard of a task."""

    def __init__(self) -> None:
        self._event = anyio.Event()
        self.heard = False
        """Whether the stream that is open now has told of the task."""
        self.trusted = False
        """Whether whoever waits has put off the next poll because of that."""

    def ring(self) -> None:
        """Wake whoever waits, or comes to wait next."""
        self._event.set()

    async def wait(self) -> None:
        """Wait for the next ring."""
        await self._event.wait()
        self._event = anyio.Event()


class Listener:
    """Keeps a stream open for each task that is followed.

    Parameters
    ----------
    pace
        Pauses between streams.
    now
        Milliseconds since the epoch.
    """

    def __init__(self, pace: Pace, now: Callable[[], int]) -> None:
        self._pace = pace
        self._now = now
        self._bells: WeakValueDictionary[str, Bell] = WeakValueDictionary()
        self._open = 0
        self.offered = True
        """Whether the server may still turn out to offer streams."""

    def bell(self, task_id: str) -> Bell:
        """The bell of a task."""
        return self._bells.setdefault(task_id, Bell())

    async def notice(self, notice: TaskNotice) -> None:
        """Take a ``notifications/tasks``."""
        if bell := self._bells.get(notice.task_id):
            bell.heard = True
            bell.ring()

    async def keep(self, session: ClientSession, task_id: str) -> None:
        """Listen to a task until cancelled, or until the server turns out not to offer it.

        Parameters
        ----------
        session
            The connection.
        task_id
            The task.
        """
        if self._open >= MOST_STREAMS:
            return
        self._open += 1
        try:
            await self._keep(session, task_id, self.bell(task_id))
        finally:
            self._open -= 1

    async def _keep(self, session: ClientSession, task_id: str, bell: Bell) -> None:
        failures = 0
        while self.offered:
            began = self._now()
            try:
                await self._stream(session, task_id)
                failures = 0
            except (MCPError, ValidationError) as error:
                trouble = judge(error)
                if trouble.kind is not Kind.PASSING and not bell.heard and self._now() - began < REST_MS:
                    self.offered = False
                failures += 1
            except Exception:
                # Listening is a comfort: whatever breaks it must not break the polls.
                self.offered = False
            else:
                self.offered = bell.heard or self._now() - began >= REST_MS
            bell.heard = False
            if bell.trusted:
                # What changed while the stream came to its end, only a poll can tell.
                bell.ring()
            await self._pace.sleep(self._pace.after_failure(max(failures, 1), REST_MS))

    async def _stream(self, session: ClientSession, task_id: str) -> None:
        params = ListenParams(notifications={"taskIds": [task_id]})
        await session.send_request(Listen(params=params), ListenEnd, request_read_timeout_seconds=STREAM_SECONDS)


async def rest(sleep: Callable[[float], Awaitable[None]], seconds: float, bell: Bell | None) -> None:
    """Sleep, or until the bell rings.

    Parameters
    ----------
    sleep
        Waits that many seconds.
    seconds
        How long.
    bell
        None where nobody rings.
    """
    if bell is None:
        await sleep(seconds)
        return

    async with anyio.create_task_group() as both:

        async def wake() -> None:
            await bell.wait()
            both.cancel_scope.cancel()

        both.start_soon(wake)
        await sleep(seconds)
        both.cancel_scope.cancel()
