"""The extension in an `mcp.Client` of somebody else's."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp_types import ElicitRequestParams, ElicitResult, ErrorData

from taskrail_client import AnswersNeeded, BearerAuth, Pace, Progress, TaskrailTasks, steady_transport
from tests.taskrail_client.world import URL, World


def made(world: World, told: list[Progress] | None = None) -> TaskrailTasks:
    """The extension, on this machine's store."""

    async def tell(progress: Progress) -> None:
        if told is not None:
            told.append(progress)

    return TaskrailTasks(URL, world.store(), tell=tell, listen=False, pace=Pace(sleep=world.sleep))


def test_calls_come_to_their_results(world: World) -> None:
    """Tickets are remembered and followed, questions go to the client's callback, faults are ridden out."""
    asked: list[str] = []
    told: list[Progress] = []
    world.wire.plan = lambda method, count: ("cut", None)[count % 2] if method.startswith("tasks/") else None

    async def elicit(context: Any, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"publish": True, "go": True})

    async def story() -> None:
        extension = made(world, told)
        transport = steady_transport(URL, auth=BearerAuth("t"), transport=world.wire)
        async with Client(transport, extensions=[extension], elicitation_callback=elicit) as client:
            assert (await client.call_tool("add", {"a": 2, "b": 3})).structured_content == {"result": 5}
            result = await client.call_tool("publish", {"title": "Rails"})
            assert result.content[0].text == "Rails × 1 on thin: True"  # type: ignore[union-attr]
            (record,) = extension.tasks.store.list(extension.tasks.server)
            assert (record.tool, record.status) == ("publish", "completed")
            again = await extension.resume(client.session, record.task_id)
            assert again.content == result.content

    asyncio.run(story())
    assert asked == ["Publish Rails?", "Are you sure?"]
    assert told[0].status == "working"
    assert told[-1].status == "completed"


def test_a_callback_that_refuses_leaves_the_question_open(world: World) -> None:
    """The task waits, and can be resumed."""

    async def elicit(context: Any, params: ElicitRequestParams) -> ErrorData:
        return ErrorData(code=-32600, message="not now")

    async def story() -> None:
        transport = steady_transport(URL, transport=world.wire)
        async with Client(transport, extensions=[made(world)], elicitation_callback=elicit) as client:
            with pytest.raises(AnswersNeeded, match="approval"):
                await client.call_tool("publish", {"title": "Rails"})

    asyncio.run(story())


def test_a_connection_that_breaks_does_not_end_the_session(world: World) -> None:
    """With the steady transport an error comes back, and the next request is served."""
    world.wire.answers["tools/list"] = lambda message: (_ for _ in ()).throw(httpx2.ReadError("cut"))

    async def story() -> None:
        transport = steady_transport(URL, transport=world.wire)
        async with Client(transport, extensions=[made(world)]) as client:
            with pytest.raises(Exception, match="the connection broke"):
                await client.list_tools()
            del world.wire.answers["tools/list"]
            assert (await client.list_tools()).tools

    asyncio.run(story())


def test_two_clients_on_one_store_ask_once(world: World) -> None:
    """Whoever comes first asks; the other takes its answer."""
    asked: list[str] = []

    def ask(question: Any) -> dict[str, Any]:
        asked.append(question.key)
        return {"publish": True} if question.key == "approval" else {"go": True}

    async def story() -> None:
        async with world.client() as one, world.client() as other:
            ticket = await one.start("publish", {"title": "Rails"})
            results = await asyncio.gather(
                ticket.finish(on_question=ask), other.resume(str(ticket.task_id), on_question=ask)
            )
            assert [result.content[0].text for result in results] == ["Rails × 1 on thin: True"] * 2  # type: ignore[union-attr]

    asyncio.run(story())
    assert asked == ["approval", "sure"]
