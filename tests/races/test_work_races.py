"""Races for tasks whose work runs on Batch, in containers and in workflows, and for calls that are made once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from taskrail.engines import RunReport, RunState
from taskrail.errors import NotStarted, TaskNotFound
from taskrail.rail.quotas import TooManyOpen
from taskrail.rail.remote import TaskCancelled
from taskrail.task import Status, Task
from tests.counts import LONG, sized
from tests.races.deployment import PLACES, THREADS, Deployment, race, with_crowd

pytestmark = [
    pytest.mark.races,
    pytest.mark.timeout(600 if LONG else 60),
    pytest.mark.parametrize("it", range(sized(3, 12)), indirect=True),
]


def said(number: int) -> dict[str, Any]:
    """An answer that can be told from the others."""
    return {"action": "accept", "content": {"by": number}}


def twice(it: Deployment, tool: str) -> tuple[Task, str, str]:
    """A task whose run was submitted twice, and the ids of both jobs; the first one is recorded."""
    task = it.call(tool)
    order: Any = type("Order", (), {"name": f"{task.task_id}-1"})
    return task, "job-1", it.jobs.start(order)


def unrecorded(it: Deployment, tool: str) -> Task:
    """The same, and neither is recorded."""
    from dataclasses import replace

    task, *_ = twice(it, tool)
    stored = it.stored(task)
    return it.store.write(stored, replace(stored, run_id=None), it.clock.now(), "forgotten")


def test_one_of_two_jobs_of_a_run_takes_it_up(it: Deployment) -> None:
    """Whichever job comes first does the work; whatever was recorded, the other finds nothing to do."""
    task, *jobs = twice(it, "on_batch")
    rivals = [jobs[number % 2] for number in range(THREADS)]
    claims = race(*[lambda job=job: it.reports.claim(task.task_id, 1, job, 1) for job in rivals])
    (winner,) = [claim for claim in claims if claim is not None]
    assert winner.run_id == rivals[claims.index(winner)]
    assert it.stored(task) == winner
    assert it.finish(winner) == "won"


def test_a_higher_attempt_of_another_job_never_takes_over(it: Deployment) -> None:
    """Only attempts of the job that took the run up can follow each other."""
    task, mine, other = twice(it, "on_batch")
    first = it.reports.claim(task.task_id, 1, mine, 1)
    assert first is not None
    claims = race(
        lambda: it.reports.claim(task.task_id, 1, mine, 2),
        *[
            lambda attempt=attempt: it.reports.claim(task.task_id, 1, other, attempt)
            for attempt in range(2, THREADS + 1)
        ],
    )
    assert claims[0] is not None
    assert claims[1:] == [None] * (THREADS - 1)
    assert it.stored(task) == claims[0]
    assert it.finish(first) == "lost"


def test_attempts_of_two_jobs_that_begin_at_once_are_attempts_of_one(it: Deployment) -> None:
    task, *jobs = twice(it, "on_batch")
    rivals = [(jobs[number % 2], number // 2 + 1) for number in range(THREADS)]
    claims = race(*[lambda rival=rival: it.reports.claim(task.task_id, 1, *rival) for rival in rivals])
    won = [claim for claim in claims if claim is not None]
    assert len({claim.run_id for claim in won}) == 1
    stored = it.stored(task)
    assert stored.attempt == max(claim.attempt for claim in won)
    assert [it.finish(claim) for claim in won].count("won") == 1


def test_one_answer_is_passed_on(it: Deployment) -> None:
    """Whoever of several callers is first: the waiting state gets that answer, and no other, and moves once."""
    task = it.call("flow")
    it.ask(task, "a", "token")
    race(
        *[
            lambda number=number: it.rail.update(it.owner, task.task_id, {"a": said(number)})
            for number in range(THREADS)
        ]
    )
    stored = it.stored(task)
    assert (stored.status, stored.run, stored.tokens) == (Status.WORKING, 1, {})
    assert {token for token, _ in it.engine.handed} == {"token"}
    assert {output for _, output in it.engine.handed} == {stored.answers["a"]}
    assert len([landed for landed in it.store.landed if landed.status is Status.WORKING and landed.answers]) <= 2


def test_answers_to_the_questions_of_parallel_branches_are_all_passed_on(it: Deployment) -> None:
    """Each branch gets its own answer, at the same instant as the others theirs."""
    task = it.call("flow")
    keys = [f"key-{number}" for number in range(THREADS)]
    for key in keys:
        it.ask(task, key, f"token-{key}")
    race(
        *[
            lambda number=number, key=key: it.rail.update(it.owner, task.task_id, {key: said(number)})
            for number, key in enumerate(keys)
        ]
    )
    stored = it.stored(task)
    assert (stored.status, stored.tokens) == (Status.WORKING, {})
    handed = {(token, json.loads(output)["content"]["by"]) for token, output in it.engine.handed}
    assert handed == {(f"token-{key}", number) for number, key in enumerate(keys)}


def test_branches_that_ask_while_others_are_answered_all_get_on(it: Deployment) -> None:
    """A question and an answer of different branches: neither is lost."""
    task = it.call("flow")
    it.ask(task, "first", "token-first")
    later = [f"key-{number}" for number in range(THREADS - 1)]
    race(
        lambda: it.rail.update(it.owner, task.task_id, {"first": said(0)}),
        *[lambda key=key: it.ask(task, key, f"token-{key}") for key in later],
    )
    stored = it.stored(task)
    assert (stored.status, set(stored.outstanding)) == (Status.INPUT_REQUIRED, set(later))
    assert stored.tokens == {key: f"token-{key}" for key in later}
    assert {token for token, _ in it.engine.handed} == {"token-first"}


def test_a_retried_state_gets_the_answer_that_comes_meanwhile(it: Deployment) -> None:
    """The state is entered again, with a new token, at the very moment of the answer: the new token gets it."""
    task = it.call("flow")
    it.ask(task, "a", "old")
    with_crowd(
        lambda: it.ask(task, "a", "new"),
        crowd=[
            lambda: it.rail.update(it.owner, task.task_id, {"a": said(1)}),
            lambda: it.rail.read(it.owner, task.task_id),
        ],
    )
    stored = it.stored(task)
    assert (stored.status, stored.tokens) == (Status.WORKING, {})
    assert json.loads(it.engine.resumed["new"]) == said(1)
    assert {output for _, output in it.engine.handed} == {stored.answers["a"]}


def test_a_state_that_asks_and_a_cancel_know_of_each_other(it: Deployment) -> None:
    """Either the state is told that nobody will answer, or its machine is stopped or will be."""
    task = it.call("flow")

    def ask() -> bool:
        try:
            it.ask(task, "a", "token")
        except TaskCancelled:
            return False
        return True

    asked, *_ = with_crowd(ask, crowd=[lambda: it.rail.cancel(it.owner, task.task_id)])
    stored = it.stored(task)
    if asked:
        assert stored.status is Status.CANCELLED
        assert it.engine.states[f"{task.task_id}-1"].state is RunState.STOPPED
    else:
        assert stored.cancel_requested_at is not None
        assert stored.tokens == {}


@pytest.mark.parametrize("tool", ["once", "once_on_batch"])
def test_equal_calls_at_once_are_one_task(it: Deployment, tool: str) -> None:
    """One task and one start; or, on Batch, one job that is recorded and takes the run up."""
    tickets = race(*[lambda: it.call(tool)] * THREADS)
    assert len({ticket.task_id for ticket in tickets}) == 1
    task = it.rail.read(it.owner, tickets[0].task_id)
    name = f"{task.task_id}-1"
    if tool == "once":
        assert it.engine.starts == [name]
        return
    assert set(it.jobs.names.values()) == {name}
    assert task.run_id in it.jobs.names
    claims = race(*[lambda job=job: it.reports.claim(task.task_id, 1, job, 1) for job in it.jobs.names])
    assert len([claim for claim in claims if claim is not None]) == 1


@pytest.mark.parametrize("refusals", [1, THREADS // 2, THREADS])
def test_a_refused_start_frees_equal_calls_without_taking_a_ticket_away(it: Deployment, refusals: int) -> None:
    """All who got a ticket have the same, whoever got an error holds none, and the next call gets a task that works."""
    it.engine.refusals = refusals

    def call() -> Task | None:
        try:
            return it.call("once")
        except NotStarted:
            return None

    tickets = {ticket.task_id for ticket in race(*[call] * THREADS) if ticket is not None}
    assert len(tickets) <= 1
    it.engine.refusals = 0
    task = it.call("once")
    assert tickets <= {task.task_id}
    assert it.engine.starts == [f"{task.task_id}-1"]
    assert it.rail.read(it.owner, task.task_id).status is Status.WORKING


@pytest.mark.parametrize("tool", ["on_batch", "box"])
def test_one_id_of_a_run_is_recorded(it: Deployment, tool: str) -> None:
    """Events of both jobs, a look by name and a report: one job is the run's, and no event stops it."""
    task = unrecorded(it, tool)
    it.clock.advance(20_000)
    crowd: list[Callable[[], Any]] = [
        lambda: it.rail.run_heard(task.task_id, 1, it.jobs.report("job-2")),
        lambda: it.rail.read(it.owner, task.task_id),
    ]
    if tool == "box":
        crowd.append(lambda: it.report(task, "progress", message="Hello.", job="job-2", attempt=1))
    with_crowd(lambda: it.rail.run_heard(task.task_id, 1, it.jobs.report("job-1")), crowd=crowd)
    recorded = it.stored(task).run_id
    assert recorded in ("job-1", "job-2")
    assert {landed.run_id for landed in it.store.landed} <= {None, recorded, "job-1"}
    assert recorded not in it.jobs.stopped
    if tool == "on_batch":
        assert it.jobs.stopped == []


def test_one_of_the_end_of_a_container_and_a_cancel_wins(it: Deployment) -> None:
    """A result that came first stays; else the task is cancelled, and its container has been told."""
    task = it.call("box")
    it.report(task, "result", result="done", job="job-1", attempt=1)
    ended = RunReport(RunState.SUCCEEDED, run_id="job-1", attempt=1)
    it.jobs.states["job-1"] = RunState.SUCCEEDED
    with_crowd(
        lambda: it.rail.run_heard(task.task_id, 1, ended),
        crowd=[
            lambda: it.rail.cancel(it.owner, task.task_id),
            lambda: it.rail.read(it.owner, task.task_id),
        ],
    )
    ends = [landed for landed in it.store.landed if landed.status.terminal]
    assert len(ends) == 1
    assert it.stored(task) == ends[0]
    if ends[0].status is Status.COMPLETED:
        assert ends[0].result is not None and "done" in ends[0].result
    else:
        assert (ends[0].status, ends[0].result) == (Status.CANCELLED, None)


def test_one_of_two_jobs_of_a_container_settles_its_task(it: Deployment) -> None:
    """Both jobs end, with a result each: only the recorded one's is the task's."""
    task, mine, other = twice(it, "box")
    it.report(task, "result", result="mine", job=mine, attempt=1)
    it.reports.payloads.put_result(task, other, 1, '"other"')
    with_crowd(
        lambda: it.rail.run_heard(task.task_id, 1, RunReport(RunState.SUCCEEDED, run_id=mine, attempt=1)),
        crowd=[
            lambda: it.rail.run_heard(task.task_id, 1, RunReport(RunState.SUCCEEDED, run_id=other, attempt=1)),
            lambda: it.rail.run_heard(
                task.task_id, 1, RunReport(RunState.FAILED, "exit code 1", run_id=other, attempt=1)
            ),
        ],
    )
    stored = it.stored(task)
    assert stored.status is Status.COMPLETED
    assert stored.result is not None and "mine" in stored.result


def test_a_removed_reservation_is_not_the_next_ones(it: Deployment) -> None:
    """A task that goes frees its own reservation only: equal calls that come meanwhile keep one task."""
    first = it.call("once")
    it.rail.cancel(it.owner, first.task_id)
    tickets, *_ = [race(*[lambda: it.call("once")] * (THREADS - 1), lambda: it.forget(first))[:-1]]
    assert len({ticket.task_id for ticket in tickets}) == 1
    assert it.call("once").task_id == tickets[0].task_id
    with pytest.raises(TaskNotFound):
        it.rail.read("somebody else", first.task_id)


@pytest.mark.parametrize("before", [0, 1, PLACES])
def test_no_more_tasks_are_open_than_there_are_places(it: Deployment, before: int) -> None:
    """However many calls come together, and whether or not the places are still held by tasks that are over."""
    for _ in range(before):
        claimed = it.reports.claim(it.call("limited").task_id, 1, "worker", 1)
        assert claimed is not None and it.finish(claimed) == "won"

    def one() -> Task | None:
        try:
            return it.call("limited")
        except TooManyOpen:
            return None

    made = [task for task in race(*[one] * THREADS) if task is not None]
    assert len(made) == PLACES
    assert all(it.stored(task).open for task in made)
