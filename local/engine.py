"""The engines of one machine: jobs are processes under `local.supervisor`, executions are moto's (`local.aws`)."""

from __future__ import annotations

import json
import logging
import re
import socket
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import NAMESPACE_URL, uuid5

from local.machines import Registry, workflows_of
from local.records import output_log, tail
from local.stack import ACCOUNT, REGION, Stack
from taskrail.clock import SystemClock
from taskrail.engines import RunOrder, RunReport, RunState
from taskrail.errors import EngineUnavailable, StartRefused
from taskrail.server import Tool
from taskrail.work import Container

if TYPE_CHECKING:
    from taskrail.engines.step_functions import StepFunctions

ANSWER_WITHIN = 3.0
"""Seconds until the supervisor counts as unavailable; a stop may take it one second."""

MACHINES_WITHIN_MS = 20_000
"""How long a first call waits for the state machines of a stack that has just started, in milliseconds."""

_REFERENCE = re.compile(r"Ref::([A-Za-z0-9_-]+)")

log = logging.getLogger("taskrail.local")


def execution_arn(tool: str, name: str) -> str:
    """The id of a Python job's run on Step Functions, in the form that an execution has one."""
    return f"arn:aws:states:{REGION}:{ACCOUNT}:execution:{tool}:{name}"


def job_id(name: str) -> str:
    """The id of a job of AWS Batch: a UUID, and one for each name, since a name is started once here."""
    return str(uuid5(NAMESPACE_URL, f"job:{name}"))


class Line:
    """The line to the supervisor.

    Parameters
    ----------
    socket_path
        Where the supervisor listens.
    within
        Seconds to wait for an answer.
    """

    def __init__(self, socket_path: Path, within: float = ANSWER_WITHIN) -> None:
        self._socket_path = str(socket_path)
        self._within = within

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send the supervisor one request and read its answer.

        Raises
        ------
        EngineUnavailable
            No answer, or none that can be read.
        """
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(self._within)
                connection.connect(self._socket_path)
                connection.sendall(json.dumps(request).encode() + b"\n")
                with connection.makefile("rb") as stream:
                    answer = json.loads(stream.readline())
        except (OSError, ValueError) as error:
            raise EngineUnavailable(f"The supervisor gave no answer ({type(error).__name__}).") from error
        if not isinstance(answer, dict) or "error" in answer:
            raise EngineUnavailable("The supervisor could not answer.")
        return answer


class Jobs:
    """Runs as processes under the supervisor, for every engine.

    Parameters
    ----------
    line
        The line to the supervisor.
    runs
        The directory of run records.
    """

    def __init__(self, line: Line, runs: Path) -> None:
        self._line = line
        self._runs = runs

    def start(self, order: RunOrder, run_id: str, *, engine: str, **more: Any) -> str:
        """Start a run; its id.

        Raises
        ------
        StartRefused, EngineUnavailable
            As in `Engine.start`.
        """
        answer = self._line.ask(
            {
                "do": "start",
                "engine": engine,
                "tool": order.tool,
                "name": order.name,
                "run_id": run_id,
                "payload": dict(order.input),
                "timeout_ms": order.timeout_ms,
                "environment": dict(order.environment),
                **more,
            }
        )
        if "refused" in answer:
            log.warning("a run of %s was not started: %s", order.tool, answer["refused"])
            raise StartRefused(str(answer["refused"]))
        return run_id

    def stop(self, name: str) -> bool:
        """Tell a run to end; False while it has not.

        Raises
        ------
        EngineUnavailable
            As in `Engine.stop`.
        """
        return bool(self._line.ask({"do": "stop", "name": name}).get("ok", True))

    def describe(self, name: str) -> RunReport:
        """How a run stands.

        Raises
        ------
        EngineUnavailable
            As in `Engine.describe`.
        """
        answer = self._line.ask({"do": "describe", "name": name})
        if "refused" in answer:
            return RunReport(RunState.NOT_FOUND)
        try:
            told = answer["ok"]
            # An execution has no attempts: its states have.
            attempt = told["attempt"] if told["engine"] == "batch" else None
            return RunReport(RunState(told["state"]), told["reason"], attempt=attempt)
        except (KeyError, TypeError, ValueError) as error:
            raise EngineUnavailable("The supervisor's answer cannot be read.") from error

    def log_tail(self, name: str, lines: int) -> tuple[str, ...]:
        """The last lines that a run printed."""
        return tail(output_log(self._runs, name), lines)


class LocalStepFunctions:
    """Step Functions on this machine: Python jobs are processes, workflows are executions in the local AWS.

    Parameters
    ----------
    jobs
        Where the processes are.
    stack
        Whose workflows.
    tools
        By name; those that are workflows go to the local AWS.
    connect
        Makes the engine of executions from the ARN of each tool's state machine.
    """

    records_ids: ClassVar[bool] = False
    stops_gently: ClassVar[bool] = False
    by_lease: ClassVar[bool] = False

    def __init__(
        self,
        jobs: Jobs,
        stack: Stack,
        tools: Mapping[str, Tool],
        connect: Callable[[Mapping[str, str]], StepFunctions],
    ) -> None:
        self._jobs = jobs
        self._stack = stack
        self._workflows = workflows_of(tools.values())
        self._connect = connect

    def start(self, order: RunOrder) -> str:
        """Start a run, as `Engine.start`; a workflow that this machine cannot run is refused.

        Raises
        ------
        StartRefused, EngineUnavailable
            As there.
        """
        if order.tool not in self._workflows:
            return self._jobs.start(order, execution_arn(order.tool, order.name), engine="step_functions")
        why = self._registry.unusable.get(order.tool)
        if why is not None:
            log.warning("%s was not started: %s", order.tool, why)
            raise StartRefused(why)
        return self._executions.start(order)

    def stop(self, tool: str, name: str, run_id: str | None) -> bool:
        """Stop a run, as `Engine.stop`; False while a process has not ended after being told to.

        Raises
        ------
        EngineUnavailable
            As there.
        """
        if tool in self._workflows:
            return self._executions.stop(tool, name, run_id)
        return self._jobs.stop(name)

    def describe(self, tool: str, name: str, run_id: str | None) -> RunReport:
        """How a run stands, as `Engine.describe`.

        Raises
        ------
        EngineUnavailable
            As there.
        """
        if tool in self._workflows:
            return self._executions.describe(tool, name, run_id)
        return self._jobs.describe(name)

    def resume(self, token: str, output: str) -> None:
        """Hand an answer to a state that waits, as `Engine.resume`.

        Raises
        ------
        EngineUnavailable
            As there.
        """
        self._executions.resume(token, output)

    def log_tail(self, tool: str, log: str, lines: int) -> tuple[str, ...]:
        """Nothing: neither executions nor Lambda functions have a log of their own."""
        return ()

    @cached_property
    def _registry(self) -> Registry:
        """Which state machines there are, once `local.functions` has made them."""
        time = SystemClock()
        until = time.now() + MACHINES_WITHIN_MS
        while (found := Registry.load(self._stack.machines)) is None:
            if time.now() > until:
                raise EngineUnavailable("The state machines of this stack are not there yet.")
            time.sleep(50)
        return found

    @cached_property
    def _executions(self) -> StepFunctions:
        return self._connect(self._registry.arns)


class LocalBatch:
    """AWS Batch on this machine: Python jobs and the commands of containers are processes.

    Parameters
    ----------
    jobs
        Where the processes are.
    tools
        By name.
    """

    records_ids: ClassVar[bool] = True
    stops_gently: ClassVar[bool] = True
    by_lease: ClassVar[bool] = False

    def __init__(self, jobs: Jobs, tools: Mapping[str, Tool]) -> None:
        self._jobs = jobs
        self._tools = tools

    def start(self, order: RunOrder) -> str:
        """Start a job, as `Engine.start`; the same name is the same job.

        Raises
        ------
        StartRefused, EngineUnavailable
            As there; a container without a command of its own is refused.
        """
        tool = self._tools.get(order.tool)
        container = None if tool is None else tool.work
        more: dict[str, Any] = {}
        if tool is not None and tool.runs_on is not None:
            more["attempts"] = tool.runs_on.attempts
        if isinstance(container, Container):
            if not container.command:
                why = "a container runs here as a plain process, and needs a command= for that: " + (
                    "its job definition is in AWS" if container.existing else "the image's own is not known"
                )
                log.warning("%s was not started: %s", order.tool, why)
                raise StartRefused(why)
            more["command"] = [_filled(part, order.parameters) for part in container.command]
            more["environment"] = {**container.environment, **order.environment}
        return self._jobs.start(order, job_id(order.name), engine="batch", **more)

    def stop(self, tool: str, name: str, run_id: str | None) -> bool:
        """Terminate a job, as `Engine.stop`: its process gets SIGTERM and time to clean up.

        Raises
        ------
        EngineUnavailable
            As there.
        """
        return not _is_of(name, run_id) or self._jobs.stop(name)

    def describe(self, tool: str, name: str, run_id: str | None) -> RunReport:
        """How a job stands, as `Engine.describe`.

        Raises
        ------
        EngineUnavailable
            As there.
        """
        if not _is_of(name, run_id):
            return RunReport(RunState.NOT_FOUND)
        report = self._jobs.describe(name)
        if report.state is RunState.NOT_FOUND:
            return report
        return RunReport(report.state, report.reason, run_id=job_id(name), attempt=report.attempt, log=name)

    def resume(self, token: str, output: str) -> None:
        """Nothing: no job waits with a token."""

    def log_tail(self, tool: str, log: str, lines: int) -> tuple[str, ...]:
        """The last lines that a job printed, as `Engine.log_tail`."""
        return self._jobs.log_tail(log, lines)


def _is_of(name: str, run_id: str | None) -> bool:
    return run_id is None or run_id == job_id(name)


def _filled(part: str, parameters: Mapping[str, str]) -> str:
    """A part of a command with its placeholders filled in; one without a value stays, as in AWS Batch."""
    return _REFERENCE.sub(lambda found: parameters.get(found[1], found[0]), part)
