"""The supervisor's runs: started once per name, watched, told to end, killed, recorded.

All of it happens in one thread, on one event loop: two requests for the same name are one after the
other, and the first of them decides.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from local.processes import Identity, alive, end_marked, end_session, identify, tell
from local.records import KILL_AFTER_MS, MARK, STOP, TIME_OUT, Record, Records
from taskrail.clock import Clock
from taskrail.engines import RunState

MOST_RUNNING = 100
"""Runs at a time; one more is refused, as an account's concurrency would refuse it."""

_LOOK_EVERY = 0.05

log = logging.getLogger("taskrail.local")


class Refused(Exception):
    """The run was not started; the message says why."""


@dataclass
class _Run:
    """A run in the memory of this supervisor: its record, and what watches it."""

    record: Record
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    process: subprocess.Popen[bytes] | None = None
    identity: Identity | None = None
    timer: asyncio.TimerHandle | None = None

    @property
    def pauses(self) -> bool:
        """Whether it is between two attempts, and so has no process."""
        return self.record.next_at > 0 and not self.record.over

    @property
    def adopted(self) -> bool:
        """Whether its process, which may live, is no child of this supervisor."""
        return self.process is None and not self.record.over and not self.pauses


class Runs:
    """Every run of one stack, by name.

    Parameters
    ----------
    records
        Where they are remembered.
    command
        Makes the command line of a job process from the run's record and the descriptor of its lock.
    environment
        Variables of job processes.
    descriptors
        What job processes inherit besides the lock.
    clock
        The time.
    on_end
        Called with the record of each run that ended.
    pause_ms
        How long an invocation is left alone between two attempts, in milliseconds.
    """

    def __init__(
        self,
        records: Records,
        command: Callable[[Record, int], Sequence[str]],
        environment: Mapping[str, str],
        descriptors: Sequence[int],
        clock: Clock,
        on_end: Callable[[Record], None],
        pause_ms: int = 0,
    ) -> None:
        self._records = records
        self._pause_ms = pause_ms
        self._command = command
        self._environment = dict(environment)
        self._descriptors = tuple(descriptors)
        self._clock = clock
        self._on_end = on_end
        self._runs: dict[str, _Run] = {}
        self._closed = False
        self._looking = False

    def start(self, tool: str, name: str, payload: dict[str, Any], timeout_ms: int, **more: Any) -> None:
        """Start the run `name`; a name that was started already stays as it is.

        Parameters
        ----------
        tool, name, payload, timeout_ms, more
            As in `Record`.

        Raises
        ------
        Refused
            Nothing was started under this name.
        """
        if name in self._runs:
            return
        if self._closed:
            raise Refused("The local stack is ending.")
        if len(self.running()) >= MOST_RUNNING:
            raise Refused(f"More than {MOST_RUNNING} runs at a time are not started on one machine.")
        run = _Run(Record(name, tool, payload, timeout_ms, self._clock.now(), **more))
        try:
            self._records.write(run.record)
            self._spawn(run)
        except OSError as error:
            self._records.remove(name)
            raise Refused(f"The job process could not be started: {error.strerror}.") from error
        self._runs[name] = run
        self._set_timer(run)

    def _spawn(self, run: _Run) -> None:
        record, name = run.record, run.record.name
        self._records.temporary(name).mkdir(mode=0o700, exist_ok=True)
        lock = self._records.lock(name)
        try:
            with open(self._records.log(name), "ab") as output:
                run.process = subprocess.Popen(
                    self._command(record, lock),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env={
                        **self._environment,
                        **record.environment,
                        **_batch(record),
                        "TMPDIR": str(self._records.temporary(name)),
                        MARK: str(self._records.folder(name)),
                        # What a job printed before it was killed is in its log.
                        "PYTHONUNBUFFERED": "1",
                    },
                    pass_fds=(lock, *self._descriptors),
                    start_new_session=True,
                )
        finally:
            # The process holds the lock from here on, whatever becomes of the supervisor.
            os.close(lock)
        run.identity = identify(run.process.pid)

    def record(self, name: str) -> Record | None:
        """How the run `name` stands; None if it is unknown."""
        run = self._runs.get(name)
        return None if run is None else run.record

    def running(self) -> list[Record]:
        """Runs that are not over."""
        return [run.record for run in self._runs.values() if not run.record.over]

    def unreported(self) -> list[Record]:
        """Runs that are over and whose end was not passed on, the earliest first."""
        records = [run.record for run in self._runs.values() if run.record.over and not run.record.reported]
        return sorted(records, key=lambda record: record.ended_at or 0)

    def reported(self, name: str) -> None:
        """The end of the run `name` was passed on."""
        run = self._runs.get(name)
        if run is not None and run.record.over:
            self._save(run, replace(run.record, reported=True))

    async def stop(self, name: str, within: float) -> bool:
        """Tell the run `name` to end; True once it has, or if it is unknown.

        Parameters
        ----------
        within
            How long to wait for its end, in seconds. It is killed after its grace in any case.
        """
        run = self._runs.get(name)
        if run is None or run.record.over:
            return True
        self._ask(run, STOP)
        try:
            await asyncio.wait_for(run.ended.wait(), within)
        except TimeoutError:
            return False
        return True

    def kill_all(self) -> None:
        """Kill every run's session at once."""
        self._closed = True
        for run in self._runs.values():
            if not run.record.over:
                self._kill(run)

    async def close(self, within: float) -> None:
        """Start nothing more, tell every run to end, and kill what has not ended in so many seconds."""
        self._closed = True
        open_runs = [run for run in self._runs.values() if not run.record.over]
        for run in open_runs:
            self._ask(run, STOP)
            if run.identity is not None:
                # No time for a job to notice by itself: SIGINT interrupts it where it is.
                tell(run.identity, signal.SIGINT)
        if open_runs:
            ends = [asyncio.ensure_future(run.ended.wait()) for run in open_runs]
            await asyncio.wait(ends, timeout=within)
            self.kill_all()
            await asyncio.wait(ends, timeout=within)

    def adopt(self) -> None:
        """Take over what an earlier supervisor started: watch what lives, settle what has gone."""
        for record in self._records.all():
            run = _Run(record, identity=self._records.identity(record.name))
            if record.over:
                run.ended.set()
            elif run.pauses:
                run.identity = None
                self._set_timer(run)
            elif self._lives(run):
                self._set_timer(run)
            elif run.identity is None:
                # Its supervisor died before the process was born: nothing was started.
                self._records.remove(record.name)
                continue
            self._runs[record.name] = run
        self.look()

    def look(self) -> None:
        """Settle every run whose process has gone. To be called on SIGCHLD; adopted runs are polled."""
        for run in self._runs.values():
            if run.record.over or run.pauses:
                continue
            if run.process is not None:
                self._look_at_child(run, run.process)
            elif not self._lives(run):
                self._end_all(run, run.identity)
                self._end(run, self._records.exit_code(run.record.name))
        if not self._looking and any(run.adopted for run in self._runs.values()):
            self._looking = True
            asyncio.get_running_loop().call_later(_LOOK_EVERY, self._look_again)

    def _look_again(self) -> None:
        self._looking = False
        self.look()

    def _look_at_child(self, run: _Run, process: subprocess.Popen[bytes]) -> None:
        if not _has_exited(process):
            return
        self._end_all(run, run.identity or Identity(process.pid, ""))
        self._end(run, process.wait())

    def _lives(self, run: _Run) -> bool:
        """Whether an adopted run's process lives: its identity tells; while there is none yet, its lock does."""
        if run.identity is None:
            run.identity = self._records.identity(run.record.name)
            if run.identity is None:
                return self._records.locked(run.record.name)
            if run.record.asked is not None:
                # Told to end before it could be told anything.
                self._end_all(run, run.identity)
        return alive(run.identity)

    def _ask(self, run: _Run, why: str) -> None:
        """Tell the process itself, not what it started, so that it can clean up; the kill later takes all."""
        if run.pauses:
            # There is nothing to tell, and nothing to wait for.
            self._save(run, replace(run.record, asked=why, asked_at=self._clock.now(), next_at=0))
            self._end(run, None)
        elif run.record.asked is None:
            self._save(run, replace(run.record, asked=why, asked_at=self._clock.now()))
            if run.identity is not None:
                tell(run.identity, signal.SIGTERM)
            self._set_timer(run)

    def _set_timer(self, run: _Run) -> None:
        if run.timer is not None:
            run.timer.cancel()
        record = run.record
        if run.pauses:
            due, then = record.next_at, self._next_attempt
        elif record.asked is None:
            due, then = record.deadline, self._time_out
        else:
            due, then = record.asked_at + KILL_AFTER_MS, self._kill
        delay = max(0, due - self._clock.now()) / 1000
        run.timer = asyncio.get_running_loop().call_later(delay, then, run)

    def _time_out(self, run: _Run) -> None:
        self._ask(run, TIME_OUT)

    def _kill(self, run: _Run) -> None:
        if run.pauses:
            self._ask(run, STOP)
            return
        self._end_all(run, run.identity)
        if run.identity is None and run.process is not None:
            run.process.kill()

    def _end_all(self, run: _Run, who: Identity | None) -> None:
        """Kill the run's process and whatever it started."""
        if who is not None:
            end_session(who)
        end_marked(self._records.mark(run.record.name))

    def _end(self, run: _Run, code: int | None) -> None:
        if run.timer is not None:
            run.timer.cancel()
        state, reason = _ending(run.record, code)
        self._records.clear_temporary(run.record.name)
        if self._is_tried_again(run.record, state, code):
            self._try_again(run)
            return
        self._save(run, replace(run.record, state=state, reason=reason, ended_at=self._clock.now()))
        run.ended.set()
        self._on_end(run.record)

    def _is_tried_again(self, record: Record, state: RunState, code: int | None) -> bool:
        if record.attempt >= record.attempts or self._closed:
            return False
        if record.engine == "lambda":
            # Lambda tries whatever its function died of, running out of time included.
            return state in (RunState.FAILED, RunState.TIMED_OUT)
        # AWS Batch tries again what was lost, and not what failed.
        return state is RunState.FAILED and code is None

    def _try_again(self, run: _Run) -> None:
        """Begin the next attempt under the same name and id: at once, or after a pause where the engine makes one."""
        log.info("attempt %d of a run of %s was lost; it is tried again", run.record.attempt, run.record.tool)
        run.process = run.identity = None
        if run.record.engine == "lambda":
            self._save(run, replace(run.record, asked=None, asked_at=0, next_at=self._clock.now() + self._pause_ms))
            self._set_timer(run)
        else:
            self._next_attempt(run)

    def _next_attempt(self, run: _Run) -> None:
        attempt = run.record.attempt + 1
        self._save(run, replace(run.record, attempt=attempt, attempt_at=self._clock.now(), next_at=0))
        try:
            self._records.clear_attempt(run.record.name)
            self._spawn(run)
        except OSError:
            log.exception("an attempt could not be started")
            self._save(run, replace(run.record, attempts=run.record.attempt))
            self._end(run, None)
        else:
            self._set_timer(run)

    def _save(self, run: _Run, record: Record) -> None:
        run.record = record
        try:
            self._records.write(record)
        except OSError:
            # A full disk must not stop the supervision of what runs; its memory is right all the same.
            log.exception("the record of a run could not be written")


def _batch(record: Record) -> dict[str, str]:
    """What AWS Batch tells a container of its job."""
    if record.engine != "batch":
        return {}
    return {"AWS_BATCH_JOB_ID": record.run_id, "AWS_BATCH_JOB_ATTEMPT": str(record.attempt)}


def _has_exited(process: subprocess.Popen[bytes]) -> bool:
    """Whether a child has ended, its exit code still unread.

    Until that is read its number stays its own, so that whatever is left of its session can be
    ended under it. macOS has no such look before Python 3.13.
    """
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _ending(record: Record, code: int | None) -> tuple[RunState, str | None]:
    """How a run ended, from why it was told to end and its exit code (None: nobody saw one)."""
    if record.asked == STOP:
        return RunState.STOPPED, None
    if record.asked == TIME_OUT:
        return RunState.TIMED_OUT, None
    if code is None:
        # Nobody knows why: the rail tells its caller so when there is no reason.
        return RunState.FAILED, None
    if code == 0:
        return RunState.SUCCEEDED, None
    if code < 0 and record.engine == "batch":
        # As a container's exit code tells of a signal.
        code = 128 - code
    if code > 0:
        return RunState.FAILED, f"exit code {code}"
    return RunState.FAILED, f"signal {_signal_name(-code)}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
