"""A client as real ones are: it repeats what got no answer, polls until the end, and believes what it is told."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from taskrail.errors import INVALID_PARAMS
from tests.local_help import Rpc

ENDS_WITHIN = 60.0
"""Seconds from the ticket to the task's end, whatever dies meanwhile, on a crowded machine."""

POLL_EVERY = 0.2


class Lost(AssertionError):
    """A promise was broken."""


@dataclass(frozen=True)
class Ended:
    """How an acknowledged task ended."""

    tool: str
    task_id: str
    task: dict[str, Any]

    @property
    def status(self) -> str:
        """Its status."""
        return str(self.task["status"])

    @property
    def is_error(self) -> bool:
        """Whether its result says that the work went wrong."""
        return bool(self.task.get("result", {}).get("isError"))

    @property
    def text(self) -> str:
        """The first text of its result or error."""
        if "error" in self.task:
            return str(self.task["error"]["message"])
        return str(self.task["result"]["content"][0]["text"]) if "result" in self.task else ""


class Client:
    """One client of a stack whose front may die under any request.

    Parameters
    ----------
    url
        URL of the MCP endpoint.
    disturb
        Called before each request.
    """

    def __init__(self, url: str, disturb: Callable[[], None] = lambda: None) -> None:
        self._rpc = Rpc(url)
        self._disturb = disturb
        self.retries = 0

    def start(self, tool: str, **arguments: Any) -> str:
        """Call a task tool until a ticket comes back."""
        return str(self._ask("tools/call", tool, name=tool, arguments=arguments)["taskId"])

    def to_the_end(self, tool: str, task_id: str, cancel_after: float | None = None) -> Ended:
        """Poll a task until it has ended, and answer what it asks.

        Parameters
        ----------
        cancel_after
            After so many seconds, every poll is followed by a cancellation; None for never.
        """
        began = time.monotonic()
        until = began + ENDS_WITHIN
        while (task := self._ask("tasks/get", None, taskId=task_id))["status"] in ("working", "input_required"):
            if time.monotonic() > until:
                raise Lost(f"a task of {tool} did not end within {ENDS_WITHIN:.0f} s: {task}")
            if task["status"] == "input_required":
                answers = {key: {"action": "accept", "content": {"go": True}} for key in task["inputRequests"]}
                self._ask("tasks/update", None, taskId=task_id, inputResponses=answers)
            elif cancel_after is not None and time.monotonic() - began >= cancel_after:
                self._ask("tasks/cancel", None, taskId=task_id)
            time.sleep(POLL_EVERY)
        return Ended(tool, task_id, task)

    def _ask(self, method: str, mcp_name: str | None, /, **params: Any) -> dict[str, Any]:
        until = time.monotonic() + ENDS_WITHIN
        while True:
            self._disturb()
            try:
                answer = self._rpc.call(method, mcp_name, **params)
            except (OSError, http.client.HTTPException, ValueError) as error:
                problem = repr(error)
            else:
                if "result" in answer:
                    result: dict[str, Any] = answer["result"]
                    return result
                if answer["error"]["code"] == INVALID_PARAMS:
                    raise Lost(f"{method} was answered: {answer['error']}")
                problem = str(answer["error"])
            self.retries += 1
            if time.monotonic() > until:
                raise Lost(f"{method} got no answer within {ENDS_WITHIN:.0f} s: {problem}")
            time.sleep(0.05)
