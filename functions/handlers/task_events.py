"""The table's stream → events about tasks on EventBridge, for whoever should hear of them without polling.

An option: people are told that a question waits, a pipeline goes on when a task has ended. The stream tells of
every change at least once and in order, whoever made it, and no request waits for it. The events:

``Taskrail Task Created``, ``Taskrail Question Open``, ``Taskrail Question Answered``, ``Taskrail Task Ended``

Their detail names the task, its tool and its status, and a question's key, message and form; never an argument,
an answer, a result or the caller.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from taskrail.clock import iso
from taskrail.loading import made_late
from taskrail.store import NewerLayout, from_item

if TYPE_CHECKING:
    from taskrail.task import Task

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]
Publish = Callable[[list[dict[str, Any]]], int]
"""Sends entries of PutEvents and says how many of them failed."""

SOURCE = "taskrail"
_MOST_ENTRIES = 10
"""Entries that one PutEvents takes (EventBridge API reference, PutEvents)."""

_log = logging.getLogger("taskrail")


def bind(publish: Publish, bus: str) -> Handler:
    """The handler over a way to publish.

    Parameters
    ----------
    publish
        Sends entries.
    bus
        Name of the event bus.
    """

    def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
        failed = []
        for record in event.get("Records", ()):
            try:
                _send(publish, [{**entry, "EventBusName": bus} for entry in entries_of(record)])
            except Exception:
                _log.exception("events about a task were not published")
                # The rest is tried again with it: a task's events stay in order.
                failed.append({"itemIdentifier": record["dynamodb"]["SequenceNumber"]})
                break
        return {"batchItemFailures": failed}

    return handle


def entries_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The entries of PutEvents that a record of the stream gives cause for.

    Parameters
    ----------
    record
        With old and new image, as Lambda gets it.
    """
    old, new = (_task(record.get("dynamodb", {}).get(name)) for name in ("OldImage", "NewImage"))
    if new is None:
        return []
    return [
        {"Source": SOURCE, "DetailType": kind, "Detail": json.dumps({**_about(new), **detail})}
        for kind, detail in _changes(old, new)
    ]


def _task(image: dict[str, Any] | None) -> Task | None:
    if not image or not image.get("pk", {}).get("S", "").startswith("task#"):
        return None
    try:
        return from_item(image)
    except NewerLayout:
        return None


def _about(task: Task) -> dict[str, Any]:
    return {
        "taskId": task.task_id,
        "tool": task.tool,
        "status": task.status.value,
        "createdAt": iso(task.created_at),
        "lastUpdatedAt": iso(task.updated_at),
    }


def _changes(old: Task | None, new: Task) -> Iterator[tuple[str, dict[str, Any]]]:
    if old is None:
        yield "Taskrail Task Created", {}
    before = {} if old is None else old.outstanding
    for key, question in new.outstanding.items():
        if key not in before:
            asked = {"key": key, "method": question.method, "params": question.params}
            deadline = {} if new.answer_deadline is None else {"answerBy": iso(new.answer_deadline)}
            yield "Taskrail Question Open", {"question": {**asked, **deadline}}
    for key in new.answers:
        if old is not None and key not in old.answers:
            yield "Taskrail Question Answered", {"key": key}
    if not new.open and (old is None or old.open):
        yield "Taskrail Task Ended", {}


def _send(publish: Publish, entries: list[dict[str, Any]]) -> None:
    for start in range(0, len(entries), _MOST_ENTRIES):
        if publish(entries[start : start + _MOST_ENTRIES]):
            raise RuntimeError("EventBridge did not take every entry.")


def _handler() -> Handler:
    from taskrail.clients import client
    from taskrail.settings import required

    events, bus = client("events"), required("TASKRAIL_EVENT_BUS")
    return bind(lambda entries: events.put_events(Entries=entries)["FailedEntryCount"], bus)


__getattr__ = made_late(__name__, handler=_handler)
