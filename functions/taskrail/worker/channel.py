"""The line from a job to its task: what a worker tells of its run, and hears."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

from taskrail.context import JobCancelled, RunInterrupted, RunSuperseded, RunSuspended, Unwind
from taskrail.errors import StoreUnavailable, ToolError
from taskrail.payloads import RESULT, dump
from taskrail.questions import Question
from taskrail.rail import endings, links
from taskrail.rail.changes import Move
from taskrail.rail.reports import Reports, RunLost
from taskrail.task import Progress, Task
from taskrail.worker.notice import Notice

_LOOK_EVERY_MS = (2_000, 5_000)
"""How long a worker that tells nothing goes without looking for the cancel flag: at first, and at most. Even the
longest leaves a job half of the 10 s that it has for hearing a cancellation."""
_LOOK_SHARE = 20
"""Which part of its age a run goes without looking, between the two."""
_LARGEST_NUMBER = sys.float_info.max
"""Python's whole numbers know no end; whoever reads one as JSON does."""


class RunChannel:
    """The line from a job to its task, over the rail.

    Parameters
    ----------
    reports
        The worker's side of the rail.
    task
        The task as the claim brought it.
    answer_within_ms
        How long an answer may take, in milliseconds.
    notice
        The order to end that this process may get.
    """

    def __init__(self, reports: Reports, task: Task, answer_within_ms: int, notice: Notice | None = None) -> None:
        self._reports = reports
        self._task = task
        self._answer_within_ms = answer_within_ms
        self._heard_at = reports.clock.now()
        self._tried_at = 0
        self._pending: tuple[Progress | None, str | None] | None = None
        # The ticker reports beside the job's own code: one write at a time, each onto the last.
        self._lock = threading.RLock()
        self._notice = notice or Notice()
        self.over = False

    @property
    def task(self) -> Task:
        """The task as the worker last saw it."""
        return self._task

    def check(self) -> None:
        """Leave the job if it was cancelled or superseded."""
        with self._alone():
            if self.over:
                raise RunSuperseded
            self._listen()
            if self._task.cancel_requested_at is not None:
                raise JobCancelled

    def progress(self, done: float | None, total: float | None, message: str | None) -> None:
        """Tell how far the job is; written when it is due."""
        numbers = (
            None
            if done is None
            else Progress(_number("done", done), None if total is None else _number("total", total))
        )
        if message is None and numbers is not None:
            message = f"{numbers.done:g}" if numbers.total is None else f"{numbers.done:g} of {numbers.total:g}"
        with self._alone():
            self._pending = (numbers, message)
            self.flush()
            self.check()

    def flush(self) -> None:
        """Write the last told progress once it is due."""
        with self._alone():
            now = self._reports.clock.now()
            since = max(self._task.updated_at, self._tried_at)
            if self._pending is None or now - since < self._task.poll_interval(now) // 2:
                return
            numbers, message = self._pending
            if self._tell(lambda: self._reports.progress(self._task, numbers, message), must=False):
                self._pending = None

    def tick(self) -> None:
        """What the ticker does: write what is due, and listen when nothing was."""
        with self._lock:
            if self.over:
                return
            try:
                self.flush()
                self._listen()
            except RunSuperseded:
                self.over = True

    def why_end(self) -> type[Unwind] | None:
        """What an order to end means for the job, by a look at its task; None when the task cannot be reached."""
        with self._lock:
            if self.over:
                return RunSuperseded
            if self._task.cancel_requested_at is not None:
                return JobCancelled
            try:
                heard = self._tell(lambda: self._reports.hear(self._task), must=False)
            except RunSuperseded:
                return RunSuperseded
            if self._task.cancel_requested_at is not None:
                return JobCancelled
            return RunInterrupted if heard else None

    def step(self, name: str, outcome: str) -> None:
        """Remember a step's outcome."""
        with self._alone():
            self._tell(lambda: self._reports.step(self._task, name, outcome))

    def ask(self, questions: Mapping[str, Question], wait_ms: int) -> None:
        """Open questions; comes back only if all of them are answered within `wait_ms`."""
        with self._alone():
            hold = wait_ms > 0
            within = self._answer_within_ms
            self._tell(lambda: self._reports.ask(self._task, questions, within, hold=hold, first=self._last_told))
            self._pending = None
            if self._task.cancel_requested_at is not None:
                raise JobCancelled
            if hold:
                self._wait_for(questions, wait_ms)
            if any(key not in self._task.answers for key in questions):
                self.over = True
                raise RunSuspended

    def load(self, stored: str) -> Any:
        """The value of a stored text."""
        return self._reports.payloads.load(stored)

    def put(self, data: bytes | IO[bytes], mime_type: str, label: str) -> str:
        """Store a file under a new key; its pointer comes back."""
        if isinstance(data, bytes):
            return self._reports.payloads.put_bytes(self._task, label, data, mime_type)
        return self._reports.payloads.put_file(self._task, label, data, mime_type)

    def open_input(self, uri: str) -> IO[bytes]:
        """A document under the caller's own input prefix."""
        return self._reports.payloads.open_input(uri, self._task.owner)

    def finish(self, move: Move) -> bool:
        """The terminal write; False when somebody else's had come first."""
        with self._alone():
            self.over = True
            try:
                self._task = self._reports.finish(self._task, lambda t: move(self._last_told(t)))
            except RunLost:
                return False
            return True

    def store_result(self, result: dict[str, Any]) -> str:
        """The stored text of a CallToolResult, its oversized parts put into the bucket."""
        fitted = links.fitted(result, self.put)
        return self._reports.payloads.keep(self._task, "result", dump(fitted), RESULT)

    def store_error(self, error: dict[str, Any]) -> str:
        """The stored text of a JSON-RPC error; of one that no answer could carry, the code and a text remain."""
        text = dump(error)
        if links.escaped_size(text) > links.LARGEST_RESULT:
            text = dump(endings.rpc_error(error["code"], "The tool's error is too large to be sent."))
        return self._reports.payloads.keep(self._task, "error", text, RESULT)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One call at a time, and none that an order to end could tear."""
        with self._notice.whole(), self._lock:
            yield

    def _last_told(self, task: Task) -> Task:
        """The task with the progress that was told but not due yet: the next write takes it along."""
        if self._pending is None:
            return task
        return task.reported(*self._pending, self._reports.clock.now())

    def _listen(self) -> None:
        """Look for the cancel flag when nothing was heard for a while."""
        now = self._reports.clock.now()
        first, most = _LOOK_EVERY_MS
        pause = min(max(first, (now - self._task.run_started_at) // _LOOK_SHARE), most)
        if now - max(self._heard_at, self._tried_at) >= pause:
            self._tell(lambda: self._reports.hear(self._task), must=False)

    def _wait_for(self, questions: Mapping[str, Question], wait_ms: int) -> None:
        until = self._reports.clock.now() + wait_ms
        while any(key not in self._task.answers for key in questions):
            left = until - self._reports.clock.now()
            # A process that has to end does not hold its run open: the answer starts the next one.
            if left <= 0 or self._notice.given:
                self._tell(lambda: self._reports.let_go(self._task))
                return
            self._reports.clock.sleep(min(left, 500))
            self._tell(lambda: self._reports.hear(self._task), must=False)

    def _tell(self, report: Callable[[], Task], *, must: bool = True) -> bool:
        try:
            known, self._task = self._task, report()
            # A report that changed nothing made no call: nothing was heard.
            if self._task is not known:
                self._heard_at = self._reports.clock.now()
        except RunLost:
            self.over = True
            raise RunSuperseded from None
        except StoreUnavailable:
            # Progress and listening may fail for a while; what must be kept may not.
            if must:
                raise
            # A job that tells a lot must neither crowd a table in trouble nor wait for it every time.
            self._tried_at = self._reports.clock.now()
            return False
        return True


def _number(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= _LARGEST_NUMBER:
        raise ToolError(f"progress: {name} must be a finite number.")
    return value
