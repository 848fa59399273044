"""Whatever happens on the way, and however often the process is another one: one task, one result, no question twice.

`TASKRAIL_LONG=1` tries more seeds.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from taskrail_client import Answer, NoAnswer, Question, TaskCancelled, TaskrailClient
from tests.counts import sized
from tests.taskrail_client.world import LOST, NEVER_ARRIVED, World

SEEDS = range(sized(24, 400))

RESULTS = {"plain": "yes", "tally": "a is counted.", "publish": "Rails × 1 on thin: True"}


@dataclass
class Chaos:
    """Faults, and a process that ends in the middle of things."""

    dice: random.Random
    share: float
    keyed: bool
    asked: list[str] = field(default_factory=list)
    lives: int = 0

    def fault(self, method: str, count: int) -> str | None:
        """The fault that a request meets."""
        if self.dice.random() > self.share:
            return None
        harmless = method != "tools/call" or self.keyed
        return self.dice.choice((*NEVER_ARRIVED, *LOST) if harmless else NEVER_ARRIVED)

    def ask(self, question: Question) -> Answer:
        """Answer like a person; being asked twice is what must not happen."""
        assert question.key not in self.asked, "asked twice"
        self.asked.append(question.key)
        return Answer("accept", {"publish": True} if question.key == "approval" else {"go": True})

    async def live(self, work: Any) -> Any:
        """One life of the process: to the end of its work, or cut off at some moment. None when cut off."""
        self.lives += 1
        task = asyncio.ensure_future(work)
        if self.lives < 6:
            for _ in range(self.dice.choice((20, 60, 200, 1_000, 5_000))):
                if task.done():
                    break
                await asyncio.sleep(0)
            else:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                return None
        return await task


@pytest.mark.parametrize("seed", SEEDS)
def test_a_task_is_neither_lost_nor_doubled(world: World, seed: int) -> None:
    """Faults on every kind of request, and processes that end at any moment once they hold the ticket."""
    dice = random.Random(seed)
    tool = dice.choice(list(RESULTS))
    chaos = Chaos(dice, dice.choice((0.1, 0.3, 0.5)), keyed=tool == "tally")
    arguments = {
        "plain": {"word": "yes"},
        "tally": {"file": str(world.file), "name": "a"},
        "publish": {"title": "Rails"},
    }
    world.wire.plan = chaos.fault
    world.wire.works_after = dice.choice((1, 2, 4))

    async def story() -> None:
        async with world.client(listen=dice.random() < 0.5) as client:
            key = "night" if tool == "tally" else None
            ticket = await client.start(tool, arguments[tool], idempotency_key=key)
            result = await chaos.live(ticket.finish(on_question=chaos.ask))
        while result is None:
            async with world.client(listen=dice.random() < 0.5) as client:
                assert [record.task_id for record in client.list()] == [ticket.task_id]
                result = await chaos.live(client.resume(str(ticket.task_id), on_question=chaos.ask))
        assert result.content[0].text == RESULTS[tool]
        async with world.client() as client:
            assert [(record.shown, record.tool) for record in client.list()] == [("completed", tool)]

    asyncio.run(story())
    runs = world.kit.engine.starts
    assert len({name.rpartition("-")[0] for name in runs}) == 1, "one task"
    assert len(runs) == 1 + len(chaos.asked), "one run, and one more for each answer"
    assert chaos.asked == (["approval", "sure"] if tool == "publish" else [])
    assert world.wire.count("tasks/cancel") == 0


@pytest.mark.parametrize("seed", range(len(SEEDS) // 4))
def test_a_cancellation_gets_through(world: World, seed: int) -> None:
    """It is owed until it was acknowledged, whatever becomes of the process that was told to cancel."""
    dice = random.Random(seed)
    chaos = Chaos(dice, 0.5, keyed=False)
    world.wire.plan = chaos.fault
    world.wire.works_after = 1_000_000

    async def cancel(client: TaskrailClient, task_id: str) -> str | None:
        try:
            return (await client.cancel(task_id)).status
        except NoAnswer:
            return None

    async def story() -> None:
        async with world.client() as client:
            ticket = await client.start("plain", {"word": "yes"})
            assert ticket.task_id
            status = await chaos.live(cancel(client, ticket.task_id))
        assert status in (None, "cancelled", "cancelling")
        async with world.client() as client:
            if client.list()[0].cancelling:
                with pytest.raises(TaskCancelled):
                    await client.resume(ticket.task_id)
                assert client.list()[0].shown == "cancelled"

    asyncio.run(story())
