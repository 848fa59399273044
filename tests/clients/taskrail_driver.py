"""The client of this repository, as a library.

python -m tests.clients.taskrail_driver URL FAULTY_URL...        prints what happened, as JSON
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import anyio
from mcp_types import CallToolResult

from taskrail_client import Question, TaskCancelled, TaskrailClient
from tests.clients.official import texts


async def story(url: str, faulty_urls: list[str]) -> dict[str, Any]:
    """Drive every way a call can go.

    Parameters
    ----------
    url
        The MCP endpoint.
    faulty_urls
        The same endpoint behind proxies that spoil the first poll of each task.
    """
    asked: list[str] = []

    def answer(question: Question) -> dict[str, Any]:
        asked.append(question.message)
        return {"publish": True}

    with tempfile.TemporaryDirectory() as directory:
        async with TaskrailClient(url, store=Path(directory, "tasks.db")) as client:
            listed = await client.tools()
            inline = await client.call("add", {"a": 2, "b": 3})
            finished = await client.call("measure_words", {"words": ["one", "three", "fourteen"]})
            answered = await client.call("publish", {"title": "Rails"}, on_question=answer)
            asked_in_task = list(asked)
            asked.clear()
            failed = await client.call("break_down")
            stumbled = await client.call("stumble")
            guarded = await client.call("guarded", {"title": "Rails"}, on_question=answer)
            long = await client.call("take_two_minutes")
            cancelled = await cancel(client)
        faults = [await fault(one, Path(directory, f"faulty-{n}.db")) for n, one in enumerate(faulty_urls)]
    return {
        "tools": [tool.name for tool in listed],
        "inline": inline.structured_content,
        "task": finished.structured_content,
        "question": {"asked": asked_in_task, "texts": texts(answered)},
        "before": {"asked": asked, "texts": texts(guarded)},
        "cancel": cancelled,
        "error": outcome(failed),
        "trace": outcome(stumbled),
        "long": texts(long),
        "faults": faults,
    }


async def cancel(client: TaskrailClient) -> str:
    """Start a task, cancel it, and see how it ends."""
    task_id = (await client.start("wait_long")).task_id
    assert task_id is not None
    await client.cancel(task_id)
    try:
        return str(texts(await client.resume(task_id)))
    except TaskCancelled:
        return "cancelled"


async def fault(url: str, store: Path) -> dict[str, Any]:
    """Run a task whose first poll is spoiled; it would not poll if it listened."""
    async with TaskrailClient(url, store=store, listen=False) as client:
        return {"plain": texts(await client.call("take_two_minutes"))}


def outcome(result: CallToolResult) -> dict[str, Any]:
    """A result as the tests compare it."""
    return {"isError": result.is_error, "texts": texts(result)}


if __name__ == "__main__":
    json.dump(anyio.run(story, sys.argv[1], sys.argv[2:]), sys.stdout)
