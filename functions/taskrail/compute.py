"""Where a task runs, and what it may cost in time: sizes and durations, checked when declared."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Literal, Protocol, get_args

from taskrail.clock import days, hours, milliseconds, minutes, seconds

Architecture = Literal["arm64", "x86_64"]

# A Lambda function ends at 15 minutes; the difference is what the worker needs to load the job
# and to report that time ran out before the engine cuts it off.
# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
FUNCTION_LONGEST = minutes(14) + seconds(30)
FUNCTION_MEMORY_MB = (128, 10_240)
STEP_FUNCTIONS_QUEUE_MS = 60_000

# What Fargate offers: memory in MB by vCPU.
# https://docs.aws.amazon.com/batch/latest/APIReference/API_ResourceRequirement.html
FARGATE_MEMORY_MB: dict[float, tuple[int, ...]] = {
    0.25: (512, 1024, 2048),
    0.5: tuple(range(1024, 4097, 1024)),
    1: tuple(range(2048, 8193, 1024)),
    2: tuple(range(4096, 16_385, 1024)),
    4: tuple(range(8192, 30_721, 1024)),
    8: tuple(range(16_384, 61_441, 4096)),
    16: tuple(range(32_768, 122_881, 8192)),
}

# https://docs.aws.amazon.com/batch/latest/userguide/job_timeouts.html
BATCH_TIMEOUT = (minutes(1), days(14))

# https://docs.aws.amazon.com/batch/latest/APIReference/API_JobStateTimeLimitAction.html
BATCH_QUEUE = (minutes(10), hours(24))

# https://docs.aws.amazon.com/batch/latest/APIReference/API_EphemeralStorage.html
BATCH_STORAGE_GB = (21, 200)

BATCH_MOST_ATTEMPTS = 10

# https://docs.aws.amazon.com/lambda/latest/api/API_PutFunctionEventInvokeConfig.html
LAMBDA_QUEUE = (minutes(1), hours(6))
LAMBDA_MOST_ATTEMPTS = 3

# How long Lambda waits before it invokes a function again that has failed: one minute, then two.
# https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
LAMBDA_PAUSES = (minutes(1), minutes(2))

# Moments are written as ISO 8601 with four digits of year, so that durations need a bound.
LONGEST_DURATION = days(3650)


class Compute(Protocol):
    """What every place to run has in common; `runs_on` takes any of them."""

    engine: ClassVar[str]

    @property
    def attempts(self) -> int:
        """How often a run is tried at most, each time with its whole `timeout`."""
        ...

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
    attempts: ClassVar[int] = 1

    def __post_init__(self) -> None:
        _check_function("StepFunctions", self.memory_mb, self.timeout)


@dataclass(frozen=True)
class Lambda:
    """Run the job in a Lambda function that is invoked asynchronously: no state machine, and nothing to ask or to stop.

    Parameters
    ----------
    memory_mb
        Memory of the function in MB, 128 to 10240; its CPU grows along.
    timeout
        Longest time of one attempt, at most 14 minutes 30 seconds: a Lambda function ends at 15
        minutes, and the report of a time-out needs the rest.
    attempts
        How often a run is tried when its function dies, 1 to 3; code that fails is not tried again. Lambda waits a
        minute before the second attempt and two before the third.
    queue_within
        How long a run may wait in Lambda's queue, 1 minute to 6 hours; one that waits longer is dropped. Lambda
        counts from the call, so that further attempts have to begin within it too.

    Raises
    ------
    ValueError
        If a size is out of range; the text says what is in range.
    """

    memory_mb: int = 512
    timeout: timedelta = timedelta(minutes=10)
    attempts: int = 1
    queue_within: timedelta = timedelta(hours=1)

    engine: ClassVar[str] = "lambda"

    def __post_init__(self) -> None:
        _check_function("Lambda", self.memory_mb, self.timeout)
        _check_whole("Lambda(attempts=...)", self.attempts, 1, LAMBDA_MOST_ATTEMPTS)
        _check_between("Lambda(queue_within=...)", self.queue_within, LAMBDA_QUEUE, "1 minute to 6 hours")
        before_last = self.timeout * (self.attempts - 1) + sum(LAMBDA_PAUSES[: self.attempts - 1], timedelta())
        if self.queue_within < before_last:
            raise ValueError(
                f"Lambda(queue_within=...) with attempts={self.attempts} is at least {before_last} here: its last "
                "attempt can begin so long after the call, and Lambda drops it if that is later than queue_within"
            )

    @property
    def queue_ms(self) -> int:
        """How long a run may wait for its place before it counts as lost, in milliseconds."""
        return milliseconds(self.queue_within)


@dataclass(frozen=True)
class Batch:
    """Run the job in a container on AWS Batch, with Fargate: hours of time, gigabytes of memory.

    Parameters
    ----------
    vcpu
        Virtual CPUs: 0.25, 0.5, 1, 2, 4, 8 or 16.
    memory_mb
        Memory in MB; which values there are depends on `vcpu`.
    timeout
        Longest time of one attempt, 1 minute to 14 days.
    attempts
        How often a run is tried when its machine is lost, 1 to 10; code that fails is not tried again.
    spot
        Run on spare capacity: cheaper, and any attempt may be interrupted with two minutes' notice.
    architecture
        ``arm64`` or ``x86_64``; the image must be built for it.
    storage_gb
        Disk in GB, 21 to 200; None for the 20 GB that Fargate gives anyway.
    queue_within
        How long a run may wait for its place, 10 minutes to 24 hours; one that waits longer is cancelled.

    Raises
    ------
    ValueError
        If a size is not on offer; the text says what is.
    """

    vcpu: float = 1
    memory_mb: int = 2048
    timeout: timedelta = timedelta(hours=1)
    attempts: int = 3
    spot: bool = False
    architecture: Architecture = "arm64"
    storage_gb: int | None = None
    queue_within: timedelta = timedelta(hours=6)

    engine: ClassVar[str] = "batch"

    def __post_init__(self) -> None:
        if isinstance(self.vcpu, bool) or not isinstance(self.vcpu, int | float) or self.vcpu not in FARGATE_MEMORY_MB:
            raise ValueError(f"Batch(vcpu=...) is one of {', '.join(map(str, FARGATE_MEMORY_MB))}")
        sizes = FARGATE_MEMORY_MB[self.vcpu]
        if isinstance(self.memory_mb, bool) or not isinstance(self.memory_mb, int) or self.memory_mb not in sizes:
            raise ValueError(f"Batch(memory_mb=...) with {self.vcpu} vCPU is one of {', '.join(map(str, sizes))}")
        _check_between("Batch(timeout=...)", self.timeout, BATCH_TIMEOUT, "1 minute to 14 days")
        _check_between("Batch(queue_within=...)", self.queue_within, BATCH_QUEUE, "10 minutes to 24 hours")
        _check_whole("Batch(attempts=...)", self.attempts, 1, BATCH_MOST_ATTEMPTS)
        if self.storage_gb is not None:
            _check_whole("Batch(storage_gb=...)", self.storage_gb, *BATCH_STORAGE_GB)
        if not isinstance(self.spot, bool):
            raise ValueError("Batch(spot=...) is True or False")
        if self.architecture not in get_args(Architecture):
            raise ValueError(f"Batch(architecture=...) is {' or '.join(map(repr, get_args(Architecture)))}")

    @property
    def queue_ms(self) -> int:
        """How long a run may wait for its place before it counts as lost, in milliseconds."""
        return milliseconds(self.queue_within)


def _check_function(name: str, memory_mb: object, timeout: timedelta) -> None:
    lowest, highest = FUNCTION_MEMORY_MB
    if isinstance(memory_mb, bool) or not isinstance(memory_mb, int):
        raise ValueError(f"{name}(memory_mb=...) is a whole number of MB")
    if not lowest <= memory_mb <= highest:
        raise ValueError(f"{name}(memory_mb=...) must be {lowest} to {highest}")
    checked_milliseconds(f"{name}(timeout=...)", timeout)
    if timeout > FUNCTION_LONGEST:
        raise ValueError(
            f"{name}(timeout=...) is at most 14 minutes 30 seconds, since its Lambda function "
            "ends at 15 minutes; split the work into steps that fit"
        )


def _check_between(name: str, duration: object, bounds: tuple[timedelta, timedelta], told: str) -> None:
    checked_milliseconds(name, duration)
    if not isinstance(duration, timedelta) or not bounds[0] <= duration <= bounds[1]:
        raise ValueError(f"{name} is {told}")


def _check_whole(name: str, number: object, lowest: int, highest: int) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or not lowest <= number <= highest:
        raise ValueError(f"{name} is a whole number from {lowest} to {highest}")


@dataclass(frozen=True)
class Policy:
    """The durations of a task tool, in milliseconds.

    Parameters
    ----------
    timeout_ms
        Longest time of one attempt.
    queue_ms
        Allowance for the time before the run gets going.
    keep_result_ms
        How long the ticket outlives the end of the task; None for ever.
    answer_within_ms
        How long a question stays open.
    poll_interval_ms
        Shortest interval that is suggested to clients between two reads.
    attempts
        How often a run is tried at most, each time with the whole of `timeout_ms`.
    """

    timeout_ms: int
    queue_ms: int
    keep_result_ms: int | None
    answer_within_ms: int
    poll_interval_ms: int
    attempts: int = 1

    @property
    def run_budget_ms(self) -> int:
        """Milliseconds from the start of a run until it is out of time, queueing and further attempts included."""
        return self.timeout_ms * self.attempts + self.queue_ms


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
        attempts=runs_on.attempts,
    )
