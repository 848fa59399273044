"""Engines: where a run really happens. One narrow protocol; every call is safe to repeat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol


class RunState(Enum):
    """What an engine knows of a run."""

    RUNNING = "running"
    """Accepted, and not over yet."""
    SUCCEEDED = "succeeded"
    """Over, without a fault that the engine saw."""
    FAILED = "failed"
    """Over, with a fault: an error, a non-zero exit, a kill."""
    TIMED_OUT = "timed_out"
    """Ended by the engine because its time ran out."""
    STOPPED = "stopped"
    """Ended because somebody stopped it."""
    NOT_FOUND = "not_found"
    """Unknown. Engines' answers can lag: no proof that it never started."""


@dataclass(frozen=True)
class RunReport:
    """An engine's account of a run.

    Parameters
    ----------
    state
        How it stands.
    reason
        The name of the error, the exit code or the signal. Never a message or a trace of the job.
    run_id
        The engine's own id of the run that this account is about; None where the run's name is its id.
    attempt
        Number of the last attempt, from 1; 0 when no attempt has begun; None where the engine does not say.
    output
        JSON text of what the run returned, where an engine carries that (state machines); None when there is
        none, or when it has to be asked for (`whole` is False then).
    whole
        Whether `output` is all there is: events leave large outputs out.
    told
        What the work says of its own end, meant for the caller: the cause of an error named ``ToolError``.
    log
        Where the run's log is, as the engine names it (a log stream); None without one.
    """

    state: RunState
    reason: str | None = None
    run_id: str | None = None
    attempt: int | None = None
    output: str | None = field(default=None, repr=False)
    whole: bool = True
    told: str | None = field(default=None, repr=False)
    log: str | None = None

    @property
    def ended(self) -> bool:
        """Whether the run is over."""
        return self.state not in (RunState.RUNNING, RunState.NOT_FOUND)


@dataclass(frozen=True)
class RunOrder:
    """What an engine is told about a run that it is to start.

    Parameters
    ----------
    tool
        Name of the tool whose work it is.
    name
        ``{taskId}-{run}``, unique for ever.
    input
        What an execution gets as its input: ``taskId`` and ``run``, and for workflows what their contract adds.
    environment
        Variables of a job, on top of its definition's.
    parameters
        Values for the ``Ref::name`` placeholders of a job's command.
    timeout_ms
        How long the work may take, in milliseconds.
    traceparent
        W3C trace context of the caller, if it sent one.
    """

    tool: str
    name: str
    input: Mapping[str, object] = field(repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_ms: int = 0
    traceparent: str | None = None


class Engine(Protocol):
    """Starts, stops and describes runs by a name that the rail gives them."""

    @property
    def records_ids(self) -> bool:
        """Whether a run is found for certain only by the id that `start` returned, so that it has to be kept."""
        ...

    @property
    def stops_gently(self) -> bool:
        """Whether a stop tells the work and leaves it time to clean up, so that a cancellation stops at once."""
        ...

    @property
    def by_lease(self) -> bool:
        """Whether it can neither be asked how a run stands nor stop one, so that a lease stands for both.

        A worker renews the lease for as long as it is at work. `stop` is False there, and `describe` tells nothing.
        """
        ...

    def start(self, order: RunOrder) -> str:
        """Start a run; starting a name again changes nothing, or starts work that finds nothing to do.

        Returns
        -------
        str
            The engine's own id of the run.

        Raises
        ------
        StartRefused
            Definitely not started.
        EngineUnavailable
            It may or may not have started.
        """
        ...

    def stop(self, tool: str, name: str, run_id: str | None) -> bool:
        """Stop the run `name`; True once it is known not to go on (stopped, ended or unknown).

        Parameters
        ----------
        tool, name
            Whose run, and its name.
        run_id
            The engine's own id of the run, where it is known.

        Raises
        ------
        EngineUnavailable
            It may or may not have been stopped.
        """
        ...

    def describe(self, tool: str, name: str, run_id: str | None) -> RunReport:
        """How the run stands, with its output when it is over.

        Parameters
        ----------
        tool, name, run_id
            As for `stop`.

        Raises
        ------
        EngineUnavailable
            No clear answer.
        """
        ...

    def resume(self, token: str, output: str) -> None:
        """Hand an answer to a state that waits with a task token; one that waits no more is as good.

        Parameters
        ----------
        token
            The state's task token.
        output
            JSON text that becomes the state's result.

        Raises
        ------
        EngineUnavailable
            It may or may not have been handed over.
        """
        ...

    def log_tail(self, tool: str, log: str, lines: int) -> tuple[str, ...]:
        """The last lines of a run's log, oldest first; empty when there is none, or no answer.

        Parameters
        ----------
        tool
            Whose run.
        log
            From `RunReport.log`.
        lines
            At most so many.
        """
        ...


def run_name(task_id: str, run: int) -> str:
    """The name of a task's run: fit for an execution (80 characters) and a job name."""
    return f"{task_id}-{run}"


def parse_run_name(name: str) -> tuple[str, int] | None:
    """The task id and run number in a run's name, or None when it is none of ours."""
    task_id, dash, run = name.rpartition("-")
    if not dash or not run.isascii() or not run.isdecimal() or run.startswith("0") or len(run) > 6:
        return None
    return task_id, int(run)
