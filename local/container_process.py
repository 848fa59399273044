"""The command of a container as a plain process: `python -m local.container_process`, started by the supervisor.

There is no image: the command runs with the programs and the files of this machine. What it prints goes to
the run's log, and it sees the variables that its container would see, not those of the local stack.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

from local.child import NOTHING, when_cut
from local.job_process import end_own_session
from local.records import MARK, Record, Records, sign

NOT_FOUND = 127
"""Exit code when there is no such command, as a shell has it."""

_OURS = ("TASKRAIL_", "PYTHON")


def main(argv: Sequence[str]) -> None:
    """Run the command of a run.

    Parameters
    ----------
    argv
        The stack's directory, the run's name, and the descriptors of its lock and of the lifeline.
    """
    directory, name, lock, lifeline = Path(argv[0]), argv[1], int(argv[2]), int(argv[3])
    early: list[int] = []
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda number, _: early.append(number))
    sign(lock)
    if lifeline != NOTHING:
        when_cut(lifeline, lambda: end_own_session(directory, name))
    records = Records(directory / "runs")
    record = records.read(name)
    code = _run(record, early)
    records.note_exit(name, code)
    os._exit(code)


def environment_of(record: Record, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of a container's command.

    Parameters
    ----------
    record
        Its run.
    environ
        Those of the local stack: its settings and its secret are not handed on.
    """
    kept = {name: value for name, value in environ.items() if not name.startswith(_OURS) or name == MARK}
    return {**kept, **record.environment}


def _run(record: Record, early: Sequence[int]) -> int:
    try:
        process = subprocess.Popen(
            record.command, stdin=subprocess.DEVNULL, env=environment_of(record, os.environ), close_fds=True
        )
    except OSError as error:
        print(f"taskrail: {record.command[0]!r} cannot run on this machine: {error.strerror}", file=sys.stderr)
        return NOT_FOUND

    def pass_on(signum: int, frame: FrameType | None) -> None:
        # Batch's signal reaches the first process of a container, and no other.
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)

    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, pass_on)
    if early:
        pass_on(signal.SIGTERM, None)
    code = process.wait()
    # As a container's exit code tells of a signal.
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    main(sys.argv[1:])
