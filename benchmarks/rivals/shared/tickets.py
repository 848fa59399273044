"""The tasks of the handlers that the kit is compared with: DynamoDB and Step Functions, by hand.

It is the least that gives a client the same answers: an item per task, put before the execution is started, owned,
with a revision that guards every change. It repairs nothing, measures nothing, and keeps everything in the item.
Both handlers use it, so that what differs between them is the library they stand on.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

TASKS = "io.modelcontextprotocol/tasks"
POLL_INTERVAL_MS = 5_000
KEEP_S = 86_400

_CONFIG = Config(connect_timeout=1, read_timeout=2, retries={"mode": "standard", "total_max_attempts": 3})
_TABLE = os.environ["TABLE"]
_MACHINE = os.environ["STATE_MACHINE"]
_TERMINAL = ("completed", "failed", "cancelled")

dynamodb = boto3.client("dynamodb", config=_CONFIG)

Item = dict[str, Any]


class NotFound(Exception):
    """No such task of this caller."""


class BadAnswer(Exception):
    """An answer that does not fit its question."""


@cache
def step_functions() -> Any:
    """The other client, at its first use: polls need none."""
    return boto3.client("stepfunctions", config=_CONFIG)


def create(owner: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Put a task, start its execution, and show it."""
    task_id, now = secrets.token_hex(16), _now()
    item: Item = {
        "pk": {"S": f"task#{task_id}"},
        "rev": {"N": "1"},
        "owner": {"S": owner},
        "run": {"N": "1"},
        "status": {"S": "working"},
        "createdAt": {"S": now},
        "lastUpdatedAt": {"S": now},
        "expiresAt": {"N": str(int(time.time()) + KEEP_S)},
        "arguments": {"S": json.dumps(arguments)},
    }
    dynamodb.put_item(TableName=_TABLE, Item=item, ConditionExpression="attribute_not_exists(pk)")
    _start(task_id, 1)
    return {"resultType": "task", **_view(task_id, item)}


def get(owner: str, task_id: str) -> dict[str, Any]:
    """A task as it stands."""
    item = _read(owner, task_id)
    view = {"resultType": "complete", **_view(task_id, item)}
    status = item["status"]["S"]
    if status == "completed":
        view["result"] = json.loads(item["result"]["S"])
    elif status == "failed":
        view["error"] = json.loads(item["error"]["S"])
    elif status == "input_required":
        view["inputRequests"] = json.loads(item["questions"]["S"])
    return view


def update(owner: str, task_id: str, responses: Mapping[str, Any]) -> None:
    """Record answers, and start the next execution when none is missing."""
    item = _read(owner, task_id)
    questions = json.loads(item["questions"]["S"]) if "questions" in item else {}
    answers = json.loads(item["answers"]["S"]) if "answers" in item else {}
    given = {key: answer for key, answer in responses.items() if key in questions}
    if not given or item["status"]["S"] != "input_required":
        return
    for key, answer in given.items():
        if not isinstance(answer, dict) or answer.get("action") not in ("accept", "decline", "cancel"):
            raise BadAnswer(key)
    left = {key: question for key, question in questions.items() if key not in given}
    run = int(item["run"]["N"]) + (not left)
    try:
        dynamodb.update_item(
            TableName=_TABLE,
            Key={"pk": item["pk"]},
            UpdateExpression="SET #status = :status, #run = :run, #questions = :questions, #answers = :answers, "
            "#lastUpdatedAt = :now, #rev = :next",
            ConditionExpression="#rev = :rev AND #owner = :owner",
            ExpressionAttributeNames={f"#{name}": name for name in _CHANGED},
            ExpressionAttributeValues={
                ":status": {"S": "input_required" if left else "working"},
                ":run": {"N": str(run)},
                ":questions": {"S": json.dumps(left)},
                ":answers": {"S": json.dumps(answers | given)},
                ":now": {"S": _now()},
                ":rev": item["rev"],
                ":next": {"N": str(int(item["rev"]["N"]) + 1)},
                ":owner": {"S": owner},
            },
        )
    except ClientError as error:
        if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
            raise
        return
    if not left:
        _start(task_id, run)


def cancel(owner: str, task_id: str) -> None:
    """End a task that is still going, and stop its execution."""
    item = _read(owner, task_id)
    if item["status"]["S"] in _TERMINAL:
        return
    dynamodb.update_item(
        TableName=_TABLE,
        Key={"pk": item["pk"]},
        UpdateExpression="SET #status = :status, #lastUpdatedAt = :now, #rev = :next",
        ConditionExpression="#rev = :rev AND #owner = :owner",
        ExpressionAttributeNames={f"#{name}": name for name in ("status", "lastUpdatedAt", "rev", "owner")},
        ExpressionAttributeValues={
            ":status": {"S": "cancelled"},
            ":now": {"S": _now()},
            ":rev": item["rev"],
            ":next": {"N": str(int(item["rev"]["N"]) + 1)},
            ":owner": {"S": owner},
        },
    )
    execution = f"{_MACHINE.replace(':stateMachine:', ':execution:')}:{task_id}-{item['run']['N']}"
    step_functions().stop_execution(executionArn=execution)


_CHANGED = ("status", "run", "questions", "answers", "lastUpdatedAt", "rev", "owner")


def _read(owner: str, task_id: str) -> Item:
    answer = dynamodb.get_item(TableName=_TABLE, Key={"pk": {"S": f"task#{task_id}"}}, ConsistentRead=True)
    item: Item | None = answer.get("Item")
    if item is None or item["owner"]["S"] != owner or int(item["expiresAt"]["N"]) < time.time():
        raise NotFound(task_id)
    return item


def _start(task_id: str, run: int) -> None:
    order = json.dumps({"taskId": task_id, "run": run})
    step_functions().start_execution(stateMachineArn=_MACHINE, name=f"{task_id}-{run}", input=order)


def _view(task_id: str, item: Item) -> dict[str, Any]:
    return {
        "taskId": task_id,
        "status": item["status"]["S"],
        "createdAt": item["createdAt"]["S"],
        "lastUpdatedAt": item["lastUpdatedAt"]["S"],
        "ttlMs": KEEP_S * 1_000,
        "pollIntervalMs": POLL_INTERVAL_MS,
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def owner_of(event: Any) -> str:
    """Who is calling, as API Gateway's JWT authorizer says."""
    claims = event["requestContext"]["authorizer"]["jwt"]["claims"]
    return f"{claims['iss']}#{claims['sub']}"
