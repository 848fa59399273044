"""The rows for Python jobs on Lambda: started by an Invoke that nothing answers for, kept by a lease."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from taskrail.clock import minutes
from tests.faults.acts import (
    answered,
    attempt,
    cancel,
    cancel_asked,
    create,
    engine_refuses,
    first_then,
    get,
    jobs_run,
    later,
    record,
    ticket,
    update,
    worker_died,
    worker_died_holding,
)
from tests.faults.operations import Answer, Bears, End, Ends, Operation, Then
from tests.faults.table import BROKEN, CANCELLED, DELETE, REPORTED, RESULT, WRITE, everyone
from tests.faults.work_acts import died_unasked, expire, never_started

INVOKE = "lambda:Invoke"

ALWAYS = Bears.ALWAYS
LOST = everyone(End.LOST)

# Nobody has taken the run up: whoever reads has it invoked once more, unless Lambda tells that it died.
UNCLAIMED: Ends = dict.fromkeys(REPORTED, End.RESULT) | {Then.TOLD: End.BROKEN, Then.CANCEL: End.CANCELLED}
# Somebody had, and is not heard any more: the next delivery takes over, or the lease runs out.
CLAIMED: Ends = {
    Then.REPEAT: End.RESULT,
    Then.TOLD: End.BROKEN,
    Then.POLL: End.LOST,
    Then.HANGS: End.LOST,
    Then.CANCEL: End.CANCELLED,
}
ASKED: Ends = REPORTED | {Then.CANCEL: End.CANCELLED}
# The answer comes while the lease of the dead attempt still holds: it goes to that run, and is lost with it.
HELD: Ends = ASKED | {Then.POLL: End.LOST}
TOLD: Ends = {Then.REPEAT: End.RESULT, Then.POLL: End.RESULT, Then.LEAVE: End.GONE}
TOLD_BROKEN: Ends = {Then.REPEAT: End.BROKEN, Then.POLL: End.BROKEN, Then.LEAVE: End.GONE}

CREATES = (
    Operation("create on lambda", create("function", text="a"), bears={INVOKE: ALWAYS}, ends={0: RESULT}, items=2),
    Operation(
        "create on lambda, refused",
        create("function", text="a"),
        engine_refuses,
        bears={INVOKE: Answer.USUAL, DELETE: ALWAYS},
        ends={0: RESULT},
        usual=Answer.REFUSED,
        items=2,
    ),
    Operation(
        "create once on lambda, again",
        create("once_function", text="a"),
        ticket("once_function", text="a"),
        bears={INVOKE: ALWAYS},
        ends={0: RESULT},
    ),
)

GETS = (
    Operation(
        "get on lambda, never taken up",
        get,
        never_started("function"),
        bears={WRITE: ALWAYS, INVOKE: ALWAYS},
        ends={0: RESULT},
    ),
    Operation(
        "get on lambda, lease over",
        get,
        first_then(ticket("function", text="a"), worker_died, later(minutes(1))),
        bears={WRITE: ALWAYS},
        ends={0: LOST},
    ),
    Operation(
        "get on lambda, cancelled and lease over",
        get,
        first_then(ticket("function", text="a"), worker_died, cancel_asked, later(minutes(1))),
        bears={WRITE: ALWAYS},
        ends={0: CANCELLED},
    ),
    Operation(
        "get on lambda, died holding a question",
        get,
        first_then(ticket("function_holds"), worker_died_holding, later(minutes(1))),
        bears={WRITE: ALWAYS},
        ends={0: RESULT},
        runs=2,
    ),
    Operation(
        "get on lambda, out of time",
        get,
        first_then(ticket("function", text="a"), worker_died, later(minutes(16))),
        bears={WRITE: ALWAYS},
        ends={0: BROKEN},
    ),
)

CHANGES = (
    Operation(
        "update on lambda",
        update(go="yes"),
        first_then(ticket("function_asks"), jobs_run),
        bears={INVOKE: ALWAYS},
        ends={0: RESULT, 2: RESULT},
        runs=2,
    ),
    Operation(
        "cancel on lambda, unclaimed",
        cancel,
        ticket("function", text="a"),
        ends={0: CANCELLED | {Then.POLL: End.RESULT}, 2: CANCELLED},
    ),
    Operation(
        "cancel on lambda, claimed",
        cancel,
        first_then(ticket("function", text="a"), worker_died),
        ends={0: CANCELLED | {Then.POLL: End.LOST}, 2: CANCELLED},
    ),
)

JOBS = (
    Operation(
        "job on lambda: claim and finish",
        attempt(1),
        ticket("function", text="a"),
        bears={WRITE: Bears.ONCE},
        ends={0: UNCLAIMED, 1: CLAIMED, 2: REPORTED},
        records={"work": 2},
        run=1,
    ),
    Operation(
        "job on lambda: renew",
        attempt(1),
        ticket("function_renews"),
        bears={f"{WRITE}#1": ALWAYS, f"{WRITE}#2": ALWAYS, WRITE: Bears.ONCE},
        ends={0: UNCLAIMED, 1: CLAIMED, 4: REPORTED},
        records={"work": 4},
        run=1,
    ),
    Operation(
        "job on lambda: take over",
        attempt(1),
        first_then(ticket("function_asks"), partial(worker_died, before_call=2)),
        bears={WRITE: Bears.ONCE},
        ends={0: CLAIMED, 3: ASKED},
        runs=2,
        run=1,
    ),
    Operation(
        "job on lambda: ask",
        attempt(1),
        ticket("function_asks"),
        bears={WRITE: Bears.ONCE},
        ends={0: UNCLAIMED, 1: CLAIMED, 3: ASKED},
        records={"step": 2},
        runs=2,
        run=1,
    ),
    Operation(
        "job on lambda: ask and wait",
        attempt(1),
        ticket("function_holds"),
        bears={WRITE: Bears.ONCE, "dynamodb:GetItem": ALWAYS},
        ends={0: UNCLAIMED, 1: CLAIMED, 2: HELD, 4: ASKED},
        runs=2,
        run=1,
    ),
    Operation(
        "job on lambda: go on after the answer",
        attempt(2),
        first_then(ticket("function_asks"), jobs_run, answered),
        bears={WRITE: Bears.ONCE},
        ends={0: UNCLAIMED, 1: CLAIMED, 2: REPORTED},
        records={"work": 2},
        runs=2,
        run=2,
    ),
)

EVENTS = (
    Operation(
        "event: a function died",
        record,
        first_then(ticket("function", text="a"), worker_died),
        ends={0: TOLD_BROKEN | {Then.POLL: End.LOST}, 2: TOLD_BROKEN},
    ),
    Operation(
        "event: a function died before its claim",
        record,
        ticket("function", text="a"),
        ends={0: TOLD | {Then.REPEAT: End.BROKEN}, 2: TOLD_BROKEN},
    ),
    Operation(
        "event: a function died after its report",
        record,
        first_then(ticket("function", text="a"), jobs_run),
        ends={0: TOLD},
    ),
    Operation(
        "event: a function died holding a question",
        record,
        first_then(ticket("function_holds"), worker_died_holding),
        ends={0: TOLD | {Then.POLL: End.LOST}, 2: TOLD},
        runs=2,
    ),
    Operation(
        "expired: a job on lambda",
        expire,
        first_then(ticket("function", text="a"), died_unasked),
        ends={0: {Then.REPEAT: End.GONE}},
    ),
)

FUNCTIONS = tuple(replace(row, thin=True) for row in (*CREATES, *GETS, *CHANGES, *JOBS, *EVENTS))
