"""Tickets for clients that know no tasks: plain tools by which a model follows, answers and cancels a task.

Such a client gets the ticket in an ordinary result, in words and in ``structuredContent``, never as a task of
the extension. The three tools are listed for these clients only. Their schemas are written out, so that a start
pays nothing for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from taskrail.clock import Clock, iso
from taskrail.errors import InvalidParams, StoreUnavailable
from taskrail.ids import is_task_id
from taskrail.questions import ELICITATION, Question
from taskrail.results import error_result, text_result
from taskrail.server import TICKET_TOOLS
from taskrail.task import PROGRESS_KEY, Status, Task
from taskrail.wire.envelope import Reply
from taskrail.wire.jsonrpc import dumps

if TYPE_CHECKING:
    from taskrail.rail.rail import Rail

STATUS, ANSWER, CANCEL = TICKET_TOOLS

_ID = {"type": "string", "pattern": "^[0-9a-f]{32}$", "description": "The taskId of the ticket."}
_FIRST_PAUSE_MS = 250
_LONGEST_PAUSE_MS = 1_000

ENTRIES: tuple[dict[str, Any], ...] = (
    {
        "name": STATUS,
        "title": "Follow a task",
        "description": "Look how a task stands that another tool handed out a ticket for, and get its result once it "
        "is there. Waits some seconds for news. Call it again until the status is completed, failed or cancelled.",
        "inputSchema": {
            "type": "object",
            "properties": {"task_id": _ID},
            "required": ["task_id"],
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": True, "idempotentHint": True},
    },
    {
        "name": ANSWER,
        "title": "Answer a task's question",
        "description": "Answer a question of a task whose status is input_required. Ask the user first; never make an "
        "answer up.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "task_id": _ID,
                "key": {"type": "string", "description": "The question's key."},
                "action": {"type": "string", "enum": ["accept", "decline", "cancel"], "default": "accept"},
                "content": {"type": "object", "description": "The filled-in form, as the question's schema asks."},
            },
            "required": ["task_id", "key"],
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": False, "destructiveHint": False},
    },
    {
        "name": CANCEL,
        "title": "Cancel a task",
        "description": "Ask for the end of a task. Work that has begun may take a while to stop.",
        "inputSchema": {
            "type": "object",
            "properties": {"task_id": _ID},
            "required": ["task_id"],
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True},
    },
)


class Tickets:
    """Serves the three tools.

    Parameters
    ----------
    rail, clock
        Where tasks are, and the time.
    """

    def __init__(self, rail: Rail, clock: Clock) -> None:
        self._rail = rail
        self._clock = clock

    def call(self, name: str, arguments: Mapping[str, Any], owner: str, deadline: int) -> Reply:
        """Call one of the tools.

        Parameters
        ----------
        name
            Of the tool.
        arguments
            As they came.
        owner
            Opaque key of the caller.
        deadline
            Moment at which the answer must be on its way, in milliseconds since the epoch.
        """
        problem = _problem(name, arguments)
        if problem is not None:
            return Reply(error_result(f"The arguments do not fit the tool: {problem}"))
        task_id = arguments["task_id"]
        try:
            if name == STATUS:
                return self._status(owner, task_id, deadline)
            if name == ANSWER:
                response = {"action": arguments.get("action", "accept"), "content": arguments.get("content", {})}
                if response["action"] != "accept":
                    del response["content"]
                if arguments["key"] not in self._rail.read(owner, task_id).outstanding:
                    return Reply(error_result("The task has no open question of this key: look at its status."))
                self._rail.update(owner, task_id, {arguments["key"]: response})
                return self.ticket(self._rail.read(owner, task_id))
            self._rail.cancel(owner, task_id)
            return self.ticket(self._rail.read(owner, task_id))
        except InvalidParams as error:
            return Reply(error_result(error.message))
        except StoreUnavailable:
            return Reply(error_result("The task cannot be reached just now: try again in a few seconds."))

    def _status(self, owner: str, task_id: str, deadline: int) -> Reply:
        task = self._rail.read(owner, task_id)
        pause = _FIRST_PAUSE_MS
        # Progress alone does not end the wait: each answer costs its reader a turn of a model.
        while task.status is Status.WORKING and self._clock.now() + pause <= deadline:
            self._clock.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_MS)
            try:
                task = self._rail.read(owner, task_id)
            except StoreUnavailable:
                continue
        return self.outcome(task) if task.status.terminal else self.ticket(task)

    def outcome(self, task: Task) -> Reply:
        """What an ended task came to, as an ordinary result."""
        detail = self._rail.detail(task)
        if "result" in detail:
            return Reply(detail["result"])
        if "error" in detail:
            return Reply(error_result(f"The task failed: {detail['error']['message']}"))
        return Reply(error_result(f"The task {task.task_id} was cancelled."))

    def ticket(self, task: Task) -> Reply:
        """A task that goes on, or has ended without its result here, as an ordinary result."""
        view = task.view(self._clock.now())
        told: dict[str, Any] = {"taskId": task.task_id, "status": view["status"]}
        if "statusMessage" in view:
            told["statusMessage"] = view["statusMessage"]
        if "_meta" in view:
            told["progress"] = view["_meta"][PROGRESS_KEY]
        if task.outstanding:
            told["questions"] = {key: _asked(question) for key, question in task.outstanding.items()}
        if task.expires_at is not None:
            told["expiresAt"] = iso(task.expires_at)
        result = text_result(f"{_words(task)}\n{dumps(told)}")
        return Reply({**result, "structuredContent": told})


def _words(task: Task) -> str:
    if task.outstanding:
        return (
            f"Task {task.task_id} waits for an answer. Ask the user, then call {ANSWER} with task_id, the question's "
            "key and the content that its schema asks for (or action decline)."
        )
    if task.status.terminal:
        return f"Task {task.task_id} is {task.status.value}. Call {STATUS} with its task_id for what it came to."
    return (
        f"Not finished yet: the work goes on as task {task.task_id}. Call {STATUS} with this task_id until it has "
        "ended; calling the tool again would start the work again."
    )


def _asked(question: Question) -> dict[str, Any]:
    if question.method != ELICITATION:
        return {"method": question.method}
    return {"message": question.params["message"], "schema": question.params["requestedSchema"]}


def _problem(name: str, arguments: Mapping[str, Any]) -> str | None:
    schema = next(entry["inputSchema"] for entry in ENTRIES if entry["name"] == name)
    for unknown in arguments.keys() - schema["properties"].keys():
        return f"{unknown!r} is not one of them."
    for wanted in schema["required"]:
        if not isinstance(arguments.get(wanted), str):
            return f"{wanted} must be a text."
    if not is_task_id(arguments["task_id"]):
        return "task_id is the 32 characters of a ticket."
    if arguments.get("action", "accept") not in ("accept", "decline", "cancel"):
        return "action is accept, decline or cancel."
    if not isinstance(arguments.get("content", {}), dict):
        return "content must be an object."
    return None
