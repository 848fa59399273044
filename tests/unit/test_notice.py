"""The order to end: the job's code is left once, by what was decided, and never from within a call to its task."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator

import pytest

from taskrail.context import JobCancelled, RunInterrupted, RunSuperseded
from taskrail.worker import Notice


@pytest.fixture
def notice() -> Iterator[Notice]:
    before = signal.getsignal(signal.SIGTERM)
    made = Notice()
    made.listen()
    yield made
    signal.signal(signal.SIGTERM, before)


def order() -> None:
    """What Batch does to a container."""
    signal.raise_signal(signal.SIGTERM)


def test_before_anything_has_begun_the_process_just_ends(notice: Notice) -> None:
    with pytest.raises(RunInterrupted):
        order()
    order()
    assert notice.given


def test_the_order_alone_leaves_nothing(notice: Notice) -> None:
    notice.begin()
    with notice.job():
        order()
    assert notice.given
    assert notice.left is None


@pytest.mark.parametrize("way", [JobCancelled, RunInterrupted, RunSuperseded])
def test_a_job_is_left_by_what_was_decided(notice: Notice, way: type[JobCancelled]) -> None:
    notice.begin()
    with pytest.raises(way), notice.job():
        notice.leave(way)
        pytest.fail("the job went on")
    assert notice.left is way


def test_a_job_is_left_from_a_wait_that_another_thread_ends(notice: Notice) -> None:
    notice.begin()
    threading.Timer(0.05, notice.leave, [JobCancelled]).start()
    with pytest.raises(JobCancelled), notice.job():
        threading.Event().wait(20)
        pytest.fail("the job went on")


def test_a_call_to_its_task_is_finished_first(notice: Notice) -> None:
    notice.begin()
    done = []
    with pytest.raises(RunInterrupted), notice.job():
        with notice.whole():
            with notice.whole():
                notice.leave(RunInterrupted)
                done.append("inner")
            done.append("outer")
        pytest.fail("the job went on")
    assert done == ["inner", "outer"]


def test_a_call_in_another_thread_does_not_keep_the_job(notice: Notice) -> None:
    notice.begin()
    entered, end = threading.Event(), threading.Event()

    def report() -> None:
        with notice.whole():
            entered.set()
            end.wait(20)

    thread = threading.Thread(target=report)
    with pytest.raises(RunInterrupted), notice.job():
        thread.start()
        entered.wait(20)
        notice.leave(RunInterrupted)
        pytest.fail("the job waited for the other thread")
    end.set()
    thread.join()


def test_a_job_is_left_once_and_its_clean_up_is_not_torn(notice: Notice) -> None:
    notice.begin()
    cleaned = False
    with pytest.raises(JobCancelled), notice.job():
        try:
            notice.leave(JobCancelled)
        finally:
            order()
            notice.leave(RunInterrupted)
            with notice.whole():
                pass
            cleaned = True
    assert cleaned


def test_a_job_that_a_call_has_left_already_is_not_left_again(notice: Notice) -> None:
    notice.begin()
    cleaned = False
    with pytest.raises(JobCancelled), notice.job():
        try:
            with notice.whole():
                raise JobCancelled
        finally:
            notice.leave(RunInterrupted)
            cleaned = True
    assert cleaned
    assert notice.left is None


def test_what_a_clean_up_raises_is_no_ending_of_its_own(notice: Notice) -> None:
    notice.begin()
    with pytest.raises(RunInterrupted), notice.job():
        try:
            notice.leave(RunInterrupted)
        finally:
            raise ValueError("the clean-up failed")


def test_a_group_of_asynchronous_tasks_does_not_hide_why_it_was_left(notice: Notice) -> None:
    notice.begin()
    cleaned = []

    async def wait() -> None:
        try:
            await asyncio.sleep(20)
        finally:
            cleaned.append("task")

    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(wait())

    threading.Timer(0.05, notice.leave, [RunInterrupted]).start()
    with pytest.raises(RunInterrupted), notice.job():
        asyncio.run(work())
    assert cleaned == ["task"]


def test_what_comes_after_the_jobs_code_is_not_left(notice: Notice) -> None:
    notice.begin()
    with notice.job():
        pass
    notice.leave(RunInterrupted)
    with notice.whole():
        pass
    assert notice.left is None


def test_a_decision_made_before_the_job_begins_keeps_it_from_beginning(notice: Notice) -> None:
    notice.begin()
    notice.leave(RunInterrupted)
    with pytest.raises(RunInterrupted), notice.job():
        pytest.fail("the job began")


def test_without_listening_nothing_is_sent() -> None:
    silent = Notice()
    silent.begin()
    with silent.job():
        silent.leave(RunInterrupted)
    assert silent.left is None
