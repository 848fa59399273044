"""The door: one API Gateway event in, one answer out, whatever the event holds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from taskrail.access import identifier
from taskrail.caller import Caller
from taskrail.errors import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Forbidden,
    InternalError,
    ProtocolError,
    RpcError,
    UnsupportedVersion,
)
from taskrail.ids import is_task_id
from taskrail.results import error_result
from taskrail.wire import jsonrpc, ladder, legacy, protocol
from taskrail.wire.cors import Cors
from taskrail.wire.envelope import Envelope, Reply, failure
from taskrail.wire.http import LARGEST_ANSWER, HttpRequest, HttpResponse, accepts_answer, fits
from taskrail.wire.jsonrpc import Message, RequestId
from taskrail.wire.ladder import Route
from taskrail.wire.methods import Methods, server_info

if TYPE_CHECKING:
    from taskrail.runtime import Runtime
    from taskrail.wire.experimental import Experimental

_ANSWER_MARGIN_MS = 2_000
"""What is left of a Lambda's time for reading the result and sending it."""

_log = logging.getLogger("taskrail")


@dataclass
class Trail:
    """What a request turned out to be, for the one line that is written about it."""

    method: str | None = None
    tool: str | None = None
    task_id: str | None = None
    owner: str | None = None
    error: int | None = None
    traceparent: str | None = None

    def follow(self, route: Route) -> None:
        """Note where a request goes that passed the checks: names that are none of ours are not written down."""
        self.method = route.method
        self.tool = None if route.tool is None else route.tool.name
        task_id = route.params.get("taskId")
        self.task_id = task_id if is_task_id(task_id) else None
        self.traceparent = route.traceparent


class App:
    """Answers API Gateway events of both payload formats.

    Parameters
    ----------
    runtime
        The catalogue, the rail, the settings and the clock.
    identify
        Tells the caller of an event, in place of what the settings say.
    streams
        Whether what takes the answers can send a body that comes in parts; Lambda's proxy integrations cannot.
    """

    def __init__(
        self, runtime: Runtime, identify: Callable[[Any], Caller] | None = None, *, streams: bool = False
    ) -> None:
        server = runtime.server
        self._identify = identify or identifier(runtime.settings)
        self._settings = runtime.settings
        self._clock = runtime.clock
        self._telemetry = runtime.telemetry
        self._find_tool = server.tools.get
        self._envelope = Envelope(server_info(server))
        self._legacy = legacy.Legacy(server_info(server), server.instructions, server.tools.get, _experimental(runtime))
        mode = "hold" if self._settings.listen == "stream" and not streams else self._settings.listen
        longest_ms = self._settings.listen_seconds * 1_000
        self._methods = Methods(server, runtime.rail, runtime.clock, runtime.secret, mode, longest_ms)
        parameters = (header.name for tool in server.tools.values() for header in tool.signature.headers)
        self._cors = Cors(runtime.settings.allowed_origins, parameters)

    def handle(self, event: Any, remaining_ms: Callable[[], int] | None = None) -> dict[str, Any]:
        """Answer one event; nothing escapes.

        Parameters
        ----------
        event
            What API Gateway hands to a proxy integration, payload format 1.0 or 2.0.
        remaining_ms
            Tells how many milliseconds the Lambda has left; None where nothing limits it.
        """
        began = self._clock.now()
        trail = Trail()
        try:
            response = self._respond(event, self._deadline(remaining_ms), trail)
        except Exception:
            _log.exception("an event could not be answered")
            response = failure(None, INTERNAL_ERROR, "Internal error.")
            trail.error = INTERNAL_ERROR
        now = self._clock.now()
        self._telemetry.request(now=now, duration_ms=now - began, status=response.status, **vars(trail))
        return response.to_event()

    def _deadline(self, remaining_ms: Callable[[], int] | None) -> int:
        budget = self._settings.wait_budget_ms
        if remaining_ms is not None:
            budget = min(budget, remaining_ms() - _ANSWER_MARGIN_MS)
        return self._clock.now() + budget

    def _respond(self, event: Any, deadline: int, trail: Trail) -> HttpResponse:
        request = HttpRequest.from_event(event)
        if not self._cors.allows(request.headers):
            return _refusal(403, "Pages of this origin may not call this server.")
        if not request.at_endpoint:
            response = _refusal(404, "Nothing here: this server answers POST /mcp.")
        elif request.method == "OPTIONS":
            response = HttpResponse(204, self._cors.preflight_headers(request.headers))
        elif request.method != "POST":
            response = _refusal(405, "Only POST is answered here: one JSON-RPC message each.", {"Allow": "POST"})
        elif not accepts_answer(request.headers.get("accept")):
            response = _refusal(406, "The Accept header rules out both application/json and text/event-stream.")
        else:
            response = self._answer(request, event, deadline, trail)
        headers = {**response.headers, **self._cors.answer_headers(request.headers)}
        return HttpResponse(response.status, headers, response.body, response.stream)

    def _answer(self, request: HttpRequest, event: Any, deadline: int, trail: Trail) -> HttpResponse:
        request_id: RequestId | None = None
        try:
            settings = self._settings
            value = jsonrpc.loads(
                request.body,
                max_bytes=settings.max_body_bytes,
                max_depth=settings.max_depth,
                max_values=settings.max_values,
            )
            if isinstance(value, list) and value and legacy.may_batch(request.headers):
                legacy.check_batch(value)
                answers = [self._serve_legacy(one, request.headers, event, deadline, trail) for one in value]
                answered = [answer for answer in answers if answer is not None]
                return legacy.response(answered) if answered else HttpResponse(202)
            request_id = jsonrpc.readable_id(value)
            message = jsonrpc.message(value)
            if request_id is None:
                # No notification of any revision means anything to a server behind HTTP.
                return HttpResponse(202)
            if legacy.is_legacy(message, request.headers):
                return legacy.response(self._serve_legacy(value, request.headers, event, deadline, trail))
            return self._serve(request_id, message, request.headers, event, deadline, trail)
        except RpcError as error:
            trail.error = error.code
            answer = failure(request_id, error.code, error.message, error.data, status=error.http_status)
            if isinstance(error, Forbidden):
                return replace(answer, headers={**answer.headers, "WWW-Authenticate": self._challenge(error)})
            return answer
        except ProtocolError as error:
            trail.error = error.code
            return failure(request_id, error.code, error.message, error.data)
        except Exception:
            _log.exception("a request could not be answered")
            trail.error = INTERNAL_ERROR
            return failure(request_id, INTERNAL_ERROR, "Internal error.")

    def _challenge(self, error: Forbidden) -> str:
        """What a caller needs to get another token (basic/authorization, "Scope Challenge Handling").

        API Gateway lets this header through only under another name (Lambda proxy integrations,
        "x-amzn-remapped-"); the scopes are in the error's data too.
        """
        parts = ['Bearer error="insufficient_scope"']
        if error.scopes:
            parts.append(f'scope="{" ".join(error.scopes)}"')
        if self._settings.resource_metadata_url is not None:
            parts.append(f'resource_metadata="{self._settings.resource_metadata_url}"')
        return ", ".join(parts)

    def _serve(
        self,
        request_id: RequestId,
        message: Message,
        headers: Mapping[str, str],
        event: Any,
        deadline: int,
        trail: Trail,
    ) -> HttpResponse:
        route = ladder.climb(request_id, message, headers, self._find_tool)
        reply = self._reply(route, event, deadline, trail)
        response = self._envelope.success(request_id, reply)
        if fits(response.body):
            return response
        return self._envelope.success(request_id, _too_large(route))

    def _reply(self, route: Route, event: Any, deadline: int, trail: Trail) -> Reply:
        trail.follow(route)
        caller = self._identify(event) if self._methods.needs_caller(route) else None
        trail.owner = None if caller is None else caller.owner
        reply = self._methods.answer(route, caller, deadline)
        trail.task_id = reply.fields.get("taskId", trail.task_id)
        return reply

    def _serve_legacy(
        self, value: Any, headers: Mapping[str, str], event: Any, deadline: int, trail: Trail
    ) -> dict[str, Any] | None:
        """The answer to one message of an earlier revision; None to a notification."""
        request_id = jsonrpc.readable_id(value)
        try:
            message = jsonrpc.message(value)
            if request_id is None:
                return None

            def modern(route: Route) -> Reply:
                reply = self._reply(route, event, deadline, trail)
                return reply if fits(jsonrpc.dumps(dict(reply.fields))) else _too_large(route)

            def caller(route: Route) -> Caller:
                trail.follow(route)
                found = self._identify(event)
                trail.owner = found.owner
                return found

            request = legacy.Request(request_id, message, headers, modern, caller, deadline)
            return legacy.success(request_id, self._legacy.answer(request))
        except UnsupportedVersion:
            raise
        except (RpcError, ProtocolError) as error:
            trail.error = error.code
            return legacy.error(request_id, error.code, error.message, error.data)
        except Exception:
            _log.exception("a request could not be answered")
            trail.error = INTERNAL_ERROR
            return legacy.error(request_id, INTERNAL_ERROR, "Internal error.", None)


def _experimental(runtime: Runtime) -> Experimental | None:
    """The tasks of revision 2025-11-25, where they are switched on: who has them off does not load them."""
    if not runtime.settings.experimental_tasks:
        return None
    from taskrail.wire.experimental import Experimental

    return Experimental(runtime.server, runtime.rail, runtime.clock)


def _too_large(route: Route) -> Reply:
    """What is said in place of a result that no answer can carry.

    Raises
    ------
    InternalError
        The request was no call of a tool.
    """
    if route.method != protocol.TOOLS_CALL:
        _log.error("the answer to %s is larger than Lambda takes", route.method)
        raise InternalError
    text = (
        f"The tool's result is larger than the {LARGEST_ANSWER} bytes that an answer can carry. "
        "Ask for less; the tool's author can make it a task, whose large results come as links."
    )
    return Reply(error_result(text))


def _refusal(status: int, message: str, headers: Mapping[str, str] | None = None) -> HttpResponse:
    response = failure(None, INVALID_REQUEST, message, status=status)
    return replace(response, headers={**response.headers, **(headers or {})})
