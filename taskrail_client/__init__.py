"""A client for Taskrail servers, and for any other with the tasks extension, that survives what happens to it.

As a library::

    async with TaskrailClient(url, auth=BearerAuth(token)) as client:
        result = await client.call("render_report", {"report": "q3"}, on_progress=print)

As a command: ``python -m taskrail_client URL call render_report report=q3``.
"""

from taskrail_client.auth import ApiKeyAuth, AuthError, BearerAuth, SigV4Auth
from taskrail_client.client import TaskrailClient
from taskrail_client.errors import (
    CallUnanswered,
    InvalidAnswer,
    InvalidArguments,
    NoAnswer,
    Refused,
    StoreError,
    TaskCancelled,
    TaskEnded,
    TaskFailed,
    TaskGone,
    TaskrailError,
    UnknownTool,
)
from taskrail_client.extension import TaskrailTasks
from taskrail_client.pace import Pace
from taskrail_client.progress import Progress
from taskrail_client.questions import Answer, AnswersNeeded, Question
from taskrail_client.records import Record
from taskrail_client.store import Store
from taskrail_client.ticket import Ticket
from taskrail_client.transport import steady_transport

__all__ = [
    "TaskrailClient",
    "Ticket",
    "TaskrailTasks",
    "steady_transport",
    "BearerAuth",
    "ApiKeyAuth",
    "SigV4Auth",
    "Store",
    "Record",
    "Pace",
    "Progress",
    "Question",
    "Answer",
    "TaskrailError",
    "AuthError",
    "StoreError",
    "InvalidAnswer",
    "InvalidArguments",
    "UnknownTool",
    "NoAnswer",
    "CallUnanswered",
    "Refused",
    "AnswersNeeded",
    "TaskEnded",
    "TaskFailed",
    "TaskCancelled",
    "TaskGone",
]
