"""Leases: what stands in for an engine that can neither be asked nor told to stop.

A worker's claim takes a lease on its run, and every write of that worker extends it. While it holds, somebody is at
work; once it is over, nobody is: the worker would have renewed it.

Time line of a function that dies: its last write, the lease's end at most `LEASE_MS` later, Lambda's second attempt
a minute after the death. So the attempt that follows finds the lease over and takes the run over at once.
"""

from __future__ import annotations

from dataclasses import replace

from taskrail.task import Task

LEASE_MS = 45_000
"""How long a worker may be silent. Shorter than the minute that Lambda waits before it tries again (Lambda Developer
Guide, "How Lambda handles errors and retries with asynchronous invocation")."""

RENEWED_BELOW_MS = 25_000
"""What is left of a lease when its worker renews it: several tries fit into that, each of 12 s at worst."""

RETRY_WITHIN_MS = 300_000
"""How long after a lease's end another attempt may take to begin: Lambda waits one minute, then two, and has to find
a place for it."""


def extended(before: Task, after: Task, now: int) -> Task:
    """What a worker writes, with its lease extended along, where it has one and its run goes on."""
    if after is before or after.lease_until is None:
        return after
    return renewed(after, now)


def renewed(task: Task, now: int) -> Task:
    """The task with a whole lease; it never gets shorter."""
    return replace(task, lease_until=max(now + LEASE_MS, task.lease_until or 0))


def wants_renewal(task: Task, now: int) -> bool:
    """Whether a worker has to renew its lease."""
    return task.lease_until is not None and task.lease_until - now < RENEWED_BELOW_MS


def holds(task: Task, now: int) -> bool:
    """Whether somebody is known to be at work."""
    return task.lease_until is not None and now < task.lease_until


def given_up(task: Task, now: int, *, attempts: int, grace_ms: int) -> bool:
    """Whether nobody is at work on a claimed run, and nobody will be.

    Parameters
    ----------
    task, now
        The task, and the moment.
    attempts
        How often its tool's runs are tried.
    grace_ms
        How much clocks may differ, in milliseconds.
    """
    until = (task.lease_until or 0) + grace_ms
    # Whoever asked for the end does not wait for another attempt.
    if task.attempt < attempts and task.cancel_requested_at is None:
        until += RETRY_WITHIN_MS
    return now >= until


def asks_for_another(task: Task, now: int, *, after_ms: int) -> bool:
    """Whether an unclaimed run has been silent for so long that it is worth another invocation.

    Its event may just be waiting in Lambda's queue, so that each pause is as long as all the time before it.

    Parameters
    ----------
    task, now
        The task, and the moment.
    after_ms
        The first pause, in milliseconds.
    """
    age = now - task.run_started_at
    last = 0 if task.probed_at is None else task.probed_at - task.run_started_at
    return age >= max(after_ms, 2 * last)
