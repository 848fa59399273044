"""What is left of a task when its item is gone: the table's stream tells, and nothing goes on or stays behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from handlers import expired
from taskrail.clock import days
from taskrail.engines import RunReport, RunState
from taskrail.errors import EngineUnavailable
from taskrail.testing import BUCKET, TABLE, Kit, harness
from tests.functional import work_tools

# As a stream delivers it: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/time-to-live-ttl-streams.html
BY_TTL = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}


@pytest.fixture(scope="module")
def deployment() -> Iterator[Kit]:
    with harness(work_tools.server) as made:
        yield made


@pytest.fixture
def kit(deployment: Kit) -> Kit:
    deployment.clear()
    return deployment


def removal(item: dict[str, Any], number: str = "1", **more: Any) -> dict[str, Any]:
    """The record of an item's removal."""
    return {
        "eventID": f"id-{number}",
        "eventName": "REMOVE",
        "eventSource": "aws:dynamodb",
        "awsRegion": "us-east-1",
        "dynamodb": {
            "Keys": {"pk": item["pk"]},
            "OldImage": item,
            "SequenceNumber": number,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
        **more,
    }


def remove_all(kit: Kit, **more: Any) -> dict[str, Any]:
    """The table deletes everything, and its stream tells."""
    items = kit.scan()
    for item in items:
        kit.dynamodb.delete_item(TableName=TABLE, Key={"pk": item["pk"]})
    records = [removal(item, str(number), **more) for number, item in enumerate(items)]
    return expired.bind(kit.runtime)({"Records": records}, None)


def objects(kit: Kit) -> list[str]:
    return [found["Key"] for found in kit.s3.list_objects_v2(Bucket=BUCKET).get("Contents", ())]


@pytest.mark.parametrize("tool", ["migrate", "cut", "crunch"])
def test_a_run_that_nobody_waits_for_is_stopped_and_its_objects_are_deleted(kit: Kit, tool: str) -> None:
    arguments: dict[str, Any] = {"migrate": {"table": "t" * 5_000}, "cut": {"film": "f"}, "crunch": {"numbers": [1]}}
    task = kit.call(tool, **arguments[tool])
    kept = kit.call("migrate", table="u" * 5_000)
    keep = kit.scan()
    [gone] = [item for item in keep if task.task_id in item["pk"]["S"]]
    kit.dynamodb.delete_item(TableName=TABLE, Key={"pk": gone["pk"]})
    answer = expired.bind(kit.runtime)({"Records": [removal(gone, userIdentity=BY_TTL)]}, None)
    assert answer == {"batchItemFailures": []}
    assert kit.engine_of(task.order.name).states[task.order.name].state is RunState.STOPPED
    assert objects(kit) and all(kept.task_id in key for key in objects(kit)), "others' objects stay"
    assert kept.status == "working"


def test_more_objects_than_a_page_holds_are_all_deleted(kit: Kit) -> None:
    task = kit.call("cut", film="f")
    for number in range(1_005):
        kit.s3.put_object(Bucket=BUCKET, Key=f"tasks/{task.task_id}/1-1/{number}/x", Body=b"")
    remove_all(kit)
    assert objects(kit) == []


def test_what_is_over_is_only_swept(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    kit.call("once", text="a" * 5_000).run()
    assert objects(kit)
    monkeypatch.setattr(kit.engine, "stop", lambda *what: pytest.fail("there is nothing to stop"))
    remove_all(kit)
    assert objects(kit) == []


def test_a_container_that_could_not_be_stopped_at_its_end_is_stopped_now(kit: Kit) -> None:
    """Nothing in it ends it by itself, and nobody else will ask."""
    task = kit.call("cut", film="f")
    kit.jobs.waiting.clear()
    task.end()
    kit.jobs.states[task.order.name] = RunReport(RunState.RUNNING)
    remove_all(kit)
    assert kit.jobs.states[task.order.name].state is RunState.STOPPED


def test_a_reservation_is_freed(kit: Kit) -> None:
    task = kit.call("once", text="a")
    [item] = [item for item in kit.scan() if task.task_id in item["pk"]["S"]]
    kit.dynamodb.delete_item(TableName=TABLE, Key={"pk": item["pk"]})
    expired.bind(kit.runtime)({"Records": [removal(item)]}, None)
    assert kit.scan() == []


def test_a_reservation_that_stands_for_another_task_stays(kit: Kit) -> None:
    first = kit.call("once", text="bad")
    first.run()
    second = kit.call("once", text="bad")
    [item] = [item for item in kit.scan() if first.task_id in item["pk"]["S"]]
    expired.bind(kit.runtime)({"Records": [removal(item)]}, None)
    assert kit.call("once", text="bad").task_id == second.task_id


def test_told_again_it_does_no_harm(kit: Kit) -> None:
    kit.call("cut", film="f")
    [item] = kit.scan()
    handle = expired.bind(kit.runtime)
    kit.advance(days(3))
    for _ in range(2):
        assert handle({"Records": [removal(item)]}, None) == {"batchItemFailures": []}


def test_other_records_are_no_concern(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    task = kit.call("once", text="a")
    reservation = next(item for item in kit.scan() if "until" in item)
    ticket = next(item for item in kit.scan() if "until" not in item)
    monkeypatch.setattr(kit.runtime.cleanup, "removed", lambda task: pytest.fail("nothing was removed"))
    changed = {**removal(ticket), "eventName": "MODIFY"}
    records = [removal(reservation), changed, {"eventName": "REMOVE", "dynamodb": {"SequenceNumber": "9"}}]
    assert expired.bind(kit.runtime)({"Records": records}, None) == {"batchItemFailures": []}
    assert task.status == "working"


def test_a_record_that_failed_is_named_and_the_others_are_done(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = kit.call("cut", film="f"), kit.call("cut", film="g")
    stop = kit.jobs.stop

    def troubled(tool: str, name: str, run_id: str | None) -> bool:
        if first.task_id in name:
            raise EngineUnavailable("no answer")
        return stop(tool, name, run_id)

    monkeypatch.setattr(kit.jobs, "stop", troubled)
    order = [item["pk"]["S"].removeprefix("task#") for item in kit.scan()]
    assert remove_all(kit) == {"batchItemFailures": [{"itemIdentifier": str(order.index(first.task_id))}]}
    assert kit.jobs.states[second.order.name].state is RunState.STOPPED
    assert all(first.task_id in key for key in objects(kit)), "what may still be needed stays"
