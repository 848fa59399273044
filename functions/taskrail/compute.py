"""Where a task runs, and what it may cost in time: sizes and durations, checked when declared."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Protocol

from taskrail.clock import days, milliseconds, minutes, seconds

# A Lambda function ends at 15 minutes; the difference is what the worker needs to load the job
# and to report that time ran out before the engine cuts it off.
# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
STEP_FUNCTIONS_LONGEST = minutes(14) + seconds(30)
STEP_FUNCTIONS_MEMORY_MB = (128, 10_240)
STEP_FUNCTIONS_QUEUE_MS = 60_000

# Moments are written as ISO 8601 with four digits of year, so that durations need a bound.
LONGEST_DURATION = days(3650)


class Compute(Protocol):
    """What every place to run has in common; `runs_on` takes any of them."""

    engine: ClassVar[str]

    @property
    def timeout(self) -> timedelta:
        """How long one run may take."""
        ...

    @property
    def queue_ms(self) -> int:
        """How long a run may wait for its place before it counts as lost, in milliseconds."""
        ...


@dataclass(frozen=True)
class StepFunctions:
    """Run the job in a Lambda function behind a Step Functions execution.

    Parameters
    ----------
    memory_mb
        Memory of the function in MB, 128 to 10240; its CPU grows along.
    timeout
        Longest time of one run, at most 14 minutes 30 seconds: a Lambda function ends at 15
        minutes, and the report of a time-out needs the rest.

    Raises
    ------
    ValueError
        If a size is out of range. At the declaration of a tool it becomes a `DeclarationError`
        when the tool is known.
    """

    memory_mb: int = 512
    timeout: timedelta = timedelta(minutes=10)

    engine: ClassVar[str] = "step_functions"
    queue_ms: ClassVar[int] = STEP_FUNCTIONS_QUEUE_MS

    def __post_init__(self) -> None:
        lowest, highest = STEP_FUNCTIONS_MEMORY_MB
        if isinstance(self.memory_mb, bool) or not isinstance(self.memory_mb, int):
            raise ValueError("StepFunctions(memory_mb=...) is a whole number of MB")
        if not lowest <= self.memory_mb <= highest:
            raise ValueError(f"StepFunctions(memory_mb=...) must be {lowest} to {highest}")
        checked_milliseconds("StepFunctions(timeout=...)", self.timeout)
        if self.timeout > STEP_FUNCTIONS_LONGEST:
            raise ValueError(
                "StepFunctions(timeout=...) is at most 14 minutes 30 seconds, since its Lambda function "
                "ends at 15 minutes; split the work into steps that fit"
            )


@dataclass(frozen=True)
class Policy:
    """The durations of a task tool, in milliseconds.

    Parameters
    ----------
    timeout_ms
        Longest time of one run.
    queue_ms
        Allowance for the time before the run gets going.
    keep_result_ms
        How long the ticket outlives the end of the task; None for ever.
    answer_within_ms
        How long a question stays open.
    poll_interval_ms
        Shortest interval that is suggested to clients between two reads.
    """

    timeout_ms: int
    queue_ms: int
    keep_result_ms: int | None
    answer_within_ms: int
    poll_interval_ms: int

    @property
    def run_budget_ms(self) -> int:
        """Milliseconds from the start of a run until it is out of time, queueing included."""
        return self.timeout_ms + self.queue_ms


def checked_milliseconds(name: str, duration: object) -> int:
    """A duration in milliseconds.

    Parameters
    ----------
    name
        What the duration is called where it was written.
    duration
        A `timedelta`, longer than zero and at most ten years.

    Raises
    ------
    ValueError
        If it is no such duration; the text says what to write.
    """
    if not isinstance(duration, timedelta):
        raise ValueError(f"{name} is a duration such as minutes(10), not {type(duration).__name__}")
    if duration > LONGEST_DURATION:
        raise ValueError(f"{name} is at most {LONGEST_DURATION.days} days")
    # Compared after rounding: less than half a millisecond would become zero.
    length = milliseconds(duration)
    if length <= 0:
        raise ValueError(f"{name} must be longer than zero, at least one millisecond")
    return length


def policy(
    runs_on: Compute, keep_result: timedelta | None, answer_within: timedelta, poll_interval: timedelta
) -> Policy:
    """The durations of a tool as it was declared.

    Parameters
    ----------
    runs_on
        Where the tool runs.
    keep_result
        How long its result is kept after the end; None for ever.
    answer_within
        How long its questions stay open.
    poll_interval
        Shortest interval suggested between two reads.

    Raises
    ------
    ValueError
        If one of them is zero, negative, too long or no duration.
    """
    return Policy(
        timeout_ms=checked_milliseconds("timeout", runs_on.timeout),
        queue_ms=runs_on.queue_ms,
        keep_result_ms=None if keep_result is None else checked_milliseconds("keep_result", keep_result),
        answer_within_ms=checked_milliseconds("answer_within", answer_within),
        poll_interval_ms=checked_milliseconds("poll_interval", poll_interval),
    )
