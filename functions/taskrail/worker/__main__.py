"""A job's process in a container of AWS Batch: `python -m taskrail.worker`.

The container's environment says which run this is. Exit codes: 0 when there is nothing left to do here, be
it that the job's code failed (its task says so) or that another worker had come first; 75 (``EX_TEMPFAIL``)
when the task could not be reached or the attempt was interrupted, so that Batch tries again; 64
(``EX_USAGE``) when the environment lacks something.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from contextlib import suppress

from taskrail.clock import SystemClock
from taskrail.context import RunInterrupted
from taskrail.errors import StoreUnavailable
from taskrail.settings import JobEnvironment, SettingsError
from taskrail.worker.attempt import run_attempt
from taskrail.worker.notice import Notice

DONE, UNUSABLE, AGAIN = 0, 64, 75

_log = logging.getLogger("taskrail")


def main(environ: Mapping[str, str] | None = None) -> int:
    """Do the attempt; the exit code.

    Parameters
    ----------
    environ
        What says which attempt, in place of the process's own environment.
    """
    began_at = SystemClock().now()
    notice = Notice()
    notice.listen()
    logging.basicConfig(format="%(levelname)s %(message)s", level=logging.INFO, stream=sys.stderr)
    logging.getLogger("botocore").setLevel(logging.WARNING)
    try:
        mine = JobEnvironment.from_environment(environ)
        from catalogue import server
        from taskrail.runtime import worker_from_environment

        runtime = worker_from_environment(server)
        outcome = run_attempt(
            runtime.rail.reports,
            runtime.server,
            task_id=mine.task_id,
            run=mine.run,
            run_id=mine.job_id,
            attempt=mine.attempt,
            began_at=began_at,
            notice=notice,
        )
    except SettingsError as error:
        print(f"taskrail.worker: {error}", file=sys.stderr)
        return UNUSABLE
    except StoreUnavailable as error:
        _log.error("the task could not be reached (%s); another attempt may go on", error)
        return AGAIN
    except RunInterrupted:
        _log.warning("interrupted before the job had begun")
        return AGAIN
    _log.info("task %s: run %d, attempt %d: %s", mine.task_id, mine.run, mine.attempt, outcome)
    return AGAIN if outcome == "interrupted" else DONE


if __name__ == "__main__":
    code = 1
    try:
        code = main()
    except BaseException:
        _log.exception("the worker failed")
    finally:
        for stream in (sys.stdout, sys.stderr):
            # The job may have closed them.
            with suppress(OSError, ValueError):
                stream.flush()
        # Threads that the job left behind do not hold its container open.
        os._exit(code)
