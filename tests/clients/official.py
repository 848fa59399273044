"""The official `mcp` client: it carries the extension mechanism, so the extension's half is written out here.

python tests/clients/official.py URL FAULTY_URL...        prints what happened, as JSON
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any, Literal

import anyio
from mcp import Client, MCPError
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, Request, RequestParams, Result
from pydantic import Field

TERMINAL = ("completed", "failed", "cancelled")
PATIENCE = 5
"""Polls in a row that may fail: the task goes on whether or not an answer arrives."""


class TaskHandle(Result):
    """What a call returns when it became a task."""

    result_type: Literal["task"] = Field(alias="resultType")
    task_id: str = Field(alias="taskId")
    status: str
    poll_interval_ms: int = Field(alias="pollIntervalMs")


class TaskState(Result):
    """What `tasks/get` returns."""

    result_type: Literal["complete"] = Field(alias="resultType")
    task_id: str = Field(alias="taskId")
    status: str
    poll_interval_ms: int = Field(alias="pollIntervalMs")
    input_requests: dict[str, Any] | None = Field(default=None, alias="inputRequests")
    result: CallToolResult | None = None
    error: dict[str, Any] | None = None


class Acknowledgement(Result):
    """What `tasks/update` and `tasks/cancel` return."""

    result_type: Literal["complete"] = Field(alias="resultType")


class TaskParams(RequestParams):
    """Parameters of `tasks/get` and `tasks/cancel`."""

    task_id: str = Field(serialization_alias="taskId")


class AnswerParams(TaskParams):
    """Parameters of `tasks/update`."""

    input_responses: dict[str, Any] = Field(serialization_alias="inputResponses")


class GetTask(Request[TaskParams, Literal["tasks/get"]]):
    """`tasks/get`."""

    name_param = "taskId"
    method: Literal["tasks/get"] = "tasks/get"
    params: TaskParams


class UpdateTask(Request[AnswerParams, Literal["tasks/update"]]):
    """`tasks/update`."""

    name_param = "taskId"
    method: Literal["tasks/update"] = "tasks/update"
    params: AnswerParams


class CancelTask(Request[TaskParams, Literal["tasks/cancel"]]):
    """`tasks/cancel`."""

    name_param = "taskId"
    method: Literal["tasks/cancel"] = "tasks/cancel"
    params: TaskParams


class Tasks(ClientExtension):
    """Polls a task to its end, answering what it asks with yes."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.started: list[str] = []

    def claims(self) -> Sequence[ResultClaim[Any]]:
        """One claim: a call that became a task."""
        return (ResultClaim(result_type="task", model=TaskHandle, resolve=self.finish),)

    async def finish(self, handle: TaskHandle, context: ClaimContext) -> CallToolResult:
        """Turn the handle into the tool's result."""
        self.started.append(handle.task_id)
        return await self.follow(context.session, handle.task_id)

    async def follow(self, session: Any, task_id: str) -> CallToolResult:
        """Poll a task to its end."""
        while True:
            state = await get(session, task_id)
            if state.status == "input_required":
                assert state.input_requests
                self.asked += state.input_requests.values()
                answers = {key: {"action": "accept", "content": {"publish": True}} for key in state.input_requests}
                params = AnswerParams(task_id=task_id, input_responses=answers)
                await session.send_request(UpdateTask(params=params), Acknowledgement)
            elif state.status in TERMINAL:
                assert state.result is not None, f"{state.status} without a result"
                return state.result
            await anyio.sleep(min(state.poll_interval_ms, 500) / 1000)


async def get(session: Any, task_id: str) -> TaskState:
    """Send `tasks/get`, again if there is no answer."""
    for _ in range(PATIENCE):
        try:
            return await get_once(session, task_id)
        except MCPError:
            await anyio.sleep(0.2)
    return await get_once(session, task_id)


async def get_once(session: Any, task_id: str) -> TaskState:
    """Send `tasks/get`."""
    state: TaskState = await session.send_request(GetTask(params=TaskParams(task_id=task_id)), TaskState)
    return state


async def story(url: str, faulty_urls: list[str]) -> dict[str, Any]:
    """Drive every way a call can go.

    Parameters
    ----------
    url
        The MCP endpoint.
    faulty_urls
        The same endpoint behind proxies that spoil the first poll of each task.
    """
    tasks = Tasks()
    asked_before: list[str] = []

    async def elicit(context: Any, params: ElicitRequestParams) -> ElicitResult:
        asked_before.append(params.message)
        return ElicitResult(action="accept", content={"publish": True})

    async with Client(url, extensions=[tasks], elicitation_callback=elicit) as client:
        listed = await client.list_tools()
        inline = await client.call_tool("add", {"a": 2, "b": 3})
        finished = await client.call_tool("measure_words", {"words": ["one", "three", "fourteen"]})
        answered = await client.call_tool("publish", {"title": "Rails"})
        failed = await client.call_tool("break_down", {})
        stumbled = await client.call_tool("stumble", {})
        guarded = await client.call_tool("guarded", {"title": "Rails"})
        long = await client.call_tool("take_two_minutes", {})
        handle = await client.session.call_tool("wait_long", {}, allow_claimed=True)
        assert isinstance(handle, TaskHandle)
        await client.session.send_request(CancelTask(params=TaskParams(task_id=handle.task_id)), Acknowledgement)
        with anyio.fail_after(40):
            while (state := await get(client.session, handle.task_id)).status not in TERMINAL:
                await anyio.sleep(0.2)
    return {
        "tools": [tool.name for tool in listed.tools],
        "inline": inline.structured_content,
        "task": finished.structured_content,
        "question": {"asked": [request["params"]["message"] for request in tasks.asked], "texts": texts(answered)},
        "before": {"asked": asked_before, "texts": texts(guarded)},
        "cancel": state.status,
        "error": {"isError": failed.is_error, "texts": texts(failed)},
        "trace": {"isError": stumbled.is_error, "texts": texts(stumbled)},
        "long": texts(long),
        "faults": [await fault(one) for one in faulty_urls],
    }


async def fault(url: str) -> dict[str, Any]:
    """Run a task whose first poll is spoiled; if that takes the session with it, go on by id in another."""
    told: dict[str, Any] = {}
    tasks = Tasks()
    try:
        async with Client(url, extensions=[tasks]) as client:
            told["plain"] = texts(await client.call_tool("take_two_minutes", {}))
    except Exception as error:
        told["failed"] = repr(error)
        async with Client(url, extensions=[tasks]) as client:
            told["around"] = texts(await tasks.follow(client.session, tasks.started[-1]))
    return told


def texts(result: CallToolResult) -> list[str]:
    """The text blocks of a result."""
    return [block.text for block in result.content if block.type == "text"]


if __name__ == "__main__":
    json.dump(anyio.run(story, sys.argv[1], sys.argv[2:]), sys.stdout)
