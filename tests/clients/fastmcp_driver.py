"""The FastMCP client, which polls a task by itself; runs in an environment of its own.

.venv-fastmcp/bin/python tests/clients/fastmcp_driver.py URL        prints what happened, as JSON
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult

# Importing it is what teaches the client tasks.
from fastmcp_tasks import call_tool_task


async def story(url: str) -> dict[str, Any]:
    """Drive every way a call can go.

    Parameters
    ----------
    url
        The MCP endpoint.
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
        task = await call_tool_task(client, "wait_long", {})
        await task.cancel()
        ended = await task.wait(timeout=40)
    return {
        "tools": [tool.name for tool in listed],
        "inline": inline.structured_content,
        "task": finished.structured_content,
        "asked": asked_in_task,
        "answered": texts(answered),
        "cancelled": ended.status,
        "error": {"isError": failed.is_error, "texts": texts(failed)},
        "stumbled": {"isError": stumbled.is_error, "texts": texts(stumbled)},
        "asked_before": asked,
        "guarded": texts(guarded),
    }


def texts(result: Any) -> list[str]:
    """The text blocks of a result."""
    return [block.text for block in result.content if block.type == "text"]


if __name__ == "__main__":
    json.dump(asyncio.run(story(sys.argv[1])), sys.stdout)
