"""DynamoDB: one item per task, and every guard inside the write.

The conditions have names. Each says which race it closes:

``absent``
    Two creations under one id: one of them wins.
``same revision``
    A change is computed from a revision and written only onto that revision. Whatever a move found
    true ("still open", "still this run", "still outstanding") is therefore still true when it lands.
``same owner``
    No write reaches another caller's task, whatever the code before it did.
``unexpired``
    The table deletes late; an expired item must not be revived or answered. The TTL attribute has
    whole seconds only: the revision that a write stands on knows its last millisecond.
``claimable``
    A worker takes up the current run, open and unclaimed by an attempt as high as its own, of an
    item whose layout it knows.

Time line of a refused write: our write takes effect, its answer is lost, botocore repeats it, the
condition now fails. The item that comes back with the refusal carries our nonce: it was us.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from taskrail import clock
from taskrail.errors import StoreUnavailable, TaskrailError
from taskrail.questions import Question
from taskrail.task import SCHEMA, Progress, Status, Task

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_dynamodb import DynamoDBClient

Item = dict[str, Any]

_UNEXPIRED = "(attribute_not_exists(#expiresAt) OR #expiresAt > :seconds)"
_SAME = "#rev = :rev AND #owner = :owner"
_CLAIMABLE = "#status = :working AND #run = :run AND #runOpen = :true AND #attempt < :attempt AND #schema <= :schema"


class Conflict(TaskrailError):
    """A write was refused.

    Parameters
    ----------
    current
        The task as it stands, or None when there is no such item.
    """

    def __init__(self, current: Task | None) -> None:
        super().__init__("The item is no longer what the write was computed from.")
        self.current = current


class NewerLayout(StoreUnavailable):
    """An item was written by a newer version of the kit than this one, which lets it alone.

    Parameters
    ----------
    owner
        Whose it is: nobody else may learn even this of it.
    """

    def __init__(self, owner: str | None) -> None:
        super().__init__("The item's layout is newer than this version of the kit.")
        self.owner = owner


class Store:
    """The task table.

    Parameters
    ----------
    client
        A boto3 DynamoDB client (low level), with time-outs and retries fit for the caller's budget.
    table
        Name of the table, its key ``pk`` a string and ``expiresAt`` its TTL attribute.
    """

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def create(self, task: Task) -> None:
        """Put a new task, if absent.

        Raises
        ------
        Conflict
            The id exists; `current` is the task that has it.
        StoreUnavailable
            It may or may not have been put.
        """
        self._write(
            lambda: self._client.put_item(
                TableName=self._table,
                Item=to_item(task),
                ConditionExpression="attribute_not_exists(pk)",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            ),
            nonce=task.nonce,
        )

    def read(self, task_id: str) -> Task | None:
        """The task as it stands, strongly consistent, or None.

        Raises
        ------
        StoreUnavailable
            No answer after the client's own retries.
        """
        try:
            answer = self._client.get_item(TableName=self._table, Key=_key(task_id), ConsistentRead=True)
        except (ClientError, BotoCoreError) as error:
            raise StoreUnavailable(_name(error)) from error
        item = answer.get("Item")
        return None if item is None else from_item(item)

    def write(self, old: Task, new: Task, now: int, nonce: str) -> Task:
        """Turn `old` into `new` if the item is still `old`, its owner's, and unexpired.

        Parameters
        ----------
        old, new
            The revision the change was computed from, and the change.
        now
            Milliseconds since the epoch.
        nonce
            Names this write; a repetition after an unknown outcome passes the same one.

        Returns
        -------
        Task
            `new` with its revision and nonce.

        Raises
        ------
        Conflict, StoreUnavailable
            Refused; or unknown.
        """
        new = replace(new, rev=old.rev + 1, nonce=nonce)
        # A millisecond too late is a second too late, or the condition would not see it.
        seconds = _seconds(now + 1_000 if old.expired(now) else now)
        before, after = to_item(old), to_item(new)
        changed = [name for name, value in after.items() if before.get(name) != value and name != "rev"]
        removed = [name for name in before if name not in after]
        expression = "SET #rev = :next" + "".join(f", #{name} = :{name}" for name in changed)
        if removed:
            expression += " REMOVE " + ", ".join(f"#{name}" for name in removed)
        named = {*changed, *removed, "rev", "owner", "expiresAt"}
        values = {f":{name}": after[name] for name in changed}
        values |= {":next": after["rev"], ":rev": before["rev"], ":owner": before["owner"], ":seconds": seconds}
        stored = self._write(
            lambda: self._client.update_item(
                TableName=self._table,
                Key=_key(old.task_id),
                UpdateExpression=expression,
                ConditionExpression=f"{_SAME} AND {_UNEXPIRED}",
                ExpressionAttributeNames={f"#{name}": name for name in named},
                ExpressionAttributeValues=values,
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            ),
            nonce=nonce,
        )
        return new if stored is None else stored

    def claim(self, task_id: str, *, run: int, run_id: str, attempt: int, now: int, nonce: str) -> Task:
        """Take up a run without reading first: the whole item comes back.

        Parameters
        ----------
        run, run_id, attempt
            Which run, the engine's id of it, and which attempt of it this is, from 1.

        Raises
        ------
        Conflict
            Not this worker's to do: superseded, ended, expired, or claimed by an attempt as high.
        StoreUnavailable
            It may or may not have been claimed; repeat it with the same nonce.
        """
        answer: Any = None

        def update() -> object:
            nonlocal answer
            answer = self._client.update_item(
                TableName=self._table,
                Key=_key(task_id),
                UpdateExpression="SET #attempt = :attempt, #runId = :runId, #claim = :nonce, #nonce = :nonce, "
                "#rev = #rev + :one REMOVE #missingSince",
                ConditionExpression=f"{_CLAIMABLE} AND {_UNEXPIRED}",
                ExpressionAttributeNames={f"#{name}": name for name in _CLAIM_NAMES},
                ExpressionAttributeValues={
                    ":attempt": {"N": str(attempt)},
                    ":runId": {"S": run_id},
                    ":nonce": {"S": nonce},
                    ":one": {"N": "1"},
                    ":working": {"S": Status.WORKING.value},
                    ":run": {"N": str(run)},
                    ":true": {"BOOL": True},
                    ":schema": {"N": str(SCHEMA)},
                    ":seconds": _seconds(now),
                },
                ReturnValues="ALL_NEW",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
            return answer

        try:
            stored = self._write(update, nonce=nonce)
        except Conflict as conflict:
            # Our claim may have taken effect and then been written over, by a cancellation say: the
            # claim's own nonce outlives that.
            if conflict.current is not None and conflict.current.claim == nonce:
                return conflict.current
            raise
        return from_item(answer["Attributes"]) if stored is None else stored

    def delete(self, task: Task) -> bool:
        """Take back a creation if nobody has touched it; False when somebody has.

        Raises
        ------
        StoreUnavailable
            It may or may not have been deleted.
        """
        try:
            self._write(
                lambda: self._client.delete_item(
                    TableName=self._table,
                    Key=_key(task.task_id),
                    ConditionExpression="#nonce = :nonce OR attribute_not_exists(pk)",
                    ExpressionAttributeNames={"#nonce": "nonce"},
                    ExpressionAttributeValues={":nonce": {"S": task.nonce}},
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                ),
                nonce="",
            )
        except Conflict:
            return False
        return True

    def _write(self, call: Callable[[], object], *, nonce: str) -> Task | None:
        """Run a conditional write; the stored task when an earlier try of it had taken effect."""
        try:
            call()
        except ClientError as error:
            if _name(error) != "ConditionalCheckFailedException":
                raise StoreUnavailable(_name(error)) from error
            item: Item | None = error.response.get("Item")  # type: ignore[assignment]
            current = None if not item else from_item(item)
            if current is not None and current.nonce == nonce:
                return current
            raise Conflict(current) from error
        except BotoCoreError as error:
            raise StoreUnavailable(_name(error)) from error
        return None


_CLAIM_NAMES = (
    "attempt",
    "runId",
    "claim",
    "nonce",
    "rev",
    "status",
    "run",
    "runOpen",
    "schema",
    "expiresAt",
    "missingSince",
)

_TEXTS = {
    "owner": "owner",
    "tool": "tool",
    "engine": "engine",
    "statusMessage": "status_message",
    "runId": "run_id",
    "claim": "claim",
    "arguments": "arguments",
    "result": "result",
    "error": "error",
    "traceparent": "traceparent",
    "nonce": "nonce",
}
_NUMBERS = {
    "schema": "schema",
    "rev": "rev",
    "ttlMs": "ttl_ms",
    "keepMs": "keep_ms",
    "pollMs": "poll_ms",
    "run": "run",
    "attempt": "attempt",
    "runStartedAt": "run_started_at",
    "runDeadline": "run_deadline",
    "answerDeadline": "answer_deadline",
    "cancelRequestedAt": "cancel_requested_at",
    "probedAt": "probed_at",
    "missingSince": "missing_since",
    "sealedUntil": "sealed_until",
}
_MAPS = {"answers": "answers", "steps": "steps", "client": "client"}


def to_item(task: Task) -> Item:
    """The item that holds a task. User data is JSON text, never a DynamoDB map: no number is bent."""
    item: Item = {"pk": {"S": f"task#{task.task_id}"}, "status": {"S": task.status.value}}
    item["createdAt"] = {"S": clock.iso(task.created_at)}
    item["lastUpdatedAt"] = {"S": clock.iso(task.updated_at)}
    item["runOpen"] = {"BOOL": task.run_open}
    for name, attribute in _TEXTS.items():
        text = getattr(task, attribute)
        if text is not None:
            item[name] = {"S": _sound(text)}
    for name, attribute in _NUMBERS.items():
        number = getattr(task, attribute)
        if number is not None:
            item[name] = {"N": str(number)}
    for name, attribute in _MAPS.items():
        mapping = getattr(task, attribute)
        if mapping:
            item[name] = {"S": _dump(mapping)}
    if task.questions:
        item["questions"] = {"S": _dump({key: question.to_json() for key, question in task.questions.items()})}
    if task.progress is not None:
        item["progress"] = {"S": _dump([task.progress.done, task.progress.total])}
    if task.expires_at is not None:
        item["expiresAt"] = {"N": str(clock.seconds_rounded_up(task.expires_at))}
    return item


def from_item(item: Item) -> Task:
    """The task that an item holds.

    Raises
    ------
    NewerLayout
        The item was written by a newer version of the kit than this one.
    """
    if int(item["schema"]["N"]) > SCHEMA:
        raise NewerLayout(item.get("owner", {}).get("S"))
    fields: dict[str, Any] = {attribute: item[name]["S"] for name, attribute in _TEXTS.items() if name in item}
    fields |= {attribute: int(item[name]["N"]) for name, attribute in _NUMBERS.items() if name in item}
    fields |= {attribute: json.loads(item[name]["S"]) for name, attribute in _MAPS.items() if name in item}
    if "questions" in item:
        questions = json.loads(item["questions"]["S"])
        fields["questions"] = {key: Question.from_json(value) for key, value in questions.items()}
    if "progress" in item:
        fields["progress"] = Progress(*json.loads(item["progress"]["S"]))
    fields.setdefault("ttl_ms", None)
    fields.setdefault("keep_ms", None)
    return Task(
        task_id=item["pk"]["S"].removeprefix("task#"),
        status=Status(item["status"]["S"]),
        created_at=clock.moment(item["createdAt"]["S"]),
        updated_at=clock.moment(item["lastUpdatedAt"]["S"]),
        run_open=item["runOpen"]["BOOL"],
        **fields,
    )


def _key(task_id: str) -> Item:
    return {"pk": {"S": f"task#{task_id}"}}


def _seconds(now: int) -> Item:
    return {"N": str(now // 1000)}


def _dump(value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    # A lone surrogate has no UTF-8 form; escaped, it travels.
    return text if _sound(text) == text else json.dumps(value, separators=(",", ":"), allow_nan=False)


def _sound(text: str) -> str:
    """The text with a mark in place of what has no UTF-8 form: the table would refuse the item."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _name(error: ClientError | BotoCoreError) -> str:
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code", "Unknown"))
    return type(error).__name__
