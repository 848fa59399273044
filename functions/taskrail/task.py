"""What a task is: a frozen value, its states, the legal moves between them, and its wire view.

A move is a method that returns a new value, or the same one when there is nothing to change. It
decides; the guarded write of `taskrail.store` makes the decision true or refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from taskrail import clock
from taskrail.questions import Question

SCHEMA = 1
"""Version of the item's layout."""

LONGEST_POLL_MS = 60_000
PROGRESS_KEY = "io.taskrail/progress"


class Status(StrEnum):
    """The five states of the extension (Tasks, section "Task Status")."""

    WORKING = "working"
    """A run is under way, or about to be."""
    INPUT_REQUIRED = "input_required"
    """At least one question is open."""
    COMPLETED = "completed"
    """The call has a result, an error of the tool included."""
    FAILED = "failed"
    """The call ended in a JSON-RPC error."""
    CANCELLED = "cancelled"
    """The caller cancelled, and the work has stopped."""

    @property
    def terminal(self) -> bool:
        """Whether a task in this state never changes again."""
        return self not in (Status.WORKING, Status.INPUT_REQUIRED)


@dataclass(frozen=True)
class Progress:
    """How far a run has come, in units of the job's own."""

    done: float
    total: float | None = None


@dataclass(frozen=True)
class Task:
    """One task as its item holds it. Moments are milliseconds since the epoch.

    `arguments`, `result`, `error` and the values of `answers` and `steps` are stored texts: JSON, or
    a pointer to an object (see `taskrail.payloads`). `tokens` are the task tokens of states that wait for an
    answer, by the key of their question, each until the answer was passed on. `reservation` is the key under
    which repeated calls find this task. `lease_until` is until when a worker is known to be at work, for engines that
    cannot be asked.
    """

    task_id: str
    owner: str
    tool: str
    engine: str
    created_at: int
    updated_at: int
    ttl_ms: int | None
    keep_ms: int | None
    poll_ms: int
    run_started_at: int
    run_deadline: int
    arguments: str | None = None
    status: Status = Status.WORKING
    status_message: str | None = None
    progress: Progress | None = None
    run: int = 1
    attempt: int = 0
    run_id: str | None = None
    run_open: bool = True
    claim: str | None = None
    answer_deadline: int | None = None
    result: str | None = None
    error: str | None = None
    questions: Mapping[str, Question] = field(default_factory=dict)
    answers: Mapping[str, str] = field(default_factory=dict)
    steps: Mapping[str, str] = field(default_factory=dict)
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)
    cancel_requested_at: int | None = None
    probed_at: int | None = None
    missing_since: int | None = None
    lease_until: int | None = None
    sealed_until: int | None = None
    client: Mapping[str, Any] = field(default_factory=dict)
    caller: Mapping[str, Any] = field(default_factory=dict)
    traceparent: str | None = None
    reservation: str | None = None
    schema: int = SCHEMA
    rev: int = 1
    nonce: str = ""

    @property
    def open(self) -> bool:
        """Whether the task can still change."""
        return not self.status.terminal

    @property
    def claimed(self) -> bool:
        """Whether a worker has taken up the current run."""
        return self.attempt > 0

    @property
    def outstanding(self) -> dict[str, Question]:
        """The questions that still want an answer, by key."""
        if self.status is not Status.INPUT_REQUIRED:
            return {}
        return {key: question for key, question in self.questions.items() if key not in self.answers}

    @property
    def expires_at(self) -> int | None:
        """The moment after which the task is unknown; None for never."""
        return None if self.ttl_ms is None else self.created_at + self.ttl_ms

    @property
    def due(self) -> dict[str, str]:
        """The task tokens whose questions are answered, by key: the answers that are still to be passed on."""
        return {key: token for key, token in self.tokens.items() if key in self.answers}

    def expired(self, now: int) -> bool:
        """Whether the task is unknown at that moment, whenever the table deletes it."""
        return self.expires_at is not None and now >= self.expires_at

    def poll_interval(self, now: int) -> int:
        """Milliseconds that a client should wait: a tenth of the age, between the tool's own and a minute."""
        if self.status.terminal:
            return self.poll_ms
        since = self.run_started_at if self.status is Status.WORKING else self.updated_at
        return max(self.poll_ms, min((now - since) // 10, LONGEST_POLL_MS))

    def view(self, now: int) -> dict[str, Any]:
        """The flat fields that every answer about this task carries (Tasks, section "Tasks")."""
        view: dict[str, Any] = {"taskId": self.task_id, "status": self.status.value}
        if self.status_message is not None:
            view["statusMessage"] = self.status_message
        view["createdAt"] = clock.iso(self.created_at)
        view["lastUpdatedAt"] = clock.iso(self.updated_at)
        view["ttlMs"] = self.ttl_ms
        view["pollIntervalMs"] = self.poll_interval(now)
        if self.progress is not None:
            numbers = {"done": self.progress.done, "total": self.progress.total}
            view["_meta"] = {PROGRESS_KEY: {name: number for name, number in numbers.items() if number is not None}}
        return view

    # Moves. Each is legal only while the task is open; a terminal task comes back as it is.

    def launched(self, run: int, run_id: str) -> Task:
        """The engine's id of a run is known; the first one stays, or the one whose worker claims the run."""
        if not self.open or self.run != run or self.run_id is not None:
            return self
        return replace(self, run_id=run_id)

    def reported(self, progress: Progress | None, message: str | None, now: int) -> Task:
        """The run told how far it is."""
        # That cancellation was requested is told until the end.
        told = message if self.cancel_requested_at is None else self.status_message
        reached = progress or self.progress
        if not self.open or (reached == self.progress and told == self.status_message):
            return self
        return self._touched(now, progress=reached, status_message=told)

    def stepped(self, name: str, outcome: str) -> Task:
        """A step's outcome is remembered; the first one stays. Nothing that a client sees changes."""
        if not self.open or name in self.steps:
            return self
        return replace(self, steps={**self.steps, name: outcome})

    def asked(
        self, questions: Mapping[str, Question], now: int, *, answer_within_ms: int, budget_ms: int, hold: bool
    ) -> Task:
        """Questions are open; the run ends with them unless it is held open.

        Parameters
        ----------
        questions
            By key. One that was asked before stays as it was.
        answer_within_ms
            How long an answer may take.
        budget_ms
            What the run after the answer may take, queueing included.
        hold
            Whether the run stays alive for a while.
        """
        # Whoever wanted the end is not to be asked; the worker hears of it with this very report.
        if not self.open or self.cancel_requested_at is not None:
            return self
        known = {**questions, **self.questions}
        if all(key in self.answers for key in known):
            return self
        if self.status is Status.INPUT_REQUIRED and len(known) == len(self.questions):
            # What is open already stays as it was asked; only the run may end with it now.
            return self if hold else self.let_go()
        deadline = now + answer_within_ms
        return self._touched(
            now,
            status=Status.INPUT_REQUIRED,
            status_message="Waiting for input.",
            questions=known,
            answer_deadline=deadline,
            run_open=hold,
            lease_until=self.lease_until if hold else None,
            ttl_ms=self._ttl_for(deadline + budget_ms),
        )

    def awaited(self, key: str, token: str) -> Task:
        """A state waits for the answer to a question with a task token; a new one takes an old one's place."""
        if not self.open or key not in self.questions or self.tokens.get(key) == token:
            return self
        return replace(self, tokens={**self.tokens, key: token})

    def passed_on(self, handed: Mapping[str, str]) -> Task:
        """Answers have been handed to the states that waited with these tokens."""
        left = {key: token for key, token in self.tokens.items() if handed.get(key) != token}
        return self if len(left) == len(self.tokens) or not self.open else replace(self, tokens=left)

    def let_go(self) -> Task:
        """The run no longer waits for the answer: the next one will take it up."""
        if self.status is not Status.INPUT_REQUIRED or not self.run_open:
            return self
        return replace(self, run_open=False, lease_until=None)

    def answered(self, answers: Mapping[str, str], now: int, *, budget_ms: int) -> Task:
        """Answers to open questions are kept; the last one sets the task to work again.

        Keys that are unknown or answered change nothing. A run that was not held open is followed
        by the next one, which somebody still has to start.
        """
        new = {key: text for key, text in answers.items() if key in self.outstanding}
        if not new:
            return self
        task = self._touched(now, answers={**self.answers, **new})
        if task.outstanding:
            return task
        task = replace(task, status=Status.WORKING, status_message="The answer has arrived.", answer_deadline=None)
        if not self.run_open:
            return task._next_run(now, budget_ms)
        if not self.tokens:
            return task
        # A state machine that waits does not work: its time begins anew.
        deadline = max(task.run_deadline, now + budget_ms)
        return replace(task, run_deadline=deadline, ttl_ms=task._ttl_for(deadline))

    def cancelling(self, now: int, *, unclaimed_works: bool = False) -> Task:
        """Cancellation was asked for: settled at once where nobody is at work, told otherwise.

        Parameters
        ----------
        unclaimed_works
            Whether the work goes on without a claim: nothing of the kit's runs in a state machine or a container.
        """
        if not self.open:
            return self
        if not unclaimed_works and (not self.claimed or self.status is Status.INPUT_REQUIRED):
            return self.ended(Status.CANCELLED, now, message="Cancelled.")
        if self.cancel_requested_at is not None:
            return self
        message = "Cancellation was requested; the work has been told."
        # A state machine that waits for an answer still has to be stopped, and that can fail: it is over when it is.
        return self._touched(
            now, status=Status.WORKING, cancel_requested_at=now, status_message=message, answer_deadline=None
        )

    def ended(
        self, status: Status, now: int, *, message: str, result: str | None = None, error: str | None = None
    ) -> Task:
        """The first terminal write: what the task ended as, for as long as the result is kept.

        What only a run needs is dropped, since every read pays for the whole item. A task that was
        made from a sealed state outlives that state: replayed later, it must still be found here.
        """
        if not self.open:
            return self
        ttl = None
        if self.keep_ms is not None:
            ttl = max(now - self.created_at, 0) + self.keep_ms
            if self.sealed_until is not None:
                ttl = max(ttl, self.sealed_until - self.created_at)
        return self._touched(
            now,
            status=status,
            status_message=message,
            result=result,
            error=error,
            ttl_ms=ttl,
            run_open=False,
            lease_until=None,
            answer_deadline=None,
            arguments=None,
            questions={},
            answers={},
            steps={},
            tokens={},
        )

    def probed(self, now: int, *, missing: bool) -> Task:
        """The engine was asked about the run. Nothing that a client sees changes."""
        if not self.open:
            return self
        since = (self.missing_since or now) if missing else None
        return replace(self, probed_at=now, missing_since=since)

    def _next_run(self, now: int, budget_ms: int) -> Task:
        return replace(
            self,
            run=self.run + 1,
            attempt=0,
            run_id=None,
            run_open=True,
            claim=None,
            run_started_at=now,
            run_deadline=now + budget_ms,
            probed_at=None,
            missing_since=None,
            lease_until=None,
            progress=self.progress,
            ttl_ms=self._ttl_for(now + budget_ms),
        )

    def _ttl_for(self, deadline: int) -> int | None:
        """Enough for what may still come: it only grows while the task is open."""
        if self.keep_ms is None or self.ttl_ms is None:
            return None
        return max(self.ttl_ms, deadline - self.created_at + self.keep_ms)

    def _touched(self, now: int, **changes: Any) -> Task:
        return replace(self, updated_at=max(now, self.updated_at + 1), **changes)
