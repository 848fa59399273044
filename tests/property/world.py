"""One deployment with trouble in it, and what must be true of it: the model beside the machine."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from taskrail import ProtocolError, StepFunctions, TaskContext, TaskServer, ToolError, Toolset
from taskrail.call import ClientInfo
from taskrail.clock import minutes, seconds
from taskrail.engines import run_name
from taskrail.errors import TaskNotFound
from taskrail.questions import Question, form_question
from taskrail.rail.rail import Rail
from taskrail.rail.reports import Reports
from taskrail.runtime import build
from taskrail.settings import Settings
from taskrail.store import from_item
from taskrail.task import Status, Task
from taskrail.testing import BUCKET, TABLE, StandingClock
from tests.property import rules
from tests.property.outside import Meanwhile, Outside, TroubledBucket, TroubledEngine, TroubledTable

CLIENT = ClientInfo(capabilities={"elicitation": {}})
KEYS = ("a", "b", "c")
STEPS = ("s", "t")
SETTINGS = Settings(table=TABLE, bucket=BUCKET, secret="a secret for tests only")

_numbers = itertools.count(1)


class Form(BaseModel):
    """What a question wants to know."""

    number: int


class Ids:
    """Ids that no other example has: all examples share one table."""

    def task_id(self) -> str:
        """A new task id."""
        return f"{next(_numbers):032x}"

    def nonce(self) -> str:
        """A new nonce."""
        return f"n{next(_numbers):x}"


def question(key: str, words: str = "") -> Question:
    """The question that a key stands for, in words of its own unless others are given."""
    return form_question(key, words or f"What is {key}?", Form)


@dataclass
class Ticket:
    """What the model knows of a task."""

    task_id: str
    owner: str
    tool: str
    arguments: dict[str, Any]
    sealed_until: int | None
    acknowledged: bool = False
    """Whether a client holds the ticket."""
    seen: Task | None = None
    """The task as the last write left it."""
    sent: dict[str, list[Any]] = field(default_factory=dict)
    """The usable responses that clients sent, by key."""
    outcomes: dict[str, Any] = field(default_factory=dict)
    """What jobs got from their steps."""
    answers: dict[str, Any] = field(default_factory=dict)
    """What jobs got as answers."""

    def resolves(self, now: int) -> bool:
        """Whether its owner may read it."""
        return self.seen is not None and not self.seen.expired(now)


class World:
    """One deployment, its outside in trouble, and its model.

    Parameters
    ----------
    dynamodb, s3
        Clients of moto.
    look
        Gives the item of a key.
    meanwhile
        Lets another process do something to a task.
    """

    def __init__(
        self,
        dynamodb: Any,
        s3: Any,
        look: Callable[[str], Any],
        meanwhile: Callable[[Meanwhile, str], None],
    ) -> None:
        self._look = look
        self.clock = StandingClock()
        self.outside = Outside(self._observe, meanwhile)
        self.engine = TroubledEngine(self.outside, self.clock, self._check_start, self._check_stop)
        self.tickets: dict[str, Ticket] = {}
        self.creating: Ticket | None = None
        self.violations: list[str] = []
        self.server = _catalogue(self)
        table: Any = TroubledTable(self.outside, dynamodb)
        bucket: Any = TroubledBucket(self.outside, s3)
        self.rail: Rail = build(
            self.server,
            SETTINGS,
            dynamodb=table,
            s3=lambda: bucket,
            engines={"step_functions": self.engine},
            clock=self.clock,
            ids=Ids(),
        ).rail

    @property
    def reports(self) -> Reports:
        """The workers' side of the rail."""
        return self.rail.reports

    def stored(self, task_id: str) -> Task | None:
        """The task as it stands, seen without a call of the process's own."""
        item = self._look(f"task#{task_id}")
        return None if item is None else from_item(item)

    def broken(self, what: str) -> None:
        """Note a broken rule; the machine fails with it, whatever the kit does with exceptions."""
        self.violations.append(what)

    # --- what is checked while the kit works

    def _observe(self, task_id: str) -> None:
        ticket = self.tickets.get(task_id)
        if ticket is None:
            assert self.creating is not None
            ticket = self.tickets[task_id] = self.creating
            ticket.task_id = task_id
        old, new = ticket.seen, self.stored(task_id)
        ticket.seen = new
        try:
            if old is None:
                if new is not None:
                    rules.check_created(new, self.clock.now())
            elif new is None:
                rules.check_taken_back(old, acknowledged=ticket.acknowledged)
            else:
                rules.check_changed(old, new, self.clock.now())
                self._check_cause(old, new)
        except AssertionError as error:
            self.broken(str(error).split("\n")[0] or repr(error))

    def _check_cause(self, old: Task, new: Task) -> None:
        """Nobody but its worker ends a run that is alive, in time and wanted, or a question that may be answered."""
        if new.open or not old.open or self.outside.actor == "worker":
            return
        if old.status is Status.INPUT_REQUIRED:
            overdue = old.answer_deadline is not None and self.clock.now() >= old.answer_deadline
            assert overdue or new.status is Status.CANCELLED, "an open question was given up"
            return
        in_time = self.clock.now() < old.run_deadline
        cancelled = old.cancel_requested_at is not None or new.status is Status.CANCELLED
        living = self.engine.lives(run_name(old.task_id, old.run))
        assert not (in_time and living and not cancelled), "a living run was given up"

    def _check_start(self, task_id: str, run: int) -> None:
        ticket = self.tickets.get(task_id)
        task = None if ticket is None else ticket.seen
        if task is None:
            self.broken("work was started without a ticket")
        elif (not task.open or task.run != run) and not self.outside.overtaken:
            self.broken("a run was started that nobody waits for")
        elif any(run_name(task_id, number) not in self.engine.runs for number in range(1, run)):
            self.broken("a run was started before the one that it follows")

    def _check_stop(self, task_id: str, run: int) -> None:
        task = self.tickets[task_id].seen
        assert task is not None
        deadline = task.run_deadline if task.status is Status.WORKING else task.answer_deadline
        overdue = deadline is not None and self.clock.now() >= deadline
        wanted = task.run == run and task.open and task.cancel_requested_at is None and not overdue
        if wanted and not self.outside.overtaken:
            self.broken("a run was stopped that was wanted")

    def got_outcome(self, task_id: str, name: str, outcome: Any) -> None:
        """A job got a step's outcome: once it is recorded, it is the same for every run and attempt."""
        ticket = self.tickets[task_id]
        recorded = ticket.seen is not None and name in ticket.seen.steps
        if recorded and ticket.outcomes.setdefault(name, outcome) != outcome:
            self.broken("a step's recorded outcome changed")

    def got_answer(self, task_id: str, key: str, raw: Any) -> None:
        """A job got an answer: somebody sent it, and it never changes."""
        ticket = self.tickets[task_id]
        if raw not in ticket.sent.get(key, []):
            self.broken("a job got an answer that nobody sent")
        if ticket.answers.setdefault(key, raw) != raw:
            self.broken("a question was answered twice")


def _catalogue(world: World) -> TaskServer:
    """Jobs that do what their script says, and tell the model what they got."""
    tools = Toolset()
    worked = itertools.count()

    def follow(task: TaskContext, script: list[str]) -> int:
        for number, line in enumerate(script):
            verb, _, rest = line.partition(":")
            if verb == "step":
                world.got_outcome(task.task_id, rest, task.step(rest, lambda: next(worked)))
            elif verb in ("ask", "hold"):
                forms = {key: (f"What is {key}?", Form) for key in rest.split(",")}
                answers = task.ask_all(forms, wait=seconds(3) if verb == "hold" else None)
                for key, answer in answers.items():
                    world.got_answer(task.task_id, key, answer.raw)
            elif verb == "other":
                task.ask(rest, "Something else?", Form)
            elif verb == "progress":
                task.progress(number, len(script))
            elif verb == "busy":
                world.clock.advance(int(rest))
                task.check()
            else:
                _END[verb]()
        return next(worked)

    @tools.task(
        runs_on=StepFunctions(timeout=minutes(1)),
        keep_result=minutes(10),
        answer_within=minutes(5),
        poll_interval=seconds(1),
    )
    def short(task: TaskContext, script: list[str], pad: str = "") -> int:
        """A result that is kept for a while."""
        return follow(task, script)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)

        @tools.task(
            runs_on=StepFunctions(timeout=minutes(2)),
            keep_result=None,
            answer_within=minutes(3),
            poll_interval=seconds(5),
        )
        def kept(task: TaskContext, script: list[str], pad: str = "") -> int:
            """A result that is kept for ever."""
            return follow(task, script)

    return TaskServer("property", version="1", tools=[tools])


def _raises(error: BaseException) -> Callable[[], None]:
    def end() -> None:
        raise error

    return end


_END: dict[str, Callable[[], None]] = {
    "refuse": _raises(ToolError("No.", structured={"half": 1})),
    "protocol": _raises(ProtocolError(-1, "Never.", {"why": "so"})),
    "exit": _raises(SystemExit(3)),
    "raise": _raises(RuntimeError("boom")),
}
ENDINGS = tuple(_END)


def not_found(act: Callable[[], object]) -> bool:
    """Whether the call found no such task; the error is the same for all reasons, byte for byte."""
    try:
        act()
    except TaskNotFound as error:
        assert (str(error), error.message, error.data) == (str(TaskNotFound()), TaskNotFound().message, None)
        return True
    return False
