"""A worker whose table does not answer: it neither stops its job nor crowds the table."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
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

    def hear(self, task: Task) -> Task:
        """As `Reports.hear`."""
        return self.progress(task, None, None)


def channel_of(outage: Any) -> RunChannel:
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
    return RunChannel(outage, task, 0)


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


class Listening:
    """The worker's side of a rail that notes when it is heard."""

    def __init__(self) -> None:
        self.clock = StandingClock()
        self.heard: list[int] = []

    def hear(self, task: Task) -> Task:
        """As `Reports.hear`."""
        self.heard.append(self.clock.now() - START)
        return replace(task, rev=task.rev + 1)


def test_a_silent_worker_listens_less_often_as_its_run_grows_older() -> None:
    """Every look is a read that somebody pays for; even the rarest leaves half of the grace of a cancellation."""
    listening = Listening()
    channel = channel_of(listening)
    for _ in range(4 * 200):
        listening.clock.advance(250)
        channel.tick()
    pauses = [later - earlier for earlier, later in pairwise([0, *listening.heard])]
    assert pauses == sorted(pauses)
    assert {pauses[0], pauses[15]} == {2_000} and pauses[-1] == 5_000
    assert all(pause <= 250 + max(2_000, when // 20) for pause, when in zip(pauses, listening.heard, strict=True))
