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
    A worker takes up the current run, open, of an item whose layout it knows: one that nobody has claimed, or
    that a lower attempt of the same engine run has. Another job of the same name never takes over.
``lease over``
    Where the engine tells no attempts, nobody takes over from a worker that is still renewing its lease.

Time line of a refused write: our write takes effect, its answer is lost, botocore repeats it, the
condition now fails. The item that comes back with the refusal carries our nonce: it was us.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from taskrail.clock import iso, moment
from taskrail.errors import StoreUnavailable, TaskrailError
from taskrail.store.calls import Refused, error_name, read, write
from taskrail.store.items import NewerLayout, from_item, seconds_of, task_key, to_item
from taskrail.task import SCHEMA, Status, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

OWNED = "byOwner"
"""Index of the table by ``owner`` and ``createdAt``, keys only; there only where callers list their tasks."""

_BATCH = 100
"""Items that one BatchGetItem reads (DynamoDB, "Service quotas")."""

_ROUNDS = 5
"""How often what a batched read left out is asked for again: it answers 16 MB at a time."""

_UNEXPIRED = "(attribute_not_exists(#expiresAt) OR #expiresAt > :seconds)"
_SAME = "#rev = :rev AND #owner = :owner"
_CLAIMABLE = (
    "#status = :working AND #run = :run AND #runOpen = :true AND #schema <= :schema"
    " AND (#attempt = :zero OR (#attempt < :attempt AND #runId = :runId{takeover}))"
)
_LEASE_OVER = " AND #leaseUntil <= :now"


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
        item = read(lambda: self._client.get_item(TableName=self._table, Key=task_key(task_id), ConsistentRead=True))
        return None if item is None else from_item(item)

    def read_many(self, task_ids: Sequence[str]) -> dict[str, Task]:
        """Several tasks as they stand, strongly consistent, by id; what is not there is left out.

        A task in a newer layout than this version of the kit knows is left out as well.

        Parameters
        ----------
        task_ids
            Each once.

        Raises
        ------
        StoreUnavailable
            Not all could be read.
        """
        found: dict[str, Task] = {}
        for start in range(0, len(task_ids), _BATCH):
            for item in self._read_batch([task_key(task_id) for task_id in task_ids[start : start + _BATCH]]):
                try:
                    task = from_item(item)
                except NewerLayout:
                    continue
                found[task.task_id] = task
        return found

    def _read_batch(self, keys: list[dict[str, Any]]) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        for _ in range(_ROUNDS):
            wanted: Any = {self._table: {"Keys": keys, "ConsistentRead": True}}
            try:
                answer: Any = self._client.batch_get_item(RequestItems=wanted)
            except (ClientError, BotoCoreError) as error:
                raise StoreUnavailable(error_name(error)) from error
            items += answer["Responses"].get(self._table, [])
            keys = answer.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", [])
            if not keys:
                return items
        raise StoreUnavailable("UnprocessedKeys")

    def owned(
        self, owner: str, most: int, after: tuple[int, str] | None = None
    ) -> tuple[list[str], tuple[int, str] | None]:
        """The ids of an owner's tasks, newest first, and where the next page begins; from the index, a little late.

        Parameters
        ----------
        owner
            Whose.
        most
            Ids on a page.
        after
            Where the page before ended: when that task was made, in milliseconds since the epoch, and its id.

        Raises
        ------
        StoreUnavailable
            No answer, or a table without the index.
        """
        query: dict[str, Any] = {
            "TableName": self._table,
            "IndexName": OWNED,
            "KeyConditionExpression": "#owner = :owner",
            "ExpressionAttributeNames": {"#owner": "owner"},
            "ExpressionAttributeValues": {":owner": {"S": owner}},
            "ScanIndexForward": False,
            "Limit": most + 1,
        }
        if after is not None:
            created_at, task_id = after
            begin = {"owner": {"S": owner}, "createdAt": {"S": iso(created_at)}, **task_key(task_id)}
            query["ExclusiveStartKey"] = begin
        try:
            items: Any = self._client.query(**query)["Items"]
        except (ClientError, BotoCoreError) as error:
            raise StoreUnavailable(error_name(error)) from error
        rows = [(moment(item["createdAt"]["S"]), item["pk"]["S"].removeprefix("task#")) for item in items]
        return [task_id for _, task_id in rows[:most]], rows[most - 1] if len(rows) > most else None

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
        seconds = seconds_of(now + 1_000 if old.expired(now) else now)
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
                Key=task_key(old.task_id),
                UpdateExpression=expression,
                ConditionExpression=f"{_SAME} AND {_UNEXPIRED}",
                ExpressionAttributeNames={f"#{name}": name for name in named},
                ExpressionAttributeValues=values,
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            ),
            nonce=nonce,
        )
        return new if stored is None else stored

    def claim(
        self,
        task_id: str,
        *,
        run: int,
        run_id: str,
        attempt: int,
        now: int,
        nonce: str,
        lease_until: int | None = None,
    ) -> Task:
        """Take up a run without reading first: the whole item comes back.

        Parameters
        ----------
        run, run_id, attempt
            Which run, the engine's id of it, and which attempt of it this is, from 1.
        now, nonce
            As in `write`.
        lease_until
            Until when the claim holds unless it is renewed, where the engine cannot be asked.

        Raises
        ------
        Conflict
            Not this worker's to do: superseded, ended, expired, or claimed by an attempt as high.
        StoreUnavailable
            It may or may not have been claimed; repeat it with the same nonce.
        """
        answer: Any = None
        leased = lease_until is not None
        set_lease, takeover = (", #leaseUntil = :leaseUntil", _LEASE_OVER) if leased else ("", "")
        names = (*_CLAIM_NAMES, "leaseUntil") if leased else _CLAIM_NAMES
        lease = {":leaseUntil": {"N": str(lease_until)}, ":now": {"N": str(now)}} if leased else {}

        def update() -> object:
            nonlocal answer
            answer = self._client.update_item(
                TableName=self._table,
                Key=task_key(task_id),
                UpdateExpression="SET #attempt = :attempt, #runId = :runId, #claim = :nonce, #nonce = :nonce, "
                f"#rev = #rev + :one{set_lease} REMOVE #missingSince",
                ConditionExpression=f"{_CLAIMABLE.format(takeover=takeover)} AND {_UNEXPIRED}",
                ExpressionAttributeNames={f"#{name}": name for name in names},
                ExpressionAttributeValues={
                    **lease,
                    ":attempt": {"N": str(attempt)},
                    ":runId": {"S": run_id},
                    ":nonce": {"S": nonce},
                    ":one": {"N": "1"},
                    ":zero": {"N": "0"},
                    ":working": {"S": Status.WORKING.value},
                    ":run": {"N": str(run)},
                    ":true": {"BOOL": True},
                    ":schema": {"N": str(SCHEMA)},
                    ":seconds": seconds_of(now),
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
                    Key=task_key(task.task_id),
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
            write(call)
        except Refused as refused:
            current = None if refused.item is None else from_item(refused.item)
            if current is not None and current.nonce == nonce:
                return current
            raise Conflict(current) from refused
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
