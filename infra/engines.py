"""What runs the tools of a catalogue; `permissions` says who may start, stop and describe it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import aws_cdk as cdk
from constructs import Construct

TAG = "tag:"
"""How a reference begins that is looked up when it is used, since only a tag is known at the deployment."""


class Engines(Construct):
    """The state machines and jobs of a deployment, by tool; the parts of the stack fill it.

    Attributes
    ----------
    machines
        ARN of a tool's state machine, or ``tag:key=value``.
    machine_names
        Name of a tool's state machine, where that is known.
    functions
        ARN of the function of a tool that runs without a state machine.
    jobs
        ``queue`` and ``definition`` of a tool's jobs, each an ARN, a name, or ``tag:key=value``.
    waiting
        Tools whose state machine may wait with task tokens.
    log_groups
        ARNs of the logs of jobs whose end callers may read.
    """

    def __init__(self, scope: Construct, name: str) -> None:
        super().__init__(scope, name)
        self.machines: dict[str, str] = {}
        self.machine_names: dict[str, str] = {}
        self.functions: dict[str, str] = {}
        self.jobs: dict[str, dict[str, str]] = {}
        self.waiting: set[str] = set()
        self.log_groups: list[str] = []

    @property
    def environment(self) -> dict[str, str]:
        """The settings of whoever starts runs: they name all of them."""
        return {**self.control_environment, **self._settings({"FUNCTIONS": self.functions})}

    @property
    def control_environment(self) -> dict[str, str]:
        """The settings of whoever only stops runs and looks how they stand, which a function's cannot be asked for."""
        return self._settings({"STATE_MACHINES": self.machines, "JOBS": self.jobs})

    @property
    def machine_arns(self) -> list[str]:
        """ARNs of the state machines; those found by tag are left out."""
        return named(self.machines.values())

    @property
    def queue_arns(self) -> list[str]:
        """ARNs of the job queues; those found by tag are left out."""
        return [self.arn("batch", "job-queue", name) for name in named(job["queue"] for job in self.jobs.values())]

    def _settings(self, named: Mapping[str, Mapping[str, object]]) -> dict[str, str]:
        return {key: cdk.Stack.of(self).to_json_string(value) for key, value in named.items() if value}

    def read_log(self, log_group: str) -> None:
        """Let callers read the end of what jobs write to a log of that name."""
        stack = cdk.Stack.of(self)
        arn = f"arn:{stack.partition}:logs:{stack.region}:{stack.account}:log-group:{log_group}:log-stream:*"
        self.log_groups.append(arn)

    def arn(self, service: str, kind: str, name: str) -> str:
        """The ARN of something in this account and region, by its name; an ARN stays as it is."""
        if name.startswith("arn:") or (service == "batch" and cdk.Token.is_unresolved(name)):
            return name
        separator = ":" if service == "states" else "/"
        stack = cdk.Stack.of(self)
        return f"arn:{stack.partition}:{service}:{stack.region}:{stack.account}:{kind}{separator}{name}"


def named(references: Iterable[str]) -> list[str]:
    """Each of the references once; those that are tags are left out."""
    return list(dict.fromkeys(reference for reference in references if not reference.startswith(TAG)))
