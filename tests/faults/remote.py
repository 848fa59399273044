"""What the containers and state machines of the catalogue do: nothing of the kit's runs in them.

Each goes on from where it is whenever the world lets it, in a process to which nothing happens, and reports as
its documentation says: to the function `report`, with the token that it was given.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from taskrail.errors import StoreUnavailable
from taskrail.rail.remote import TaskCancelled
from tests.faults import catalogue
from tests.faults.executions import Flow
from tests.faults.jobs import Job

if TYPE_CHECKING:
    from tests.faults.world import Process

QUESTION = {"do": "ask", "key": "go", "message": "Go on?"}


def post(process: Process, job: Job, report: dict[str, Any]) -> dict[str, Any]:
    """A container's report: ``POST /report``.

    Raises
    ------
    StoreUnavailable
        It may not have been taken: report again.
    """
    body = {"job": job.job_id, "attempt": "1", **report}
    answer = process.report(
        {
            "version": "2.0",
            "rawPath": "/report",
            "headers": {"authorization": f"Bearer {job.environment['TASKRAIL_REPORT_TOKEN']}"},
            "requestContext": {"http": {"method": "POST", "path": "/report"}},
            "body": json.dumps(body),
            "isBase64Encoded": False,
        },
        None,
    )
    assert "secret-detail" not in answer["body"]
    if answer["statusCode"] == 503:
        raise StoreUnavailable("The report may not have been taken.")
    assert answer["statusCode"] == 200, answer
    reply: dict[str, Any] = json.loads(answer["body"])
    return reply


def invoke(process: Process, flow: Flow, report: dict[str, Any]) -> dict[str, Any]:
    """A state's report: ``lambda:invoke``."""
    return process.report({"reportToken": flow.input["reportToken"], **report}, None)


def go_on_with_job(process: Process, job: Job) -> None:
    """A container goes on: asks first where its tool does, works once, stores its result, exits."""
    job.status = "RUNNING"
    if job.ordered:
        return job.end(143, "Taskrail.Stopped")
    reply = post(process, job, {"do": "arguments"} if job.tool == "box" else QUESTION)
    if reply["cancel"]:
        return job.end(143)
    if reply.get("waiting"):
        return None
    catalogue.done[job.environment["TASKRAIL_TASK_ID"], "work"] += 1
    post(process, job, {"do": "result", "result": "the result"})
    return job.end(0)


def go_on_with_flow(process: Process, flow: Flow) -> None:
    """A state machine goes on: asks first where its tool does, works once, returns."""
    if flow.tool == "flow_asks" and not flow.answers:
        if flow.waits is None:
            token = flow.enter()
            try:
                reply = invoke(process, flow, {**QUESTION, "taskToken": token})
            except TaskCancelled:
                return flow.end(error="TaskCancelled")
            assert not reply["cancel"]
        return None
    if invoke(process, flow, {"do": "progress", "message": "Working."})["cancel"]:
        return flow.end(error="Cancelled")
    catalogue.done[flow.input["taskId"], "work"] += 1
    return flow.end("the result")
