"""What state machines and containers report: the rail's side of a work in which nothing of the kit's runs.

A report holds for one task and run, by its token, and for a container only from the recorded job. Every answer
says whether the work should stop; whoever listens can clean up before it is stopped.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taskrail.errors import PayloadGone, QuestionError, TaskNotFound, TaskrailError
from taskrail.payloads import POINTER, Payloads, dump
from taskrail.questions import Question, form_question_by_hand
from taskrail.rail.changes import Changes
from taskrail.rail.runs import Runs
from taskrail.server import TaskServer
from taskrail.settings import Settings
from taskrail.signing import Grant, Signer
from taskrail.task import Progress, Task
from taskrail.work import Container

_JOB = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
_ATTEMPT = re.compile(r"[0-9]{1,3}")
_LONGEST_MESSAGE = 500
_LONGEST_TOKEN = 2_048
_MOST_TOKENS = 64
_INLINE_ARGUMENTS = 1_000_000
_LARGEST_NUMBER = sys.float_info.max
"""Python's whole numbers know no end; whoever reads one as JSON does."""
_GONE: Mapping[str, Any] = {"cancel": True, "ended": True}


class ReportRefused(TaskrailError):
    """A report cannot be taken; the message says what is wrong with it."""


class TokenRefused(TaskrailError):
    """A report's token is missing, not one of this deployment's, or too old."""

    def __init__(self) -> None:
        super().__init__("The report token is missing, not one of this deployment's, or too old.")


class TaskCancelled(TaskrailError):
    """A state waits for an answer that will not come: the task was cancelled, or is over."""

    def __init__(self) -> None:
        super().__init__("The task was cancelled or is over: nobody will answer.")


@dataclass(frozen=True)
class _From:
    """Who reports: for containers the job and its attempt."""

    job: str | None
    attempt: int | None


class RemoteReports:
    """Takes the reports of workflows and containers.

    Parameters
    ----------
    server, changes, runs, payloads, signer, settings
        The catalogue, how tasks and their runs change, where payloads are, who signed the tokens, and the limits.
    """

    def __init__(
        self,
        server: TaskServer,
        changes: Changes,
        runs: Runs,
        payloads: Payloads,
        signer: Signer,
        settings: Settings,
    ) -> None:
        self._server = server
        self._changes = changes
        self._runs = runs
        self._payloads = payloads
        self._signer = signer
        self._settings = settings

    def take(self, token: object, report: Mapping[str, Any]) -> dict[str, Any]:
        """Take one report.

        Parameters
        ----------
        token
            The report token, as the work got it.
        report
            What it reports: ``do`` and what belongs to it.

        Returns
        -------
        dict
            With ``cancel``: whether the work should stop.

        Raises
        ------
        TokenRefused, ReportRefused
            Nothing was taken.
        QuestionError
            The question cannot be asked.
        TaskCancelled
            A state would wait for an answer for ever.
        StoreUnavailable
            It may or may not have been taken: report again.
        """
        grant = self._signer.read_report_token(token, self._changes.clock.now())
        if grant is None:
            raise TokenRefused
        what = {
            "progress": self._progress,
            "ask": self._ask,
            "answers": self._answers,
            "arguments": self._arguments,
            "result": self._result,
        }.get(str(report.get("do")))
        if what is None:
            raise ReportRefused("do is one of progress, ask, answers, arguments, result.")
        try:
            task, source = self._mine(grant, report)
            if task is None:
                if report.get("taskToken") is not None:
                    raise TaskCancelled
                return dict(_GONE)
            return what(task, report, source)
        except TaskNotFound:
            return dict(_GONE)

    def _mine(self, grant: Grant, report: Mapping[str, Any]) -> tuple[Task | None, _From]:
        """The task that the token is for, if the report still counts there."""
        task = self._changes.store.read(grant.task_id)
        if task is None or task.expired(self._changes.clock.now()):
            return None, _From(None, None)
        tool = self._server.get(task.tool)
        source = _From(None, None)
        if tool is not None and isinstance(tool.work, Container):
            source = _source(report)
        if not task.open or not task.run_open or str(task.run) != grant.detail:
            return None, source
        if source.job is not None:
            job = source.job
            if task.run_id is None:
                task = self._changes.apply(task, lambda t: t.launched(t.run, job))
            if not task.open or task.run_id != job:
                return None, source
        return task, source

    def _progress(self, task: Task, report: Mapping[str, Any], source: _From) -> dict[str, Any]:
        done, total = _number(report, "done"), _number(report, "total")
        message = report.get("message")
        if message is not None and not isinstance(message, str):
            raise ReportRefused("message is a text.")
        if done is None and message is None:
            raise ReportRefused("progress needs done (a number) or message (a text), or both.")
        progress = None if done is None else Progress(done, total)
        now = self._changes.clock.now()
        if message is None and progress is not None:
            message = f"{progress.done:g}" if progress.total is None else f"{progress.done:g} of {progress.total:g}"
            last = progress.total is not None and progress.done >= progress.total
            if not last and now - task.updated_at < task.poll_interval(now) // 2:
                # Nobody would see it: a work that reports every step must not pay for every write.
                return _told(task)
        after = self._changes.apply(task, lambda t: t.reported(progress, _cut(message), now) if _same(t, task) else t)
        return _told(after)

    def _ask(self, task: Task, report: Mapping[str, Any], source: _From) -> dict[str, Any]:
        token = report.get("taskToken")
        if token is not None and (not isinstance(token, str) or not 0 < len(token) <= _LONGEST_TOKEN):
            raise ReportRefused(f"taskToken is a text of at most {_LONGEST_TOKEN} characters.")
        question = _question(report)
        if not question.allowed(task.client):
            kind = ", ".join(question.requires())
            raise QuestionError(f"The client that made this task did not declare {kind}, so it cannot be asked.")
        tool = self._server.get(task.tool)
        within = 0 if tool is None or tool.policy is None else tool.policy.answer_within_ms
        budget, now = self._runs.budget_ms(task), self._changes.clock.now()

        def move(current: Task) -> Task:
            if not _same(current, task):
                return current
            known = current.questions.get(question.key)
            if known is not None and known != question:
                raise QuestionError(
                    f"The key {question.key!r} already stands for another question; give this one a key of its own."
                )
            if len(current.questions) >= _MOST_TOKENS and known is None:
                raise QuestionError(f"A task takes {_MOST_TOKENS} questions.")
            asked = current.asked({question.key: question}, now, answer_within_ms=within, budget_ms=budget, hold=True)
            return asked if token is None else asked.awaited(question.key, token)

        after = self._changes.apply(task, move)
        if token is not None and (not after.open or after.cancel_requested_at is not None):
            raise TaskCancelled
        if after.due:
            after = self._runs.pass_on(after)
        return {**_told(after), **self._known(after, (question.key,))}

    def _answers(self, task: Task, report: Mapping[str, Any], source: _From) -> dict[str, Any]:
        keys = report.get("keys")
        if keys is not None and not (isinstance(keys, list) and all(isinstance(key, str) for key in keys)):
            raise ReportRefused("keys is a list of the questions' keys, or left out.")
        return {**_told(task), **self._known(task, tuple(task.questions if keys is None else keys))}

    def _known(self, task: Task, keys: tuple[str, ...]) -> dict[str, Any]:
        answers = {key: self._loaded(task.answers[key]) for key in keys if key in task.answers}
        return {"answers": answers, "waiting": [key for key in keys if key not in answers]}

    def _loaded(self, stored: str) -> Any:
        try:
            return self._payloads.load(stored)
        except PayloadGone:
            return {"action": "cancel"}

    def _arguments(self, task: Task, report: Mapping[str, Any], source: _From) -> dict[str, Any]:
        stored = task.arguments or "{}"
        try:
            arguments = self._payloads.load(stored)
        except PayloadGone:
            raise ReportRefused("The arguments are no longer stored.") from None
        if stored.startswith(POINTER) and len(dump(arguments)) > _INLINE_ARGUMENTS:
            url = self._payloads.link(stored, seconds=self._settings.link_seconds, filename="arguments.json")
            return {**_told(task), "argumentsUrl": url}
        return {**_told(task), "arguments": arguments}

    def _result(self, task: Task, report: Mapping[str, Any], source: _From) -> dict[str, Any]:
        if source.job is None or source.attempt is None:
            raise ReportRefused(
                "result is for containers, with their job and attempt; a workflow's output is its result."
            )
        if report.get("upload") is True:
            key = self._payloads.result_key(task, source.job, source.attempt)
            return {**_told(task), "uploadUrl": self._payloads.upload_link(key, seconds=self._settings.link_seconds)}
        if "result" not in report:
            raise ReportRefused("result needs the result itself, or upload: true.")
        try:
            text = dump(report["result"])
        except (TypeError, ValueError, RecursionError):
            raise ReportRefused("The result cannot be carried as JSON: a number in it is not finite.") from None
        self._payloads.put_result(task, source.job, source.attempt, text)
        return _told(task)


def _told(task: Task) -> dict[str, Any]:
    """What every answer says: whether to stop, and why."""
    over = not task.open
    return {"cancel": over or task.cancel_requested_at is not None, **({"ended": True} if over else {})}


def _same(current: Task, seen: Task) -> bool:
    return current.open and current.run_open and current.run == seen.run


def _source(report: Mapping[str, Any]) -> _From:
    job, attempt = report.get("job"), report.get("attempt")
    if isinstance(attempt, str):
        attempt = int(attempt) if _ATTEMPT.fullmatch(attempt) else 0
    number = attempt if isinstance(attempt, int) and not isinstance(attempt, bool) else 0
    if not isinstance(job, str) or not _JOB.fullmatch(job) or not 0 < number <= 100:
        raise ReportRefused("A container's report says job (its AWS_BATCH_JOB_ID) and attempt (AWS_BATCH_JOB_ATTEMPT).")
    return _From(job, number)


def _question(report: Mapping[str, Any]) -> Question:
    key, message, schema = report.get("key"), report.get("message"), report.get("schema")
    if not isinstance(key, str) or not isinstance(message, str):
        raise ReportRefused("ask needs key and message, both texts.")
    if schema is not None and not isinstance(schema, Mapping):
        raise ReportRefused("schema is a JSON Schema of the form, or left out.")
    question = form_question_by_hand(key, message, schema)
    if len(dump(question.to_json())) > 20_000:
        raise QuestionError("A question is at most 20,000 bytes long.")
    return question


def _number(report: Mapping[str, Any], name: str) -> float | None:
    value = report.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST_NUMBER:
        raise ReportRefused(f"{name} is a finite number.")
    return value


def _cut(message: str | None) -> str | None:
    return None if message is None else message[:_LONGEST_MESSAGE]
