"""How many tasks one owner may have open with one tool: exact, and freed by every way a task ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from handlers import expired
from taskrail.clock import days, minutes
from taskrail.engines import RunReport, RunState
from taskrail.settings import Settings
from taskrail.testing import Called, Kit, RpcFailure, harness
from tests.functional import work_tools
from tests.functional.test_removed import removal

SETTINGS = Settings(
    table="tasks",
    bucket="payloads",
    secret="a secret for tests only",
    report_url="https://api.example.com/report",
    most_open={"*": 2, "cut": 1},
)


@pytest.fixture(scope="module")
def deployment() -> Iterator[Kit]:
    with harness(work_tools.server, settings=SETTINGS) as made:
        yield made


@pytest.fixture
def kit(deployment: Kit) -> Kit:
    deployment.clear()
    return deployment


def refused(called: Called) -> bool:
    return not called.is_task and called.is_error and "the most allowed" in called.text


def migrate(kit: Kit) -> Called:
    return kit.call("migrate", table="t")


def test_the_limit_is_told_and_nothing_is_stored_or_started(kit: Kit) -> None:
    assert migrate(kit).is_task and migrate(kit).is_task
    before = kit.scan()
    third = migrate(kit)
    assert refused(third) and "2 tasks" in third.text
    assert (kit.scan(), len(kit.engine.starts)) == (before, 2)


def test_each_tool_and_each_owner_has_places_of_its_own(kit: Kit) -> None:
    assert kit.call("cut", film="f").is_task
    assert refused(kit.call("cut", film="f"))
    assert migrate(kit).is_task
    kit.owner = "somebody else"
    assert kit.call("cut", film="f").is_task


def ended_by_result(kit: Kit, task: Called) -> None:
    task.end({"rows": 1})


def ended_by_error(kit: Kit, task: Called) -> None:
    task.end(error="States.Timeout")


def cancelled(kit: Kit, task: Called) -> None:
    task.report("ask", key="go", message="Go?", taskToken="token")
    task.cancel()


def timed_out(kit: Kit, task: Called) -> None:
    kit.advance(minutes(15))
    task.poll()


def found_dead_by_a_read(kit: Kit, task: Called) -> None:
    kit.engine.end(task.order.name, RunReport(RunState.FAILED, "x"))
    kit.advance(minutes(1))
    task.poll()


def expired_unread(kit: Kit, task: Called) -> None:
    kit.advance(days(9))


def deleted(kit: Kit, task: Called) -> None:
    kit.advance(minutes(2))
    [item] = [item for item in kit.scan() if task.task_id in item["pk"]["S"] and "status" in item]
    kit.dynamodb.delete_item(TableName="tasks", Key={"pk": item["pk"]})


def deleted_and_told(kit: Kit, task: Called) -> None:
    kit.advance(minutes(2))
    [item] = [item for item in kit.scan() if task.task_id in item["pk"]["S"] and "status" in item]
    kit.dynamodb.delete_item(TableName="tasks", Key={"pk": item["pk"]})
    expired.bind(kit.runtime)({"Records": [removal(item)]}, None)


@pytest.mark.parametrize(
    "end",
    [
        ended_by_result,
        ended_by_error,
        cancelled,
        timed_out,
        found_dead_by_a_read,
        expired_unread,
        deleted,
        deleted_and_told,
    ],
)
def test_every_end_frees_a_place(kit: Kit, end: Callable[[Kit, Called], None]) -> None:
    first, _ = migrate(kit), migrate(kit)
    assert refused(migrate(kit))
    end(kit, first)
    assert migrate(kit).is_task


def test_a_refused_start_frees_its_place(kit: Kit) -> None:
    """A while later: until then its call might still be about to store its task."""
    kit.engine.refuse = True
    for _ in range(2):
        with pytest.raises(RpcFailure):
            migrate(kit)
    kit.engine.refuse = False
    kit.advance(minutes(1))
    assert migrate(kit).is_task and migrate(kit).is_task


def test_a_call_that_finds_its_earlier_task_needs_no_place(kit: Kit) -> None:
    ids = {kit.call("once", text="a").task_id for _ in range(4)}
    assert len(ids) == 1
    assert kit.call("once", text="b").is_task
    assert refused(kit.call("once", text="c"))
    assert kit.call("once", text="a").task_id in ids
    kit.call("once", text="a").cancel()
    assert kit.call("once", text="c").is_task, "what was refused reserved nothing"


def test_a_record_keeps_no_more_ids_than_there_are_places(kit: Kit) -> None:
    for _ in range(6):
        migrate(kit).end({"rows": 1})
    [record] = [item for item in kit.scan() if "open" in item]
    assert len(record["open"]["M"]) <= 2
