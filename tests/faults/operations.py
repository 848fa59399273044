"""What an operation of the table is, and what its cells promise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tests.faults.faults import Fault, Lasting, Plan
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
Ends = Mapping[Then, End]

CLIENT: Ends = {Then.REPEAT: End.RESULT, Then.POLL: End.RESULT, Then.CANCEL: End.CANCELLED, Then.LEAVE: End.GONE}
WORKER: Ends = {
    Then.REPEAT: End.RESULT,
    Then.TOLD: End.BROKEN,
    Then.POLL: End.BROKEN,
    Then.CANCEL: End.CANCELLED,
    Then.HANGS: End.BROKEN,
}


@dataclass(frozen=True)
class Operation:
    """One row of the table.

    Parameters
    ----------
    name
        What is done.
    act
        Does it, in the process that will meet the fault; its value is the answer.
    prepare
        Brings the world to where the operation begins.
    bears
        Per AWS call, as ``service:Operation`` or ``service:Operation#n`` for the n-th of that kind (from 0):
        how the operation takes it when that call goes on failing. `Bears.NOT` where nothing stands. A function
        of the fault where that matters.
    decisive
        Index of the AWS call with which the operation has happened.
    missed, happened
        How the task ends by what the world does then, when the decisive call took no effect, and when it did.
    usual
        The answer without a fault.
    work
        How often each piece of work is done when nothing is repeated.
    repeats
        Pieces of work that may be done once more when the decisive call took no effect: those whose own
        record that call is. Everything else is done once whatever happens.
    again
        How a client or EventBridge repeats it; the same act by default.
    holds_ticket
        Whether the client knows the task's id even when the operation did not answer.
    """

    name: str
    act: Callable[[Process], Any]
    prepare: Callable[[World], None] = lambda world: None
    bears: Mapping[str, Bearing | Callable[[Fault], Bearing]] = field(default_factory=dict)
    decisive: int = 0
    missed: Ends = field(default_factory=dict)
    happened: Ends = field(default_factory=dict)
    usual: Answer = Answer.USUAL
    work: Mapping[str, int] = field(default_factory=dict)
    repeats: frozenset[str] = frozenset()
    again: Callable[[Process], Any] | None = None
    holds_ticket: bool = True


@dataclass(frozen=True)
class Cell:
    """One cell: an operation, a fault in one of its calls, and what the world does then.

    Parameters
    ----------
    operation, plan, then
        The coordinates.
    answer, end
        The promise.
    happened
        Whether the operation has happened when the world goes on.
    """

    operation: Operation
    call: str
    plan: Plan
    then: Then
    answer: Answer
    end: End
    happened: bool

    @property
    def name(self) -> str:
        """Names the cell in pytest's report."""
        lasting = "" if self.plan.fault.kills else f" for {self.plan.lasting.value}"
        return f"{self.operation.name} | {self.call} | {self.plan.fault.value}{lasting} | {self.then.value}"


def cells(operation: Operation, calls: list[str]) -> list[Cell]:
    """Every cell of a row.

    Parameters
    ----------
    operation
        The row.
    calls
        The AWS calls that it makes, as a dry run recorded them.
    """
    made = []
    turn = 0
    for index in range(len(calls)):
        for fault in Fault:
            for lasting in [Lasting.ONE_TRY] if fault.kills else Lasting:
                plan = Plan(index, fault, lasting)
                answer, stuck = _answer(operation, calls, plan)
                happened = stuck is None or stuck > operation.decisive
                happened |= stuck == operation.decisive and fault.takes_effect
                thens = _thens(operation, answer, happened)
                if not fault.kills:
                    # Every way to go on meets every call, with and without effect; not with every kind of fault.
                    thens = [thens[turn % len(thens)]]
                    turn += 1
                ends = operation.happened if happened else operation.missed
                made += [Cell(operation, f"{index} {calls[index]}", plan, then, answer, ends[then], happened) for then in thens]
    return made


def _answer(operation: Operation, calls: list[str], plan: Plan) -> tuple[Answer, int | None]:
    """What is answered, and the call behind which the operation did not get; None for none."""
    if plan.fault.kills:
        return Answer.NOTHING, plan.call
    if plan.lasting is Lasting.ONE_TRY:
        return operation.usual, None
    outage = plan.lasting is Lasting.OUTAGE
    for index in range(plan.call, len(calls) if outage else plan.call + 1):
        bearing = _bearing(operation, calls, index, plan.fault)
        if isinstance(bearing, Answer):
            return bearing, index
        if bearing is Bears.NOT or (bearing is Bears.ONCE and outage):
            return Answer.ERROR, index
    return operation.usual, None


def _bearing(operation: Operation, calls: list[str], index: int, fault: Fault) -> Bearing:
    call = calls[index]
    nth = calls[:index].count(call)
    bearing = operation.bears.get(f"{call}#{nth}", operation.bears.get(call, Bears.NOT))
    return bearing if isinstance(bearing, (Bears, Answer)) else bearing(fault)


def _thens(operation: Operation, answer: Answer, happened: bool) -> list[Then]:
    ends = operation.happened if happened else operation.missed
    if answer is operation.usual:
        # Whoever got an answer does not repeat the operation, and an engine whose run went well does not complain.
        return [then for then in ends if then not in (Then.REPEAT, Then.TOLD, Then.HANGS)] or [Then.REPEAT]
    if not operation.holds_ticket:
        return [then for then in ends if then in (Then.REPEAT, Then.LEAVE)]
    return list(ends)
