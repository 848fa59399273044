"""What a client that knows no tasks does with a ticket: plain calls of tools until it has become a result."""

from __future__ import annotations

from typing import Any


def is_ticket(structured: Any) -> bool:
    """Whether a result's `structuredContent` is a ticket.

    Parameters
    ----------
    structured
        `structuredContent` of a result; None if it has none.
    """
    return isinstance(structured, dict) and {"taskId", "status"} <= structured.keys()


def next_call(ticket: dict[str, Any], asked: list[str]) -> tuple[str, dict[str, Any]]:
    """The tool to call next, and its arguments: an open question is answered with yes, anything else is waited for.

    Parameters
    ----------
    ticket
        `structuredContent` of the last result.
    asked
        Where the questions are noted.
    """
    for key, question in ticket.get("questions", {}).items():
        asked.append(question["message"])
        return "task_answer", {"task_id": ticket["taskId"], "key": key, "content": {"publish": True}}
    assert ticket["status"] != "input_required", "the job waits for an answer, and the ticket has no question"
    return "task_status", {"task_id": ticket["taskId"]}
