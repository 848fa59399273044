"""What an engine is told about a run: identity for the kit's own workers, a whole contract for everything else."""

from __future__ import annotations

from typing import Any

from taskrail.engines import RunOrder, run_name
from taskrail.errors import PayloadGone, StartRefused
from taskrail.payloads import Payloads, dump
from taskrail.server import Tool
from taskrail.signing import Signer
from taskrail.task import Task
from taskrail.work import Container, Workflow

INLINE_ARGUMENTS = 100_000
"""Bytes of arguments up to which an execution's input holds them; it takes 256 KiB in all (Step Functions quotas)."""

LONGEST_EXECUTION_MS = 366 * 86_400_000
"""How long a report token of a workflow is good, in milliseconds: an execution lives a year at most."""

AFTER_THE_END_MS = 86_400_000
"""How long a report token of a container outlives the time of its run, in milliseconds."""


class Orders:
    """Writes orders. The same run gets the same order, so that starting it again is starting it once.

    Parameters
    ----------
    payloads
        Where large arguments are.
    signer
        Signs report tokens.
    report_url
        Where containers report to; None in a deployment without containers.
    """

    def __init__(self, payloads: Payloads, signer: Signer, report_url: str | None) -> None:
        self._payloads = payloads
        self._signer = signer
        self._report_url = report_url

    def order(self, task: Task, tool: Tool | None, timeout_ms: int) -> RunOrder:
        """The order for a task's current run.

        Parameters
        ----------
        task
            The task.
        tool
            Its tool; None when the catalogue no longer has it.
        timeout_ms
            How long the work may take, in milliseconds.

        Raises
        ------
        StartRefused
            It cannot be written: the arguments are gone, or too large for what has to carry them.
        StoreUnavailable
            The arguments cannot be read just now.
        """
        work = None if tool is None else tool.work
        name = run_name(task.task_id, task.run)
        if tool is not None and isinstance(work, Workflow):
            return RunOrder(
                task.tool, name, self._input(task, work), timeout_ms=timeout_ms, traceparent=task.traceparent
            )
        identity: dict[str, object] = {"taskId": task.task_id, "run": task.run}
        environment = {"TASKRAIL_TASK_ID": task.task_id, "TASKRAIL_RUN": str(task.run)}
        if task.traceparent is not None:
            environment["TRACEPARENT"] = task.traceparent
        parameters: dict[str, str] = {}
        if tool is not None and isinstance(work, Container):
            environment |= self._channel(task, timeout_ms)
            if work.parameters:
                parameters = tool.parameter_values(self._arguments(task))
        return RunOrder(task.tool, name, identity, environment, parameters, timeout_ms, task.traceparent)

    def answer(self, task: Task, key: str) -> Any:
        """What a waiting state gets for its question: the answer as the client gave it.

        Raises
        ------
        StoreUnavailable
            It cannot be read just now.
        """
        try:
            return self._payloads.load(task.answers[key])
        except PayloadGone:
            return {"action": "cancel"}

    def _input(self, task: Task, work: Workflow) -> dict[str, object]:
        arguments = self._arguments(task)
        size = len(dump(arguments).encode())
        if not work.envelope:
            if size > 2 * INLINE_ARGUMENTS:
                raise StartRefused("The arguments are larger than the input of an execution.")
            return arguments
        contract: dict[str, object] = {"taskId": task.task_id, "run": task.run}
        if size <= INLINE_ARGUMENTS:
            contract["arguments"] = arguments
        else:
            contract["argumentsUri"] = self._payloads.uri(task.arguments or "")
        until = task.run_started_at + LONGEST_EXECUTION_MS
        contract["reportToken"] = self._signer.report_token(task.task_id, task.run, until)
        return contract

    def _channel(self, task: Task, timeout_ms: int) -> dict[str, str]:
        if self._report_url is None:
            raise StartRefused("A container needs TASKRAIL_REPORT_URL: the address that it reports to.")
        until = task.run_deadline + AFTER_THE_END_MS
        return {
            "TASKRAIL_REPORT_URL": self._report_url,
            "TASKRAIL_REPORT_TOKEN": self._signer.report_token(task.task_id, task.run, until),
            "TASKRAIL_ARGUMENTS_URI": self._payloads.uri(task.arguments or ""),
            "TASKRAIL_RESULT_URI": self._payloads.result_uri(task),
        }

    def _arguments(self, task: Task) -> dict[str, Any]:
        try:
            arguments: dict[str, Any] = self._payloads.load(task.arguments or "{}")
        except PayloadGone as error:
            raise StartRefused("The arguments are no longer stored.") from error
        return arguments
