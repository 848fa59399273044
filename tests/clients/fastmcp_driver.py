"""The FastMCP client, which polls a task by itself; runs in an environment of its own.

.venv-fastmcp/bin/python tests/clients/fastmcp_driver.py URL FAULTY_URL...        prints what happened, as JSON
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import httpx2
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult

# Importing it is what teaches the client tasks.
from fastmcp_tasks import ToolTask, call_tool_task
from mcp import MCPError

PATIENCE = 5
"""Times in a row that waiting for a task may fail."""


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

    async def elicit(message: str, response_type: Any, params: Any, context: Any) -> Any:
        asked.append(message)
        return ElicitResult(action="accept", content={"publish": True})

    async with Client(url, elicitation_handler=elicit) as client:
        listed = await client.list_tools()
        inline = await client.call_tool("add", {"a": 2, "b": 3})
        finished = await client.call_tool("measure_words", {"words": ["one", "three", "fourteen"]})
        answered = await client.call_tool("publish", {"title": "Rails"})
        asked_in_task = list(asked)
        asked.clear()
        failed = await client.call_tool("break_down", {}, raise_on_error=False)
        stumbled = await client.call_tool("stumble", {}, raise_on_error=False)
        guarded = await client.call_tool("guarded", {"title": "Rails"})
        long = await client.call_tool("take_two_minutes", {})
        task = await call_tool_task(client, "wait_long", {})
        await task.cancel()
        ended = await task.wait(timeout=40)
    return {
        "tools": [tool.name for tool in listed],
        "inline": inline.structured_content,
        "task": finished.structured_content,
        "question": {"asked": asked_in_task, "texts": texts(answered)},
        "before": {"asked": asked, "texts": texts(guarded)},
        "cancel": ended.status,
        "error": {"isError": failed.is_error, "texts": texts(failed)},
        "trace": {"isError": stumbled.is_error, "texts": texts(stumbled)},
        "long": texts(long),
        "faults": [await fault(one) for one in faulty_urls],
    }


async def fault(url: str) -> dict[str, Any]:
    """Run two tasks whose first poll is spoiled: as `call_tool` does it, and by a handle that is kept."""
    told: dict[str, Any] = {}
    try:
        async with Client(url) as client:
            told["plain"] = texts(await client.call_tool("take_two_minutes", {}))
    except Exception as error:
        told["failed"] = f"{type(error).__name__}: {error}"
    async with Client(url) as client:
        handle = (await call_tool_task(client, "take_two_minutes", {})).create_result
    for _ in range(PATIENCE):
        try:
            # A connection that was cut takes the session with it, hence another for each look.
            async with Client(url) as client:
                told["around"] = texts(await ToolTask(client, "take_two_minutes", handle).result())
            break
        except (MCPError, httpx2.TransportError):
            await asyncio.sleep(0.2)
    return told


def texts(result: Any) -> list[str]:
    """The text blocks of a result."""
    return [block.text for block in result.content if block.type == "text"]


if __name__ == "__main__":
    json.dump(asyncio.run(story(sys.argv[1], sys.argv[2:])), sys.stdout)
