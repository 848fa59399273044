"""A worker whose table does not answer: it neither stops its job nor crowds the table."""

from __future__ import annotations

from typing import Any

from taskrail.errors import StoreUnavailable
from taskrail.task import Task
from taskrail.testing import START, StandingClock
from taskrail.worker import RunChannel


class Outage:
    """The worker's side of a rail whose table answers nothing."""

    def __init__(self) -> None:
        self.clock = StandingClock()
        self.calls = 0
        self.ended = False

    def progress(self, task: Task, *told: Any) -> Task:
        """As `Reports.progress`."""
        self.calls += 1
        if self.ended:
            return task.reported(*told, self.clock.now())
        raise StoreUnavailable("The test has cut the line.")

    def look(self, task: Task) -> Task:
        """As `Reports.look`."""
        return self.progress(task, None, None)


def channel_of(outage: Outage) -> RunChannel:
    task = Task(
        task_id="0" * 32,
        owner="anna",
        tool="work",
        engine="step_functions",
        created_at=START,
        updated_at=START,
        ttl_ms=None,
        keep_ms=None,
        poll_ms=5_000,
        run_started_at=START,
        run_deadline=START + 3_600_000,
    )
    return RunChannel(outage, task, 0)  # type: ignore[arg-type]


def test_progress_during_an_outage_is_tried_no_more_often_than_it_is_written() -> None:
    outage = Outage()
    channel = channel_of(outage)
    for number in range(10_000):
        outage.clock.advance(10)
        channel.progress(number, None, None)
        channel.tick()
    # A hundred seconds: a try to write every 2.5 s, or one to listen every 2 s.
    assert outage.calls <= 50


def test_what_was_told_last_is_written_once_the_outage_is_over() -> None:
    outage = Outage()
    channel = channel_of(outage)
    outage.clock.advance(3_000)
    channel.progress(7, 10, None)
    assert outage.calls == 1
    outage.ended = True
    outage.clock.advance(3_000)
    channel.tick()
    assert channel.task.progress is not None
    assert channel.task.progress.done == 7
