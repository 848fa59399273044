"""AWS Batch with trouble in it: every start is a new job, and a stop takes its time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from taskrail.engines import RunOrder, RunReport, RunState, parse_run_name
from taskrail.errors import StartRefused
from taskrail.testing import StandingClock
from tests.property.outside import Outside, TroubledEngine, unavailable


@dataclass
class Job:
    """A job of Batch.

    Parameters
    ----------
    name, order
        The run it was submitted for, and what it was told.
    known_from
        When a list of jobs first has it.
    begun
        Whether its container runs, or ran.
    ordered_at
        When it was told to end.
    report
        How it stands.
    """

    job_id: str
    name: str
    order: RunOrder
    known_from: int
    begun: bool = False
    ordered_at: int | None = None
    report: RunReport = field(default_factory=lambda: RunReport(RunState.RUNNING))


class TroubledJobs:
    """An engine like Batch: every start is a new job, and one that was told to end takes half a minute.

    Parameters
    ----------
    outside, clock
        As for `TroubledEngine`.
    check_start, check_stop
        Called with the task and number of a run when a job is really submitted; and with the id of the job, too,
        when it is really stopped.
    """

    records_ids = True
    stops_gently = True
    by_lease = False
    LEFT_MS = 30_000

    def __init__(
        self,
        outside: Outside,
        clock: StandingClock,
        check_start: Callable[[str, int], None],
        check_stop: Callable[[str, int, str], None],
    ) -> None:
        self._outside = outside
        self._clock = clock
        self._check_start = check_start
        self._check_stop = check_stop
        self.lags = False
        self.all: dict[str, Job] = {}

    def start(self, order: RunOrder) -> str:
        """As `Engine.start`."""
        refused = self._outside.refuses()
        answer: str = self._call(
            order.name, lambda: self._start(order), (lambda: StartRefused("refused")) if refused else unavailable
        )
        return answer

    def stop(self, tool: str, name: str, run_id: str | None) -> bool:
        """As `Engine.stop`."""
        answer: bool = self._call(name, lambda: self._stop(name, run_id), unavailable)
        return answer

    def describe(self, tool: str, name: str, run_id: str | None) -> RunReport:
        """As `Engine.describe`."""
        report: RunReport = self._call(name, lambda: self._describe(name, run_id), unavailable)
        return report

    def resume(self, token: str, output: str) -> None:
        """As `Engine.resume`: no job waits with a token."""

    def log_tail(self, tool: str, log: str, lines: int) -> tuple[str, ...]:
        """As `Engine.log_tail`: there is none."""
        return ()

    def of(self, name: str) -> list[Job]:
        """The jobs of a run, the first submitted first."""
        return [job for job in self.all.values() if job.name == name]

    def lives(self, job: Job) -> bool:
        """Whether a job is not over; one that was told long ago has been killed."""
        if job.ordered_at is not None and self._clock.now() >= job.ordered_at + self.LEFT_MS and not job.report.ended:
            job.report = self.account(job, RunState.STOPPED)
        return not job.report.ended

    def account(self, job: Job, state: RunState, reason: str | None = None) -> RunReport:
        """What Batch says of a job in that state."""
        return RunReport(state, reason, run_id=job.job_id, attempt=int(job.begun))

    def report(self, job: Job) -> RunReport:
        """What Batch says of a job."""
        return self.account(job, RunState.RUNNING) if self.lives(job) else job.report

    def _call(self, name: str, act: Callable[[], Any], unknown: Callable[[], Exception]) -> Any:
        return self._outside.call(name.partition("-")[0], act, unknown, writes=False)

    def _start(self, order: RunOrder) -> str:
        parsed = parse_run_name(order.name)
        assert parsed is not None
        self._check_start(*parsed)
        job_id = f"job-{len(self.all) + 1}"
        known_from = self._clock.now() + (TroubledEngine.LAG_MS if self.lags else 0)
        self.all[job_id] = Job(job_id, order.name, order, known_from)
        return job_id

    def _found(self, name: str, run_id: str | None) -> list[Job]:
        if run_id is not None:
            return [self.all[run_id]] if run_id in self.all else []
        return [job for job in self.of(name) if self._clock.now() >= job.known_from]

    def _stop(self, name: str, run_id: str | None) -> bool:
        parsed = parse_run_name(name)
        assert parsed is not None
        stopped = True
        for job in self._found(name, run_id):
            if not self.lives(job):
                continue
            self._check_stop(*parsed, job.job_id)
            if job.begun:
                job.ordered_at, stopped = job.ordered_at or self._clock.now(), False
            else:
                job.report = self.account(job, RunState.STOPPED)
        return stopped

    def _describe(self, name: str, run_id: str | None) -> RunReport:
        reports = [self.report(job) for job in self._found(name, run_id)]
        return next(iter([report for report in reports if not report.ended] or reports), RunReport(RunState.NOT_FOUND))
