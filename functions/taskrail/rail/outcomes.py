"""What the end of a state machine or a container means: nothing of the kit's ran in it to say so.

A workflow's output is its result. A container's result is the object that it stored for its job and attempt,
if any; its exit code says whether the work went well.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from taskrail.engines import Engine, RunReport, RunState, run_name
from taskrail.errors import PayloadGone
from taskrail.payloads import POINTER, RESULT, Payloads, dump
from taskrail.rail import endings, links
from taskrail.results import ResultError, error_result, text_result
from taskrail.server import Tool
from taskrail.task import Task
from taskrail.work import Container

_LONGEST_TEXT = 4_000
"""Characters that a workflow's own words about its failure may have."""

_log = logging.getLogger("taskrail")


class Outcomes:
    """Turns the end of such a run into a stored result.

    Parameters
    ----------
    payloads
        Where containers store their results, and where results go.
    """

    def __init__(self, payloads: Payloads) -> None:
        self._payloads = payloads

    def outcome(self, task: Task, tool: Tool, report: RunReport, engine: Engine) -> endings.Outcome | None:
        """What the run came to; None when there is nothing to add to the engine's account of it.

        Parameters
        ----------
        task, tool
            The task as it stands, and its tool.
        report
            The engine's account; it must be an ended one.
        engine
            Asked for what the account leaves out.

        Raises
        ------
        StoreUnavailable, EngineUnavailable
            Not everything could be fetched just now.
        """
        if isinstance(tool.work, Container):
            return self._of_container(task, tool, report, engine, tool.work.log_lines)
        if report.state is RunState.SUCCEEDED:
            if report.output is None and not report.whole:
                report = engine.describe(task.tool, run_name(task.task_id, task.run), report.run_id)
            text = report.output
            return self._stored(task, self._result(task, tool, None if text is None else json.loads(text)))
        if report.told is not None:
            return self._stored(task, error_result(report.told[:_LONGEST_TEXT]))
        return None

    def _of_container(
        self, task: Task, tool: Tool, report: RunReport, engine: Engine, log_lines: int
    ) -> endings.Outcome | None:
        left = self._left_behind(task, report)
        if report.state is RunState.SUCCEEDED:
            if left is None:
                return self._stored(task, self._nothing(task, tool))
            return self._stored(task, left if "content" in left else self._result(task, tool, left["value"]))
        tail = engine.log_tail(task.tool, report.log, log_lines) if log_lines and report.log else ()
        if left is None and not tail:
            return None
        parts = []
        if left is not None and "value" in left:
            value = left["value"]
            parts.append(value if isinstance(value, str) else dump(value))
        if tail:
            parts.append("\n".join(("The last lines of its log:", *tail)))
        why = f": {report.reason}" if report.reason else ""
        result = error_result(f"The job failed{why}. Task {task.task_id}.", parts)
        if left is not None and "content" in left:
            result["content"] += left["content"]
        return self._stored(task, result)

    def _left_behind(self, task: Task, report: RunReport) -> dict[str, Any] | None:
        """What the container stored: ``value``, or ``content`` with a link where it is too large to be read."""
        if report.run_id is None or not report.attempt:
            return None
        key = self._payloads.result_key(task, report.run_id, report.attempt)
        try:
            body, size = self._payloads.open_sized(key)
        except PayloadGone:
            return None
        with body:
            if size > links.LARGEST_RESULT:
                link = {"type": "resource_link", "uri": POINTER + key, "name": "result.json", "size": size}
                return {"content": [link], "isError": False}
            data = body.read()
        try:
            return {"value": json.loads(data)}
        except ValueError:
            return {"value": data.decode("utf-8", "replace")}

    def _nothing(self, task: Task, tool: Tool) -> dict[str, Any]:
        """An empty success; an error where the tool has promised something."""
        if tool.returns.output_schema is None:
            return text_result("The job has finished; it left no result.")
        return error_result(f"The job finished, but it left no result. Task {task.task_id}.")

    def _result(self, task: Task, tool: Tool, value: Any) -> dict[str, Any]:
        try:
            return tool.returns.result(value)
        except ResultError as error:
            _log.warning("task %s: what the work of %s returned is no result (%s)", task.task_id, tool.name, error)
            return error_result(f"The job finished, but {error}. Task {task.task_id}.")

    def _stored(self, task: Task, result: dict[str, Any]) -> endings.Outcome:
        fitted = links.fitted(result, lambda data, mime, label: self._payloads.put_bytes(task, label, data, mime))
        stored = self._payloads.keep(task, "result", dump(fitted), RESULT)
        failed = bool(result.get("isError"))
        first = next((block["text"] for block in result["content"] if block["type"] == "text"), "")
        return endings.Outcome(stored, first[: endings.LONGEST_MESSAGE] if failed else "Completed.")
