"""The MCP client of Strands Agents, without an agent; runs in an environment of its own.

.venv-strands/bin/python tests/clients/strands_driver.py URL FAULTY_URL...        prints what happened, as JSON
"""

from __future__ import annotations

import json
import sys
import time
from datetime import timedelta
from typing import Any

from mcp.types import ElicitResult
from strands.tools.mcp import MCPClient, TasksConfig

TERMINAL = ("completed", "failed", "cancelled")
PATIENCE = TasksConfig(poll_timeout=timedelta(minutes=3), request_timeout=timedelta(seconds=20))


def story(url: str, faulty_urls: list[str]) -> dict[str, Any]:
    """Drive every way a call can go.

    Parameters
    ----------
    url
        The MCP endpoint.
    faulty_urls
        The same endpoint behind proxies that spoil the first poll of each task.
    """
    asked: list[str] = []

    async def elicit(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"publish": True})

    with MCPClient(url=url, elicitation_callback=elicit, tasks_config=PATIENCE) as client:

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
        long = call("take_two_minutes")
        handle = client.submit_tool_sync("wait_long", {})
        client.cancel_task_sync(handle.task_id)
        deadline = time.monotonic() + 40
        while (state := client.get_task_sync(handle.task_id)).status not in TERMINAL:
            assert time.monotonic() < deadline, f"still {state.status}"
            time.sleep(0.2)
    return {
        "tools": [tool.tool_name for tool in listed],
        "inline": inline.get("structuredContent"),
        "task": finished.get("structuredContent"),
        "question": {"asked": asked_in_task, "texts": texts(answered)},
        "before": {"asked": asked, "texts": texts(guarded)},
        "cancel": state.status,
        "error": {"isError": failed["status"] == "error", "texts": texts(failed)},
        "trace": {"isError": stumbled["status"] == "error", "texts": texts(stumbled)},
        "long": texts(long),
        "faults": [fault(one) for one in faulty_urls],
    }


def fault(url: str) -> dict[str, Any]:
    """Run two tasks whose first poll is spoiled: as `call_tool_sync` does it, and by an id that is kept."""
    told: dict[str, Any] = {}
    try:
        with MCPClient(url=url, tasks_config=PATIENCE) as client:
            result = client.call_tool_sync(tool_use_id="plain", name="take_two_minutes", arguments={})
            told["plain" if result["status"] == "success" else "failed"] = texts(result)
    except Exception as error:
        told.setdefault("failed", repr(error))
    with MCPClient(url=url, tasks_config=PATIENCE) as client:
        task_id = client.submit_tool_sync("take_two_minutes", {}).task_id
    failures = 0
    while "around" not in told and failures < 5:
        try:
            # A connection that was cut takes the session with it, hence another for each look.
            with MCPClient(url=url, tasks_config=PATIENCE) as client:
                while (state := client.get_task_sync(task_id)).status not in TERMINAL:
                    time.sleep(0.5)
                told["around"] = [block.text for block in state.result.content]
        except Exception:
            failures += 1
    return told


def texts(result: Any) -> list[str]:
    """The text blocks of a result."""
    return [block["text"] for block in result["content"] if "text" in block]


if __name__ == "__main__":
    json.dump(story(sys.argv[1], sys.argv[2:]), sys.stdout)
