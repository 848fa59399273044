"""What the official client needs in order to speak the tasks extension: its messages, and a view of one task."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import anyio
from mcp import Client
from mcp.client import ClientRequestContext
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim, UnexpectedClaimedResult
from mcp_types import CallToolResult, EmptyResult, ErrorData, InputRequest, Result

from taskrail_client.messages import CancelTask, GetTask, TaskParams, UpdateParams, UpdateTask

EXTENSION = "io.modelcontextprotocol/tasks"
ENDED = ("completed", "failed", "cancelled")


class Handle(Result):
    """What a call answers with when the work goes on: the ticket."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    status_message: str | None = None
    created_at: str
    last_updated_at: str
    ttl_ms: int | None
    poll_interval_ms: int


class State(Result):
    """What `tasks/get` answers with."""

    result_type: Literal["complete"] = "complete"
    task_id: str
    status: Literal["working", "input_required", "completed", "failed", "cancelled"]
    status_message: str | None = None
    created_at: str
    last_updated_at: str
    ttl_ms: int | None
    poll_interval_ms: int
    input_requests: dict[str, InputRequest] | None = None
    result: CallToolResult | None = None
    error: ErrorData | None = None


async def _refuse(handle: Handle, context: ClaimContext) -> CallToolResult:
    raise UnexpectedClaimedResult(handle)


class Tasks(ClientExtension):
    """Declares the extension, so that the server may answer a call with a task."""

    identifier = EXTENSION

    def claims(self) -> Sequence[ResultClaim[Any]]:
        """The one result shape of ours: a task, which `start` takes by itself."""
        return [ResultClaim(result_type="task", model=Handle, resolve=_refuse)]


async def start(client: Client, tool: str, arguments: dict[str, Any]) -> Handle | CallToolResult:
    """Call a tool: the answer is a task's handle, or the result if the call was answered at once."""
    result = await client.session.call_tool(tool, arguments, allow_claimed=True)
    assert isinstance(result, Handle | CallToolResult)
    return result


@dataclass(frozen=True)
class RemoteTask:
    """One task, seen through one connection."""

    client: Client
    task_id: str

    async def get(self) -> State:
        """How it stands now."""
        return await self.client.session.send_request(GetTask(params=TaskParams(task_id=self.task_id)), State)

    async def cancel(self) -> None:
        """Ask for its cancellation."""
        request = CancelTask(params=TaskParams(task_id=self.task_id))
        await self.client.session.send_request(request, EmptyResult)

    async def answer(self, questions: dict[str, InputRequest]) -> None:
        """Put each question to the client's own callback and send the answers."""
        session = self.client.session
        responses: dict[str, Any] = {}
        for key, question in questions.items():
            answer = await session.dispatch_input_request(
                ClientRequestContext(session=session, request_id=key), question
            )
            responses[key] = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
        params = UpdateParams(task_id=self.task_id, input_responses=responses)
        await session.send_request(UpdateTask(params=params), EmptyResult)

    async def watch(self) -> AsyncIterator[State]:
        """Its states at the pace that the server asks for; the last one has ended or waits for an answer."""
        while True:
            state = await self.get()
            yield state
            if state.status in ENDED or state.status == "input_required":
                return
            await anyio.sleep(state.poll_interval_ms / 1000)
