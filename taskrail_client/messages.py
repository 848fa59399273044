"""The messages of the tasks extension, for the official client.

The published schema wins over this page: `modelcontextprotocol/ext-tasks`, ``schema/draft/schema.json``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp_types import CallToolResult, ErrorData, InputRequest, Request, RequestParams, Result
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

EXTENSION = "io.modelcontextprotocol/tasks"
PROGRESS_KEY = "io.taskrail/progress"
IDEMPOTENCY_KEY = "io.taskrail/idempotencyKey"

Status = Literal["working", "input_required", "completed", "failed", "cancelled"]
ENDED = ("completed", "failed", "cancelled")

_MOST_MS = 2**53


def _sane(value: object) -> object:
    """A duration that can be reckoned with; a ticket is not thrown away because of one that cannot."""
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST_MS
    return int(value) if usable and isinstance(value, int | float) else None


Milliseconds = Annotated[int | None, BeforeValidator(_sane)]
TaskId = Annotated[str, Field(min_length=1, max_length=512)]


class Handle(Result):
    """The ticket: what a call answers with when the work goes on."""

    result_type: Literal["task"]
    task_id: TaskId
    status: Status
    status_message: str | None = None
    created_at: str
    last_updated_at: str
    ttl_ms: Milliseconds = None
    poll_interval_ms: Milliseconds = None


class State(Result):
    """What `tasks/get` answers with."""

    result_type: Literal["complete"]
    task_id: TaskId
    status: Status
    status_message: str | None = None
    created_at: str
    last_updated_at: str
    ttl_ms: Milliseconds = None
    poll_interval_ms: Milliseconds = None
    input_requests: dict[str, InputRequest] | None = None
    result: CallToolResult | None = None
    error: ErrorData | None = None


class Acknowledgement(Result):
    """What `tasks/update` and `tasks/cancel` answer with."""

    result_type: Literal["complete"]


class ListenEnd(Result):
    """What ends a stream of `subscriptions/listen`."""

    result_type: str | None = None


class TaskParams(RequestParams):
    """Which task."""

    task_id: str


class UpdateParams(TaskParams):
    """Which task, and the answers to its questions."""

    input_responses: dict[str, Any]


class ListenParams(RequestParams):
    """What to listen to."""

    notifications: dict[str, Any]


class GetTask(Request[TaskParams, Literal["tasks/get"]]):
    """Ask how a task stands."""

    method: Literal["tasks/get"] = "tasks/get"
    params: TaskParams
    name_param = "taskId"


class UpdateTask(Request[UpdateParams, Literal["tasks/update"]]):
    """Answer a task's questions."""

    method: Literal["tasks/update"] = "tasks/update"
    params: UpdateParams
    name_param = "taskId"


class CancelTask(Request[TaskParams, Literal["tasks/cancel"]]):
    """Ask for a task's cancellation."""

    method: Literal["tasks/cancel"] = "tasks/cancel"
    params: TaskParams
    name_param = "taskId"


class Listen(Request[ListenParams, Literal["subscriptions/listen"]]):
    """Ask to be told of changes."""

    method: Literal["subscriptions/listen"] = "subscriptions/listen"
    params: ListenParams


class TaskNotice(BaseModel):
    """Parameters of `notifications/tasks`: which task changed, and how it stands."""

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore")

    task_id: str
    status: Status
