"""The rows for work that is no Python function on Step Functions: Batch, containers, workflows, reports, their
events, calls that are made once, and what removed tasks leave behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from taskrail.clock import seconds
from tests.faults.acts import (
    attempt,
    cancel,
    create,
    engine_refuses,
    first_then,
    get,
    jobs_run,
    later,
    ticket,
    update,
    worker_died,
)
from tests.faults.operations import Answer, Bearing, Bears, End, Ends, Operation, Then
from tests.faults.table import (
    BROKEN,
    CANCELLED,
    DELETE,
    DESCRIBE,
    DONE,
    FIRST_START,
    REFUSED_START,
    RESULT,
    START,
    STOP,
    WRITE,
)
from tests.faults.work_acts import (
    answer_not_passed_on,
    container,
    container_asks,
    died_reserving,
    died_unasked,
    doubled,
    doubled_unheard,
    ended_in_error,
    expire,
    flow_entered,
    flow_event,
    flow_failed,
    flow_over,
    flow_retried,
    flow_waits,
    job_ended,
    job_event,
    job_left,
    job_over,
    job_runs,
    never_started,
    never_started_and_missed,
    state,
    state_asks,
    taken_back_and_hung_again,
    unrecorded,
)

RESUME = "stepfunctions:SendTaskSuccess"
SUBMIT, TERMINATE, LIST, LOOK = "batch:SubmitJob", "batch:TerminateJob", "batch:ListJobs", "batch:DescribeJobs"

ALWAYS = Bears.ALWAYS
BATCH: Mapping[str, Bearing] = dict.fromkeys((SUBMIT, TERMINATE, LIST, LOOK), ALWAYS)
REPAIR: Mapping[str, Bearing] = {**BATCH, WRITE: ALWAYS, DESCRIBE: ALWAYS, RESUME: ALWAYS, START: ALWAYS}


TOLD: Ends = {Then.REPEAT: End.RESULT, Then.POLL: End.RESULT, Then.LEAVE: End.GONE}
TOLD_BROKEN: Ends = {Then.REPEAT: End.BROKEN, Then.POLL: End.BROKEN, Then.LEAVE: End.GONE}
CLAIMED: Ends = {Then.REPEAT: End.RESULT, Then.TOLD: End.BROKEN, Then.POLL: End.BROKEN, Then.CANCEL: End.CANCELLED}
REPORTED: Ends = dict.fromkeys(CLAIMED, End.RESULT)
CLEAN: Ends = {Then.REPEAT: End.GONE}

CREATES = (
    # The record is not needed: the engine's events, a look by name, or whoever claims or reports first makes up for it.
    Operation("create on batch", create("batch", text="a"), bears={**BATCH, WRITE: ALWAYS}, ends={0: RESULT}, items=2),
    Operation("create a container", create("box", text="a"), bears={**BATCH, WRITE: ALWAYS}, ends={0: RESULT}, items=2),
    Operation("create a workflow", create("flow", text="a"), bears={START: FIRST_START}, ends={0: RESULT}, items=2),
)

ONCE = (
    Operation("create once", create("once", text="a"), bears={START: FIRST_START}, ends={0: RESULT}),
    Operation("create once on batch", create("once_batch", text="a"), bears={**BATCH, WRITE: ALWAYS}, ends={0: RESULT}),
    Operation(
        "create once, again",
        create("once", text="a"),
        ticket("once", text="a"),
        bears={START: ALWAYS},
        ends={0: RESULT},
    ),
    Operation(
        "create once, again, first never started",
        create("once", text="a"),
        never_started("once"),
        bears={START: ALWAYS},
        ends={0: RESULT},
    ),
    Operation(
        "create once, refused",
        create("once", text="a"),
        engine_refuses,
        bears={START: REFUSED_START, DELETE: ALWAYS},
        ends={0: RESULT},
        usual=Answer.REFUSED,
        items=1,
    ),
    Operation(
        "create once, after one that died reserving",
        create("once", text="a"),
        died_reserving,
        bears={START: FIRST_START},
        ends={0: RESULT},
    ),
    Operation(
        "create once, after one that ended in an error",
        create("once", text="a"),
        ended_in_error,
        bears={START: FIRST_START},
        ends={0: RESULT},
        items=2,
    ),
)

GETS = (
    Operation(
        "get on batch, end unheard of",
        get,
        first_then(ticket("batch", text="a"), worker_died, job_ended, later(seconds(20))),
        bears=REPAIR,
        ends={0: BROKEN},
    ),
    Operation("get on batch, never started, first look", get, never_started("batch"), bears=REPAIR, ends={0: RESULT}),
    Operation(
        "get on batch, never started, second look",
        get,
        never_started_and_missed("batch"),
        bears=REPAIR,
        ends={0: RESULT},
    ),
    Operation(
        "get on batch, id not recorded",
        get,
        first_then(unrecorded("batch"), later(seconds(20))),
        bears=REPAIR,
        ends={0: RESULT},
    ),
    Operation(
        "get a container, submitted thrice",
        get,
        first_then(doubled_unheard("box"), later(seconds(20))),
        bears=REPAIR,
        ends={0: RESULT},
    ),
    Operation(
        "get a container, end unheard of",
        get,
        first_then(ticket("box", text="a"), job_left("the result", 0), later(seconds(20))),
        bears={**REPAIR, "s3:GetObject": ALWAYS},
        ends={0: DONE},
    ),
    Operation(
        "get a workflow, end unheard of",
        get,
        first_then(ticket("flow", text="a"), flow_over, later(seconds(20))),
        bears=REPAIR,
        ends={0: DONE},
    ),
    Operation(
        "get, an answer was not passed on",
        get,
        first_then(ticket("flow_asks"), answer_not_passed_on, later(seconds(12))),
        bears=REPAIR,
        ends={0: RESULT},
    ),
)

UPDATES = (
    Operation(
        "update on batch",
        update(go="yes"),
        first_then(ticket("batch_asks"), jobs_run),
        bears={**BATCH, f"{WRITE}#1": ALWAYS},
        ends={0: RESULT, 2: RESULT},
        runs=2,
    ),
    Operation(
        "update a workflow's question",
        update(go="yes"),
        first_then(ticket("flow_asks"), flow_waits),
        bears={RESUME: ALWAYS, f"{WRITE}#1": ALWAYS},
        ends={0: RESULT, 2: RESULT},
    ),
    Operation(
        "update a container's question",
        update(go="yes"),
        first_then(ticket("box_asks"), jobs_run),
        ends={0: RESULT, 2: RESULT},
    ),
)

CANCELS = (
    Operation(
        "cancel on batch, unclaimed",
        cancel,
        ticket("batch", text="a"),
        bears=BATCH,
        ends={0: CANCELLED | {Then.POLL: End.RESULT}, 2: CANCELLED},
    ),
    Operation(
        "cancel on batch, claimed",
        cancel,
        first_then(ticket("batch", text="a"), worker_died),
        bears=BATCH,
        ends={0: {Then.REPEAT: End.CANCELLED, Then.CANCEL: End.CANCELLED}, 2: CANCELLED},
    ),
    Operation(
        "cancel a container that has not begun",
        cancel,
        ticket("box", text="a"),
        bears={**BATCH, f"{WRITE}#1": Answer.ERROR},
        ends={0: CANCELLED | {Then.POLL: End.RESULT}, 2: CANCELLED},
    ),
    Operation(
        "cancel a container that works",
        cancel,
        first_then(ticket("box", text="a"), job_runs),
        bears=BATCH,
        ends={0: CANCELLED | {Then.POLL: End.RESULT}, 2: CANCELLED},
    ),
    Operation(
        "cancel a workflow",
        cancel,
        ticket("flow", text="a"),
        ends={0: CANCELLED | {Then.POLL: End.RESULT}, 2: CANCELLED},
    ),
    Operation(
        "cancel a workflow's question",
        cancel,
        first_then(ticket("flow_asks"), flow_waits),
        bears={STOP: ALWAYS},
        ends={0: CANCELLED | {Then.POLL: End.RESULT}, 2: CANCELLED},
    ),
)

JOBS = (
    Operation(
        "job on batch: claim and finish",
        attempt(1),
        ticket("batch", text="a"),
        bears={WRITE: Bears.ONCE},
        ends={0: CLAIMED, 2: REPORTED},
        records={"work": 2},
        run=1,
    ),
    Operation(
        "job on batch: another one was recorded",
        attempt(1),
        doubled("batch"),
        bears={WRITE: Bears.ONCE},
        ends={0: {Then.REPEAT: End.RESULT}, 2: REPORTED},
        records={"work": 2},
        run=1,
    ),
)

REPORTS = (
    Operation("report: progress of a workflow", state("progress", message="Half."), ticket("flow"), ends={0: RESULT}),
    Operation(
        "report: a state asks",
        state_asks,
        first_then(ticket("flow_asks"), flow_entered),
        ends={0: {Then.REPEAT: End.RESULT}, 2: RESULT},
    ),
    Operation(
        "report: a retried state finds its answer",
        state_asks,
        first_then(ticket("flow_asks"), flow_retried),
        bears={RESUME: ALWAYS, f"{WRITE}#1": ALWAYS},
        ends={0: {Then.REPEAT: End.RESULT}, 2: RESULT},
    ),
    Operation(
        "report: progress of a container", container("progress", done=1, total=1), ticket("box"), ends={0: RESULT}
    ),
    Operation("report: arguments", container("arguments"), ticket("box"), ends={0: RESULT}),
    Operation(
        "report: the first one of a job that is not recorded",
        container("arguments"),
        unrecorded("box"),
        ends={0: RESULT},
    ),
    Operation("report: a container asks", container_asks, ticket("box_asks"), ends={0: RESULT}),
    Operation(
        "report: answers",
        container("answers", keys=["go"]),
        first_then(ticket("box_asks"), jobs_run),
        ends={0: RESULT},
    ),
    Operation("report: result", container("result", result="the result"), ticket("box"), ends={0: RESULT}),
)

EVENTS = (
    Operation("event: a job runs", job_event(), first_then(ticket("box"), job_runs), ends={0: TOLD}),
    Operation("event: a job runs, not recorded", job_event(), first_then(unrecorded("box"), job_runs), ends={0: TOLD}),
    Operation(
        "event: a job runs, another one is recorded", job_event(), first_then(doubled("box"), job_runs), ends={0: TOLD}
    ),
    Operation(
        "event: a job failed",
        job_event(),
        first_then(ticket("batch", text="a"), worker_died, job_ended),
        ends={0: TOLD_BROKEN},
    ),
    Operation(
        "event: a job failed, another one is recorded",
        job_event(),
        first_then(doubled("box"), job_ended),
        ends={0: TOLD},
    ),
    Operation(
        "event: a job of a task that is over",
        job_event(),
        first_then(ticket("batch", text="a"), jobs_run),
        ends={0: TOLD},
    ),
    Operation(
        "event: a container ended", job_event(), first_then(ticket("box"), job_left("the result", 0)), ends={0: TOLD}
    ),
    Operation(
        "event: a container failed with half a result",
        job_event(),
        first_then(ticket("box"), job_left("half", 1)),
        ends={0: TOLD_BROKEN},
    ),
    Operation(
        "event: a container ended without a result",
        job_event(),
        first_then(ticket("box"), job_over),
        ends={0: {then: End.NOTHING if end is End.RESULT else end for then, end in TOLD.items()}},
    ),
    Operation("event: a workflow ended", flow_event(), first_then(ticket("flow"), flow_over), ends={0: TOLD}),
    Operation(
        "event: a workflow ended, output left out",
        flow_event(included=False),
        first_then(ticket("flow"), flow_over),
        ends={0: TOLD},
    ),
    Operation(
        "event: a workflow failed with words for its caller",
        flow_event(),
        first_then(ticket("flow"), flow_failed("ToolError", "No such plan.")),
        ends={0: TOLD_BROKEN},
    ),
    Operation(
        "event: a workflow failed",
        flow_event(),
        first_then(ticket("flow"), flow_failed("States.TaskFailed", "Traceback: secret-detail-of-aws")),
        ends={0: TOLD_BROKEN},
    ),
)

EXPIRIES = (
    Operation("expired: a ticket that was hung again", expire, taken_back_and_hung_again, ends={0: RESULT}),
    Operation("expired: a job", expire, first_then(ticket("plain", text="a"), died_unasked), ends={0: CLEAN}),
    Operation("expired: a job on batch", expire, first_then(ticket("batch", text="a"), died_unasked), ends={0: CLEAN}),
    Operation(
        "expired: a container that works",
        expire,
        first_then(ticket("box", text="a"), job_runs, died_unasked),
        ends={0: CLEAN},
    ),
    Operation(
        "expired: a workflow that waits",
        expire,
        first_then(ticket("flow_asks"), flow_waits, died_unasked),
        ends={0: CLEAN},
    ),
    Operation(
        "expired: a call that is made once", expire, first_then(ticket("once", text="a"), died_unasked), ends={0: CLEAN}
    ),
)

WORK = tuple(
    replace(row, thin=True) for row in (*CREATES, *ONCE, *GETS, *UPDATES, *CANCELS, *JOBS, *REPORTS, *EVENTS, *EXPIRIES)
)
