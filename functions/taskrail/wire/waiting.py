"""A task's result for a client that knows no tasks: waited for while the request has time.

The task is an ordinary one; only its ticket stays here. What the job asks meanwhile is asked through
the call's own rounds (basic/patterns/mrtr), whose state then carries the ticket.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from taskrail.call import ClientInfo
from taskrail.clock import Clock
from taskrail.errors import TASKS_EXTENSION, MissingCapability, ProtocolError, StoreUnavailable
from taskrail.questions import ELICITATION, Question, check_response
from taskrail.results import error_result, text_result
from taskrail.wire.envelope import INPUT_REQUIRED, Reply
from taskrail.wire.seal import LIFE_MS, Sealer, State, Subject
from taskrail.wire.tickets import Tickets

if TYPE_CHECKING:
    from taskrail.rail.rail import Rail
    from taskrail.server import Tool
    from taskrail.task import Task

_FIRST_PAUSE_MS = 200
_LONGEST_PAUSE_MS = 1_000


class Waiting:
    """Waits for tasks on behalf of clients that did not declare the extension.

    Parameters
    ----------
    rail
        Where the tasks are.
    clock
        Time, and its passing.
    sealer
        Signs the state of a call whose job has a question.
    tickets
        What a client gets that its own call's time is not enough for; None where tickets are switched off.
    """

    def __init__(self, rail: Rail, clock: Clock, sealer: Sealer, tickets: Tickets | None = None) -> None:
        self._rail = rail
        self._tickets = tickets
        self._clock = clock
        self._sealer = sealer

    def answer(self, task: Task, owner: str, responses: Mapping[str, Any]) -> Task:
        """Pass usable responses on to the job; the others are asked for again by whoever waits.

        Parameters
        ----------
        task
            The task as it was read.
        owner
            Whose it is.
        responses
            What the client sent, by the key of the question.

        Raises
        ------
        RpcError
            The task is gone, or the answers could not be kept.
        """
        usable = {
            key: responses[key]
            for key, question in task.outstanding.items()
            if key in responses and check_response(question, responses[key]) is None
        }
        if not usable:
            return task
        self._rail.update(owner, task.task_id, usable)
        return self._rail.read(owner, task.task_id)

    def wait(self, task: Task, tool: Tool, subject: Subject, client: ClientInfo, deadline: int) -> Reply:
        """The task's result, its question, or where to find it when the time is up.

        Parameters
        ----------
        task
            The task as it was read.
        tool, subject
            The tool, and the call that made the task.
        client
            Whoever waits.
        deadline
            Moment at which the answer must be on its way, in milliseconds since the epoch.

        Raises
        ------
        ProtocolError
            The task failed: with its error.
        MissingCapability
            The job asks what this client cannot be asked.
        """
        pause = _FIRST_PAUSE_MS
        while True:
            if task.status.terminal:
                return self._outcome(task)
            if task.outstanding:
                return self._ask(task, subject, client)
            if self._clock.now() + pause > deadline:
                return _unfinished(task, tool) if self._tickets is None else self._tickets.ticket(task)
            self._clock.sleep(pause)
            pause = min(pause * 3 // 2, _LONGEST_PAUSE_MS)
            try:
                task = self._rail.read(subject.owner, task.task_id)
            except StoreUnavailable:
                # The work goes on whether or not it can be seen: look again while there is time.
                continue

    def _outcome(self, task: Task) -> Reply:
        detail = self._rail.detail(task)
        if "error" in detail:
            error = detail["error"]
            raise ProtocolError(error["code"], error["message"], error.get("data"))
        if "result" not in detail:
            return Reply(error_result(f"The task {task.task_id} was cancelled."))
        return Reply(detail["result"])

    def _ask(self, task: Task, subject: Subject, client: ClientInfo) -> Reply:
        questions = list(task.outstanding.values())
        allowed = [question for question in questions if question.allowed(client.capabilities)]
        if not allowed and self._tickets is not None and any(asked.method == ELICITATION for asked in questions):
            return self._tickets.ticket(task)
        if not allowed:
            required: dict[str, Any] = {}
            for question in questions:
                required.update(question.requires())
            raise MissingCapability(required)
        state = State(self._clock.now() + LIFE_MS, task_id=task.task_id, started=True)
        return input_required(allowed, self._sealer.seal(state, subject))


def input_required(questions: list[Question], state: str) -> Reply:
    """The answer that asks the client to come back with more (basic/patterns/mrtr, "InputRequiredResult").

    Parameters
    ----------
    questions
        What is asked; the client declared that it can be asked each.
    state
        Sealed state that the client brings back.
    """
    requests = {question.key: question.request() for question in questions}
    return Reply({"inputRequests": requests, "requestState": state}, INPUT_REQUIRED)


def _unfinished(task: Task, tool: Tool) -> Reply:
    text = (
        f"Not finished yet: the work goes on as task {task.task_id}. This client did not declare the extension "
        f"{TASKS_EXTENSION}, by which a client fetches such a result later. "
        "Calling the tool again starts the work again."
    )
    # A result without an error must fit the tool's output schema, and this text does not.
    return Reply(text_result(text) if tool.returns.output_schema is None else error_result(text))
