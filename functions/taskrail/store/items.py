"""Items: a task as DynamoDB holds it. User data is JSON text, never a DynamoDB map: no number is bent."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any

from taskrail import clock
from taskrail.errors import StoreUnavailable
from taskrail.questions import Question
from taskrail.task import SCHEMA, Progress, Status, Task

Item = dict[str, Any]


_DECODE = json.JSONDecoder().decode


class NewerLayout(StoreUnavailable):
    """An item was written by a newer version of the kit than this one, which lets it alone.

    Parameters
    ----------
    owner
        Whose it is: nobody else may learn even this of it.
    """

    def __init__(self, owner: str | None) -> None:
        super().__init__("The item's layout is newer than this version of the kit.")
        self.owner = owner


_TEXTS = {
    "owner": "owner",
    "tool": "tool",
    "engine": "engine",
    "statusMessage": "status_message",
    "runId": "run_id",
    "claim": "claim",
    "arguments": "arguments",
    "result": "result",
    "error": "error",
    "traceparent": "traceparent",
    "reservation": "reservation",
    "nonce": "nonce",
}
_NUMBERS = {
    "schema": "schema",
    "rev": "rev",
    "ttlMs": "ttl_ms",
    "keepMs": "keep_ms",
    "pollMs": "poll_ms",
    "run": "run",
    "attempt": "attempt",
    "runStartedAt": "run_started_at",
    "runDeadline": "run_deadline",
    "answerDeadline": "answer_deadline",
    "cancelRequestedAt": "cancel_requested_at",
    "probedAt": "probed_at",
    "missingSince": "missing_since",
    "leaseUntil": "lease_until",
    "sealedUntil": "sealed_until",
}
_MAPS = {"answers": "answers", "steps": "steps", "client": "client", "caller": "caller", "tokens": "tokens"}


def to_item(task: Task) -> Item:
    """The item that holds a task."""
    item: Item = {"pk": {"S": f"task#{task.task_id}"}, "status": {"S": task.status.value}}
    item["createdAt"] = {"S": clock.iso(task.created_at)}
    item["lastUpdatedAt"] = {"S": clock.iso(task.updated_at)}
    item["runOpen"] = {"BOOL": task.run_open}
    for name, attribute in _TEXTS.items():
        text = getattr(task, attribute)
        if text is not None:
            item[name] = {"S": _sound(text)}
    for name, attribute in _NUMBERS.items():
        number = getattr(task, attribute)
        if number is not None:
            item[name] = {"N": str(number)}
    for name, attribute in _MAPS.items():
        mapping = getattr(task, attribute)
        if mapping:
            item[name] = {"S": _dump(mapping)}
    if task.questions:
        item["questions"] = {"S": _dump({key: question.to_json() for key, question in task.questions.items()})}
    if task.progress is not None:
        item["progress"] = {"S": _dump([task.progress.done, task.progress.total])}
    if task.expires_at is not None:
        item["expiresAt"] = {"N": str(clock.seconds_rounded_up(task.expires_at))}
    return item


def from_item(item: Item) -> Task:
    """The task that an item holds.

    Raises
    ------
    NewerLayout
        The item was written by a newer version of the kit than this one.
    """
    if int(item["schema"]["N"]) > SCHEMA:
        raise NewerLayout(item.get("owner", {}).get("S"))
    # As `Task(...)` would, which sets its fields one by one: every poll makes one.
    task = object.__new__(Task)
    values = vars(task)
    values.update(_UNSET)
    for name, value in item.items():
        if name in _NUMBERS:
            values[_NUMBERS[name]] = int(value["N"])
        elif name in _TEXTS:
            values[_TEXTS[name]] = value["S"]
        elif name in _READ:
            attribute, convert = _READ[name]
            values[attribute] = convert(value)
    return task


def _json(value: Item) -> Any:
    return _DECODE(value["S"])


def _questions(value: Item) -> dict[str, Question]:
    return {key: Question.from_json(question) for key, question in _json(value).items()}


_READ: Mapping[str, tuple[str, Callable[[Item], Any]]] = {
    **{name: (attribute, _json) for name, attribute in _MAPS.items()},
    "pk": ("task_id", lambda value: value["S"].removeprefix("task#")),
    "status": ("status", lambda value: Status(value["S"])),
    "createdAt": ("created_at", lambda value: clock.moment(value["S"])),
    "lastUpdatedAt": ("updated_at", lambda value: clock.moment(value["S"])),
    "runOpen": ("run_open", lambda value: value["BOOL"]),
    "progress": ("progress", lambda value: Progress(*_json(value))),
    "questions": ("questions", _questions),
}
"""By an attribute's name that of the task's field, and how it is read, where it is no plain text or number."""

_UNSET: Mapping[str, Any] = {
    "ttl_ms": None,
    "keep_ms": None,
    **{each.name: each.default for each in fields(Task) if each.default is not MISSING},
    **{each.name: each.default_factory() for each in fields(Task) if each.default_factory is not MISSING},
}
"""The fields of a task whose attributes are absent; those without a default are in every item."""


def task_key(task_id: str) -> Item:
    """The key of a task's item; the id has the form of one (`taskrail.ids`)."""
    return {"pk": {"S": f"task#{task_id}"}}


def seconds_of(now: int) -> Item:
    """A moment as the TTL attribute counts it."""
    return {"N": str(now // 1000)}


def _dump(value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    # A lone surrogate has no UTF-8 form; escaped, it travels.
    return text if _sound(text) == text else json.dumps(value, separators=(",", ":"), allow_nan=False)


def _sound(text: str) -> str:
    """The text with a mark in place of what has no UTF-8 form: the table would refuse the item."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
