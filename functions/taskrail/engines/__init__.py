"""Engines: where a run really happens. One narrow protocol; every call is safe to repeat."""

from __future__ import annotations

from dataclasses import dataclass
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
    """

    state: RunState
    reason: str | None = None

    @property
    def ended(self) -> bool:
        """Whether the run is over."""
        return self.state not in (RunState.RUNNING, RunState.NOT_FOUND)


class Engine(Protocol):
    """Starts, stops and describes runs by a name that the rail gives them."""

    def start(self, tool: str, name: str, payload: dict[str, object], timeout_ms: int) -> str:
        """Start the run `name`; starting a name again changes nothing.

        Parameters
        ----------
        tool
            Name of the tool whose work it is.
        name
            ``{taskId}-{run}``, unique for ever.
        payload
            What the run is told: ``taskId`` and ``run``, never arguments.
        timeout_ms
            How long the work may take, in milliseconds.

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

    def stop(self, tool: str, name: str) -> bool:
        """Stop the run `name`; True once it is known not to go on (stopped, ended or unknown).

        Raises
        ------
        EngineUnavailable
            It may or may not have been stopped.
        """
        ...

    def describe(self, tool: str, name: str) -> RunReport:
        """How the run `name` stands.

        Raises
        ------
        EngineUnavailable
            No clear answer.
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
