"""When a real client polls: its own loop over an event loop whose time is a number, so that hours pass in no time.

.venv-fastmcp/bin/python tests/clients/cadence_driver.py fastmcp LEAST MOST JOB
.venv-strands/bin/python tests/clients/cadence_driver.py strands LEAST MOST JOB [PATIENCE]

prints the moments of its polls and what else it sent, as JSON. All in milliseconds: an answer asks for a tenth of the
task's age, at least LEAST and at most MOST; the task ends after JOB; PATIENCE is the client's own limit.
"""

from __future__ import annotations

import asyncio
import json
import selectors
import sys
from collections.abc import Coroutine
from datetime import datetime, timedelta, timezone
from typing import Any

TASK = "9f81038d99ae71ef077185bbd306ef36"


class SwiftSelector(selectors.SelectSelector):
    """A selector whose waiting is over at once; the time that it would have taken is added up."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        """What is ready now."""
        if timeout is None:
            raise RuntimeError("the client waits for something that never comes")
        self.now += max(timeout, 0.0)
        return super().select(0)


class SwiftLoop(asyncio.SelectorEventLoop):
    """An event loop in the time of its selector."""

    def __init__(self) -> None:
        self.swift = SwiftSelector()
        super().__init__(self.swift)

    def time(self) -> float:
        """Seconds since the loop was made."""
        return self.swift.now


class Server:
    """A session with a server that has one task.

    Parameters
    ----------
    least, most, job
        As the program's arguments.
    """

    def __init__(self, least: int, most: int, job: int) -> None:
        self.loop = SwiftLoop()
        self.least, self.most, self.job = least, most, job
        self.polls: list[float] = []
        self.others: list[str] = []

    def state(self) -> dict[str, Any]:
        """The task as it stands."""
        age = self.loop.time() * 1_000
        began = datetime(2026, 1, 1, tzinfo=timezone.utc)  # noqa: UP017
        state = {
            "taskId": TASK,
            "createdAt": began.isoformat(),
            "lastUpdatedAt": began.isoformat(),
            "ttlMs": 86_400_000,
            # A loop's time is a sum of fractions.
            "pollIntervalMs": max(self.least, min(int(age + 1e-6) // 10, self.most)),
            "status": "working",
        }
        if age + 1e-6 < self.job:
            return state
        return {**state, "status": "completed", "result": {"content": [{"type": "text", "text": "done"}]}}

    async def send_request(self, request: Any, result_type: Any, **more: Any) -> Any:
        """Answer a request of the client's."""
        if request.method == "tasks/get":
            self.polls.append(self.loop.time() * 1_000)
            return result_type.model_validate({**self.state(), "resultType": "complete"})
        self.others.append(request.method)
        return result_type.model_validate({"resultType": "complete"})

    def drive(self, client: Coroutine[Any, Any, Any]) -> None:
        """Let a client do what it does."""
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(client)
        self.loop.close()


def fastmcp(server: Server) -> None:
    """FastMCP's: what `client.call_tool` does with a task."""
    from fastmcp_tasks.client import _drive_to_terminal

    server.drive(_drive_to_terminal(server, TASK, None, None))  # type: ignore[arg-type]


def strands(server: Server, patience: int | None) -> None:
    """Strands': what `client.call_tool_async` does where tasks are on."""
    from strands.tools.mcp import MCPClient, TasksConfig
    from strands.tools.mcp.mcp_tasks import MCPCreateTaskResult

    config = TasksConfig() if patience is None else TasksConfig(poll_timeout=timedelta(milliseconds=patience))
    client: Any = MCPClient(url="http://127.0.0.1:9/mcp", tasks_config=config)

    async def create(*_: Any) -> Any:
        return MCPCreateTaskResult.model_validate({**server.state(), "resultType": "task"})

    client._background_thread_session = server
    client._require_v2_task_lifecycle = lambda: server
    client._call_tool_with_task_once_async = create
    server.drive(client._call_tool_with_task_and_poll_async("tool", {}))


def main() -> None:
    """Drive the client that is named."""
    name, *numbers = sys.argv[1:]
    least, most, job, *patience = map(int, numbers)
    server = Server(least, most, job)
    if name == "fastmcp":
        fastmcp(server)
    else:
        strands(server, patience[0] if patience else None)
    print(json.dumps({"polls": server.polls, "others": server.others}))


if __name__ == "__main__":
    main()
