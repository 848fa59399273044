"""The experimental tasks of revision 2025-11-25 (basic/utilities/tasks), beside the extension and over the same rail.

Served by option, and only to requests of that revision. What differs from the extension is said here: a task is
asked for by ``params.task``, its fields are nested and named otherwise, a result with ``isError`` makes it ``failed``,
its result has a method of its own, and a caller that the API tells apart can list its tasks. Such a client cannot be
asked anything here: what a job asks is answered through the ticket tools.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from taskrail.call import ClientInfo
from taskrail.clock import Clock, iso, moment
from taskrail.errors import (
    TASKS_EXTENSION,
    InvalidParams,
    MethodNotFound,
    MissingCapability,
    ProtocolError,
    RpcError,
    StoreUnavailable,
    TaskNotFound,
)
from taskrail.ids import is_task_id
from taskrail.results import error_result
from taskrail.server import TICKET_TOOLS
from taskrail.task import Status, Task
from taskrail.wire import protocol
from taskrail.wire.envelope import TASK, Reply
from taskrail.wire.ladder import Route

if TYPE_CHECKING:
    from taskrail.caller import Caller
    from taskrail.rail.rail import Rail
    from taskrail.server import TaskServer, Tool


RELATED = "io.modelcontextprotocol/related-task"
IMMEDIATE = "io.modelcontextprotocol/model-immediate-response"

PAGE_SIZE = 20
"""Tasks on one page of `tasks/list`: each is read, and a large result as well, for what its task ended as."""

_STATUS_TOOL, _ANSWER_TOOL, _ = TICKET_TOOLS
_FIRST_PAUSE_MS = 200
_LONGEST_PAUSE_MS = 1_000
_NO_METHOD = "This server has no such method."


class Unfinished(RpcError):
    """The task has no result yet. A request cannot wait for it any longer: API Gateway ends it after 29 s."""

    code = 425
    http_status = 200


class Experimental:
    """Serves them.

    Parameters
    ----------
    server
        The catalogue.
    rail, clock
        Where tasks are; time, and its passing.
    """

    def __init__(self, server: TaskServer, rail: Rail, clock: Clock) -> None:
        self._server = server
        self._rail = rail
        self._clock = clock

    def capability(self, caller: Callable[[], Caller]) -> dict[str, Any]:
        """What `initialize` tells as ``capabilities.tasks``; lists only where callers are told apart.

        Parameters
        ----------
        caller
            Tells who is calling, or fails to; the handshake must not fail for it.
        """
        try:
            listed = not caller().anonymous
        except RpcError:
            listed = False
        return {**({"list": {}} if listed else {}), "cancel": {}, "requests": {"tools": {"call": {}}}}

    def described(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """A tool of `tools/list`, with its ``execution.taskSupport`` if it has any."""
        tool = self._server.get(entry["name"])
        supports = tool is not None and tool.policy is not None
        return {**entry, "execution": {"taskSupport": tool.mode}} if tool is not None and supports else dict(entry)

    def create(
        self, route: Route, wanted: Any, caller: Callable[[], Caller], modern: Callable[[Route], Reply]
    ) -> dict[str, Any]:
        """Make the task that a `tools/call` with ``params.task`` asks for.

        Parameters
        ----------
        route
            The call.
        wanted
            Its ``params.task``. Its ``ttl`` is checked and then overridden, as receivers may: a ticket outlives its
            work, and a result lives as long as its tool says.
        caller, modern
            Tells who is calling; and what the modern methods answer.

        Raises
        ------
        MethodNotFound
            The tool is none that can be a task.
        InvalidParams
            There is no such tool; or the call is none that could start one, and why.
        RpcError, ProtocolError
            As the modern methods have it.
        """
        ttl = wanted.get("ttl", 1) if isinstance(wanted, dict) else None
        if isinstance(ttl, bool) or not isinstance(ttl, int | float) or ttl <= 0:
            raise InvalidParams("params.task must be an object, and its ttl a number of milliseconds above zero.")
        self._check_support(route.params.get("name"), route.tool, caller)
        client = ClientInfo(capabilities={"extensions": {TASKS_EXTENSION: {}}})
        try:
            reply = modern(replace(route, client=client.with_forms() if self._server.tickets else client))
        except MissingCapability:
            raise _asks() from None
        if reply.kind == TASK:
            return {"task": _renamed(reply.fields), **self._immediate(reply.fields["taskId"])}
        if "content" not in reply.fields:
            raise _asks()
        # A client that asked for a task takes no other result: what is wrong with the call is told as an error.
        raise InvalidParams(" ".join(block["text"] for block in reply.fields["content"] if block["type"] == "text"))

    def answer(self, route: Route, caller: Caller, deadline: int) -> dict[str, Any]:
        """The result of one of `protocol.EXPERIMENTAL_METHODS`.

        Parameters
        ----------
        route
            The request.
        caller
            Who is calling.
        deadline
            Moment at which the answer must be on its way, in milliseconds since the epoch.

        Raises
        ------
        RpcError, ProtocolError
            The answer is an error.
        """
        if route.method == protocol.TASKS_LIST:
            if caller.anonymous:
                # Everybody would see everybody's tasks ("Task Isolation and Access Control").
                raise MethodNotFound(_NO_METHOD)
            return self._list(caller.owner, route.params.get("cursor"))
        task_id = route.params.get("taskId")
        if not isinstance(task_id, str) or not is_task_id(task_id):
            raise TaskNotFound
        task = self._rail.read(caller.owner, task_id)
        if route.method == protocol.TASKS_GET:
            return self._told(task)
        if route.method == protocol.TASKS_RESULT:
            return self._result(self._wait(task, deadline, through_questions=False))
        return self._cancel(task, deadline)

    def _check_support(self, name: Any, tool: Tool | None, caller: Callable[[], Caller]) -> None:
        """Refuse a task of what can be none; a tool that the caller may not know of stays unknown."""
        brought = tool is None and self._server.tickets and name in TICKET_TOOLS
        inline = tool is not None and tool.policy is None and self._server.admits(caller(), tool)
        if brought or inline:
            raise MethodNotFound("This tool cannot be called as a task: call it without params.task.")

    def _immediate(self, task_id: str) -> dict[str, Any]:
        """What the model is told meanwhile, where it has tools to follow the task with."""
        if not self._server.tickets:
            return {}
        text = f"The work goes on as task {task_id}. The tool {_STATUS_TOOL} tells how it stands."
        return {"_meta": {IMMEDIATE: text}}

    def _told(self, task: Task) -> dict[str, Any]:
        """A task with what its revision calls its fields, and its own view of what failing is."""
        detail = self._rail.detail(task)
        told = _renamed(detail)
        result = detail.get("result")
        if isinstance(result, Mapping) and result.get("isError") is True:
            told["status"] = Status.FAILED.value
        if task.outstanding and self._server.tickets:
            keys = ", ".join(task.outstanding)
            told["statusMessage"] = f"Waiting for input: {_STATUS_TOOL} shows it, {_ANSWER_TOOL} answers it ({keys})."
        return {**told, "_meta": detail["_meta"]} if "_meta" in detail else told

    def _wait(self, task: Task, deadline: int, *, through_questions: bool) -> Task:
        """The task once it has ended, or has a question that nobody here can be asked, or the time is up."""
        pause = _FIRST_PAUSE_MS
        while task.open and (through_questions or not task.outstanding) and self._clock.now() + pause <= deadline:
            self._clock.sleep(pause)
            pause = min(pause * 3 // 2, _LONGEST_PAUSE_MS)
            try:
                task = self._rail.read(task.owner, task.task_id)
            except StoreUnavailable:
                # The work goes on whether or not it can be seen: look again while there is time.
                continue
        return task

    def _result(self, task: Task) -> dict[str, Any]:
        if task.open:
            raise self._unfinished(task)
        detail = self._rail.detail(task)
        if "error" in detail:
            error = detail["error"]
            raise ProtocolError(error["code"], error["message"], error.get("data"))
        result = detail.get("result") or error_result(f"The task {task.task_id} was cancelled.")
        return {**result, "_meta": {**result.get("_meta", {}), RELATED: {"taskId": task.task_id}}}

    def _unfinished(self, task: Task) -> Unfinished:
        interval = task.poll_interval(self._clock.now())
        data = {"taskId": task.task_id, "status": task.status.value, "pollInterval": interval, "retryable": True}
        if not task.outstanding:
            text = f"Not finished yet: poll tasks/get every {interval} ms, then ask for the result again."
        elif self._server.tickets:
            text = (
                f"The task waits for an answer: the tool {_STATUS_TOOL} shows the question, {_ANSWER_TOOL} answers it. "
                "Then ask for the result again."
            )
        else:
            text = "The task waits for an answer that clients of this revision cannot give here."
        return Unfinished(text, data)

    def _cancel(self, task: Task, deadline: int) -> dict[str, Any]:
        if not task.open:
            status = self._told(task)["status"]
            raise InvalidParams(f"The task cannot be cancelled: it has ended already, as {status}.")
        self._rail.cancel(task.owner, task.task_id)
        # This revision answers once the task is cancelled; work that has begun is given its time to stop.
        task = self._rail.read(task.owner, task.task_id)
        return self._told(self._wait(task, deadline, through_questions=True))

    def _list(self, owner: str, cursor: Any) -> dict[str, Any]:
        tasks, last = self._rail.owned(owner, PAGE_SIZE, None if cursor is None else _position(cursor))
        told = [{key: value for key, value in self._told(task).items() if key != "_meta"} for task in tasks]
        return {"tasks": told} if last is None else {"tasks": told, "nextCursor": _cursor(*last)}


def _renamed(view: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a task (schema 2025-11-25, ``Task``) from those of the extension."""
    names = {
        "taskId": "taskId",
        "status": "status",
        "statusMessage": "statusMessage",
        "createdAt": "createdAt",
        "lastUpdatedAt": "lastUpdatedAt",
        "ttlMs": "ttl",
        "pollIntervalMs": "pollInterval",
    }
    return {name: view[ours] for ours, name in names.items() if ours in view}


def _asks() -> InvalidParams:
    return InvalidParams("This tool has to ask something before it starts; clients of this revision cannot be asked.")


def _cursor(created_at: int, task_id: str) -> str:
    return base64.urlsafe_b64encode(f"{iso(created_at)} {task_id}".encode("ascii")).decode("ascii").rstrip("=")


def _position(cursor: Any) -> tuple[int, str]:
    """Where a page ended; only what this server could have given out is a cursor."""
    try:
        text = base64.urlsafe_b64decode(f"{cursor}{'=' * (-len(cursor) % 4)}").decode("ascii")
        created, _, task_id = text.partition(" ")
        position = moment(created), task_id
        if is_task_id(task_id) and cursor == _cursor(*position):
            return position
    except (TypeError, ValueError, OverflowError, binascii.Error):
        pass
    raise InvalidParams("params.cursor is not one that this list gave: list again without it.")
