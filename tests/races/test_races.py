"""Races for one task, with real threads. ``TASKRAIL_LONG=1`` runs many more rounds of each, with more threads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from taskrail.engines import RunReport, RunState
from taskrail.errors import NotStarted, TaskNotFound
from taskrail.questions import form_question
from taskrail.rail.reports import RunLost
from taskrail.task import Progress, Status, Task
from tests.counts import LONG, sized
from tests.races.deployment import THREADS, YES, Deployment, race, with_crowd

pytestmark = [pytest.mark.races, pytest.mark.timeout(600 if LONG else 60)]

fewer_rounds = pytest.mark.parametrize("it", range(sized(5, 15)), indirect=True)
"""For the lesser ones: all together are to be done in minutes."""


def test_one_of_complete_cancel_and_fail_wins(it: Deployment) -> None:
    """The first terminal write wins; the others change nothing."""
    task = it.claimed()
    it.rail.cancel("anna", task.task_id)
    it.clock.advance(10_000)
    failed = RunReport(RunState.FAILED, "States.Runtime")
    finished, *_ = with_crowd(
        lambda: it.finish(task),
        crowd=[
            lambda: it.rail.cancel("anna", task.task_id),
            lambda: it.rail.run_heard(task.task_id, 1, failed),
            lambda: it.rail.read("anna", task.task_id),
        ],
    )
    ends = [landed for landed in it.store.landed if landed.status.terminal]
    assert len(ends) == 1
    assert it.stored(task) == ends[0]
    assert (finished == "won") == (ends[0].status is Status.COMPLETED)
    assert (ends[0].result is not None) == (ends[0].status is Status.COMPLETED)


@fewer_rounds
def test_one_of_report_and_end_of_run_wins(it: Deployment) -> None:
    """The event that the run is over may come before the worker's own report lands."""
    task = it.claimed()
    succeeded = RunReport(RunState.SUCCEEDED)
    finished, *_ = with_crowd(lambda: it.finish(task), crowd=[lambda: it.rail.run_heard(task.task_id, 1, succeeded)])
    ends = [landed for landed in it.store.landed if landed.status.terminal]
    assert len(ends) == 1
    assert it.stored(task).status is (Status.COMPLETED if finished == "won" else Status.FAILED)


def test_one_of_several_equal_claims_wins(it: Deployment) -> None:
    """An equal rival ends at once."""
    task = it.create()
    claims = race(*[lambda: it.reports.claim(task.task_id, 1, "run", 1)] * THREADS)
    (winner,) = [claim for claim in claims if claim is not None]
    assert it.stored(task) == winner


def test_the_highest_of_several_claims_wins(it: Deployment) -> None:
    """A higher attempt takes over, whenever it comes; the older ones are fenced out."""
    task = it.create()
    attempts = range(1, THREADS + 1)
    claims = race(*[lambda attempt=attempt: it.reports.claim(task.task_id, 1, "run", attempt) for attempt in attempts])
    assert claims[-1] is not None
    stored = it.stored(task)
    assert (stored.attempt, stored.claim) == (THREADS, claims[-1].claim)
    assert race(*[lambda claim=claim: it.finish(claim) for claim in claims if claim is not None])[-1] == "won"
    assert len([landed for landed in it.store.landed if landed.status.terminal]) == 1


@fewer_rounds
def test_a_claim_and_a_cancel_know_of_each_other(it: Deployment) -> None:
    """Either the work never begins, or it has been told."""
    task = it.create()
    claim, *_ = with_crowd(
        lambda: it.reports.claim(task.task_id, 1, "run", 1), crowd=[lambda: it.rail.cancel("anna", task.task_id)]
    )
    stored = it.stored(task)
    if claim is None:
        assert stored.status is Status.CANCELLED
    else:
        assert (stored.status, stored.claim) == (Status.WORKING, claim.claim)
        assert stored.cancel_requested_at is not None


@fewer_rounds
def test_a_question_and_a_cancel_know_of_each_other(it: Deployment) -> None:
    """Nobody is asked who wanted the end."""
    task = it.claimed()
    question = {"a": form_question("a", "First?")}

    def ask() -> Task | None:
        try:
            return it.reports.ask(task, question, 3_600_000, hold=False)
        except RunLost:
            return None

    asked, *_ = with_crowd(ask, crowd=[lambda: it.rail.cancel("anna", task.task_id)])
    stored = it.stored(task)
    if stored.status is Status.WORKING:
        assert asked is not None
        assert asked.cancel_requested_at is not None
    else:
        assert stored.status is Status.CANCELLED


@fewer_rounds
def test_progress_steps_and_a_cancel_are_all_kept(it: Deployment) -> None:
    """No change overwrites another."""
    task = it.claimed()
    steps = {f"step-{number}": str(number) for number in range(THREADS - 2)}
    race(
        lambda: it.reports.progress(task, Progress(1, 2), "half"),
        lambda: it.rail.cancel("anna", task.task_id),
        *[lambda step=step: it.reports.step(task, *step) for step in steps.items()],
    )
    stored = it.stored(task)
    assert stored.steps == steps
    assert stored.progress == Progress(1, 2)
    assert stored.cancel_requested_at is not None


@fewer_rounds
def test_a_step_is_recorded_once(it: Deployment) -> None:
    """Two attempts that did the same step: the first record stays, or the older attempt is out."""
    older = it.claimed()
    newer = it.reports.claim(older.task_id, 1, "run", 2)
    assert newer is not None

    def step(worker: Task, outcome: str) -> str | None:
        try:
            return it.reports.step(worker, "one", outcome).steps["one"]
        except RunLost:
            return None

    mine = [str(number) for number in range(1, THREADS)]
    outcomes = race(lambda: step(older, "0"), *[lambda outcome=outcome: step(newer, outcome) for outcome in mine])
    kept = it.stored(older).steps["one"]
    assert outcomes[0] is None
    assert kept in mine
    assert set(outcomes[1:]) == {kept}


def test_answers_on_different_keys_are_all_kept(it: Deployment) -> None:
    """Every caller's answer counts, and the task resumes once."""
    keys = [f"key-{number}" for number in range(THREADS)]
    task = it.asking(*keys)
    race(*[lambda key=key: it.rail.update("anna", task.task_id, {key: YES}) for key in keys])
    stored = it.stored(task)
    assert set(stored.answers) == set(keys)
    assert (stored.status, stored.run, stored.claimed) == (Status.WORKING, 2, False)
    assert it.engine.starts == [f"{task.task_id}-1", f"{task.task_id}-2"]
    assert len([landed for landed in it.store.landed if landed.run == 2]) == 1


def test_one_of_several_answers_on_the_same_key_counts(it: Deployment) -> None:
    """A question is answered once; the state moves once."""
    task = it.asking("a")
    responses = [{"action": "accept", "content": {"by": number}} for number in range(THREADS)]
    race(*[lambda response=response: it.rail.update("anna", task.task_id, {"a": response}) for response in responses])
    stored = it.stored(task)
    assert it.reports.payloads.load(stored.answers["a"]) in responses
    assert stored.run == 2
    assert it.engine.starts == [f"{task.task_id}-1", f"{task.task_id}-2"]
    assert len([landed for landed in it.store.landed if landed.answers]) == 1


@fewer_rounds
def test_an_answer_and_a_cancel_do_not_both_win(it: Deployment) -> None:
    """Either the task is cancelled while it waits, or the next run was cancelled before it began."""
    task = it.asking("a")
    with_crowd(
        lambda: it.rail.update("anna", task.task_id, {"a": YES}),
        crowd=[lambda: it.rail.cancel("anna", task.task_id)],
    )
    assert it.stored(task).status is Status.CANCELLED
    assert it.reports.claim(task.task_id, 2, "run", 1) is None


def test_an_answer_counts_or_the_task_has_expired(it: Deployment) -> None:
    """The time runs out under the answers: one of them revives nothing, or is in time and kept."""
    asking = it.asking("a")
    task = it.store.write(asking, replace(asking, ttl_ms=60_000), it.clock.now(), "shortened")

    def update() -> bool:
        try:
            it.rail.update("anna", task.task_id, {"a": YES})
        except TaskNotFound:
            return False
        return True

    _, *kept = with_crowd(lambda: it.clock.advance(60_000), crowd=[update])
    # Late as it is, some may ask the engine about the new run: that is a write, but no second answer.
    answered = [landed for landed in it.store.landed if landed.answers and landed.probed_at is None]
    assert len(answered) == int(any(kept))
    if any(kept):
        assert it.rail.read("anna", task.task_id).run == 2
        assert it.engine.starts == [f"{task.task_id}-1", f"{task.task_id}-2"]
    else:
        with pytest.raises(TaskNotFound):
            it.rail.read("anna", task.task_id)


def test_several_repairs_start_a_lost_run_once(it: Deployment) -> None:
    """Of a run that the engine does not know, every reader finds out at the same time."""
    task = it.create()
    it.engine.states.clear()
    for wait_ms in (15_000, 10_000):
        it.clock.advance(wait_ms)
        assert it.engine.starts == [f"{task.task_id}-1"]
        race(*[lambda: it.rail.read("anna", task.task_id)] * THREADS)
    assert it.engine.starts == [f"{task.task_id}-1"] * 2
    assert it.stored(task).missing_since is None
    claims = race(*[lambda: it.reports.claim(task.task_id, 1, "run", 1)] * THREADS)
    assert len([claim for claim in claims if claim is not None]) == 1


def test_several_creations_under_one_id_are_one_task(it: Deployment) -> None:
    """A pre-flight answer that is sent several times."""
    task_id = it.rail.new_task_id()
    tickets = race(*[lambda: it.create(task_id)] * THREADS)
    assert {ticket.task_id for ticket in tickets} == {task_id}
    assert len({ticket.created_at for ticket in tickets}) == 1
    assert it.engine.starts == [f"{task_id}-1"]
    assert it.rail.read("anna", task_id).status is Status.WORKING


@fewer_rounds
@pytest.mark.parametrize("refusals", [1, THREADS // 2, THREADS])
def test_a_refused_start_takes_no_ticket_away_that_somebody_holds(it: Deployment, refusals: int) -> None:
    """Whoever got a ticket can read it; whoever got an error holds none."""
    it.engine.refusals = refusals
    task_id = it.rail.new_task_id()

    def create() -> Task | None:
        try:
            return it.create(task_id)
        except NotStarted:
            return None

    tickets = race(*[create] * THREADS)
    if any(tickets):
        assert it.rail.read("anna", task_id).task_id == task_id
    else:
        with pytest.raises(TaskNotFound):
            it.rail.read("anna", task_id)
