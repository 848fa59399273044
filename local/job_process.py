"""One attempt of a job in a process of its own: `python -m local.job_process`, started by the supervisor.

SIGTERM asks the job to end. A job that looks for its cancellation hears of it there; one that does
not is interrupted after a short grace by `SystemExit` in its main thread, so that ``finally`` blocks
run. SIGINT, when the whole stack ends, interrupts at once. What does not end then is killed.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from local.child import NOTHING, remove, when_cut
from local.http_event import Invocation
from local.processes import end_marked
from local.records import KILL_AFTER_MS, MARK, Record, Records, sign
from local.stack import Stack
from taskrail.clock import SystemClock
from taskrail.errors import StoreUnavailable

HEAR_WITHIN = 2.5
"""Seconds between SIGTERM and `SystemExit`: longer than a worker goes without looking for the flag."""

ATTEMPTS = 3
"""Attempts of a run whose task cannot be reached, as a state machine would retry."""


def main(argv: Sequence[str]) -> None:
    """Be the job process of a run.

    Parameters
    ----------
    argv
        The stack's directory, the run's name, and the descriptors of its lock and of the lifeline.
    """
    directory, name, lock, lifeline = Path(argv[0]), argv[1], int(argv[2]), int(argv[3])
    sign(lock)
    signal.signal(signal.SIGTERM, _end_now)
    signal.signal(signal.SIGINT, _end_now)
    if lifeline != NOTHING:
        when_cut(lifeline, lambda: end_own_session(directory, name))
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO, stream=sys.stderr)
    logging.getLogger("botocore").setLevel(logging.WARNING)
    stack, records = Stack.load(directory), Records(directory / "runs")
    # A job may close its output or fill its disk: what cannot be written there changes nothing else.
    logging.raiseExceptions = False
    code = 1
    try:
        code = _run(stack, records.read(name))
        signal.setitimer(signal.ITIMER_REAL, 0)
        records.note_exit(name, code)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        # Threads that the job left behind do not hold its run open, as they do not in a Lambda.
        os._exit(code)


def _run(stack: Stack, record: Record) -> int:
    try:
        _attempts(stack, record)
    except SystemExit as ending:
        return ending.code & 0xFF if isinstance(ending.code, int) else int(ending.code is not None)
    except BaseException:
        logging.getLogger("taskrail").exception("the job process of %s failed", record.tool)
        return 1
    return 0


def _attempts(stack: Stack, record: Record) -> None:
    from local.assemble import runtime_of
    from taskrail.worker import run_attempt

    runtime = runtime_of(stack)
    clock = SystemClock()
    # Until here nothing had begun that a signal could leave half done.
    signal.signal(signal.SIGTERM, _end_soon)
    if record.engine == "lambda":
        from handlers.invoked_job import bind

        within_ms = record.deadline + KILL_AFTER_MS - clock.now()
        outcome = bind(runtime)(record.payload, Invocation(record.run_id, clock, within_ms))["outcome"]
        logging.getLogger("taskrail").info("the invocation ended: %s", outcome)
        return
    # AWS Batch starts another process for another attempt, and so does the supervisor.
    last = record.attempt + (0 if record.engine == "batch" else ATTEMPTS - 1)
    for attempt in range(record.attempt, last + 1):
        try:
            outcome = run_attempt(
                runtime.rail.reports,
                runtime.server,
                task_id=record.payload["taskId"],
                run=record.payload["run"],
                run_id=record.run_id,
                attempt=attempt,
                # The supervisor kills a while after the deadline: the worker's last words fall on it.
                remaining_ms=lambda: record.deadline + KILL_AFTER_MS - clock.now(),
            )
        except StoreUnavailable:
            if attempt == last:
                raise
            clock.sleep(1_000 * attempt)
        else:
            logging.getLogger("taskrail").info("the run ended: %s", outcome)
            return


def _end_now(signum: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + signum)


def _end_soon(signum: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGALRM, lambda *_: _end_now(signum, None))
    signal.setitimer(signal.ITIMER_REAL, HEAR_WITHIN)


def end_own_session(directory: Path, name: str) -> None:
    """The launcher is gone: so is everything that belongs to it, what the job started included."""
    end_marked(f"{MARK}={directory / 'runs' / name}")
    remove(directory)
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
