"""The five habits, against a real deployment in the same process."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from taskrail_client import (
    CallUnanswered,
    InvalidArguments,
    Progress,
    Refused,
    StoreError,
    TaskCancelled,
    TaskFailed,
    TaskGone,
    UnknownTool,
)
from taskrail_client.pace import JITTER
from tests.taskrail_client.world import LOST, World


def text(result: Any) -> str:
    """The first text of a result."""
    return str(result.content[0].text)


def test_takes_both_shapes(world: World) -> None:
    """An ordinary result and a ticket both come to a result."""

    async def story() -> None:
        async with world.client() as client:
            assert (await client.call("add", {"a": 2, "b": 3})).structured_content == {"result": 5}
            assert client.list() == []
            assert text(await client.call("plain", {"word": "yes"})) == "yes"
            assert [(record.tool, record.status) for record in client.list()] == [("plain", "completed")]

    asyncio.run(story())


def test_a_ticket_is_remembered_before_anything_else_is_sent(world: World) -> None:
    """Whatever the next request is, the id is in the file before it."""
    seen: list[int] = []

    def look(message: dict[str, Any]) -> None:
        store = world.store()
        seen.append(len(store.list("https://api.example.com/mcp")))
        store.close()

    async def story() -> None:
        async with world.client() as client:
            world.wire.answers["tasks/get"] = look
            await client.call("plain", {"word": "yes"})

    asyncio.run(story())
    assert seen[0] == 1


def test_polls_at_the_pace_of_the_server(world: World) -> None:
    """Never sooner than `pollIntervalMs`, and 10 to 20 % later; the pauses differ."""
    world.wire.works_after = 30

    async def story() -> None:
        async with world.client() as client:
            await client.call("plain", {"word": "yes"})

    asyncio.run(story())
    asked = [max(0.1, round(sum(world.slept[:n]) * 1000) // 10 / 1000) for n in range(len(world.slept))]
    shares = [slept / wanted - 1 for slept, wanted in zip(world.slept, asked, strict=True)]
    assert len(shares) == 31
    assert all(JITTER[0] - 0.02 <= share <= JITTER[1] + 0.02 for share in shares), shares
    assert len({round(share, 4) for share in shares}) > 10


def test_backs_off_while_polls_fail(world: World) -> None:
    """Each failure in a row doubles the pause; the first success ends it."""
    world.wire.plan = lambda method, count: "502" if method == "tasks/get" and count < 9 else None
    world.wire.works_after = 10

    async def story() -> None:
        async with world.client() as client:
            assert text(await client.call("plain", {"word": "yes"})) == "yes"

    asyncio.run(story())
    pauses = world.slept[1:10]
    assert all(later > sooner * 1.6 for sooner, later in pairwise(pauses)), pauses
    assert world.slept[10] < pauses[-1] / 2


def test_waits_as_long_as_it_is_told(world: World) -> None:
    """`Retry-After` is a lower bound."""
    import httpx2

    replies = iter([httpx2.Response(429, headers={"retry-after": "7"})])
    world.wire.answers["tasks/get"] = lambda message: next(replies, None)

    async def story() -> None:
        async with world.client() as client:
            await client.call("plain", {"word": "yes"})

    asyncio.run(story())
    assert 7.7 <= world.slept[1] <= 8.4


def test_says_cancelling_until_it_has_stopped(world: World) -> None:
    """A lost acknowledgement is sent again; a question is not asked any more."""
    world.wire.works_after = 1_000
    lost = iter(["cut", None])
    world.wire.plan = lambda method, count: next(lost) if method == "tasks/cancel" else None
    told: list[str] = []

    async def story() -> None:
        async with world.client() as client:
            ticket = await client.start("plain", {"word": "yes"})
            assert ticket.task_id
            import httpx2

            def working(message: dict[str, Any]) -> httpx2.Response | None:
                if world.wire.count("tasks/get") > 2:
                    return None
                reply = world.kit.request("tasks/get", {"taskId": ticket.task_id})
                reply = {**reply, "status": "working"}
                reply.pop("result", None)
                return httpx2.Response(200, json={"jsonrpc": "2.0", "id": message["id"], "result": reply})

            world.wire.answers["tasks/get"] = working
            assert (await client.cancel(ticket.task_id)).status == "cancelling"
            assert client.list()[0].shown == "cancelling"
            with pytest.raises(TaskCancelled):
                await client.resume(ticket.task_id, on_progress=lambda progress: told.append(progress.status))
            assert client.list()[0].shown == "cancelled"

    asyncio.run(story())
    assert told == ["cancelling", "cancelled"]
    assert world.wire.count("tasks/cancel") == 2


def test_a_cancellation_that_was_never_acknowledged_is_sent_by_the_next_process(world: World) -> None:
    """It is owed until the server has it."""
    world.wire.works_after = 1_000

    async def first() -> str:
        async with world.client() as client:
            ticket = await client.start("plain", {"word": "yes"})
            assert ticket.task_id
            client.store.cancel(client.list()[0].server, ticket.task_id, acknowledged=False)
            return ticket.task_id

    async def second(task_id: str) -> None:
        async with world.client() as client:
            with pytest.raises(TaskCancelled):
                await client.resume(task_id)
            assert not client.list()[0].cancel_owed

    asyncio.run(second(asyncio.run(first())))
    assert world.wire.count("tasks/cancel") == 1


def test_errors_leave_the_client_as_they_are(world: World) -> None:
    """Not wrapped into a group by the connection's task groups."""

    async def story() -> None:
        async with world.client() as client:
            await client.resume("f" * 32)

    with pytest.raises(TaskGone):
        asyncio.run(story())


def test_leaving_does_not_cancel(world: World) -> None:
    """Whoever stops waiting leaves the task to go on."""
    world.wire.works_after = 1_000

    async def story() -> None:
        async with world.client() as client:
            ticket = await client.start("plain", {"word": "yes"})
            follow = asyncio.create_task(ticket.finish())
            while not world.wire.count("tasks/get"):
                await asyncio.sleep(0)
            follow.cancel()
            await asyncio.gather(follow, return_exceptions=True)
            assert (await client.look(str(ticket.task_id))).status == "working"

    asyncio.run(story())
    assert world.wire.count("tasks/cancel") == 0


def test_an_unknown_task_is_believed_when_it_is_repeated(world: World) -> None:
    """Twice is a proxy's mistake, three times is the truth."""
    import httpx2

    def unknown(message: dict[str, Any]) -> httpx2.Response | None:
        if world.wire.count("tasks/get") > 2:
            return None
        error = {"code": -32602, "message": "Unknown task"}
        return httpx2.Response(400, json={"jsonrpc": "2.0", "id": message["id"], "error": error})

    async def story() -> None:
        async with world.client() as client:
            world.wire.answers["tasks/get"] = unknown
            assert text(await client.call("plain", {"word": "yes"})) == "yes"
            del world.wire.answers["tasks/get"]
            before = world.wire.count("tasks/get")
            with pytest.raises(TaskGone):
                await client.resume("f" * 32)
            assert world.wire.count("tasks/get") == before + 3
            assert [record.status for record in client.list()] == ["completed"]

    asyncio.run(story())


def test_an_unknown_task_is_believed_at_once_when_its_time_is_over(world: World) -> None:
    """The server has promised nothing beyond its ttl."""
    world.wire.works_after = 1_000

    async def story() -> None:
        async with world.client() as client:
            ticket = await client.start("plain", {"word": "yes"})
            world.kit.clock.advance(8 * 24 * 3_600_000)
            with pytest.raises(TaskGone):
                await client.resume(str(ticket.task_id))
            assert world.wire.count("tasks/get") == 1
            assert client.list()[0].status == "gone"

    asyncio.run(story())


def test_errors_of_the_tool_and_of_the_task(world: World) -> None:
    """The tool's error is a result; a failed task is an error with the server's code."""
    import httpx2

    def failed(message: dict[str, Any]) -> httpx2.Response:
        task = world.kit.request("tasks/get", {"taskId": message["params"]["taskId"]})
        task = {**task, "status": "failed", "error": {"code": -32603, "message": "The run vanished."}}
        return httpx2.Response(200, json={"jsonrpc": "2.0", "id": message["id"], "result": task})

    async def story() -> None:
        async with world.client() as client:
            result = await client.call("break_down")
            assert result.is_error
            assert text(result) == "The machine is out of paper."
            world.wire.answers["tasks/get"] = failed
            with pytest.raises(TaskFailed, match="The run vanished") as caught:
                await client.call("plain", {"word": "yes"})
            assert caught.value.code == -32603

    asyncio.run(story())


def test_a_call_with_the_key_of_one_that_ended_badly_is_a_new_one(world: World) -> None:
    """As on the server: an error gives its place away."""

    async def story() -> None:
        async with world.client() as client:
            for _ in range(2):
                assert (await client.call("fall_over", idempotency_key="night")).is_error
            assert len(client.list()) == 2

    asyncio.run(story())
    assert len(world.kit.engine.starts) == 2


def test_a_ticket_that_cannot_be_remembered_is_told(world: World) -> None:
    """The disk is full: the error carries the id."""

    async def story() -> None:
        async with world.client() as client:
            await client.tools()
            client.store.close()
            with pytest.raises(StoreError, match="has become task 0000"):
                await client.start("plain", {"word": "yes"})

    asyncio.run(story())


@pytest.mark.parametrize("fault", LOST)
def test_a_call_is_not_repeated_when_it_may_have_arrived(world: World, fault: str) -> None:
    """Without a key of the caller's, twice the call could be twice the work."""
    world.wire.plan = lambda method, count: fault if method == "tools/call" else None

    async def story() -> None:
        async with world.client() as client:
            with pytest.raises(CallUnanswered, match="unknown"):
                await client.call("plain", {"word": "yes"})

    asyncio.run(story())
    assert world.wire.count("tools/call") == 1


@pytest.mark.parametrize("fault", ["refused", "429"])
def test_a_call_that_cannot_have_arrived_is_repeated(world: World, fault: str) -> None:
    """Nothing was started by it."""
    world.wire.plan = lambda method, count: fault if method == "tools/call" and count < 3 else None

    async def story() -> None:
        async with world.client() as client:
            assert text(await client.call("plain", {"word": "yes"})) == "yes"

    asyncio.run(story())
    assert len(world.kit.engine.starts) == 1


@pytest.mark.parametrize("faults", [LOST[:6], LOST[6:]])
def test_a_call_with_a_key_is_one_task_whatever_happens_to_it(world: World, faults: tuple[str, ...]) -> None:
    """Repeated by itself, by the next process before the task is done, and after; other arguments are refused."""
    world.wire.plan = lambda method, count: faults[count] if method == "tools/call" and count < len(faults) else None
    arguments = {"file": str(world.file), "name": "a"}

    async def story() -> None:
        async with world.client() as client:
            ticket = await client.start("tally", arguments, idempotency_key="night")
        async with world.client() as client:
            again = await client.start("tally", arguments, idempotency_key="night")
            assert again.task_id == ticket.task_id
            assert text(await again.finish()) == "a is counted."
            assert text(await client.call("tally", arguments, idempotency_key="night")) == "a is counted."
            with pytest.raises(InvalidArguments, match="other arguments"):
                await client.call("tally", {**arguments, "name": "b"}, idempotency_key="night")

    asyncio.run(story())
    assert world.lines() == ["a"]
    assert len(world.kit.engine.starts) == 1


def test_what_the_server_refuses_is_told_at_once(world: World) -> None:
    """Unknown tools, and callers that may not."""
    import httpx2

    async def story() -> None:
        async with world.client() as client:
            with pytest.raises(UnknownTool, match="plain"):
                await client.call("nope")
            ticket = await client.start("plain", {"word": "yes"})
            for status in (401, 403):
                world.wire.answers["tasks/get"] = lambda message, status=status: httpx2.Response(status)  # type: ignore[misc]
                with pytest.raises(Refused):
                    await client.resume(str(ticket.task_id))
            assert world.wire.count("tasks/get") == 2
            del world.wire.answers["tasks/get"]
            assert text(await client.resume(str(ticket.task_id))) == "yes"

    asyncio.run(story())


def test_tells_of_progress_and_of_trouble(world: World) -> None:
    """Numbers from the vendor key, words from the status message, and a note while polls fail."""
    world.wire.plan = lambda method, count: "503" if method == "tasks/get" and count == 0 else None
    told: list[Progress] = []

    async def keep(progress: Progress) -> None:
        told.append(progress)

    async def story() -> None:
        async with world.client() as client:
            await client.call("tally", {"file": str(world.file), "name": "a"}, on_progress=keep)

    asyncio.run(story())
    assert told[0].status == "working"
    assert told[1].note is not None
    assert "HTTP 503" in told[1].note
    assert (told[-1].status, told[-1].done, told[-1].total, told[-1].note) == ("completed", 3, 3, None)
    assert {progress.tool for progress in told} == {"tally"}
