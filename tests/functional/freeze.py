"""Brings tasks into every state that an item can be in; with `python -m tests.functional.freeze` it writes them down.

Done once for each version of the layout (`taskrail.task.SCHEMA`): the files of earlier ones stay as they are, since
items of that age are still in somebody's table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from taskrail.engines import run_name
from taskrail.questions import form_question
from taskrail.task import SCHEMA, Progress, Task
from taskrail.testing import BUCKET, TABLE, Called, Kit, harness
from tests.functional import layout_tools

FOLDER = Path(__file__).parent / "items"
ANSWER = {"action": "accept", "content": {"publish": True, "note": "by hand"}}
YES = {"action": "accept"}
LARGE = "x" * 5_000
TRACE = f"00-{'ab' * 16}-{'cd' * 8}-01"


def claimed(kit: Kit, task: Called, run: int = 1) -> Task:
    """The task, taken up by a worker."""
    found = kit.runtime.rail.reports.claim(task.task_id, run, run_name(task.task_id, run), 1)
    assert found is not None
    return found


def unclaimed(kit: Kit) -> Called:
    return kit.call("report", title="Q3")


def at_work(kit: Kit) -> Called:
    task = kit.call("report", title="Q3")
    reports = kit.runtime.rail.reports
    held = reports.step(claimed(kit, task), "render", '{"value": {"pages": 11, "text": ""}}')
    kit.advance(timedelta(seconds=5))
    reports.progress(held, Progress(3, 12.5), "Rendering page 3")
    return task


def cancelling(kit: Kit) -> Called:
    return at_work(kit).cancel()


def silent(kit: Kit) -> Called:
    task = kit.call("report", title="Q3")
    kit.engine.states.clear()
    kit.advance(timedelta(seconds=20))
    task.poll()
    return task


def asking(kit: Kit) -> Called:
    return kit.call("report", title="Q3").run()


def asking_held(kit: Kit) -> Called:
    task = kit.call("report", title="Q3")
    reports = kit.runtime.rail.reports
    held = reports.step(claimed(kit, task), "render", '{"value": {"pages": 11, "text": ""}}')
    questions = {
        "approval": form_question("approval", "Publish Q3?", layout_tools.Approval),
        "review": form_question("review", "Reviewed?"),
    }
    reports.ask(held, questions, 10_800_000, hold=True)
    return task


def half_answered(kit: Kit) -> Called:
    return asking(kit).answer_with({"approval": ANSWER})


def answered(kit: Kit) -> Called:
    return asking(kit).answer_with({"approval": ANSWER, "review": YES})


def large(kit: Kit) -> Called:
    task = kit.call("report", title="Q3", body=LARGE).run()
    return task.answer_with({"approval": {**ANSWER, "content": {"publish": True, "note": LARGE}}})


def sealed(kit: Kit) -> Called:
    first = kit.call("report", title="ask first")
    return kit.call("report", title="ask first", state=first.state, answers={"sure": YES})


def unlimited(kit: Kit) -> Called:
    return kit.call("archive", title="Q3")


def completed(kit: Kit) -> Called:
    return answered(kit).run()


def completed_large(kit: Kit) -> Called:
    task = kit.call("report", title="t" * 17_000).run()
    return task.answer_with({"approval": ANSWER, "review": YES}).run()


def completed_unlimited(kit: Kit) -> Called:
    return unlimited(kit).run()


def failed(kit: Kit) -> Called:
    return kit.call("report", title="Q3", fail=True).run()


def cancelled(kit: Kit) -> Called:
    return asking(kit).cancel()


STATES: dict[str, Callable[[Kit], Called]] = {
    "working-unclaimed": unclaimed,
    "working-claimed": at_work,
    "working-cancelling": cancelling,
    "working-silent": silent,
    "working-answered": answered,
    "working-sealed": sealed,
    "working-unlimited": unlimited,
    "input-required": asking,
    "input-required-held": asking_held,
    "input-required-half-answered": half_answered,
    "input-required-large": large,
    "completed": completed,
    "completed-large": completed_large,
    "completed-unlimited": completed_unlimited,
    "failed": failed,
    "cancelled": cancelled,
}


def item_of(kit: Kit, task_id: str) -> dict[str, Any]:
    """The item of a task, as DynamoDB holds it."""
    found: dict[str, Any] = kit.dynamodb.get_item(TableName=TABLE, Key={"pk": {"S": f"task#{task_id}"}})["Item"]
    return found


def objects_of(kit: Kit) -> dict[str, str]:
    """Every object, by key."""
    keys = [found["Key"] for found in kit.s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])]
    return {key: kit.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read().decode() for key in keys}


def seen(task: Called) -> dict[str, Any]:
    """What a client sees of a task, without what is new at every read, and with long texts told by their digests."""
    detail = task.poll()
    for block in detail.get("result", {}).get("content", []):
        if block["type"] == "resource_link":
            block["uri"] = block["uri"].partition("?")[0]
    short: dict[str, Any] = _shortened(detail)
    return short


def _shortened(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shortened(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shortened(inner) for inner in value]
    if isinstance(value, str) and len(value) > 500:
        return f"sha256:{hashlib.sha256(value.encode()).hexdigest()}"
    return value


def main() -> None:
    """Write the files of the present layout."""
    FOLDER.mkdir(exist_ok=True)
    for name, bring in STATES.items():
        with harness(layout_tools.server) as kit:
            task = bring(kit)
            frozen = {
                "item": item_of(kit, task.task_id),
                "objects": objects_of(kit),
                "now": kit.clock.now(),
                "seen": seen(task),
            }
        path = FOLDER / f"{SCHEMA}-{name}.json"
        path.write_text(json.dumps(frozen, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
