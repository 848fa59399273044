"""What AWS answers: constants, made from what each handler itself once put into its table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from benchmarks import children
from benchmarks.bundles import Made
from benchmarks.requests import ARGUMENTS, OPERATIONS, request
from benchmarks.rivals import AWS, MACHINE, TASKRAIL, Rival

_STARTED = {"executionArn": f"{MACHINE.replace(':stateMachine:', ':execution:')}:1", "startDate": 1_796_040_000.0}
_CREATED = {"DynamoDB.PutItem": "{}", "AWSStepFunctions.StartExecution": json.dumps(_STARTED)}

Answers = Mapping[str, str]


def order(rival: Rival, made: Made, aws: Made) -> dict[str, Any]:
    """What every process of a rival is told."""
    return {
        "module": rival.module,
        "path": [str(made.folder), str(aws.folder)],
        "environment": {**AWS, **rival.environment},
        "answers": {},
    }


def recorded(rival: Rival, made: Made, aws: Made) -> dict[str, dict[str, Any]]:
    """The event and AWS's answers of every operation.

    Parameters
    ----------
    rival, made, aws
        Who, and the bundles that its processes get.
    """
    first = {**order(rival, made, aws), "event": request("tools/call"), "answers": _CREATED}
    item = children.run("record", first)["item"]
    asked = _asked_by_the_kit() if rival is TASKRAIL else _asked_by_hand(item)
    items = {"tasks/get": item, "tasks/update": asked}
    answers: dict[str, Answers] = {"server/discover": {}, "tools/call": _CREATED}
    answers["tasks/get"] = {"DynamoDB.GetItem": json.dumps({"Item": item})}
    answers["tasks/update"] = {
        "DynamoDB.GetItem": json.dumps({"Item": asked}),
        "DynamoDB.UpdateItem": "{}",
        "AWSStepFunctions.StartExecution": json.dumps(_STARTED),
    }
    return {
        operation: {"event": request(operation, _id(items.get(operation, item))), "answers": answers[operation]}
        for operation in OPERATIONS
    }


def _asked_by_the_kit() -> Any:
    """The item of a task whose job has asked: what the kit's own worker leaves in the table."""
    from benchmarks.deployment import deployment
    from benchmarks.rivals.taskrail.bench_catalogue import server
    from taskrail.clock import SystemClock

    with deployment(server, SystemClock()) as there:
        task_id = there.call("render", **ARGUMENTS)
        there.run("step_functions", task_id)
        return there.item(task_id)


def _asked_by_hand(item: Mapping[str, Any]) -> Any:
    """The same of a task whose worker nobody wrote: the question as the kit's own job asks it."""
    schema = {
        "type": "object",
        "properties": {"publish": {"type": "boolean", "description": "Publish the report?"}},
        "required": ["publish"],
    }
    params = {"mode": "form", "message": "Publish the report?", "requestedSchema": schema}
    question = {"approval": {"method": "elicitation/create", "params": params}}
    return {**item, "status": {"S": "input_required"}, "questions": {"S": json.dumps(question)}}


def _id(item: Mapping[str, Any]) -> str:
    return str(item["pk"]["S"]).removeprefix("task#")
