"""The official `mcp` client as one that knows no tasks: it opens with `initialize`, and jobs are tickets to it.

python -m tests.clients.official_legacy URL FAULTY_URL...        prints what happened, as JSON
"""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio
from mcp import Client, MCPError
from mcp_types import CallToolResult

from tests.clients.official import texts
from tests.clients.tickets import is_ticket, next_call

PATIENCE = 5
"""Calls of `task_status` in a row that may fail."""


async def call(client: Client, asked: list[str], name: str, **arguments: Any) -> CallToolResult:
    """Call a tool, and read its ticket to the end if it gives one."""
    return await follow(client, asked, await client.call_tool(name, arguments))


async def follow(client: Client, asked: list[str], result: CallToolResult) -> CallToolResult:
    """Read a ticket to the end."""
    failures = 0
    while is_ticket(result.structured_content):
        assert isinstance(result.structured_content, dict)
        name, arguments = next_call(result.structured_content, asked)
        try:
            result = await client.call_tool(name, arguments)
        except MCPError:
            failures += 1
            if failures == PATIENCE:
                raise
    return result


async def story(url: str, faulty_urls: list[str]) -> dict[str, Any]:
    """Drive every way a call can go.

    Parameters
    ----------
    url
        The MCP endpoint.
    faulty_urls
        The same endpoint behind proxies that spoil the first look at each task.
    """
    asked: list[str] = []
    async with Client(url, mode="legacy") as client:
        listed = await client.list_tools()
        inline = await call(client, asked, "add", a=2, b=3)
        finished = await call(client, asked, "measure_words", words=["one", "three", "fourteen"])
        answered = await call(client, asked, "publish", title="Rails")
        asked_in_task = list(asked)
        asked.clear()
        failed = await call(client, asked, "break_down")
        guarded = await call(client, asked, "guarded", title="Rails")
        started = await client.call_tool("take_two_minutes", {})
        long = await follow(client, asked, started)
        waiting = await client.call_tool("wait_long", {})
        assert isinstance(waiting.structured_content, dict)
        cancelled = await call(client, asked, "task_cancel", task_id=waiting.structured_content["taskId"])
    return {
        "tools": [tool.name for tool in listed.tools],
        "inline": inline.structured_content,
        "task": finished.structured_content,
        "question": {"asked": asked_in_task, "texts": texts(answered)},
        "before": {"asked": asked, "texts": texts(guarded)},
        "cancel": "cancelled" if "was cancelled" in texts(cancelled)[0] else texts(cancelled),
        "error": {"isError": failed.is_error, "texts": texts(failed)},
        "ticket": started.structured_content,
        "long": texts(long),
        "faults": [await fault(one) for one in faulty_urls],
    }


async def fault(url: str) -> dict[str, Any]:
    """Follow a job of which the first look is spoiled; if that takes the session with it, go on in another."""
    told: dict[str, Any] = {}
    tickets: list[CallToolResult] = []
    try:
        async with Client(url, mode="legacy") as client:
            tickets.append(await client.call_tool("take_two_minutes", {}))
            told["plain"] = texts(await follow(client, [], tickets[0]))
    except Exception as error:
        told["failed"] = repr(error)
        async with Client(url, mode="legacy") as client:
            told["around"] = texts(await follow(client, [], tickets[0]))
    return told


if __name__ == "__main__":
    json.dump(anyio.run(story, sys.argv[1], sys.argv[2:]), sys.stdout)
