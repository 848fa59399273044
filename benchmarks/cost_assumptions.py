"""What the price model takes for granted, in one place; everything here can be told otherwise."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Assumptions:
    """What nothing in the repository can measure, since it was never run on AWS.

    Parameters
    ----------
    poll_ms, call_ms
        Billed milliseconds of the API function for a ``tasks/get`` and for a ``tools/call`` that starts a task.
    event_ms
        Billed milliseconds of `run_events`, `expired` and `report` for one event.
    cold_share, cold_ms
        Share of the API's invocations that start a new process, and what that adds in billed milliseconds.
    api_memory_mb, event_memory_mb
        Memory of the API function and of the others, as `infra/` gives it.
    argument_bytes, result_bytes
        JSON of a task's arguments and of its result.
    large_share
        Share of tasks whose arguments, and whose results, are too large for the item and go through S3.
    answer_bytes
        An answer of the API as it leaves AWS, headers included.
    sampled
        Share of requests that X-Ray records: its default rule takes the first of each second, and this share of the
        others.
    job_log_bytes
        What a job's own code logs.
    start_s, batch_start_s
        How long a job waits before it works: on Lambda, and on Fargate, which is paid from the moment that the image
        is loaded.
    batch_paid_start_s
        What of that is paid.
    """

    poll_ms: float = 20.0
    call_ms: float = 60.0
    event_ms: float = 40.0
    cold_share: float = 0.005
    cold_ms: float = 700.0
    api_memory_mb: int = 1_024
    event_memory_mb: int = 512
    argument_bytes: int = 200
    result_bytes: int = 500
    large_share: float = 0.0
    answer_bytes: int = 1_000
    sampled: float = 0.05
    job_log_bytes: int = 0
    start_s: float = 0.5
    batch_start_s: float = 45.0
    batch_paid_start_s: float = 20.0

    def __post_init__(self) -> None:
        """Refuse what cannot be.

        Raises
        ------
        ValueError
            A number is negative, or a share is more than all.
        """
        for field in fields(self):
            value = getattr(self, field.name)
            if value < 0 or (field.name in ("cold_share", "large_share", "sampled") and value > 1):
                raise ValueError(f"{field.name} cannot be {value}")


ASSUMED = Assumptions()
