"""The MCP client of Strands Agents, without an agent; runs in an environment of its own.

.venv-strands/bin/python tests/clients/strands_driver.py URL        prints what happened, as JSON
"""

from __future__ import annotations

import json
import sys
import time
from datetime import timedelta
from typing import Any

from mcp.types import ElicitResult
from strands.tools.mcp import MCPClient, TasksConfig


def story(url: str) -> dict[str, Any]:
    """Drive every way a call can go.

    Parameters
    ----------
    url
        The MCP endpoint.
    """
    asked: list[str] = []

    async def elicit(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"publish": True})

    patience = TasksConfig(poll_timeout=timedelta(seconds=60), request_timeout=timedelta(seconds=20))
    with MCPClient(url=url, elicitation_callback=elicit, tasks_config=patience) as client:

        def call(name: str, **arguments: Any) -> Any:
            return client.call_tool_sync(tool_use_id=name, name=name, arguments=arguments)

        listed = client.list_tools_sync()
        inline = call("add", a=2, b=3)
        finished = call("measure_words", words=["one", "three", "fourteen"])
        answered = call("publish", title="Rails")
        asked_in_task = list(asked)
        asked.clear()
        failed = call("break_down")
        stumbled = call("stumble")
        guarded = call("guarded", title="Rails")
        handle = client.submit_tool_sync("wait_long", {})
        client.cancel_task_sync(handle.task_id)
        deadline = time.monotonic() + 40
        while (state := client.get_task_sync(handle.task_id)).status not in ("completed", "failed", "cancelled"):
            assert time.monotonic() < deadline, f"still {state.status}"
            time.sleep(0.2)
    return {
        "tools": [tool.tool_name for tool in listed],
        "inline": inline.get("structuredContent"),
        "task": finished.get("structuredContent"),
        "asked": asked_in_task,
        "answered": texts(answered),
        "cancelled": state.status,
        "error": {"isError": failed["status"] == "error", "texts": texts(failed)},
        "stumbled": {"isError": stumbled["status"] == "error", "texts": texts(stumbled)},
        "asked_before": asked,
        "guarded": texts(guarded),
    }


def texts(result: Any) -> list[str]:
    """The text blocks of a result."""
    return [block["text"] for block in result["content"] if "text" in block]


if __name__ == "__main__":
    json.dump(story(sys.argv[1]), sys.stdout)
