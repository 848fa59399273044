"""`tools/call`: from its parameters to a result, a question, a task, or an error."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from taskrail.call import Call, NeedInput
from taskrail.clock import Clock
from taskrail.errors import (
    TASKS_EXTENSION,
    ArgumentsError,
    Forbidden,
    InternalError,
    InvalidParams,
    MissingCapability,
)
from taskrail.inputs import s3_uris
from taskrail.rail.quotas import TooManyOpen
from taskrail.results import ResultError, error_result
from taskrail.server import TICKET_TOOLS
from taskrail.wire import user_code
from taskrail.wire.envelope import TASK, Reply
from taskrail.wire.jsonrpc import dumps
from taskrail.wire.ladder import Route
from taskrail.wire.seal import LIFE_MS, Sealer, State, Subject
from taskrail.wire.tickets import Tickets
from taskrail.wire.waiting import Waiting, input_required

if TYPE_CHECKING:
    from taskrail.caller import Caller
    from taskrail.rail.rail import Rail
    from taskrail.server import TaskServer, Tool
    from taskrail.task import Task

IDEMPOTENCY_KEY = "io.taskrail/idempotencyKey"
_LONGEST_KEY = 256

_log = logging.getLogger("taskrail")


class Calls:
    """Calls tools.

    Parameters
    ----------
    server
        Says who may call which.
    rail
        Makes and reads tasks.
    clock
        Time, and its passing.
    sealer
        Signs what a question's retry brings back.
    """

    def __init__(self, server: TaskServer, rail: Rail, clock: Clock, sealer: Sealer) -> None:
        self._server = server
        self._rail = rail
        self._clock = clock
        self._sealer = sealer
        self._tickets = Tickets(rail, clock) if server.tickets else None
        self._waiting = Waiting(rail, clock, sealer, self._tickets)

    def call(self, route: Route, caller: Caller, deadline: int) -> Reply:
        """Call a tool.

        Parameters
        ----------
        route
            The request; it passed the ladder.
        caller
            Who is calling.
        deadline
            Moment at which the answer must be on its way, in milliseconds since the epoch.

        Raises
        ------
        RpcError, ProtocolError
            The request cannot be served, or the tool answers with a JSON-RPC error.
        """
        tool = route.tool
        if tool is None and self._tickets is not None and not route.client.tasks:
            name = route.params.get("name")
            if name in TICKET_TOOLS:
                return self._tickets.call(name, _object(route.params, "arguments"), caller.owner, deadline)
        if tool is None or not self._server.admits(caller, tool):
            raise InvalidParams("Unknown tool: this server has none of that name.")
        if not caller.scopes.issuperset(tool.scopes):
            raise Forbidden("The tool needs scopes that your token does not have.", tool.scopes)
        if tool.mode == "required" and not route.client.tasks:
            raise MissingCapability({"extensions": {TASKS_EXTENSION: {}}})
        if tool.dedupe_ms is not None and caller.anonymous:
            _log.error("tool %s gives repeated calls one task, and this API tells no callers apart", tool.name)
            raise InternalError("This tool serves only callers that the API tells apart, and here it does not.")
        owner = caller.owner
        arguments = _object(route.params, "arguments")
        responses = _object(route.params, "inputResponses")
        try:
            bound = tool.signature.bind(arguments)
            self._check_inputs(tool, arguments, owner)
        except ArgumentsError as error:
            return Reply(error_result(f"The arguments do not fit the tool: {error}"))
        subject = Subject(owner, tool.name, arguments)
        state = self._state(route.params.get("requestState"), subject)
        if state is not None and state.started and state.task_id is not None:
            task = self._waiting.answer(self._rail.read(owner, state.task_id), owner, responses)
            return self._hand_over(route, tool, subject, task, deadline)
        carried = {} if state is None else state.answers
        call = Call(owner, route.client, {**responses, **carried}, caller)
        try:
            if tool.builtin is not None:
                return Reply(
                    tool.returns.result(self._rail.offer_upload(owner, **bound, seconds=self._upload_seconds()))
                )
            if tool.kind == "inline":
                return Reply(_inline(tool, call, bound))
            prepared = tool.stored_arguments(_prepared(tool, call, arguments, bound))
        except NeedInput as need:
            return self._ask(need, call, state, tool, subject)
        except user_code.ToolEnded as end:
            return Reply(end.result)
        try:
            task = self._rail.create(
                owner,
                tool,
                prepared,
                route.client if self._tickets is None or route.client.tasks else route.client.with_forms(),
                caller=caller.to_json(),
                task_id=None if state is None else state.task_id,
                sealed_until=None if state is None else state.expires_at,
                traceparent=route.traceparent,
                idempotency_key=_idempotency_key(route.params) if tool.dedupe_ms is not None else None,
            )
        except TooManyOpen as error:
            return Reply(error_result(str(error)))
        return self._hand_over(route, tool, subject, task, deadline)

    def _upload_seconds(self) -> int:
        return 0 if self._server.uploads is None else int(self._server.uploads.total_seconds())

    def _check_inputs(self, tool: Tool, arguments: Mapping[str, Any], owner: str) -> None:
        """Refuse what points into the bucket of payloads, but not to a document of this caller's own."""
        for path, uri, declared in s3_uris(arguments, tool.signature.input_schema):
            if not self._rail.may_read(owner, uri, strictly=declared):
                raise ArgumentsError((f"{path}: must name a document under {self._rail.input_prefix(owner)}",))

    def _state(self, text: Any, subject: Subject) -> State | None:
        return None if text is None else self._sealer.open(text, subject, self._clock.now())

    def _hand_over(self, route: Route, tool: Tool, subject: Subject, task: Task, deadline: int) -> Reply:
        if route.client.tasks:
            return Reply(task.view(self._clock.now()), TASK)
        return self._waiting.wait(task, tool, subject, route.client, deadline)

    def _ask(self, need: NeedInput, call: Call, state: State | None, tool: Tool, subject: Subject) -> Reply:
        asked = {question.key for question in need.questions}
        carried = {} if state is None else state.answers
        answers = {key: value for key, value in {**carried, **call.answered}.items() if key not in asked}
        if state is None:
            # The task gets its id at the first question, and all rounds end within one life: a retry
            # sent twice meets the task that the first one made, for as long as it can be sent.
            task_id = self._rail.new_task_id() if tool.policy is not None else None
            state = State(self._clock.now() + LIFE_MS, task_id=task_id)
        state = State(state.expires_at, answers, state.task_id)
        return input_required(list(need.questions), self._sealer.seal(state, subject))


def _idempotency_key(params: Mapping[str, Any]) -> str | None:
    """The caller's own name for a call, from its ``_meta``."""
    meta = params.get("_meta")
    key = meta.get(IDEMPOTENCY_KEY) if isinstance(meta, Mapping) else None
    if key is not None and (not isinstance(key, str) or not 0 < len(key) <= _LONGEST_KEY):
        raise InvalidParams(f"params._meta[{IDEMPOTENCY_KEY!r}] is a text of 1 to {_LONGEST_KEY} characters.")
    return key


def _inline(tool: Tool, call: Call, bound: Mapping[str, Any]) -> dict[str, Any]:
    value = user_code.run(tool.name, tool.load(), tool.signature.keywords(bound, call=call))
    try:
        return tool.returns.result(value)
    except ResultError as error:
        return error_result(f"The tool's result cannot be sent: {error}")
    except Exception:
        return user_code.unexpected(tool.name)


def _prepared(tool: Tool, call: Call, arguments: dict[str, Any], bound: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that the task gets: the caller's, changed by what the hook returned, if anything."""
    if tool.before is None or tool.before_signature is None:
        return arguments
    changes = user_code.run(tool.name, tool.before, tool.before_signature.keywords(bound, call=call))
    if not isinstance(changes, Mapping):
        return arguments
    try:
        prepared = {**arguments, **changes}
        tool.signature.bind(prepared)
        dumps(prepared)
    except Exception as error:
        raise user_code.ToolEnded(user_code.unexpected(tool.name)) from error
    return prepared


def _object(params: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = params.get(name, {})
    if not isinstance(value, dict):
        raise InvalidParams(f"params.{name} must be an object.")
    return value
