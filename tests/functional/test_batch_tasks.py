"""Python jobs on Batch: recorded by their job's id, never done twice, started once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from taskrail.clock import hours, minutes, seconds
from taskrail.engines import RunReport, RunState
from taskrail.testing import Called, Kit, harness
from tests.functional import work_tools


@pytest.fixture(scope="module")
def deployment() -> Iterator[Kit]:
    with harness(work_tools.server) as made:
        yield made


@pytest.fixture
def kit(deployment: Kit) -> Kit:
    deployment.clear()
    return deployment


@pytest.fixture
def task(kit: Kit) -> Called:
    return kit.call("crunch", numbers=[1, 2])


def claimed(kit: Kit, task: Called, job: str, attempt: int = 1) -> bool:
    return kit.runtime.rail.reports.claim(task.task_id, 1, job, attempt) is not None


def recorded(kit: Kit, task: Called) -> str | None:
    return kit.runtime.rail.read(kit.owner, task.task_id).run_id


def test_a_job_is_told_only_who_it_is(task: Called) -> None:
    order = task.order
    assert order.environment == {"TASKRAIL_TASK_ID": task.task_id, "TASKRAIL_RUN": "1"}
    assert (order.parameters, order.timeout_ms) == ({}, 30 * 60_000)


def test_the_job_is_recorded_and_does_its_work(kit: Kit, task: Called) -> None:
    assert recorded(kit, task) == kit.jobs.ids[task.order.name]
    assert task.run().structured == {"result": 3}


def test_of_two_jobs_the_first_to_claim_does_the_work(kit: Kit, task: Called) -> None:
    """Whatever was recorded: a job that is up and running need not wait for one that may never be placed."""
    assert claimed(kit, task, "the other job")
    assert recorded(kit, task) == "the other job"
    assert not claimed(kit, task, kit.jobs.ids[task.order.name])
    assert not claimed(kit, task, kit.jobs.ids[task.order.name], attempt=2), "not even when it is tried again"


def test_a_job_that_batch_tries_again_takes_over_from_its_own_older_attempt(kit: Kit, task: Called) -> None:
    job = kit.jobs.ids[task.order.name]
    assert claimed(kit, task, job)
    assert not claimed(kit, task, job)
    assert claimed(kit, task, job, attempt=2)


def test_the_end_of_the_job_that_did_not_get_the_work_is_no_news(kit: Kit, task: Called) -> None:
    assert claimed(kit, task, "the other job")
    kit.runtime.rail.run_heard(
        task.task_id, 1, RunReport(RunState.SUCCEEDED, run_id=kit.jobs.ids[task.order.name], attempt=1)
    )
    assert task.status == "working"
    kit.runtime.rail.run_heard(
        task.task_id, 1, RunReport(RunState.FAILED, "its host was lost", run_id="the other job", attempt=1)
    )
    assert task.is_error and "its host was lost" in task.text


def test_a_second_job_is_left_to_end_itself(kit: Kit, task: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would find nothing to do; terminated, it might be the one that claims at that very moment."""
    stopped: list[Any] = []
    monkeypatch.setattr(kit.jobs, "stop", lambda *what: bool(stopped.append(what)))
    kit.runtime.rail.run_heard(task.task_id, 1, RunReport(RunState.RUNNING, run_id="the other job", attempt=1))
    assert stopped == []


@pytest.mark.parametrize("attempt", [0, 1])
def test_a_job_that_ended_before_its_worker_spoke(kit: Kit, task: Called, attempt: int) -> None:
    report = RunReport(RunState.FAILED, "the image could not be pulled", attempt=attempt)
    kit.jobs.end(task.order.name, report)
    kit.advance(seconds(20))
    if attempt:
        assert task.is_error and "could not be pulled" in task.text
    else:
        assert (task.status, "could not be pulled" in task.error["message"]) == ("failed", True)


def test_the_time_of_all_attempts_and_of_the_queue_is_granted(kit: Kit, task: Called) -> None:
    kit.advance(hours(2) - seconds(1))
    assert task.status == "working"
    kit.advance(seconds(2))
    assert task.is_error and "ran out of time" in task.text


def test_an_answer_starts_the_next_job_once(kit: Kit) -> None:
    task = kit.call("crunch", numbers=[100, 200]).run()
    assert task.status == "input_required"
    task.answer(large={})
    task.answer(large={})
    assert kit.jobs.starts == [f"{task.task_id}-1", f"{task.task_id}-2"]
    assert task.run().structured == {"result": 300}


def test_a_job_that_never_started_is_submitted_again_after_two_looks(kit: Kit, task: Called) -> None:
    stored = kit.runtime.rail.read(kit.owner, task.task_id)
    forget_the_record(kit, stored.task_id)
    kit.jobs.states.clear()
    kit.jobs.waiting.clear()
    for _ in range(2):
        kit.advance(seconds(30))
        task.poll()
    assert kit.jobs.starts == [task.order.name] * 2
    assert task.run().structured == {"result": 3}


def test_a_recorded_job_that_batch_no_longer_knows_has_vanished(kit: Kit, task: Called) -> None:
    """It is not submitted again: it may have worked."""
    kit.jobs.states.clear()
    kit.jobs.waiting.clear()
    for _ in range(2):
        kit.advance(seconds(30))
        task.poll()
    assert task.status == "failed" and "vanished" in task.error["message"]
    assert kit.jobs.starts == [task.order.name]


def test_a_running_job_hears_of_a_cancellation_at_once(kit: Kit, task: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    job = kit.jobs.ids[task.order.name]
    assert claimed(kit, task, job)
    stopped: list[Any] = []
    monkeypatch.setattr(kit.jobs, "stop", lambda *what: bool(stopped.append(what[2])))
    task.cancel()
    task.cancel()
    assert (stopped, task.status) == ([job], "working")
    kit.advance(seconds(11))
    assert task.status == "working", "Batch has not ended it yet: it may still be cleaning up"
    monkeypatch.undo()
    kit.advance(minutes(1))
    kit.jobs.states[task.order.name] = RunReport(RunState.STOPPED, attempt=1)
    assert task.status == "cancelled"


def forget_the_record(kit: Kit, task_id: str) -> None:
    """The process died before it could record the job's id."""
    kit.dynamodb.update_item(TableName="tasks", Key={"pk": {"S": f"task#{task_id}"}}, UpdateExpression="REMOVE runId")
