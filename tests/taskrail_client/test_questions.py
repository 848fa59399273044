"""Questions: each is asked once, by whichever process, and what was answered gets through."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any

import pytest

from taskrail_client import Answer, AnswersNeeded, InvalidAnswer, Question, TaskCancelled
from tests.taskrail_client.world import World

ACCEPTED = {"publish": True, "copies": 2, "paper": "thick", "colours": ["red"]}


def answers(question: Question) -> dict[str, Any]:
    """What an obliging person answers."""
    return ACCEPTED if question.key == "approval" else {"go": True}


def text(result: Any) -> str:
    """The first text of a result."""
    return str(result.content[0].text)


def test_asks_each_question_once(world: World) -> None:
    """Even when the reply to every other update gets lost, and the process is another one each time."""
    asked: list[str] = []
    lost = iter(["cut", "502", None, "garbage", None, None, None, None])
    world.wire.plan = lambda method, count: next(lost) if method == "tasks/update" else None

    def ask(question: Question) -> Answer:
        asked.append(question.key)
        return Answer("accept", answers(question))

    async def story() -> None:
        async with world.client() as client:
            result = await client.call("publish", {"title": "Rails"}, on_question=ask)
        assert text(result) == "Rails × 2 on thick: True"

    asyncio.run(story())
    assert asked == ["approval", "sure"]
    assert world.wire.count("tasks/update") == 5
    db = sqlite3.connect(world.path)
    assert db.execute("SELECT key, delivered FROM answers ORDER BY key").fetchall() == [("approval", 1), ("sure", 1)]
    db.close()


def test_an_answer_that_was_on_its_way_when_the_process_died_is_sent_by_the_next(world: World) -> None:
    """Answered, remembered, killed: the person is not asked again."""

    async def first() -> str:
        world.wire.plan = lambda method, count: "refused" if method == "tasks/update" else None
        async with world.client() as client:
            ticket = await client.start("publish", {"title": "Rails"})
            assert ticket.task_id
            waiting = asyncio.Event()

            def ask(question: Question) -> dict[str, Any]:
                waiting.set()
                return answers(question)

            follow = asyncio.create_task(ticket.finish(on_question=ask))
            await waiting.wait()
            await asyncio.sleep(0)
            while not world.wire.count("tasks/update"):
                await asyncio.sleep(0)
            follow.cancel()
            await asyncio.gather(follow, return_exceptions=True)
            return ticket.task_id

    async def second(task_id: str) -> None:
        world.wire.plan = lambda method, count: None
        asked: list[str] = []

        def ask(question: Question) -> dict[str, Any]:
            asked.append(question.key)
            return answers(question)

        async with world.client() as client:
            assert text(await client.resume(task_id, on_question=ask)) == "Rails × 2 on thick: True"
        assert asked == ["sure"]

    asyncio.run(second(asyncio.run(first())))


def test_a_question_that_nobody_answers_now_stays_open(world: World) -> None:
    """It is told, and answered later by key; the second answer to it does not count."""

    async def story() -> None:
        async with world.client() as client:
            with pytest.raises(AnswersNeeded) as caught:
                await client.call("publish", {"title": "Rails"})
            task_id = caught.value.task_id
            assert task_id
            assert [question.key for question in await client.questions(task_id)] == ["approval"]
            with pytest.raises(InvalidAnswer, match="copies"):
                await client.answer(task_id, "approval", {**ACCEPTED, "copies": 99})
            with pytest.raises(InvalidAnswer, match="open: approval"):
                await client.answer(task_id, "nonsense", {})
            assert await client.answer(task_id, "approval", Answer("decline"))
            assert not await client.answer(task_id, "approval", ACCEPTED)
            result = await client.resume(task_id)
            assert result.is_error
            assert text(result) == "Not published."

    asyncio.run(story())


def test_an_answer_that_the_server_refuses_is_taken_back(world: World) -> None:
    """Nothing of it stays, so that it can be given anew."""
    import httpx2

    def refuse(message: dict[str, Any]) -> httpx2.Response:
        error = {"code": -32602, "message": "inputResponses['approval']: no."}
        return httpx2.Response(400, json={"jsonrpc": "2.0", "id": message["id"], "error": error})

    async def story() -> None:
        async with world.client() as client:
            with pytest.raises(AnswersNeeded) as caught:
                await client.call("publish", {"title": "Rails"})
            task_id = str(caught.value.task_id)
            world.wire.answers["tasks/update"] = refuse
            with pytest.raises(InvalidAnswer, match="refused"):
                await client.answer(task_id, "approval", ACCEPTED)
            del world.wire.answers["tasks/update"]
            assert await client.answer(task_id, "approval", ACCEPTED)
            assert text(await client.resume(task_id, on_question=answers)) == "Rails × 2 on thick: True"

    asyncio.run(story())


def test_questions_before_the_task(world: World) -> None:
    """They go the same way, and nothing starts without an answer."""

    async def story() -> None:
        async with world.client() as client:
            with pytest.raises(AnswersNeeded) as caught:
                await client.call("guarded", {"title": "Rails"})
            assert caught.value.task_id is None
            assert world.kit.engine.starts == []
            assert text(await client.call("guarded", {"title": "Rails"}, on_question=answers)) == "Rails was started."

    asyncio.run(story())


def test_what_is_being_cancelled_asks_nobody(world: World) -> None:
    """Its open question is no longer put, while it is on its way to stop."""

    def ask(question: Question) -> None:
        raise AssertionError("asked about a task that is being cancelled")

    def stop(message: dict[str, Any]) -> None:
        if world.wire.count("tasks/get") == before + 4:
            world.kit.request("tasks/cancel", message["params"])

    before = 0

    async def story() -> None:
        nonlocal before
        async with world.client() as client:
            with pytest.raises(AnswersNeeded):
                await client.call("publish", {"title": "Rails"})
            record = client.list()[0]
            client.store.cancel(record.server, record.task_id, acknowledged=True)
            before = world.wire.count("tasks/get")
            world.wire.answers["tasks/get"] = stop
            with pytest.raises(TaskCancelled):
                await client.resume(record.task_id, on_question=ask)

    asyncio.run(story())
    assert world.wire.count("tasks/get") == before + 4
