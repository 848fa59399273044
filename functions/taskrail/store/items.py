"""Items: a task as DynamoDB holds it. User data is JSON text, never a DynamoDB map: no number is bent."""

from __future__ import annotations

import json
from typing import Any

from taskrail import clock
from taskrail.errors import StoreUnavailable
from taskrail.questions import Question
from taskrail.task import SCHEMA, Progress, Status, Task

Item = dict[str, Any]


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
    fields: dict[str, Any] = {attribute: item[name]["S"] for name, attribute in _TEXTS.items() if name in item}
    fields |= {attribute: int(item[name]["N"]) for name, attribute in _NUMBERS.items() if name in item}
    fields |= {attribute: json.loads(item[name]["S"]) for name, attribute in _MAPS.items() if name in item}
    if "questions" in item:
        questions = json.loads(item["questions"]["S"])
        fields["questions"] = {key: Question.from_json(value) for key, value in questions.items()}
    if "progress" in item:
        fields["progress"] = Progress(*json.loads(item["progress"]["S"]))
    fields.setdefault("ttl_ms", None)
    fields.setdefault("keep_ms", None)
    return Task(
        task_id=item["pk"]["S"].removeprefix("task#"),
        status=Status(item["status"]["S"]),
        created_at=clock.moment(item["createdAt"]["S"]),
        updated_at=clock.moment(item["lastUpdatedAt"]["S"]),
        run_open=item["runOpen"]["BOOL"],
        **fields,
    )


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
