"""What a task on Lambda promises: an engine that can neither be asked nor told to stop, and a lease in its place."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from handlers import expired, invoked_job
from taskrail import hours, minutes, seconds
from taskrail.rail.leases import LEASE_MS
from taskrail.rail.reports import RunLost
from taskrail.store import to_item
from taskrail.task import Progress, Task
from taskrail.testing import Kit, RpcFailure, harness
from tests.functional import lambda_tools
from tests.functional.lambda_bench import GRACE, LEASE, QUESTION, Context, name_of, record, stored, taken_up, tell
from tests.functional.lambda_tools import deaths, done


@pytest.fixture(scope="module")
def deployment() -> Iterator[Kit]:
    with harness(lambda_tools.server) as made:
        yield made


@pytest.fixture
def kit(deployment: Kit) -> Kit:
    deployment.clear()
    done.clear()
    deaths.clear()
    return deployment


# The run.


def test_a_job_runs_asks_and_goes_on_in_the_next_run(kit: Kit) -> None:
    task = kit.call("publish", title="Q3")
    assert kit.functions.orders[name_of(task)].input == {"taskId": task.task_id, "run": 1}
    assert task.run().status == "input_required"
    task.answer(approval={"publish": True})
    assert kit.functions.waiting == [name_of(task, 2)]
    assert task.run().text == "publish"
    assert done == ["render", "publish"]


def test_the_handler_does_the_attempt_that_its_event_names(kit: Kit) -> None:
    task = kit.call("once", text="a")
    handle = invoked_job.bind(kit.runtime)
    event = {"taskId": task.task_id, "run": 1}
    assert handle(event, Context("r-1")) == {**event, "outcome": "completed"}
    assert handle(event, Context("r-1")) == {**event, "outcome": "nothing to do"}
    assert done == ["a"]
    assert stored(kit, task).run_id == "r-1"


def test_the_claim_takes_a_lease_and_the_end_drops_it(kit: Kit) -> None:
    task = kit.call("publish", title="Q3")
    assert stored(kit, task).lease_until is None
    claimed = taken_up(kit, task)
    assert claimed.lease_until == kit.clock.now() + LEASE_MS
    kit.advance(minutes(2))
    task.again()
    assert task.status == "input_required"
    assert stored(kit, task).lease_until is None
    task.answer(approval={"publish": False})
    assert stored(kit, task).lease_until is None
    task.run()
    assert (task.text, stored(kit, task).lease_until) == ("kept", None)


def test_every_write_of_the_worker_extends_its_lease(kit: Kit) -> None:
    task = kit.call("thrice", text="a")
    mine, reports = taken_up(kit, task), kit.runtime.rail.reports
    kit.advance(seconds(5))
    mine = reports.step(mine, "first", "{}")
    assert mine.lease_until == kit.clock.now() + LEASE_MS
    kit.advance(seconds(5))
    mine = reports.progress(mine, Progress(1), "One.")
    assert stored(kit, task).lease_until == kit.clock.now() + LEASE_MS


def test_a_worker_that_tells_nothing_renews_its_lease_and_no_client_sees_it(kit: Kit) -> None:
    task = kit.call("once", text="a")
    mine, reports = taken_up(kit, task), kit.runtime.rail.reports
    before = task.poll()
    kit.advance(seconds(19))
    assert reports.hear(mine).lease_until == mine.lease_until
    kit.advance(seconds(2))
    mine = reports.hear(mine)
    assert mine.lease_until == kit.clock.now() + LEASE_MS
    assert task.poll() == before


def test_a_renewal_hears_of_a_cancellation(kit: Kit) -> None:
    task = kit.call("once", text="a")
    mine = taken_up(kit, task)
    kit.advance(seconds(21))
    task.cancel()
    heard = kit.runtime.rail.reports.hear(mine)
    assert heard.cancel_requested_at is not None
    assert heard.lease_until == kit.clock.now() + LEASE_MS


def test_a_job_that_holds_its_run_open_renews_its_lease(kit: Kit) -> None:
    task = kit.call("publish", title="Q3", hold_ms=180_000)
    seen: list[int] = []

    def watch() -> None:
        seen.append((stored(kit, task).lease_until or 0) - kit.clock.now())
        if len(seen) == 200:
            task.answer(approval={"publish": True})

    kit.clock.on_sleep = watch
    task.run()
    assert (task.text, done) == ("publish", ["render", "publish"])
    assert min(seen) >= 24_000


def test_equal_calls_are_one_task_and_few_events(kit: Kit) -> None:
    """Each start is one more event: who calls again and again causes no more of them than who polls."""
    first = kit.call("single", text="a")
    assert {kit.call("single", text="a").task_id for _ in range(20)} == {first.task_id}
    assert len(kit.functions.starts) == 2
    for _ in range(12):
        kit.advance(seconds(5))
        kit.call("single", text="a")
    assert len(kit.functions.starts) == 5
    assert first.run().text == "a" and done == ["a"]


# Several deliveries.


def test_a_second_invocation_of_a_run_finds_nothing_to_do_even_after_the_lease(kit: Kit) -> None:
    task = kit.call("thrice", text="a")
    taken_up(kit, task)
    handle = invoked_job.bind(kit.runtime)
    for _ in range(2):
        before, began = stored(kit, task), kit.clock.now()
        assert handle({"taskId": task.task_id, "run": 1}, Context("another"))["outcome"] == "nothing to do"
        assert (stored(kit, task), kit.clock.now()) == (before, began)
        kit.advance(minutes(2))
    assert done == []


def test_a_delivery_too_many_waits_for_the_lease_and_leaves_when_it_was_renewed(kit: Kit) -> None:
    task = kit.call("thrice", text="a")
    mine, reports = taken_up(kit, task), kit.runtime.rail.reports
    kit.advance(seconds(30))
    began = kit.clock.now()
    kit.clock.on_sleep = partial(reports.step, mine, "first", '{"value":1}')
    assert kit.run_one(name_of(task)) == "nothing to do"
    assert kit.clock.now() - began == LEASE_MS - 30_000
    assert done == [] and stored(kit, task).attempt == 1


def test_a_delivery_that_came_early_waits_and_takes_over(kit: Kit) -> None:
    task = kit.call("thrice", text="a").die()
    kit.advance(seconds(30))
    began = kit.clock.now()
    assert task.again().text == "a in attempt 2"
    assert kit.clock.now() - began == LEASE_MS - 30_000


def test_a_delivery_that_has_no_time_to_wait_leaves(kit: Kit) -> None:
    task = kit.call("thrice", text="a").die()
    began = kit.clock.now()
    request = Context(kit.functions.ids[name_of(task)], left_ms=LEASE_MS + 9_999)
    assert invoked_job.bind(kit.runtime)({"taskId": task.task_id, "run": 1}, request)["outcome"] == "nothing to do"
    assert kit.clock.now() == began
    assert stored(kit, task).attempt == 1


def test_a_retry_takes_over_with_the_steps_remembered_and_fences_the_dead_attempt_out(kit: Kit) -> None:
    deaths.append("a second")
    task = kit.call("thrice", text="a").run()
    assert (task.status, done) == ("working", ["a first"])
    first = stored(kit, task)
    kit.advance(minutes(1))
    assert task.again().text == "a in attempt 2"
    assert done == ["a first", "a second"]
    with pytest.raises(RunLost):
        kit.runtime.rail.reports.progress(first, Progress(1), "late")


def test_a_third_attempt_follows_the_second(kit: Kit) -> None:
    deaths.extend(("a first", "a second"))
    task = kit.call("thrice", text="a").run()
    kit.advance(minutes(1))
    task.again()
    assert task.status == "working"
    kit.advance(minutes(2))
    assert task.again().text == "a in attempt 3"


def test_nobody_takes_over_while_the_lease_holds(kit: Kit) -> None:
    """The guard is in the write: whoever saw the lease over may have seen too little."""
    task = kit.call("thrice", text="a")
    mine = taken_up(kit, task)
    store, now = kit.runtime.rail.reports._changes.store, kit.clock.now()
    request = kit.functions.ids[name_of(task)]
    for moment, allowed in ((now + LEASE_MS - 1, False), (now + LEASE_MS, True)):
        with_lease: dict[str, Any] = {"attempt": 2, "now": moment, "nonce": "n", "lease_until": moment + LEASE_MS}
        try:
            taken = store.claim(task.task_id, run=1, run_id=request, **with_lease)
        except Exception as refused:
            assert not allowed, refused
        else:
            assert allowed and taken.attempt == mine.attempt + 1


def test_a_retry_leaves_a_question_that_was_held_open_to_the_next_run(kit: Kit) -> None:
    task = kit.call("publish", title="Q3", hold_ms=60_000)
    reports = kit.runtime.rail.reports
    mine = taken_up(kit, task)
    reports.ask(mine, QUESTION, 600_000, hold=True)
    kit.advance(minutes(1))
    assert kit.run_one(name_of(task)) == "nothing to do"
    held = stored(kit, task)
    assert (task.status, held.run_open, held.lease_until) == ("input_required", False, None)


def test_a_question_is_not_taken_from_a_holder_that_is_heard_just_in_time(kit: Kit) -> None:
    task = kit.call("publish", title="Q3", hold_ms=60_000)
    reports = kit.runtime.rail.reports
    mine = reports.ask(taken_up(kit, task), QUESTION, 600_000, hold=True)
    kit.clock.on_sleep = partial(reports.hear, mine)
    assert kit.run_one(name_of(task)) == "nothing to do"
    assert stored(kit, task).run_open


# The end that somebody wants.


def test_an_unclaimed_run_is_cancelled_at_once_and_its_event_finds_nothing_to_do(kit: Kit) -> None:
    task = kit.call("once", text="a").cancel()
    assert task.status == "cancelled"
    assert kit.run_one(name_of(task)) == "nothing to do"
    assert done == []


def test_work_that_listens_is_cancelled(kit: Kit) -> None:
    deaths.append("a second")
    task = kit.call("thrice", text="a").run().cancel()
    assert task.status == "working"
    assert "Cancellation was requested" in task.poll()["statusMessage"]
    kit.advance(minutes(1))
    assert task.again().status == "cancelled"
    assert done == ["a first"]


def test_work_that_does_not_listen_works_on_until_its_lease_is_over(kit: Kit) -> None:
    task = kit.call("thrice", text="a")
    mine, reports = taken_up(kit, task), kit.runtime.rail.reports
    task.cancel()
    for _ in range(8):
        kit.advance(seconds(30))
        assert task.status == "working"
        mine = reports.hear(mine)
    kit.advance(LEASE + GRACE)
    # Nobody waits for another attempt of what is not wanted.
    assert task.status == "cancelled"


def test_work_that_does_not_listen_is_over_when_its_time_is(kit: Kit) -> None:
    task = kit.call("once", text="a")
    mine, reports = taken_up(kit, task), kit.runtime.rail.reports
    task.cancel()
    while kit.clock.now() < mine.run_deadline - 30_000:
        kit.advance(seconds(30))
        mine = reports.hear(mine)
    assert task.status == "working"
    kit.advance(seconds(30))
    assert task.status == "cancelled"


def test_nobody_answers_and_the_held_run_is_not_asked(kit: Kit) -> None:
    task = kit.call("publish", title="Q3", hold_ms=60_000)
    kit.runtime.rail.reports.ask(taken_up(kit, task), QUESTION, 5_000, hold=True)
    kit.advance(seconds(6))
    assert "Nobody answered in time" in task.text


def test_a_removed_task_has_nothing_to_stop_and_its_worker_loses_it(kit: Kit) -> None:
    task = kit.call("once", text="a")
    mine = taken_up(kit, task)
    item = to_item(stored(kit, task))
    kit.dynamodb.delete_item(TableName="tasks", Key={"pk": item["pk"]})
    event = {"Records": [{"eventName": "REMOVE", "dynamodb": {"OldImage": item, "SequenceNumber": "1"}}]}
    assert expired.bind(kit.runtime)(event, None) == {"batchItemFailures": []}
    with pytest.raises(RunLost):
        kit.runtime.rail.reports.hear(mine)


def test_an_expired_ticket_is_unknown_and_cannot_be_taken_up(kit: Kit) -> None:
    task = kit.call("once", text="a")
    request = kit.functions.ids[name_of(task)]
    kit.advance(hours(30))
    with pytest.raises(RpcFailure):
        task.poll()
    assert kit.runtime.rail.reports.claim_by_lease(task.task_id, 1, request, lambda: 0) is None
    tell(kit, record(kit, task))
    assert done == []


def test_an_expired_ticket_that_was_taken_up_is_not_taken_over(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    task = kit.call("once", text="a").die()
    kit.advance(hours(30))
    store = kit.runtime.rail.reports._changes.store
    claim, claims = store.claim, []
    monkeypatch.setattr(store, "claim", lambda *what, **how: claims.append(how) or claim(*what, **how))
    assert kit.run_one(name_of(task)) == "nothing to do"
    assert (done, len(claims)) == ([], 1)


# The ticker.


def test_a_job_that_is_busy_keeps_its_run(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its code tells nothing and looks for nothing; the thread beside it does."""
    task = kit.call("once", text="busy")
    reports, renewed = kit.runtime.rail.reports, threading.Event()
    hear = reports.hear

    def watched(mine: Task) -> Task:
        heard = hear(mine)
        if heard.lease_until != mine.lease_until:
            renewed.set()
        return heard

    def busy() -> None:
        kit.advance(seconds(21))
        assert renewed.wait(timeout=10)

    monkeypatch.setattr(reports, "hear", watched)
    monkeypatch.setitem(lambda_tools.busy, "busy", busy)
    handle = invoked_job.bind(kit.runtime)
    assert handle({"taskId": task.task_id, "run": 1}, Context("r"))["outcome"] == "completed"
