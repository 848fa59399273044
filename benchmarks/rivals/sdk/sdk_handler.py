"""A handler on the official SDK: API Gateway's event to `serve_one`, its result to an answer.

The low-level server with handlers of its own for the methods of the tasks extension, which the SDK does not serve;
no ASGI in between, since a Lambda function gets one request whole.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import anyio
import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.runner import modern_error_data, serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS, InboundLadderRejection, classify_inbound_request
from mcp.shared.message import MessageMetadata, ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, MISSING_REQUIRED_CLIENT_CAPABILITY, PARSE_ERROR
from pydantic import BaseModel, ConfigDict, Field, ValidationError

import tickets

log = logging.getLogger("bench")
log.setLevel(logging.INFO)
logging.basicConfig(format="%(message)s")

Context = ServerRequestContext[Any, Any]


class Render(BaseModel):
    """The tool's arguments."""

    model_config = ConfigDict(extra="forbid")

    report: str
    pages: Annotated[int, Field(ge=1, le=500)]


class TaskParams(types.RequestParams):
    """Params of `tasks/get` and `tasks/cancel`."""

    task_id: str = Field(alias="taskId")


class UpdateParams(TaskParams):
    """Params of `tasks/update`."""

    input_responses: dict[str, Any] = Field(alias="inputResponses")


TOOL = types.Tool(name="render", description="Render a report as PDF.", input_schema=Render.model_json_schema())


async def list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    """The one tool."""
    return types.ListToolsResult(tools=[TOOL])


async def call_tool(context: Context, params: types.CallToolRequestParams) -> Any:
    """Begin a task."""
    if params.name != TOOL.name:
        raise MCPError(code=INVALID_PARAMS, message=f"Unknown tool: {params.name}")
    declares(context)
    try:
        arguments = Render.model_validate(params.arguments or {})
    except ValidationError as error:
        return types.CallToolResult(content=[types.TextContent(type="text", text=str(error))], is_error=True)
    return tickets.create(tickets.owner_of(context.request), arguments.model_dump())


async def get_task(context: Context, params: TaskParams) -> dict[str, Any]:
    """`tasks/get`."""
    declares(context)
    try:
        return tickets.get(tickets.owner_of(context.request), params.task_id)
    except tickets.NotFound:
        raise MCPError(code=INVALID_PARAMS, message="Unknown task") from None


async def update_task(context: Context, params: UpdateParams) -> dict[str, Any]:
    """`tasks/update`."""
    declares(context)
    try:
        tickets.update(tickets.owner_of(context.request), params.task_id, params.input_responses)
    except tickets.NotFound:
        raise MCPError(code=INVALID_PARAMS, message="Unknown task") from None
    except tickets.BadAnswer as error:
        raise MCPError(code=INVALID_PARAMS, message=f"Bad answer to {error}") from None
    return {}


async def cancel_task(context: Context, params: TaskParams) -> dict[str, Any]:
    """`tasks/cancel`."""
    declares(context)
    try:
        tickets.cancel(tickets.owner_of(context.request), params.task_id)
    except tickets.NotFound:
        raise MCPError(code=INVALID_PARAMS, message="Unknown task") from None
    return {}


def declares(context: Context) -> None:
    """Refuse a client that did not declare the tasks extension with this request."""
    capabilities = context.session.client_capabilities
    if capabilities is None or tickets.TASKS not in (capabilities.extensions or {}):
        needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {tickets.TASKS: {}}}}
        raise MCPError(code=MISSING_REQUIRED_CLIENT_CAPABILITY, message="Declare the tasks extension", data=needed)


server: Server[Any] = Server(
    "bench",
    version="1.0.0",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    cache_hints={"tools/list": CacheHint(ttl_ms=60_000), "server/discover": CacheHint(ttl_ms=60_000)},
)
server.extensions[tickets.TASKS] = {}
server.add_request_handler("tasks/get", TaskParams, get_task)
server.add_request_handler("tasks/update", UpdateParams, update_task)
server.add_request_handler("tasks/cancel", TaskParams, cancel_task)


@dataclass
class OneExchange:
    """One request that is answered once, with no way back to the client meanwhile."""

    transport: TransportContext
    request_id: types.RequestId
    message_metadata: MessageMetadata
    can_send_request: bool = False
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """There is nobody to ask."""
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """There is nobody to tell."""

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """There is nobody to tell."""


loop: Any = asyncio.new_event_loop()


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer one event of an HTTP API."""
    text = event.get("body") or ""
    try:
        body = json.loads(base64.b64decode(text) if event.get("isBase64Encoded") else text)
    except ValueError:
        return answer(None, types.ErrorData(code=PARSE_ERROR, message="Parse error"))
    try:
        request = types.JSONRPCRequest.model_validate(body)
    except ValidationError:
        return answer(None, types.ErrorData(code=INVALID_REQUEST, message="Not one request"))
    headers = {name.lower(): value for name, value in event["headers"].items()}
    route = classify_inbound_request(body, headers=headers)
    if isinstance(route, InboundLadderRejection):
        return answer(request.id, types.ErrorData(code=route.code, message=route.message, data=route.data))
    connection = Connection.from_envelope(route.protocol_version, route.client_info, route.client_capabilities)
    transport = TransportContext(kind="api-gateway", can_send_request=False, headers=headers)
    exchange = OneExchange(transport, request.id, ServerMessageMetadata(request_context=event))
    try:
        result = loop.run_until_complete(
            serve_one(server, exchange, request.method, request.params, connection=connection, lifespan_state=None)
        )
    except Exception as error:
        return answer(request.id, modern_error_data(error))
    log.info("%s", json.dumps({"method": request.method, "status": 200}))
    return response(200, types.JSONRPCResponse(jsonrpc="2.0", id=request.id, result=result))


def answer(request_id: types.RequestId | None, error: types.ErrorData) -> dict[str, Any]:
    """An error, with the status that its code has."""
    status = ERROR_CODE_HTTP_STATUS.get(error.code, 200)
    log.info("%s", json.dumps({"status": status, "error": error.code}))
    return response(status, types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error))


def response(status: int, message: types.JSONRPCResponse | types.JSONRPCError) -> dict[str, Any]:
    """What API Gateway is given."""
    body = json.dumps(message.model_dump(mode="json", by_alias=True, exclude_none=True), separators=(",", ":"))
    return {"statusCode": status, "headers": {"content-type": "application/json"}, "body": body}
