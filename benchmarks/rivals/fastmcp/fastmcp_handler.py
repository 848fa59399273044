"""A handler on FastMCP: API Gateway's event as an ASGI request to FastMCP's own stateless HTTP app.

The tasks extension that comes with FastMCP keeps its tasks in Redis and runs them in a worker that lives on, neither
of which a Lambda function has; so the extension here is one of our own, by FastMCP's interface for extensions.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastmcp import FastMCP
from fastmcp.server.dependencies import get_http_request
from fastmcp.server.extensions import MethodBinding, ServerExtension
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolRequestParams, RequestParams
from mcp_types.jsonrpc import INVALID_PARAMS, MISSING_REQUIRED_CLIENT_CAPABILITY
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

import tickets

log = logging.getLogger("bench")
log.setLevel(logging.INFO)
logging.basicConfig(format="%(message)s")


class TaskParams(RequestParams):
    """Params of `tasks/get` and `tasks/cancel`."""

    task_id: str = Field(alias="taskId")


class UpdateParams(TaskParams):
    """Params of `tasks/update`."""

    input_responses: dict[str, Any] = Field(alias="inputResponses")


class Ticket(BaseModel):
    """A task as `tools/call` shows it."""

    model_config = ConfigDict(extra="allow")

    resultType: Literal["task"]


mcp = FastMCP("bench", version="1.0.0")


@mcp.tool
def render(report: str, pages: Annotated[int, Field(ge=1, le=500)]) -> str:
    """Render a report as PDF."""
    raise NotImplementedError("its calls are tasks")


class Arguments(BaseModel):
    """The tool's arguments."""

    model_config = ConfigDict(extra="forbid")

    report: str
    pages: Annotated[int, Field(ge=1, le=500)]


_arguments = TypeAdapter(Arguments)


class Tasks(ServerExtension):
    """The tasks extension over DynamoDB and Step Functions."""

    identifier = tickets.TASKS

    def methods(self) -> Sequence[MethodBinding]:
        """`tasks/get`, `tasks/update` and `tasks/cancel`."""
        return [
            MethodBinding("tasks/get", TaskParams, self._get),
            MethodBinding("tasks/update", UpdateParams, self._update),
            MethodBinding("tasks/cancel", TaskParams, self._cancel),
        ]

    async def intercept_tool_call(self, params: CallToolRequestParams, context: Any, call_next: Any) -> Any:
        """Begin a task."""
        if context.client_extension_settings(self.identifier) is None:
            raise _undeclared()
        arguments = _arguments.validate_python(params.arguments or {})
        return Ticket(**tickets.create(_owner(), arguments.model_dump()))

    async def _get(self, context: Any, params: TaskParams) -> dict[str, Any]:
        self._declared(context)
        try:
            return tickets.get(_owner(), params.task_id)
        except tickets.NotFound:
            raise MCPError(code=INVALID_PARAMS, message="Unknown task") from None

    async def _update(self, context: Any, params: UpdateParams) -> dict[str, Any]:
        self._declared(context)
        try:
            tickets.update(_owner(), params.task_id, params.input_responses)
        except tickets.NotFound:
            raise MCPError(code=INVALID_PARAMS, message="Unknown task") from None
        except tickets.BadAnswer as error:
            raise MCPError(code=INVALID_PARAMS, message=f"Bad answer to {error}") from None
        return {}

    async def _cancel(self, context: Any, params: TaskParams) -> dict[str, Any]:
        self._declared(context)
        try:
            tickets.cancel(_owner(), params.task_id)
        except tickets.NotFound:
            raise MCPError(code=INVALID_PARAMS, message="Unknown task") from None
        return {}

    def _declared(self, context: Any) -> None:
        if self.client_settings(context) is None:
            raise _undeclared()


def _undeclared() -> MCPError:
    needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {tickets.TASKS: {}}}}
    return MCPError(code=MISSING_REQUIRED_CLIENT_CAPABILITY, message="Declare the tasks extension", data=needed)


def _owner() -> str:
    return tickets.owner_of(get_http_request().scope["aws.event"])


mcp.add_extension(Tasks())
app = mcp.http_app(path="/mcp", stateless_http=True, json_response=True)

_loop = asyncio.new_event_loop()


async def _begin() -> None:
    """Let the app start: its lifespan lasts as long as the process."""
    started = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if started.is_set():
            await asyncio.Event().wait()
        return {"type": "lifespan.startup"}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "lifespan.startup.failed":
            raise RuntimeError(message.get("message", "the app did not start"))
        started.set()

    _lives.append(asyncio.ensure_future(app({"type": "lifespan", "asgi": {"version": "3.0"}}, receive, send)))
    await started.wait()


_lives: list[asyncio.Future[Any]] = []
_loop.run_until_complete(_begin())


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer one event of an HTTP API."""
    return _loop.run_until_complete(_answer(event))


async def _answer(event: dict[str, Any]) -> dict[str, Any]:
    text = event.get("body") or ""
    body = base64.b64decode(text) if event.get("isBase64Encoded") else text.encode()
    about = event["requestContext"]["http"]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": about["method"],
        "scheme": "https",
        "path": event["rawPath"],
        "raw_path": event["rawPath"].encode(),
        "root_path": "",
        "query_string": event.get("rawQueryString", "").encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in event["headers"].items()],
        "client": (about["sourceIp"], 0),
        "server": (event["requestContext"]["domainName"], 443),
        "aws.event": event,
    }
    given = False
    status, headers, parts = 500, {}, []

    async def receive() -> dict[str, Any]:
        nonlocal given
        if given:
            await asyncio.Event().wait()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status, headers
        if message["type"] == "http.response.start":
            status = message["status"]
            headers = {name.decode(): value.decode() for name, value in message.get("headers", ())}
        else:
            parts.append(message.get("body", b""))

    await app(scope, receive, send)
    log.info("%s", json.dumps({"path": event["rawPath"], "status": status}))
    return {"statusCode": status, "headers": headers, "body": b"".join(parts).decode()}
