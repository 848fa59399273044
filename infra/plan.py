"""What a catalogue needs of AWS, read from its tools; nothing here knows CDK."""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from infra.context import ConfigurationError
from taskrail.work import Container, Workflow

if TYPE_CHECKING:
    from infra.configuration import Configuration
    from taskrail.server import TaskServer
    from taskrail.tools import Tool

_DAY_MS = 86_400_000

_ENVIRONMENT_BYTES = 3_300
"""What the other settings leave of the 4 KB that a function's environment has (Lambda quotas)."""
_ARN_BYTES = 130
_JOB_BYTES = 270
"""An ARN of a name that CloudFormation made, and two of them with what is around them."""


@dataclass(frozen=True)
class Plan:
    """The tools of a catalogue by what has to be made for them.

    Parameters
    ----------
    tools
        All of them.
    machines
        Python jobs behind a state machine of the kit.
    functions
        Python jobs in a function that is invoked without one.
    jobs
        Python jobs on Batch.
    workflows
        Those with a definition of their own.
    containers
        Those with an image.
    adopted_machines, adopted_jobs
        What is in the account already.
    header_parameters
        Names of the ``Mcp-Param-*`` headers that the catalogue asks for, in lower case, whole.
    """

    tools: tuple[Tool, ...]
    machines: tuple[Tool, ...]
    functions: tuple[Tool, ...]
    jobs: tuple[Tool, ...]
    workflows: tuple[Tool, ...]
    containers: tuple[Tool, ...]
    adopted_machines: tuple[Tool, ...]
    adopted_jobs: tuple[Tool, ...]
    header_parameters: tuple[str, ...]

    @classmethod
    def of(cls, server: TaskServer, *, batch: bool = True) -> Plan:
        """The plan for a catalogue.

        Parameters
        ----------
        batch
            Whether there is Batch: emulators have none, and a call of a tool on it is refused there.
        """
        tools = tuple(tool for tool in server.tools.values() if batch or engine_of(tool) != "batch")
        python = [tool for tool in tools if tool.kind == "task"]
        workflows = [(tool, tool.work) for tool in tools if isinstance(tool.work, Workflow)]
        containers = [(tool, tool.work) for tool in tools if isinstance(tool.work, Container)]
        headers = {f"mcp-param-{header.name.lower()}" for tool in tools for header in tool.signature.headers}
        return cls(
            tools=tools,
            machines=tuple(tool for tool in python if engine_of(tool) == "step_functions"),
            functions=tuple(tool for tool in python if engine_of(tool) == "lambda"),
            jobs=tuple(tool for tool in python if engine_of(tool) == "batch"),
            workflows=tuple(tool for tool, work in workflows if work.existing is None),
            containers=tuple(tool for tool, work in containers if work.existing is None),
            adopted_machines=tuple(tool for tool, work in workflows if work.existing is not None),
            adopted_jobs=tuple(tool for tool, work in containers if work.existing is not None),
            header_parameters=tuple(sorted(headers)),
        )

    @property
    def needs_batch(self) -> bool:
        """Whether a compute environment and its network have to be made."""
        return bool(self.jobs or self.containers)

    @property
    def needs_report(self) -> bool:
        """Whether anything reports by token: workflows, and containers."""
        reporting = (tool for tool in self.adopted_machines if isinstance(tool.work, Workflow) and tool.work.envelope)
        return bool(self.workflows or self.takes_http_reports or any(reporting))

    @property
    def takes_http_reports(self) -> bool:
        """Whether anything reports by HTTP."""
        return bool(self.containers or self.adopted_jobs)

    @property
    def has_tasks(self) -> bool:
        """Whether any tool is a task."""
        return any(tool.kind != "inline" for tool in self.tools)

    @property
    def environment_bytes(self) -> int:
        """About how much room the names of state machines, functions and jobs take in a function's environment."""
        single = (*self.machines, *self.functions, *self.workflows, *self.adopted_machines)
        jobs = (*self.jobs, *self.containers, *self.adopted_jobs)
        return sum(len(tool.name) + _ARN_BYTES for tool in single) + sum(len(tool.name) + _JOB_BYTES for tool in jobs)

    def check(self, configuration: Configuration) -> None:
        """Refuse a configuration that this catalogue cannot be deployed with.

        Raises
        ------
        ConfigurationError
            It names the key, and the tool.
        """
        for tool in self.tools:
            if tool.dedupe_ms is not None and configuration.auth == "none":
                raise ConfigurationError(
                    "auth",
                    f"none: the tool {tool.name!r} has dedupe=, which would hand one caller's task to another; "
                    "drop dedupe= or choose who may call",
                )
            if tool.policy is None or configuration.input_days is None:
                continue
            least = math.ceil((tool.policy.run_budget_ms + tool.policy.answer_within_ms) / _DAY_MS)
            if configuration.input_days < least:
                raise ConfigurationError(
                    "input_days",
                    f"{configuration.input_days}: the tool {tool.name!r} may read its inputs for {least} days; "
                    f"give {least} or more, or 0 for ever",
                )
        if self.environment_bytes > _ENVIRONMENT_BYTES:
            raise ConfigurationError(
                "catalogue",
                f"its state machines, functions and jobs would take some {self.environment_bytes} bytes of the API "
                f"function's environment, which has {_ENVIRONMENT_BYTES} for them; split it into two servers with a "
                "`name` each",
            )
        strangers = set(configuration.most_open) - {tool.name for tool in self.tools} - {"*"}
        if strangers:
            raise ConfigurationError("most_open", f"{sorted(strangers)[0]!r} is no tool of this catalogue")
        unknown = set(configuration.images) - {tool.name for tool in self.jobs}
        if unknown:
            raise ConfigurationError("images", f"{sorted(unknown)[0]!r} is no Python tool on Batch")


def engine_of(tool: Tool) -> str | None:
    """The engine that runs a tool; None for inline tools."""
    return None if tool.runs_on is None else tool.runs_on.engine


def job_package(tool: Tool) -> str | None:
    """The folder below ``functions/jobs/`` that holds a heavy job's code; None when it has none of its own."""
    if tool.job is None:
        return None
    parts = tool.job.partition(":")[0].split(".")
    return parts[1] if parts[0] == "jobs" and len(parts) > 1 else None


def words(name: str) -> str:
    """A tool's name as part of the names in a template: letters and digits, two tools never the same."""
    together = "".join(word[:1].upper() + word[1:] for word in re.split("[._-]", name))
    plain = re.fullmatch("[a-z][a-z0-9]*(_[a-z][a-z0-9]*)*", name)
    return together if plain else f"{together}{hashlib.sha256(name.encode()).hexdigest()[:8]}"
