"""The moves of a task: which are legal from where, and what each leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, replace

import pytest

from taskrail.questions import Question, form_question
from taskrail.task import LONGEST_POLL_MS, PROGRESS_KEY, Progress, Status, Task

START = 1_780_000_000_000
BUDGET = 120_000
KEEP = 600_000
ANSWER = 3_600_000

A = form_question("a", "First?")
B = form_question("b", "Second?")
OTHER_A = form_question("a", "Something else?")


def made(**changes: object) -> Task:
    """A task as its creation leaves it."""
    task = Task(
        task_id="0" * 32,
        owner="anna",
        tool="count",
        engine="step_functions",
        created_at=START,
        updated_at=START,
        ttl_ms=BUDGET + KEEP,
        keep_ms=KEEP,
        poll_ms=5_000,
        run_started_at=START,
        run_deadline=START + BUDGET,
        arguments="{}",
    )
    return replace(task, **changes)  # type: ignore[arg-type]


def claimed(**changes: object) -> Task:
    """A task whose first run a worker has taken up."""
    return made(**{"attempt": 1, "run_id": "run:1", "claim": "n1", **changes})


def asking(*questions: Question, hold: bool = False, at: int = START + 1_000) -> Task:
    """A claimed task that has asked."""
    asked = {question.key: question for question in questions or (A,)}
    return claimed().asked(asked, at, answer_within_ms=ANSWER, budget_ms=BUDGET, hold=hold)


def finished(status: Status) -> Task:
    """A task that has ended."""
    return claimed().ended(status, START + 10_000, message="Over.", result="{}")


MOVES: dict[str, Callable[[Task, int], Task]] = {
    "reported": lambda task, now: task.reported(Progress(1, 2), "1 of 2", now),
    "stepped": lambda task, now: task.stepped("step", "1"),
    "asked": lambda task, now: task.asked({"a": A}, now, answer_within_ms=1, budget_ms=1, hold=False),
    "let_go": lambda task, now: task.let_go(),
    "answered": lambda task, now: task.answered({"a": "1"}, now, budget_ms=1),
    "cancelling": lambda task, now: task.cancelling(now),
    "ended": lambda task, now: task.ended(Status.FAILED, now, message="Again.", error="{}"),
    "probed": lambda task, now: task.probed(now, missing=True),
}
TERMINAL = [status for status in Status if status.terminal]


def test_three_states_are_terminal() -> None:
    """Tasks, section "Task Status"."""
    assert {str(status) for status in TERMINAL} == {"completed", "failed", "cancelled"}
    assert {str(status) for status in Status} - {str(status) for status in TERMINAL} == {"working", "input_required"}


@pytest.mark.parametrize("status", TERMINAL)
@pytest.mark.parametrize("move", MOVES)
def test_terminal_is_for_good(status: Status, move: str) -> None:
    """No move changes a task that has ended: the very same value comes back."""
    task = finished(status)
    assert MOVES[move](task, START + 20_000) is task


def test_a_task_is_frozen() -> None:
    """A change makes a new value."""
    with pytest.raises(FrozenInstanceError):
        made().status = Status.FAILED  # type: ignore[misc]


class TestReported:
    """`Task.reported`."""

    def test_keeps_numbers_and_text(self) -> None:
        task = claimed().reported(Progress(1, 3), "1 of 3", START + 5)
        assert (task.progress, task.status_message, task.updated_at) == (Progress(1, 3), "1 of 3", START + 5)

    def test_a_text_alone_keeps_the_numbers(self) -> None:
        task = claimed().reported(Progress(1, 3), "1 of 3", START + 5).reported(None, "Nearly.", START + 6)
        assert (task.progress, task.status_message) == (Progress(1, 3), "Nearly.")

    def test_the_same_again_changes_nothing(self) -> None:
        task = claimed().reported(Progress(1, 3), "1 of 3", START + 5)
        assert task.reported(Progress(1, 3), "1 of 3", START + 9) is task

    def test_does_not_hide_that_cancellation_was_requested(self) -> None:
        task = claimed().cancelling(START + 1)
        told = task.reported(Progress(2, 3), "2 of 3", START + 5)
        assert (told.progress, told.status_message) == (Progress(2, 3), task.status_message)


class TestStepped:
    """`Task.stepped`."""

    def test_the_first_outcome_stays(self) -> None:
        task = claimed().stepped("s", "1")
        assert task.stepped("s", "2") is task
        assert task.steps == {"s": "1"}

    def test_nothing_that_a_client_sees_changes(self) -> None:
        assert claimed().stepped("s", "1").view(START + 9) == claimed().view(START + 9)


class TestAsked:
    """`Task.asked`."""

    def test_opens_the_questions_and_ends_the_run(self) -> None:
        task = asking(A, B)
        assert task.status is Status.INPUT_REQUIRED
        assert task.outstanding == {"a": A, "b": B}
        assert not task.run_open
        assert task.answer_deadline == START + 1_000 + ANSWER

    def test_a_held_run_stays_open(self) -> None:
        assert asking(hold=True).run_open

    def test_a_key_keeps_its_meaning(self) -> None:
        task = asking(A).answered({"a": "1"}, START + 2_000, budget_ms=BUDGET)
        again = task.asked({"a": OTHER_A, "b": B}, START + 3_000, answer_within_ms=ANSWER, budget_ms=BUDGET, hold=False)
        assert again.questions["a"] == A
        assert again.outstanding == {"b": B}

    def test_what_is_answered_is_not_asked_again(self) -> None:
        task = asking(A).answered({"a": "1"}, START + 2_000, budget_ms=BUDGET)
        assert task.asked({"a": A}, START + 3_000, answer_within_ms=ANSWER, budget_ms=BUDGET, hold=False) is task

    def test_asked_again_an_open_question_stays_as_it_was(self) -> None:
        task = asking(A, B)
        assert task.asked({"a": A}, START + 9_000, answer_within_ms=ANSWER, budget_ms=BUDGET, hold=True) is task
        held = asking(A, B, hold=True)
        again = held.asked({"b": B}, START + 9_000, answer_within_ms=ANSWER, budget_ms=BUDGET, hold=False)
        assert again == held.let_go()

    def test_nobody_is_asked_once_cancellation_was_requested(self) -> None:
        task = claimed().cancelling(START + 1)
        assert task.asked({"a": A}, START + 2, answer_within_ms=ANSWER, budget_ms=BUDGET, hold=False) is task

    def test_the_ticket_outlives_the_answer_and_the_run_after_it(self) -> None:
        task = asking()
        assert task.answer_deadline is not None and task.expires_at is not None
        assert task.expires_at == task.answer_deadline + BUDGET + KEEP


class TestLetGo:
    """`Task.let_go`."""

    def test_the_next_run_will_take_up_the_answer(self) -> None:
        task = asking(hold=True).let_go()
        assert (task.status, task.run_open) == (Status.INPUT_REQUIRED, False)

    def test_work_is_not_let_go(self) -> None:
        task = claimed()
        assert task.let_go() is task

    def test_twice_is_once(self) -> None:
        task = asking()
        assert task.let_go() is task


class TestAnswered:
    """`Task.answered`."""

    def test_some_keys_may_be_answered_before_others(self) -> None:
        task = asking(A, B).answered({"b": "2"}, START + 2_000, budget_ms=BUDGET)
        assert task.status is Status.INPUT_REQUIRED
        assert list(task.outstanding) == ["a"]
        assert (task.run, task.run_open) == (1, False)

    def test_the_last_answer_makes_the_next_run(self) -> None:
        task = asking(A, B).answered({"b": "2"}, START + 2_000, budget_ms=BUDGET)
        task = task.answered({"a": "1"}, START + 3_000, budget_ms=BUDGET)
        assert task.status is Status.WORKING
        assert (task.run, task.run_open, task.attempt, task.run_id, task.claim) == (2, True, 0, None, None)
        assert (task.run_started_at, task.run_deadline) == (START + 3_000, START + 3_000 + BUDGET)
        assert task.answers == {"a": "1", "b": "2"}
        assert task.answer_deadline is None

    def test_a_held_run_goes_on(self) -> None:
        task = asking(hold=True).answered({"a": "1"}, START + 2_000, budget_ms=BUDGET)
        assert (task.status, task.run, task.attempt, task.claim) == (Status.WORKING, 1, 1, "n1")

    @pytest.mark.parametrize("answers", [{}, {"unknown": "1"}])
    def test_unknown_keys_change_nothing(self, answers: dict[str, str]) -> None:
        task = asking()
        assert task.answered(answers, START + 2_000, budget_ms=BUDGET) is task

    def test_an_answer_is_given_once(self) -> None:
        task = asking(A, B).answered({"a": "1"}, START + 2_000, budget_ms=BUDGET)
        assert task.answered({"a": "2"}, START + 3_000, budget_ms=BUDGET) is task

    def test_nothing_is_answered_that_was_not_asked(self) -> None:
        task = claimed()
        assert task.answered({"a": "1"}, START + 2_000, budget_ms=BUDGET) is task

    def test_what_was_remembered_goes_along(self) -> None:
        task = claimed().stepped("s", "1").reported(Progress(1, 2), "half", START + 1)
        task = task.asked({"a": A}, START + 2, answer_within_ms=ANSWER, budget_ms=BUDGET, hold=False)
        task = task.answered({"a": "1"}, START + 3, budget_ms=BUDGET)
        assert (task.steps, task.arguments, task.progress) == ({"s": "1"}, "{}", Progress(1, 2))


class TestCancelling:
    """`Task.cancelling`."""

    @pytest.mark.parametrize("task", [made(), asking(), asking(hold=True)], ids=["unclaimed", "asking", "held"])
    def test_settled_at_once_where_nobody_is_at_work(self, task: Task) -> None:
        assert task.cancelling(START + 5_000).status is Status.CANCELLED

    def test_work_is_told(self) -> None:
        task = claimed().cancelling(START + 5_000)
        assert (task.status, task.cancel_requested_at) == (Status.WORKING, START + 5_000)
        assert "requested" in (task.status_message or "")

    def test_the_first_request_counts(self) -> None:
        task = claimed().cancelling(START + 5_000)
        assert task.cancelling(START + 9_000) is task


class TestEnded:
    """`Task.ended`."""

    @pytest.mark.parametrize("task", [made(), claimed(), asking(), asking(hold=True)])
    @pytest.mark.parametrize("status", TERMINAL)
    def test_every_open_task_can_end(self, task: Task, status: Status) -> None:
        ended = task.ended(status, START + 9_000, message="Over.")
        assert (ended.status, ended.status_message, ended.open, ended.run_open) == (status, "Over.", False, False)

    def test_the_result_is_kept_from_the_end_on(self) -> None:
        ended = asking().ended(Status.COMPLETED, START + 50_000, message="Over.", result="{}")
        assert ended.expires_at == START + 50_000 + KEEP

    def test_unlimited_stays_unlimited(self) -> None:
        ended = claimed(keep_ms=None, ttl_ms=None).ended(Status.COMPLETED, START + 9_000, message="Over.", result="{}")
        assert (ended.ttl_ms, ended.expires_at) == (None, None)

    def test_a_sealed_state_can_still_be_replayed(self) -> None:
        sealed = claimed(sealed_until=START + 10 * KEEP)
        assert sealed.ended(Status.COMPLETED, START + 1, message="Over.", result="{}").expires_at == START + 10 * KEEP

    def test_a_clock_that_went_back_does_not_cut_the_life_of_the_result(self) -> None:
        ended = claimed().ended(Status.COMPLETED, START - 60_000, message="Over.", result="{}")
        assert ended.ttl_ms == KEEP

    def test_what_only_a_run_needs_is_dropped(self) -> None:
        task = asking(A, B).answered({"a": "1"}, START + 2_000, budget_ms=BUDGET).stepped("s", "1")
        ended = task.ended(Status.COMPLETED, START + 9_000, message="Over.", result="{}")
        assert (ended.arguments, ended.answer_deadline) == (None, None)
        assert not ended.questions and not ended.answers and not ended.steps


class TestProbed:
    """`Task.probed`."""

    def test_remembers_since_when_a_run_is_missing(self) -> None:
        first = claimed().probed(START + 20_000, missing=True)
        second = first.probed(START + 30_000, missing=True)
        assert (second.probed_at, second.missing_since) == (START + 30_000, START + 20_000)

    def test_a_run_that_was_seen_is_not_missing(self) -> None:
        task = claimed().probed(START + 20_000, missing=True).probed(START + 30_000, missing=False)
        assert (task.probed_at, task.missing_since) == (START + 30_000, None)

    def test_nothing_that_a_client_sees_changes(self) -> None:
        task = claimed()
        assert task.probed(START + 20_000, missing=True).view(START + 20_000) == task.view(START + 20_000)


class TestLastUpdatedAt:
    """`lastUpdatedAt`: the later of now and the last one plus a millisecond."""

    VISIBLE = ("reported", "asked", "cancelling", "ended")

    @pytest.mark.parametrize("move", VISIBLE)
    @pytest.mark.parametrize("late", [-60_000, 0, 1, 60_000])
    def test_never_goes_back_and_always_moves(self, move: str, late: int) -> None:
        task = claimed(updated_at=START + 100)
        moved = MOVES[move](task, START + 100 + late)
        assert moved.updated_at == max(START + 100 + late, START + 101)

    @pytest.mark.parametrize("move", ["stepped", "probed"])
    def test_stays_when_nothing_that_a_client_sees_changed(self, move: str) -> None:
        assert MOVES[move](claimed(), START + 60_000).updated_at == START

    def test_letting_go_is_not_seen(self) -> None:
        task = asking(hold=True)
        assert task.let_go().updated_at == task.updated_at

    def test_moves_with_a_partial_answer(self) -> None:
        task = asking(A, B)
        assert task.answered({"a": "1"}, START, budget_ms=BUDGET).updated_at == task.updated_at + 1

    @pytest.mark.parametrize("move", MOVES)
    def test_created_at_never_changes(self, move: str) -> None:
        for task in (claimed(), asking(), asking(hold=True)):
            assert MOVES[move](task, START + 60_000).created_at == START


class TestTtl:
    """`ttlMs`: enough for what may still come."""

    def test_grows_with_a_question(self) -> None:
        assert asking().ttl_ms == 1_000 + ANSWER + BUDGET + KEEP

    def test_never_shrinks_while_open(self) -> None:
        long = claimed(ttl_ms=10**10)
        asked = long.asked({"a": A}, START + 1, answer_within_ms=ANSWER, budget_ms=BUDGET, hold=False)
        assert asked.ttl_ms == 10**10
        assert asked.answered({"a": "1"}, START + 2, budget_ms=BUDGET).ttl_ms == 10**10

    def test_grows_with_a_run_that_begins_late(self) -> None:
        late = START + 1_000 + ANSWER + 5_000_000
        assert asking().answered({"a": "1"}, late, budget_ms=BUDGET).expires_at == late + BUDGET + KEEP

    def test_unlimited_never_ends(self) -> None:
        task = asking()
        unlimited = replace(task, ttl_ms=None, keep_ms=None)
        assert unlimited.answered({"a": "1"}, START + 2_000, budget_ms=BUDGET).ttl_ms is None
        assert not unlimited.expired(10**15)

    def test_expired_from_its_very_millisecond_on(self) -> None:
        task = made()
        assert task.expires_at == START + BUDGET + KEEP
        assert not task.expired(START + BUDGET + KEEP - 1)
        assert task.expired(START + BUDGET + KEEP)


class TestPollInterval:
    """`pollIntervalMs`: a tenth of the age of the run, between the tool's own and a minute."""

    @pytest.mark.parametrize(
        ("age", "interval"),
        [
            (-60_000, 5_000),
            (0, 5_000),
            (50_009, 5_000),
            (50_010, 5_001),
            (100_000, 10_000),
            (600_000, 60_000),
            (36_000_000, LONGEST_POLL_MS),
        ],
    )
    def test_grows_with_the_age_of_the_run(self, age: int, interval: int) -> None:
        assert claimed().poll_interval(START + age) == interval

    def test_starts_anew_with_the_next_run(self) -> None:
        task = asking(at=START + 400_000)
        assert task.answered({"a": "1"}, START + 500_000, budget_ms=BUDGET).poll_interval(START + 510_000) == 5_000

    def test_grows_with_the_age_of_a_question(self) -> None:
        task = asking(at=START + 400_000)
        assert task.poll_interval(START + 400_000) == 5_000
        assert task.poll_interval(START + 500_000) == 10_000

    def test_a_longer_interval_of_the_tool_stays(self) -> None:
        assert claimed(poll_ms=90_000).poll_interval(START + 10_000_000) == 90_000

    def test_an_ended_task_has_the_tools_own(self) -> None:
        assert finished(Status.COMPLETED).poll_interval(START + 10_000_000) == 5_000

    def test_the_number_of_polls_grows_with_the_logarithm_of_the_runtime(self) -> None:
        def polls(runtime: int) -> int:
            now, count = START, 0
            while now < START + runtime:
                now += claimed().poll_interval(now)
                count += 1
            return count

        assert polls(600_000) < 40
        assert polls(600_000) - polls(300_000) <= 8


class TestView:
    """`Task.view`: the flat fields of the wire."""

    def test_fields_of_a_new_task(self) -> None:
        assert made().view(START) == {
            "taskId": "0" * 32,
            "status": "working",
            "createdAt": "2026-05-28T20:26:40.000Z",
            "lastUpdatedAt": "2026-05-28T20:26:40.000Z",
            "ttlMs": BUDGET + KEEP,
            "pollIntervalMs": 5_000,
        }

    def test_fields_of_one_that_told_its_progress(self) -> None:
        view = claimed().reported(Progress(1, 4), "1 of 4", START + 1).view(START + 1)
        assert view["statusMessage"] == "1 of 4"
        assert view["lastUpdatedAt"] == "2026-05-28T20:26:40.001Z"
        assert view["_meta"] == {PROGRESS_KEY: {"done": 1, "total": 4}}

    def test_a_total_that_is_not_known_is_left_out(self) -> None:
        assert claimed().reported(Progress(7), None, START + 1).view(START)["_meta"] == {PROGRESS_KEY: {"done": 7}}

    def test_unlimited_is_null(self) -> None:
        assert made(ttl_ms=None, keep_ms=None).view(START)["ttlMs"] is None

    @pytest.mark.parametrize("now", [START - 1, START, START + 54_321, START + 10_000_000])
    def test_durations_are_positive_integers(self, now: int) -> None:
        for task in (made(), claimed(), asking(), finished(Status.FAILED)):
            view = task.view(now)
            assert type(view["ttlMs"]) is int and view["ttlMs"] > 0
            assert type(view["pollIntervalMs"]) is int and view["pollIntervalMs"] > 0

    def test_nothing_of_the_rails_own_is_shown(self) -> None:
        task = asking(A).ended(Status.COMPLETED, START + 9_000, message="Over.", result="{}")
        shown = {"taskId", "status", "statusMessage", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs", "_meta"}
        assert set(task.view(START)) <= shown
        assert {field.name for field in fields(Task)}.isdisjoint(set(task.view(START)) - {"status"})
