"""What an operation of the table is, and what its cells promise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import product
from typing import Any

from tests.faults.faults import Fault, Lasting, Plan, service_of
from tests.faults.world import Process, World


class Answer(Enum):
    """What whoever asked for the operation gets."""

    USUAL = "as usual"
    """What it gets without a fault."""
    ERROR = "an error"
    """A client: -32603 without any detail, to be repeated. An engine or EventBridge: an error, to try again."""
    REFUSED = "not started"
    """A client: -32603 that says so, to be repeated."""
    NOTHING = "nothing"
    """The process died."""


class Then(Enum):
    """How the world goes on after the operation."""

    REPEAT = "repeat"
    """The client repeats the call; EventBridge delivers again; the engine starts the next attempt."""
    POLL = "poll"
    """The client polls the ticket that it holds. A run that died is known to its engine, which told nobody."""
    CANCEL = "cancel"
    """The client cancels, then polls."""
    LEAVE = "leave"
    """Nobody asks any more."""
    TOLD = "told"
    """The engine gives the run up, and its event arrives."""
    HANGS = "hangs"
    """The engine takes the dead run for running, until its time is up."""


class End(Enum):
    """What the task is in the end."""

    RESULT = "completed with the job's own result"
    BROKEN = "completed with an error that says what happened to the run"
    LOST = "failed: the run was lost without a reason"
    CANCELLED = "cancelled"
    NOTHING = "completed, and nothing was returned"
    GONE = "expired: unknown, and nothing of it goes on"


class Bears(Enum):
    """How an operation takes it when one of its calls goes on failing."""

    NOT = "fails"
    """The operation answers with an error."""
    ONCE = "repeats the call itself"
    """It rides out one failed call, not an outage."""
    ALWAYS = "does without"
    """It answers as usual; repair or the next one makes up for it."""


Bearing = Bears | Answer
Ends = dict[Then, End]


@dataclass(frozen=True)
class Operation:
    """One row of the table.

    Parameters
    ----------
    name
        What is done.
    act
        Does it, in the process that will meet the fault; what it returns is the answer.
    prepare
        Brings the world to where the operation begins.
    bears
        Per AWS call, as ``service:Operation`` or ``service:Operation#n`` for the n-th of that kind (from 0):
        how the operation takes it when that call goes on failing. `Bears.NOT` where nothing stands. A function
        of the fault where that matters, and an `Answer` where the answer is none of the usual two.
    ends
        How the task ends by what the world does then: from so many AWS calls on that have taken effect. With the
        last entry the operation has happened.
    usual
        The answer without a fault.
    runs, items
        How many runs the task may need, and how many tasks there may be, from the first call to the end.
    records
        Work that is done again after a crash, by kind: with how many calls' effect it is recorded. Whatever is
        not named here, or is recorded when the fault comes, is done once.
    run
        Number of the run that a job's row works on; None in any other row.
    longest_ms
        How long a request may take when a call in it, or all of a service, hangs, in milliseconds; API Gateway
        ends one after 29 s.
    thin
        Whether the short form tries fewer faults: one time every way to lose an answer, another time the others.
    """

    name: str
    act: Callable[[Process], Any]
    prepare: Callable[[World], None] = lambda world: None
    bears: Mapping[str, Bearing | Callable[[Fault], Bearing]] = field(default_factory=dict)
    ends: Mapping[int, Ends] = field(default_factory=dict)
    usual: Answer = Answer.USUAL
    runs: int = 1
    items: int = 1
    records: Mapping[str, int] = field(default_factory=dict)
    run: int | None = None
    longest_ms: int = 25_000
    thin: bool = False

    @property
    def creates(self) -> bool:
        """Whether the client learns the task's id from this operation's answer."""
        return self.name.startswith("create")

    def bearing(self, calls: Sequence[str], index: int, fault: Fault) -> Bearing:
        """How the operation takes it when its `index`-th call goes on failing in that way."""
        call = calls[index]
        nth = calls[:index].count(call)
        bearing = self.bears.get(f"{call}#{nth}", self.bears.get(call, Bears.NOT))
        return bearing if isinstance(bearing, (Bears, Answer)) else bearing(fault)


@dataclass(frozen=True)
class Cell:
    """One cell: an operation, a fault in one of its calls, what the world does then, and what must come of it.

    Parameters
    ----------
    operation, call, plan, then
        The coordinates.
    happened
        Whether the operation has happened when the world goes on.
    answer, end, again
        The promise: what is answered, how the task ends, and which work may have been done twice.
    """

    operation: Operation
    call: str
    plan: Plan
    then: Then
    happened: bool
    answer: Answer
    end: End
    again: frozenset[str]

    @property
    def name(self) -> str:
        """Names the cell in pytest's report."""
        lasting = "" if self.plan.fault.kills else f" for {self.plan.lasting.value}"
        where = f"{self.plan.call + 1} {self.call.partition(':')[2]}"
        return f"{self.operation.name} | {where} | {self.plan.fault.value}{lasting} | {self.then.value}"


def cells(operation: Operation, calls: Sequence[str], *, share: float) -> list[Cell]:
    """The cells of a row.

    Parameters
    ----------
    operation
        The row.
    calls
        The AWS calls that it makes, as a dry run recorded them.
    share
        How much of the table: 0 for the short form; 1 for the long one, in which the world goes on in every way after
        every fault. Below, the ways take turns.
    """
    made: list[Cell] = []
    for number, plan in enumerate(_plans(len(calls))):
        one_in = round((6 if operation.thin else 1) / share) if share else (24 if operation.thin else 6)
        if not _taken(plan, number, one_in):
            continue
        answer, stuck = _answer(operation, calls, plan)
        landed = len(calls) if stuck is None else stuck + _took_effect(calls, plan, stuck)
        ends = operation.ends[max(stage for stage in operation.ends if stage <= landed)]
        happened = landed >= max(operation.ends)
        again = frozenset(kind for kind, recorded in operation.records.items() if landed < recorded)
        thens = _thens(operation, answer, ends)
        if share < 1:
            # They take turns: every way follows a kill in every call, and some way every other fault.
            turn = plan.call + plan.fault.takes_effect if plan.fault.kills else len(made)
            several = plan.fault.kills and not operation.thin
            thens = thens[turn % 2 :: 2] or thens if several else [thens[turn % len(thens)]]
        made += [
            Cell(operation, calls[plan.call], plan, then, happened, answer, ends.get(then, End.GONE), again)
            for then in thens
        ]
    return made


def _taken(plan: Plan, number: int, one_in: int) -> bool:
    """Whether a form of a row has a plan: deaths, lost answers, and one in so many of the others."""
    if plan.fault.kills or (plan.fault is Fault.ERROR_AFTER and plan.lasting is Lasting.ONE_CALL):
        return True
    return number % one_in == plan.call % one_in


def _plans(calls: int) -> Iterator[Plan]:
    for call, fault in product(range(calls), Fault):
        lastings = [Lasting.ONE_TRY] if fault.kills else [Lasting.ONE_TRY, Lasting.ONE_CALL]
        if fault in (Fault.TIMEOUT_BEFORE, Fault.TIMEOUT_AFTER, Fault.THROTTLE):
            # What stays away stays silent, or is overrun.
            lastings.append(Lasting.OUTAGE)
        for lasting in lastings:
            yield Plan(call, fault, lasting)


def _answer(operation: Operation, calls: Sequence[str], plan: Plan) -> tuple[Answer, int | None]:
    """What is answered, and the call behind which the operation did not get; None for none."""
    if plan.fault.kills:
        return Answer.NOTHING, plan.call
    if plan.lasting is Lasting.ONE_TRY:
        return operation.usual, None
    outage = plan.lasting is Lasting.OUTAGE
    for index in range(plan.call, len(calls) if outage else plan.call + 1):
        if service_of(calls[index]) != service_of(calls[plan.call]):
            continue
        bearing = operation.bearing(calls, index, plan.fault)
        if isinstance(bearing, Answer):
            return bearing, index
        if bearing is Bears.NOT or (bearing is Bears.ONCE and outage):
            return Answer.ERROR, index
    return operation.usual, None


def _took_effect(calls: Sequence[str], plan: Plan, stuck: int) -> bool:
    """Whether the call that the operation did not get behind took effect."""
    # Behind a write whose answer got lost, the next one is made from a revision that is no more.
    unheard = any(call.endswith(":UpdateItem") for call in calls[plan.call : stuck])
    return plan.fault.takes_effect and not unheard


def _thens(operation: Operation, answer: Answer, ends: Ends) -> list[Then]:
    if answer is Answer.USUAL:
        # Whoever got an answer does not repeat the operation; an engine whose run went well does not complain.
        return [then for then in ends if then not in (Then.REPEAT, Then.TOLD, Then.HANGS)] or [Then.LEAVE]
    if operation.creates:
        # No ticket, nothing to poll.
        return [then for then in ends if then in (Then.REPEAT, Then.LEAVE)]
    return list(ends)
