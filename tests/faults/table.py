"""The table: every operation, how it bears the failure of each AWS call in it, and how its task ends.

An engine, a handler or an operation joins with a row of its own.
"""

from __future__ import annotations

from taskrail.clock import days, minutes, seconds
from tests.faults.acts import (
    answered,
    attempt,
    caller_died,
    cancel,
    cancel_asked,
    create,
    create_and_wait,
    create_sealed,
    engine_refuses,
    event,
    first_question,
    first_then,
    get,
    jobs_run,
    later,
    run_over,
    start_got_lost,
    start_got_lost_and_missed,
    ticket,
    update,
    worker_died,
    worker_died_holding,
)
from tests.faults.catalogue import LARGE
from tests.faults.operations import Answer, Bearing, Bears, End, Ends, Operation, Then

READ, PUT, WRITE, DELETE = "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"
START, STOP, DESCRIBE = "stepfunctions:StartExecution", "stepfunctions:StopExecution", "stepfunctions:DescribeExecution"
STORE, LOAD = "s3:PutObject", "s3:GetObject"


# Of a start that fails again and again nobody knows whether a try took effect, be it refused in the end: the ticket is
# handed over, and repair finds the run or starts it.
FIRST_START: Bearing = Bears.ALWAYS
REFUSED_START: Bearing = Answer.USUAL


def everyone(end: End) -> Ends:
    """Whatever a client does, the task ends like that; left alone it expires."""
    return dict.fromkeys((Then.REPEAT, Then.POLL, Then.CANCEL), end) | {Then.LEAVE: End.GONE}


RESULT: Ends = everyone(End.RESULT) | {Then.CANCEL: End.CANCELLED}
BROKEN, CANCELLED, DONE = everyone(End.BROKEN), everyone(End.CANCELLED), everyone(End.RESULT)

CLAIMED: Ends = {
    Then.REPEAT: End.RESULT,
    Then.TOLD: End.BROKEN,
    Then.POLL: End.BROKEN,
    Then.HANGS: End.BROKEN,
    Then.CANCEL: End.CANCELLED,
}
UNCLAIMED: Ends = {**CLAIMED, Then.TOLD: End.LOST, Then.POLL: End.LOST}
REPORTED: Ends = dict.fromkeys(CLAIMED, End.RESULT)
ASKED: Ends = REPORTED | {Then.CANCEL: End.CANCELLED}
# The answer comes while the engine still takes the dead run for alive: it goes to that run, and ends with it.
HELD: Ends = ASKED | {Then.HANGS: End.BROKEN}

CALLS = (
    Operation("create", create("plain", text="a"), bears={START: FIRST_START}, ends={0: RESULT}, items=2),
    Operation(
        "create with large arguments",
        create("plain", text=LARGE),
        bears={START: FIRST_START},
        ends={0: RESULT},
        items=2,
    ),
    Operation("create after a question", create_sealed, first_question, bears={START: FIRST_START}, ends={0: RESULT}),
    Operation(
        "create again after a crash",
        create_sealed,
        first_then(first_question, caller_died),
        bears={START: Bears.ALWAYS},
        ends={0: RESULT},
    ),
    Operation(
        "create and wait",
        create_and_wait,
        bears={START: FIRST_START, READ: Bears.ALWAYS},
        ends={0: {Then.REPEAT: End.RESULT, Then.POLL: End.RESULT, Then.LEAVE: End.GONE}},
        items=2,
        # A read that hangs may begin when the time for waiting is all but over.
        longest_ms=28_000,
    ),
    Operation(
        "create, refused",
        create("plain", text="a"),
        engine_refuses,
        bears={START: REFUSED_START, DELETE: Bears.ALWAYS},
        ends={0: RESULT},
        usual=Answer.REFUSED,
        items=2,
    ),
)

GETS = (
    Operation("get", get, ticket("plain", text="a"), ends={0: RESULT}),
    Operation("get a question", get, first_then(ticket("asks"), jobs_run), ends={0: RESULT}, runs=2),
    Operation("get a large result", get, first_then(ticket("much"), jobs_run), ends={0: DONE}),
    Operation(
        "get, end unheard of",
        get,
        first_then(ticket("plain", text="a"), worker_died, run_over, later(seconds(20))),
        bears={DESCRIBE: Bears.ALWAYS, WRITE: Bears.ALWAYS},
        ends={0: BROKEN},
    ),
    Operation(
        "get, never started, first look",
        get,
        start_got_lost,
        bears={DESCRIBE: Bears.ALWAYS, WRITE: Bears.ALWAYS},
        ends={0: RESULT},
    ),
    Operation(
        "get, never started, second look",
        get,
        start_got_lost_and_missed,
        bears={DESCRIBE: Bears.ALWAYS, START: Bears.ALWAYS, WRITE: Bears.ALWAYS},
        ends={0: RESULT},
    ),
    Operation(
        "get, run died holding a question",
        get,
        first_then(ticket("holds"), worker_died_holding, run_over, later(seconds(20))),
        bears={DESCRIBE: Bears.ALWAYS, WRITE: Bears.ALWAYS},
        ends={0: RESULT},
        runs=2,
    ),
    Operation(
        "get, out of time",
        get,
        first_then(ticket("plain", text="a"), worker_died, later(minutes(7))),
        bears={STOP: Bears.ALWAYS, WRITE: Bears.ALWAYS},
        ends={0: BROKEN},
    ),
    Operation(
        "get, deaf work",
        get,
        first_then(ticket("plain", text="a"), worker_died, cancel_asked, later(seconds(11))),
        bears={STOP: Bears.ALWAYS, WRITE: Bears.ALWAYS},
        ends={0: CANCELLED},
    ),
    Operation(
        "get, nobody answered",
        get,
        first_then(ticket("asks"), jobs_run, later(days(7) + minutes(1))),
        bears={WRITE: Bears.ALWAYS},
        ends={0: BROKEN},
    ),
)

UPDATES = (
    Operation(
        "update",
        update(go="yes"),
        first_then(ticket("asks"), jobs_run),
        bears={START: Bears.ALWAYS},
        ends={0: RESULT, 2: RESULT},
        runs=2,
    ),
    Operation(
        "update one of two",
        update(one="yes"),
        first_then(ticket("asks_two"), jobs_run),
        ends={0: RESULT, 2: RESULT},
        runs=2,
    ),
    Operation(
        "update with a large answer",
        update(go=LARGE),
        first_then(ticket("asks"), jobs_run),
        bears={START: Bears.ALWAYS},
        ends={0: RESULT, 3: RESULT},
        runs=2,
    ),
)

CANCELS = (
    Operation(
        "cancel unclaimed work",
        cancel,
        ticket("plain", text="a"),
        bears={STOP: Bears.ALWAYS},
        ends={0: CANCELLED | {Then.POLL: End.RESULT}, 2: CANCELLED},
    ),
    Operation(
        "cancel claimed work",
        cancel,
        first_then(ticket("plain", text="a"), worker_died),
        ends={0: CANCELLED | {Then.POLL: End.BROKEN}, 2: CANCELLED},
    ),
    Operation(
        "cancel a question",
        cancel,
        first_then(ticket("asks"), jobs_run),
        ends={0: CANCELLED | {Then.POLL: End.RESULT}, 2: CANCELLED},
        runs=2,
    ),
    Operation(
        "cancel deaf work again",
        cancel,
        first_then(ticket("plain", text="a"), worker_died, cancel_asked, later(seconds(11))),
        bears={STOP: Bears.ALWAYS, WRITE: Bears.ALWAYS},
        ends={0: CANCELLED},
    ),
)

JOBS = (
    Operation(
        "job: claim and finish",
        attempt(1),
        ticket("plain", text="a"),
        bears={WRITE: Bears.ONCE},
        ends={0: UNCLAIMED, 1: CLAIMED, 2: REPORTED},
        records={"work": 2},
        run=1,
    ),
    Operation(
        "job: finish with a large result",
        attempt(1),
        ticket("much"),
        bears={WRITE: Bears.ONCE},
        ends={0: UNCLAIMED, 1: CLAIMED, 3: REPORTED},
        records={"work": 3},
        run=1,
    ),
    Operation(
        "job: step",
        attempt(1),
        ticket("steps", size=10),
        bears={WRITE: Bears.ONCE},
        ends={0: UNCLAIMED, 1: CLAIMED, 3: REPORTED},
        records={"step": 2},
        run=1,
    ),
    Operation(
        "job: step with a large outcome",
        attempt(1),
        ticket("steps", size=5_000),
        bears={WRITE: Bears.ONCE},
        ends={0: UNCLAIMED, 1: CLAIMED, 4: REPORTED},
        records={"step": 3},
        run=1,
    ),
    Operation(
        "job: progress",
        attempt(1),
        ticket("tells"),
        bears={f"{WRITE}#1": Bears.ALWAYS, f"{WRITE}#2": Bears.ALWAYS, WRITE: Bears.ONCE},
        ends={0: UNCLAIMED, 1: CLAIMED, 4: REPORTED},
        run=1,
    ),
    Operation(
        "job: attach",
        attempt(1),
        ticket("attaches"),
        bears={WRITE: Bears.ONCE},
        ends={0: UNCLAIMED, 1: CLAIMED, 3: REPORTED},
        run=1,
    ),
    Operation(
        "job: ask",
        attempt(1),
        ticket("asks"),
        bears={WRITE: Bears.ONCE},
        ends={0: UNCLAIMED, 1: CLAIMED, 3: ASKED},
        records={"step": 2},
        runs=2,
        run=1,
    ),
    Operation(
        "job: ask and wait",
        attempt(1),
        ticket("holds"),
        bears={WRITE: Bears.ONCE, READ: Bears.ALWAYS},
        ends={0: UNCLAIMED, 1: CLAIMED, 2: HELD, 4: ASKED},
        runs=2,
        run=1,
    ),
    Operation(
        "job: go on after the answer",
        attempt(2),
        first_then(ticket("asks"), jobs_run, answered),
        bears={WRITE: Bears.ONCE},
        ends={0: UNCLAIMED, 1: CLAIMED, 2: REPORTED},
        records={"work": 2},
        runs=2,
        run=2,
    ),
)

EVENTS = (
    Operation(
        "event: run failed",
        event("FAILED"),
        first_then(ticket("plain", text="a"), worker_died, run_over),
        ends={0: {Then.REPEAT: End.BROKEN, Then.POLL: End.BROKEN, Then.LEAVE: End.GONE}},
    ),
    Operation(
        "event: after the report",
        event("SUCCEEDED"),
        first_then(ticket("plain", text="a"), jobs_run),
        ends={0: {Then.REPEAT: End.RESULT, Then.POLL: End.RESULT, Then.LEAVE: End.GONE}},
    ),
    Operation(
        "event: run died holding a question",
        event("FAILED"),
        first_then(ticket("holds"), worker_died_holding, run_over),
        ends={0: {Then.REPEAT: End.RESULT, Then.POLL: End.RESULT, Then.LEAVE: End.GONE}},
        runs=2,
    ),
)

OPERATIONS = CALLS + GETS + UPDATES + CANCELS + JOBS + EVENTS
