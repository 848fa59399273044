"""Listening, with a small server that streams: sooner than the next poll, and never believed without one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest

from taskrail_client import Pace, Store, TaskrailClient
from tests.taskrail_client.world import URL, World


class Feed(httpx2.AsyncByteStream):
    """A stream of server-sent events that the test writes."""

    def __init__(self, message: dict[str, Any]) -> None:
        self.request_id = message["id"]
        self.task_ids = message["params"]["notifications"]["taskIds"]
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self.send("notifications/subscriptions/acknowledged", notifications={"taskIds": self.task_ids})

    def send(self, method: str, **params: Any) -> None:
        """Write a notification."""
        params["_meta"] = {"io.modelcontextprotocol/subscriptionId": self.request_id}
        self._write({"jsonrpc": "2.0", "method": method, "params": params})

    def task(self, **task: Any) -> None:
        """Tell of a task."""
        whole = {"createdAt": "x", "lastUpdatedAt": "x", "ttlMs": None, "pollIntervalMs": 1, **task}
        self.send("notifications/tasks", **whole)

    def end(self) -> None:
        """End gracefully."""
        meta = {"io.modelcontextprotocol/subscriptionId": self.request_id}
        self._write({"jsonrpc": "2.0", "id": self.request_id, "result": {"resultType": "complete", "_meta": meta}})
        self._lines.put_nowait(None)

    def _write(self, message: dict[str, Any]) -> None:
        self._lines.put_nowait(f"event: message\r\ndata: {json.dumps(message)}\r\n\r\n")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (line := await self._lines.get()) is not None:
            yield line.encode()

    def response(self) -> httpx2.Response:
        """The answer to the request."""
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=self)


Story = Callable[[TaskrailClient, str, list[Feed]], Any]


def play(world: World, story: Story) -> None:
    """Start a task whose next poll is an hour away, and listen."""
    feeds: list[Feed] = []

    def listen(message: dict[str, Any]) -> httpx2.Response:
        feeds.append(Feed(message))
        return feeds[-1].response()

    world.wire.answers["subscriptions/listen"] = listen
    world.wire.works_after = 1

    async def run() -> None:
        store = Store(world.path)

        async def sleep(seconds: float) -> None:
            # The first poll comes at once, every other one an hour later.
            await asyncio.sleep(0.01 if world.wire.count("tasks/get") == 0 or seconds > 1.05 * 60 else 3_600)

        async with TaskrailClient(URL, store=store, pace=Pace(sleep=sleep), transport=world.wire) as client:
            ticket = await client.start("plain", {"word": "yes"})
            assert ticket.task_id
            async with asyncio.timeout(5):
                await story(client, ticket.task_id, feeds)
        store.close()

    asyncio.run(run())


async def until(condition: Callable[[], Any]) -> None:
    """Let others work until it is true."""
    while not condition():
        await asyncio.sleep(0.001)


def test_a_notice_brings_the_next_poll_forward(world: World) -> None:
    """The end is heard of, and read with `tasks/get`."""

    async def story(client: TaskrailClient, task_id: str, feeds: list[Feed]) -> None:
        finish = asyncio.create_task(client.resume(task_id))
        await until(lambda: feeds and world.wire.count("tasks/get") == 1)
        assert feeds[0].task_ids == [task_id]
        await asyncio.sleep(0.02)
        assert world.wire.count("tasks/get") == 1
        feeds[0].task(taskId="f" * 32, status="completed")
        await asyncio.sleep(0.02)
        assert world.wire.count("tasks/get") == 1, "another task's notice is not for us"
        feeds[0].task(taskId=task_id, status="completed", result={"content": [{"type": "text", "text": "a lie"}]})
        result = await finish
        assert result.content[0].text == "yes"  # type: ignore[union-attr]
        assert world.wire.count("tasks/get") == 2

    play(world, story)


def test_a_stream_that_ends_after_news_is_followed_by_a_poll(world: World) -> None:
    """What changed while it came to its end, only a poll can tell."""

    async def story(client: TaskrailClient, task_id: str, feeds: list[Feed]) -> None:
        world.wire.works_after = 2
        finish = asyncio.create_task(client.resume(task_id))
        await until(lambda: feeds and world.wire.count("tasks/get") == 1)
        feeds[0].task(taskId=task_id, status="working")
        await until(lambda: world.wire.count("tasks/get") == 2)
        feeds[0].end()
        assert (await finish).content[0].text == "yes"  # type: ignore[union-attr]

    play(world, story)


@pytest.mark.parametrize("answer", ["the server's own", "404", "ends at once", "cut"])
def test_without_the_offer_it_polls(world: World, answer: str) -> None:
    """A server that does not stream is asked once, and polled."""

    def refuse(message: dict[str, Any]) -> httpx2.Response | None:
        if answer == "404":
            error = {"code": -32601, "message": "Method not found"}
            return httpx2.Response(404, json={"jsonrpc": "2.0", "id": message["id"], "error": error})
        if answer == "ends at once":
            feed = Feed(message)
            feed.end()
            return feed.response()
        if answer == "cut":
            raise httpx2.ReadError("cut")
        return None

    world.wire.answers["subscriptions/listen"] = refuse
    world.wire.works_after = 3

    async def story() -> None:
        async with world.client(listen=True) as client:
            for _ in range(3):
                assert (await client.call("plain", {"word": "yes"})).content[0].text == "yes"  # type: ignore[union-attr]

    asyncio.run(story())
    if answer != "cut":
        assert world.wire.count("subscriptions/listen") == 1
    assert world.wire.count("tasks/get") >= 9


def test_streams_leave_connections_for_the_polls(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many tasks only some are listened to; all come to their end."""
    monkeypatch.setattr("taskrail_client.listen.MOST_STREAMS", 2)

    async def story(client: TaskrailClient, task_id: str, feeds: list[Feed]) -> None:
        tickets = [await client.start("plain", {"word": "yes"}) for _ in range(3)]
        world.wire.works_after = 1_000
        finished = [asyncio.create_task(client.resume(str(ticket.task_id))) for ticket in tickets]
        await until(lambda: world.wire.count("tasks/get") == 3 and len(feeds) >= 2)
        await asyncio.sleep(0.02)
        assert len(feeds) == 2
        world.kit.run()
        for feed in feeds:
            feed.task(taskId=feed.task_ids[0], status="completed")
        done, waiting = await asyncio.wait(finished, timeout=1)
        assert (len(done), len(waiting)) == (2, 1)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    play(world, story)


def test_not_listening_is_a_choice(world: World) -> None:
    """Then nothing is asked."""

    async def story() -> None:
        async with world.client(listen=False) as client:
            await client.call("plain", {"word": "yes"})

    asyncio.run(story())
    assert world.wire.count("subscriptions/listen") == 0
