"""What callers do with tasks: create, read, update, cancel. Each call names its owner."""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Any

from taskrail.call import ClientInfo
from taskrail.clock import iso
from taskrail.engines import RunReport
from taskrail.errors import (
    INTERNAL_ERROR,
    EngineUnavailable,
    InvalidParams,
    NotStarted,
    PayloadGone,
    StartRefused,
    StoreUnavailable,
    TaskNotFound,
)
from taskrail.ids import is_task_id
from taskrail.payloads import SMALL, TOGETHER, Payloads, dump
from taskrail.questions import check_response
from taskrail.rail import links
from taskrail.rail.changes import Changes
from taskrail.rail.endings import rpc_error
from taskrail.rail.quotas import Quotas
from taskrail.rail.repeats import Repeats
from taskrail.rail.reports import Reports
from taskrail.rail.runs import Runs
from taskrail.results import error_result
from taskrail.server import Tool
from taskrail.settings import Settings
from taskrail.store import Conflict
from taskrail.task import Status, Task

_log = logging.getLogger("taskrail")


class Rail:
    """The rail that tickets hang on.

    Parameters
    ----------
    changes, runs, payloads, settings, repeats, quotas
        How tasks change, what happens to their runs, where large payloads are, the limits, how repeated calls find
        the task of the first, and how many tasks a caller may have open.
    """

    def __init__(
        self,
        changes: Changes,
        runs: Runs,
        payloads: Payloads,
        settings: Settings,
        repeats: Repeats,
        quotas: Quotas,
    ) -> None:
        self._changes = changes
        self._runs = runs
        self._payloads = payloads
        self._settings = settings
        self._repeats = repeats
        self._quotas = quotas
        self.reports = Reports(changes, payloads, runs.budget_ms)

    def new_task_id(self) -> str:
        """An id that no task has: 32 hexadecimal characters, unguessable."""
        return self._changes.ids.task_id()

    def create(
        self,
        owner: str,
        tool: Tool,
        arguments: Mapping[str, Any],
        client: ClientInfo,
        *,
        caller: Mapping[str, Any] | None = None,
        task_id: str | None = None,
        sealed_until: int | None = None,
        traceparent: str | None = None,
        idempotency_key: str | None = None,
    ) -> Task:
        """Hang a ticket, start its work, hand it over: in that order.

        Parameters
        ----------
        owner, tool, arguments, client
            Whose task it is, which tool does it, with which (validated) arguments, for which client.
        caller
            What the job may know of the caller.
        task_id
            An id minted earlier, so that a repeated call finds its own task; None for a new one.
        sealed_until
            Until when that id may come again, in milliseconds since the epoch: the task stays that long.
        traceparent
            W3C trace context of the caller.
        idempotency_key
            The caller's own name for this call, where the tool gives repeated calls the same task.

        Returns
        -------
        Task
            A task that `read` resolves, whose work has been started or will be by repair; that of an earlier
            call where the tool says so.

        Raises
        ------
        NotStarted
            The engine refused; nothing is stored.
        InvalidParams
            The idempotency key was used with other arguments.
        TooManyOpen
            The caller has as many tasks of this tool open as it may; nothing is stored.
        TaskNotFound
            The id belongs to somebody else, or to a task that has expired.
        StoreUnavailable
            The task may not have been stored; nothing was started.
        """
        policy = tool.policy
        if policy is None or tool.runs_on is None:
            raise ValueError(f"{tool.name!r} is no task tool.")
        now = self._changes.clock.now()
        ttl = None if policy.keep_result_ms is None else policy.run_budget_ms + policy.keep_result_ms
        if ttl is not None and sealed_until is not None:
            ttl = max(ttl, sealed_until - now)
        task = Task(
            task_id=task_id or self.new_task_id(),
            owner=owner,
            tool=tool.name,
            engine=tool.runs_on.engine,
            created_at=now,
            updated_at=now,
            ttl_ms=ttl,
            keep_ms=policy.keep_result_ms,
            poll_ms=policy.poll_interval_ms,
            run_started_at=now,
            run_deadline=now + policy.run_budget_ms,
            client=client.askable,
            caller=caller or {},
            traceparent=traceparent,
            sealed_until=sealed_until,
            nonce=self._changes.ids.nonce(),
        )
        if tool.dedupe_ms is not None:
            # An id must not come back to life: nothing points to a task longer than it is sure to be there.
            window = tool.dedupe_ms if policy.keep_result_ms is None else min(tool.dedupe_ms, policy.keep_result_ms)
            held = self._repeats.find(task, arguments, idempotency_key, window)
            if held.existing is not None:
                return self._come_again(held.existing, owner, tool)
            task = replace(task, task_id=held.task_id, reservation=held.key)
        self._quotas.enter(task)
        inline = 0 if tool.kind == "container" else SMALL
        task = replace(task, arguments=self._payloads.keep(task, "arguments", dump(arguments), inline))
        try:
            self._changes.store.create(task)
        except Conflict as conflict:
            return self._come_again(conflict.current, owner, tool)
        self._changes.telemetry.created(task, now)
        return self._start_first(task)

    def read(self, owner: str, task_id: object) -> Task:
        """The caller's task, repaired if its run has been silent for too long.

        Raises
        ------
        TaskNotFound
            Unknown, expired, somebody else's, or no task id at all.
        StoreUnavailable
            No answer from the table.
        """
        return self._runs.repair(self._find(owner, task_id))

    def detail(self, task: Task) -> dict[str, Any]:
        """All that `tasks/get` tells: the view and exactly one of inputRequests, result and error.

        A working and a cancelled task carry none (Tasks, section "Task Polling").

        Raises
        ------
        StoreUnavailable
            A payload could not be read just now.
        """
        view = task.view(self._changes.clock.now())
        if task.status is Status.INPUT_REQUIRED:
            view["inputRequests"] = {key: question.request() for key, question in task.outstanding.items()}
        elif task.status is Status.COMPLETED:
            view["result"] = self._result(task)
        elif task.status is Status.FAILED:
            view["error"] = self._error(task)
        return view

    def update(self, owner: str, task_id: object, responses: Mapping[str, Any]) -> None:
        """Take answers to open questions; the last one sets the work going again.

        Keys that are unknown, answered or superseded are ignored. A malformed answer to an open
        question refuses the whole call and changes nothing (Tasks, section "Task Update Requests").

        Raises
        ------
        InvalidParams
            An answer is malformed; the message names its key.
        TaskNotFound
            As in `read`.
        StoreUnavailable
            The answers may not have been kept.
        """
        task = self._runs.repair(self._find(owner, task_id))
        answers: dict[str, str] = {}
        kept = sum(map(len, task.answers.values()))
        for key, question in task.outstanding.items():
            if key not in responses:
                continue
            problem = check_response(question, responses[key])
            if problem is not None:
                raise InvalidParams(f"inputResponses[{key!r}]: {problem}")
            inline = SMALL if kept < TOGETHER else 0
            answers[key] = self._payloads.keep(task, "answer", dump(responses[key]), inline)
            kept += len(answers[key])
        if not answers:
            return
        now = self._changes.clock.now()
        budget = self._runs.budget_ms(task)
        after, ours = self._changes.change(task, lambda t: t.answered(answers, now, budget_ms=budget))
        if after.due:
            self._runs.pass_on(after)
        elif after.status is Status.WORKING and after.run > task.run and not after.claimed:
            self._runs.start_next(after) if ours else self._runs.start_again(after)

    def cancel(self, owner: str, task_id: object) -> None:
        """Ask for the task's end: at once where nobody is at work, else by telling the work.

        Raises
        ------
        TaskNotFound
            As in `read`.
        StoreUnavailable
            The wish may not have been kept.
        """
        task = self._find(owner, task_id)
        repaired = self._runs.repair(task)
        now = self._changes.clock.now()
        works = not self._runs.claims(repaired)
        before = repaired

        def move(current: Task) -> Task:
            # A question may have been asked since the task was read: what is told is what the wish met.
            nonlocal before
            before = current
            return current.cancelling(now, unclaimed_works=works)

        after, ours = self._changes.change(repaired, move)
        if not ours:
            return
        if not after.open:
            if before.run_open:
                self._runs.stop(after)
            return
        # What waits for an answer has nothing to finish; a gentle stop is how Batch tells its jobs.
        at_once = before.status is Status.INPUT_REQUIRED or self._runs.stops_gently(after)
        if at_once and self._runs.stop(after):
            self._runs.end_cancelled(after)

    def input_prefix(self, owner: str) -> str:
        """The URI prefix of the documents that a caller hands in."""
        return self._payloads.input_prefix(owner)

    def may_read(self, owner: str, uri: str, *, strictly: bool) -> bool:
        """Whether a caller may hand in an ``s3://`` URI.

        Parameters
        ----------
        owner, uri
            The caller, and what it hands in.
        strictly
            Whether only a document of its own will do. Else a bucket that is none of the kit's is the job's concern,
            whose permissions say what it may read.
        """
        return self._payloads.is_input(uri, owner) or not (strictly or self._payloads.holds(uri))

    def offer_upload(
        self,
        owner: str,
        filename: str,
        content_type: str | None = None,
        size_bytes: int | None = None,
        *,
        seconds: int,
    ) -> dict[str, Any]:
        """Where a caller may put one document; a presigned URL, made without a call.

        Parameters
        ----------
        owner, filename
            The caller, and what it calls the document.
        content_type, size_bytes
            What the upload must be; None for anything.
        seconds
            Life of the URL.
        """
        key = self._payloads.new_input_key(owner, filename)
        url = self._payloads.upload_link(key, seconds=seconds, mime_type=content_type, size=size_bytes)
        headers = {} if content_type is None else {"Content-Type": content_type}
        if size_bytes is not None:
            headers["Content-Length"] = str(size_bytes)
        return {
            "uri": self._payloads.uri(key),
            "url": url,
            "method": "PUT",
            "headers": headers,
            "expiresAt": iso(self._changes.clock.now() + seconds * 1_000),
        }

    def run_heard(self, task_id: str, run: int, report: RunReport, engine: str | None = None) -> None:
        """An engine tells of a run: the second line, beside the worker's own report.

        Told twice, late, or for a task that nobody knows any more, it changes nothing.

        Parameters
        ----------
        task_id, run, report
            Which run, and what is told of it.
        engine
            Which engine tells: of a task that runs elsewhere it knows nothing. None for the task's own.

        Raises
        ------
        StoreUnavailable, EngineUnavailable
            Not settled; whoever tells must tell again.
        """
        if not is_task_id(task_id):
            return
        task = self._changes.store.read(task_id)
        if task is None or task.expired(self._changes.clock.now()) or engine not in (None, task.engine):
            return
        try:
            self._runs.heard(task, run, report)
        except TaskNotFound:
            return

    def read_many(self, owner: str, task_ids: Iterable[str], *, repair: Container[str] = ()) -> dict[str, Task]:
        """Those of the caller's tasks that there are, by id, in that order; in as few calls as it takes.

        Parameters
        ----------
        owner, task_ids
            The caller, and ids that have the form of one.
        repair
            The ids whose silence is looked into, as `read` does.

        Raises
        ------
        StoreUnavailable
            No answer from the table.
        """
        wanted = tuple(dict.fromkeys(task_ids))
        found = self._changes.store.read_many(wanted)
        tasks: dict[str, Task] = {}
        for task_id in wanted:
            try:
                task = self._changes.visible(found.get(task_id), owner)
                tasks[task_id] = self._runs.repair(task) if task_id in repair else task
            except TaskNotFound:
                continue
        return tasks

    def owned(
        self, owner: str, most: int, after: tuple[int, str] | None = None
    ) -> tuple[list[Task], tuple[int, str] | None]:
        """A page of the caller's tasks, newest first, and where the next one begins; the table needs its index.

        Parameters
        ----------
        owner, most
            The caller, and how many tasks a page has at most.
        after
            Where the page before ended, as it was returned.

        Raises
        ------
        StoreUnavailable
            No answer from the table.
        """
        task_ids, last = self._changes.store.owned(owner, most, after)
        return list(self.read_many(owner, task_ids).values()), last

    def _find(self, owner: str, task_id: object) -> Task:
        if not isinstance(task_id, str) or not is_task_id(task_id):
            raise TaskNotFound
        return self._changes.read(owner, task_id)

    def _start_first(self, task: Task) -> Task:
        try:
            return self._runs.start(task)
        except StartRefused as error:
            _log.error("task %s: the engine refused to start %s (%s)", task.task_id, task.tool, error)
            if self._take_back(task):
                raise NotStarted from error
        except EngineUnavailable as error:
            _log.warning("task %s: it is unknown whether its run started (%s)", task.task_id, error)
        return task

    def _take_back(self, task: Task) -> bool:
        """Remove a ticket whose work was refused; False when a repeated call has taken it over."""
        try:
            return self._changes.store.delete(task)
        except StoreUnavailable as error:
            # Nobody holds this ticket; open, unstarted and unread, it expires.
            _log.warning("task %s: not taken back (%s)", task.task_id, error)
            return True

    def _come_again(self, existing: Task | None, owner: str, tool: Tool) -> Task:
        """A repeated call: its own task, started if the first call did not get that far."""
        task = self._changes.visible(existing, owner)
        if task.tool != tool.name:
            raise TaskNotFound
        if task.run == 1 and task.open and not task.claimed and self._runs.repeats_start(task):
            # A write of our own first: whoever hung this ticket can then no longer take it back.
            try:
                task = self._changes.apply(task, lambda t: t.probed(self._changes.clock.now(), missing=False))
            except TaskNotFound as error:
                # It was taken back meanwhile, since its start was refused: the same goes for this call.
                raise NotStarted from error
            if task.run == 1 and task.open and not task.claimed:
                task = self._runs.start_again(task)
        return task

    def _result(self, task: Task) -> dict[str, Any]:
        try:
            result: dict[str, Any] = self._payloads.load(task.result or "{}")
        except PayloadGone:
            return error_result(f"The result of this task is no longer stored. Task {task.task_id}.")
        return links.fresh(task.task_id, result, self._payloads, self._settings.link_seconds)

    def _error(self, task: Task) -> dict[str, Any]:
        try:
            error: dict[str, Any] = self._payloads.load(task.error or "{}")
        except PayloadGone:
            return rpc_error(INTERNAL_ERROR, f"The error of this task is no longer stored. Task {task.task_id}.")
        return error
