"""Races for tasks on Lambda: for the claim, for a run whose lease is over, and between a lease and whoever reads."""

from __future__ import annotations

import pytest

from taskrail.engines import RunReport, RunState
from taskrail.rail.leases import LEASE_MS
from taskrail.rail.reports import RunLost
from taskrail.task import Status, Task
from tests.counts import LONG, sized
from tests.races.deployment import THREADS, Deployment, race, with_crowd

pytestmark = [
    pytest.mark.races,
    pytest.mark.timeout(600 if LONG else 60),
    pytest.mark.parametrize("it", range(sized(4, 15)), indirect=True),
]

REQUEST = "b3b1e2c4-d5f6-4a7b-8c9d-0e1f2a3b4c5d"
GRACE_MS = 10_000


def delivered(it: Deployment, task: Task, request: str = REQUEST) -> Task | None:
    """A function is invoked with the event of the task's run; it has no time to wait for a lease."""
    return it.reports.claim_by_lease(task.task_id, 1, request, lambda: 0)


def at_work(it: Deployment) -> Task:
    """A task whose worker is at work."""
    claimed = delivered(it, it.call("on_lambda"))
    assert claimed is not None
    return claimed


def heard(it: Deployment, worker: Task) -> bool:
    """Whether the worker still has its run; it renews its lease, which is about to end or has ended."""
    try:
        it.reports.hear(worker)
    except RunLost:
        return False
    return True


@pytest.mark.parametrize("events", [1, 2, THREADS])
def test_one_of_several_deliveries_takes_the_run_up(it: Deployment, events: int) -> None:
    """Of one event, delivered more than once, or of several, since the run was invoked more than once."""
    task = it.call("on_lambda")
    requests = [f"request-{number % events}" for number in range(THREADS)]
    claims = race(*[lambda request=request: delivered(it, task, request) for request in requests])
    (winner,) = [claim for claim in claims if claim is not None]
    assert winner.run_id == requests[claims.index(winner)]
    assert winner.attempt == 1
    assert it.stored(task) == winner
    assert it.finish(winner) == "won"


def test_one_of_several_deliveries_takes_over_once_the_lease_is_over(it: Deployment) -> None:
    """Each would be the second attempt: one is, and neither the first nor a third works beside it."""
    first = at_work(it)
    it.clock.advance(LEASE_MS)
    claims = race(*[lambda: delivered(it, first)] * THREADS)
    (winner,) = [claim for claim in claims if claim is not None]
    assert winner.attempt == 2
    assert it.stored(first) == winner
    assert it.finish(first) == "lost"
    assert it.finish(winner) == "won"


def test_another_event_never_takes_over(it: Deployment) -> None:
    first = at_work(it)
    it.clock.advance(LEASE_MS)
    mine, *others = with_crowd(lambda: delivered(it, first), crowd=[lambda: delivered(it, first, "another")])
    assert mine is not None
    assert others == [None] * (THREADS - 1)


def test_a_renewal_and_a_take_over_know_of_each_other(it: Deployment) -> None:
    """At the very moment at which the lease ends: either the worker goes on, or another one does."""
    worker = at_work(it)
    it.clock.advance(LEASE_MS)
    keeps, *claims = with_crowd(lambda: heard(it, worker), crowd=[lambda: delivered(it, worker)])
    won = [claim for claim in claims if claim is not None]
    assert len(won) == (0 if keeps else 1)
    stored = it.stored(worker)
    assert stored.claim == (worker.claim if keeps else won[0].claim)
    assert stored.lease_until == it.clock.now() + LEASE_MS


def test_a_renewal_and_a_read_know_of_each_other(it: Deployment) -> None:
    """Either the worker goes on, or its task has failed and it is told so."""
    worker = at_work(it)
    it.clock.advance(LEASE_MS + GRACE_MS)
    keeps, *_ = with_crowd(lambda: heard(it, worker), crowd=[lambda: it.rail.read(it.owner, worker.task_id)])
    assert it.stored(worker).status is (Status.WORKING if keeps else Status.FAILED)
    assert it.finish(worker) == ("won" if keeps else "lost")


def test_of_many_readers_one_invokes(it: Deployment) -> None:
    task = it.call("on_lambda")
    it.clock.advance(20_000)
    race(*[lambda: it.rail.read(it.owner, task.task_id)] * THREADS)
    assert it.functions.asked[f"{task.task_id}-1"] == 2


def test_one_of_report_and_failure_record_wins(it: Deployment) -> None:
    """The record of an attempt that had the last word all the same."""
    worker = at_work(it)
    record = RunReport(RunState.FAILED, "Runtime.ExitError", run_id=REQUEST, attempt=1)
    finished, *_ = with_crowd(lambda: it.finish(worker), crowd=[lambda: it.rail.run_heard(worker.task_id, 1, record)])
    ends = [landed for landed in it.store.landed if landed.status.terminal]
    assert len(ends) == 1
    assert (finished == "won") == (ends[0].result == '{"content":[]}')


def test_the_record_of_another_invocation_ends_nothing(it: Deployment) -> None:
    """It came, was invoked once more, and died, before or after the first had begun: the first one counts."""
    task = it.call("on_lambda")
    record = RunReport(RunState.FAILED, "Runtime.ExitError", run_id="another", attempt=1)
    claim, *_ = with_crowd(lambda: delivered(it, task), crowd=[lambda: it.rail.run_heard(task.task_id, 1, record)])
    stored = it.stored(task)
    if claim is None:
        assert stored.status is Status.COMPLETED
    else:
        assert (stored.status, stored.claim) == (Status.WORKING, claim.claim)
