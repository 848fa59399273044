"""What a local stack says when it serves: where it is, how to connect to it, which tools it has."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from local.stack import Stack


def start_up(stack: Stack, facts: Mapping[str, Any]) -> str:
    """The start-up text.

    Parameters
    ----------
    stack
        The stack that serves.
    facts
        What the front knows: the server's ``name`` and its ``tools``.
    """
    name = re.sub(r"[^A-Za-z0-9_-]", "-", facts["name"])
    configuration = json.dumps({"mcpServers": {name: {"type": "http", "url": stack.url}}}, indent=2)
    width = max((len(tool["name"]) for tool in facts["tools"]), default=0)
    tools = [
        f"  {tool['name']:<{width}}  {tool['mode']:<9}  {tool['engine'] or 'inside the request'}"
        + (f" ({tool['note']})" if tool["note"] else "")
        for tool in facts["tools"]
    ]
    return "\n".join(
        [
            f"{facts['name']}: {stack.url}",
            "",
            "Claude Code:",
            f"  claude mcp add --transport http {name} {stack.url}",
            "Any other client:",
            *(f"  {line}" for line in configuration.splitlines()),
            "",
            f"Tools ({stack.catalogue}), whether they become tasks, and where they run in AWS:",
            *tools,
            "",
            f"What jobs print: {stack.runs}/*/output.log",
            "Tasks live as long as this process. Ctrl-C ends everything.",
            "ready",
        ]
    )
