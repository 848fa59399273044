"""Which AWS calls each operation of each engine makes: one table, which a test holds against the calls that are made.

`tests/functional/test_cost_calls.py` runs the operations under the real handlers and compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from taskrail.rail import leases

Engine = Literal["inline", "lambda", "step_functions", "batch", "container", "workflow"]
"""What a tool's work is, as far as its price goes: the engines, and the two kinds of foreign work on them."""

ENGINES: tuple[Engine, ...] = ("inline", "lambda", "step_functions", "batch", "container", "workflow")

_ENDED = {"poll": ("GetItem",), "removed": ("GetItem", "ListObjectsV2")}

CALLS: Mapping[Engine, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "inline": {"call": ()},
        "lambda": {
            "call": ("PutItem", "Invoke"),
            "run": ("UpdateItem", "UpdateItem"),
            "look": ("GetItem",),
            "renewal": ("UpdateItem",),
            **_ENDED,
        },
        "step_functions": {
            "call": ("PutItem", "StartExecution"),
            "run": ("UpdateItem", "UpdateItem"),
            "look": ("GetItem",),
            "probe": ("GetItem", "DescribeExecution", "UpdateItem"),
            "end_event": ("GetItem",),
            **_ENDED,
        },
        "batch": {
            "call": ("PutItem", "SubmitJob", "UpdateItem"),
            "run": ("UpdateItem", "UpdateItem"),
            "look": ("GetItem",),
            "probe": ("GetItem", "DescribeJobs", "UpdateItem"),
            "event": ("GetItem",),
            "end_event": ("GetItem",),
            **_ENDED,
        },
        "container": {
            "call": ("PutObject", "PutItem", "SubmitJob", "UpdateItem"),
            "report_result": ("GetItem", "PutObject"),
            "probe": ("GetItem", "DescribeJobs", "UpdateItem"),
            "event": ("GetItem",),
            "end_event": ("GetItem", "GetObject", "UpdateItem"),
            "poll": ("GetItem",),
            "removed": ("GetItem", "DescribeJobs", "ListObjectsV2", "DeleteObjects"),
        },
        "workflow": {
            "call": ("PutItem", "StartExecution"),
            "probe": ("GetItem", "DescribeExecution", "UpdateItem"),
            "end_event": ("GetItem", "UpdateItem"),
            "poll": ("GetItem",),
            "removed": ("GetItem", "StopExecution", "ListObjectsV2"),
        },
    }
)
"""By engine and operation, for small payloads. `probe` is a poll of a task that has been silent; `look` is what a
worker that tells nothing does to hear of a cancellation; `event` and `end_event` are EventBridge's."""

EVENTS_BEFORE_THE_END = 5
"""Events of a job on Batch before its last one: submitted, pending, runnable, starting, running (AWS Batch User
Guide, "Job state change events")."""

LARGE_PAYLOAD = ("PutObject", "GetObject")
"""What an argument or a result adds, each, that is too large for the item."""

TRANSITIONS_OF_A_JOB = 2
"""Into the one state of `infra/job_machine.py`, and out of it to the end: the most that AWS can count there."""

_FIRST_LOOK_MS = 2_000
_LONGEST_LOOK_MS = 5_000


def looks(runtime_ms: float) -> int:
    """How often a worker that tells nothing looks for the cancel flag in a run of that length, renewals not counted.

    Parameters
    ----------
    runtime_ms
        How long the job's own code takes, in milliseconds.
    """
    count, at = 0, _look_interval(0)
    while at < runtime_ms:
        count += 1
        at += _look_interval(at)
    return count


def renewals(runtime_ms: float) -> int:
    """How often a worker on Lambda that tells nothing renews its lease in a run of that length."""
    return int(runtime_ms // (leases.LEASE_MS - leases.RENEWED_BELOW_MS))


def _look_interval(age_ms: float) -> float:
    return min(max(age_ms / 20, _FIRST_LOOK_MS), _LONGEST_LOOK_MS)
