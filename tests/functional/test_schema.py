"""A rolling deploy: items that an earlier version wrote are read and finished; those of a later one are let alone.

`items/` holds what layout 1 writes, one file per state. Every later version must read each of them, and none may
write over an item whose layout it does not know.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from taskrail.engines import RunReport, RunState, run_name
from taskrail.errors import StoreUnavailable
from taskrail.rail import endings
from taskrail.task import SCHEMA
from taskrail.testing import BUCKET, START, TABLE, Called, Kit, RpcFailure, harness
from tests.functional import freeze, layout_tools
from tests.functional.witness import emptied

FROZEN = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(freeze.FOLDER.glob("*.json"))}
OPEN = [name for name, frozen in FROZEN.items() if frozen["seen"]["status"] in ("working", "input_required")]
ENDED = [name for name in FROZEN if name not in OPEN]
FUTURE = {"fromTheFuture": {"M": {"a": {"L": [{"N": "1"}, {"BOOL": True}]}}}, "another": {"S": "as it was"}}


@pytest.fixture(scope="module")
def deployment() -> Iterator[Kit]:
    with harness(layout_tools.server) as made:
        yield made


@pytest.fixture
def kit(deployment: Kit) -> Kit:
    """The deployment as if it were new."""
    emptied(deployment)
    return deployment


def thaw(kit: Kit, name: str, **more: Any) -> Called:
    """A task from its file, in a deployment that has not seen it before."""
    frozen = FROZEN[name]
    kit.dynamodb.put_item(TableName=TABLE, Item={**frozen["item"], **more})
    for key, text in frozen["objects"].items():
        kit.s3.put_object(Bucket=BUCKET, Key=key, Body=text.encode())
    kit.clock.advance(frozen["now"] - kit.clock.now())
    return Called(kit, {"resultType": "task", "taskId": frozen["item"]["pk"]["S"].removeprefix("task#")})


def item(kit: Kit, task: Called) -> dict[str, Any]:
    return freeze.item_of(kit, task.task_id)


def finish(kit: Kit, task: Called) -> None:
    """Let the next attempt of every run happen, and answer what is asked, until the task has ended."""
    for _ in range(6):
        if task.status == "input_required":
            task.answer_with({key: {"approval": freeze.ANSWER}.get(key, freeze.YES) for key in task.questions})
        elif task.status == "working":
            stored = item(kit, task)
            name = run_name(task.task_id, int(stored["run"]["N"]))
            with suppress(ValueError):
                kit.engine.waiting.remove(name)
            kit.run_one(name, attempt=int(stored["attempt"]["N"]) + 1)
    assert task.status in ("completed", "failed", "cancelled")


def test_the_files_show_every_state_of_every_layout() -> None:
    assert {name.partition("-")[0] for name in FROZEN} == {str(layout) for layout in range(1, SCHEMA + 1)}
    assert {f"{SCHEMA}-{state}" for state in freeze.STATES} <= FROZEN.keys()


@pytest.mark.parametrize("state", freeze.STATES)
def test_this_version_writes_the_layout_that_its_files_show(kit: Kit, state: str) -> None:
    """If this fails, the layout has changed: raise `SCHEMA`, run `tests.functional.freeze`, and keep the old files."""
    written = item(kit, freeze.STATES[state](kit))
    shown = FROZEN[f"{SCHEMA}-{state}"]["item"]
    assert {name: list(value) for name, value in written.items()} == {
        name: list(value) for name, value in shown.items()
    }
    assert written["schema"] == {"N": str(SCHEMA)}


@pytest.mark.parametrize("name", FROZEN)
def test_it_is_read_as_it_was_meant(kit: Kit, name: str) -> None:
    task = thaw(kit, name)
    before = item(kit, task)
    assert freeze.seen(task) == FROZEN[name]["seen"]
    assert item(kit, task) == before == FROZEN[name]["item"]


@pytest.mark.parametrize("name", OPEN)
def test_it_is_finished(kit: Kit, name: str) -> None:
    task = thaw(kit, name)
    finish(kit, task)
    if "cancelling" in name:
        assert task.status == "cancelled"
    elif "unlimited" in name:
        assert (task.text, task.poll()["ttlMs"]) == ("Q3 archived", None)
    else:
        # What the older version had remembered of the first step still counts.
        pages = 11 if "claimed" in name.split("-") or "held" in name else 12
        title = "ask first" if "sealed" in name else "Q3"
        assert task.structured == {"title": title, "pages": pages, "published": True}
        assert [block["name"] for block in task.result["content"] if block["type"] == "resource_link"] == ["report.txt"]


@pytest.mark.parametrize("name", OPEN)
def test_it_is_cancelled(kit: Kit, name: str) -> None:
    task = thaw(kit, name).cancel()
    if "claimed" in name.split("-") or "cancelling" in name:
        assert task.status == "working"
        kit.advance(timedelta(seconds=15))
    assert task.status == "cancelled"


@pytest.mark.parametrize("name", OPEN)
def test_it_is_found_when_its_run_has_died(kit: Kit, name: str) -> None:
    task = thaw(kit, name)
    run = int(item(kit, task)["run"]["N"])
    kit.engine.states[run_name(task.task_id, run)] = RunReport(RunState.FAILED, "exit code 9")
    kit.advance(timedelta(seconds=30))
    status = task.status
    if name.startswith("1-input-required"):
        # The run ended with its question, or while it waited: the answer starts the next one.
        assert status == "input_required"
        finish(kit, task)
        assert task.structured["published"] is True
    else:
        ends = {"cancelling": "cancelled", "claimed": "completed"}
        assert status == ends.get(name.rpartition("-")[2], "failed")


@pytest.mark.parametrize("name", ENDED)
def test_once_ended_it_takes_no_more_change(kit: Kit, name: str) -> None:
    task = thaw(kit, name)
    before = item(kit, task)
    task.cancel().answer_with({"approval": freeze.ANSWER})
    run = int(before["run"]["N"])
    kit.runtime.rail.run_heard(task.task_id, run, RunReport(RunState.FAILED, "late"))
    assert kit.runtime.rail.reports.claim(task.task_id, run, "late", 99) is None
    kit.advance(timedelta(minutes=30))
    task.poll()
    assert item(kit, task) == before


@pytest.mark.parametrize("name", [name for name in FROZEN if "unlimited" not in name])
def test_it_expires_as_it_was_promised(kit: Kit, name: str) -> None:
    task = thaw(kit, name)
    life = timedelta(milliseconds=FROZEN[name]["seen"]["ttlMs"])
    kit.clock.advance(START - kit.clock.now())
    kit.advance(life)
    with pytest.raises(RpcFailure) as unknown:
        task.poll()
    assert unknown.value.error["code"] == -32602


@pytest.mark.parametrize("end", [finish, lambda kit, task: task.cancel()], ids=["finished", "cancelled"])
@pytest.mark.parametrize("name", OPEN)
def test_attributes_that_it_does_not_know_are_kept(kit: Kit, name: str, end: Callable[[Kit, Called], None]) -> None:
    """Something that a later version of the same layout adds must survive the older one beside it."""
    task = thaw(kit, name, **FUTURE)
    task.poll()
    end(kit, task)
    assert {key: item(kit, task)[key] for key in FUTURE} == FUTURE


NEWER = {"schema": {"N": str(SCHEMA + 1)}, "status": {"S": "paused"}, "questions": {"M": {}}}
"""What a later version may have made of it: states and shapes that nobody here has heard of."""


@pytest.mark.parametrize("more", [{"schema": NEWER["schema"]}, NEWER], ids=["same shape", "other shape"])
@pytest.mark.parametrize("name", FROZEN)
def test_an_item_of_a_newer_layout_is_refused_and_not_changed(kit: Kit, name: str, more: dict[str, Any]) -> None:
    """The client is told of a fault of ours, so that it comes again; never that there is no such task."""
    task = thaw(kit, name, **more)
    before = item(kit, task)
    for request in (task.poll, task.cancel, lambda: task.answer_with({"approval": freeze.ANSWER})):
        with pytest.raises(RpcFailure) as failure:
            request()
        assert (failure.value.status, failure.value.error) == (500, {"code": -32603, "message": "Internal error."})
    run = int(before["run"]["N"])
    with pytest.raises(StoreUnavailable):
        kit.run_one(run_name(task.task_id, run), attempt=9)
    with pytest.raises(StoreUnavailable):
        kit.runtime.rail.run_heard(task.task_id, run, RunReport(RunState.FAILED, "exit code 9"))
    assert item(kit, task) == before


def test_a_stranger_does_not_learn_of_an_item_of_a_newer_layout(kit: Kit) -> None:
    task = thaw(kit, "1-input-required", **NEWER)
    kit.owner = "somebody-else"
    with pytest.raises(RpcFailure) as newer:
        task.poll()
    with pytest.raises(RpcFailure) as unknown:
        Called(kit, {"resultType": "task", "taskId": "f" * 32}).poll()
    assert (newer.value.status, newer.value.error) == (unknown.value.status, unknown.value.error)


@pytest.mark.parametrize("name", OPEN)
def test_a_newer_version_that_writes_in_between_wins(kit: Kit, name: str) -> None:
    """Read while it was ours, written after it was another's: the write is refused, and tells a fault, no loss."""
    task = thaw(kit, name)
    rail = kit.runtime.rail
    read = rail.read("anonymous", task.task_id)
    newer = {**item(kit, task), **NEWER, "rev": {"N": str(read.rev + 1)}, "nonce": {"S": "theirs"}}
    kit.dynamodb.put_item(TableName=TABLE, Item=newer)
    with pytest.raises(StoreUnavailable):
        rail._changes.apply(read, lambda t: endings.cancelled(t, kit.clock.now()))
    with pytest.raises(StoreUnavailable):
        rail.reports.claim(task.task_id, read.run, "late", 99)
    assert item(kit, task) == newer


def test_the_folder_of_items_belongs_to_the_tests() -> None:
    assert Path(__file__).parent / "items" == freeze.FOLDER
