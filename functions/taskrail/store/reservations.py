"""Reservations: which task answers a repeated call. One record per call's key, and one winner.

Time line: two calls with one key arrive together. Each mints a task id; one of them puts the record, the
other reads in its refusal which id won, and goes on with that: whoever comes first then creates the task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from taskrail import clock
from taskrail.store.calls import Refused, write
from taskrail.store.items import Item

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True)
class Reservation:
    """A key, and the task that it stands for.

    Parameters
    ----------
    key
        Opaque: a hash of owner, tool, and arguments or idempotency key.
    task_id
        The task.
    digest
        Hash of the call's arguments: one idempotency key is for one set of them.
    until
        Moment at which it ends, in milliseconds since the epoch.
    """

    key: str
    task_id: str
    digest: str
    until: int


class Reservations:
    """The records beside the tasks, in the same table.

    Parameters
    ----------
    client, table
        As for `taskrail.store.Store`.
    """

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def take(self, wanted: Reservation, now: int, *, instead_of: str | None = None) -> Reservation:
        """Put a reservation, if its key is free; the one that stands then, ours or another's.

        Parameters
        ----------
        wanted
            What to put.
        now
            Milliseconds since the epoch: a reservation that has ended is none, whenever it is deleted.
        instead_of
            A task whose reservation is replaced, if it still stands.

        Raises
        ------
        StoreUnavailable
            It may or may not have been put.
        """
        condition, values = "attribute_not_exists(pk) OR #until <= :now", {":now": {"N": str(now)}}
        if instead_of is not None:
            condition += " OR #taskId = :old"
            values[":old"] = {"S": instead_of}
        names = {"#until": "until"} | ({"#taskId": "taskId"} if instead_of is not None else {})
        try:
            write(
                lambda: self._client.put_item(
                    TableName=self._table,
                    Item=_item(wanted),
                    ConditionExpression=condition,
                    ExpressionAttributeNames=names,
                    ExpressionAttributeValues=values,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            )
        except Refused as refused:
            # A put of our own whose answer got lost comes back as what it put.
            return wanted if refused.item is None else _reservation(refused.item)
        return wanted

    def free(self, key: str, task_id: str) -> None:
        """Remove a reservation, if it still stands for that task.

        Raises
        ------
        StoreUnavailable
            It may or may not have been removed.
        """
        try:
            write(
                lambda: self._client.delete_item(
                    TableName=self._table,
                    Key=_key(key),
                    ConditionExpression="attribute_not_exists(pk) OR #taskId = :taskId",
                    ExpressionAttributeNames={"#taskId": "taskId"},
                    ExpressionAttributeValues={":taskId": {"S": task_id}},
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            )
        except Refused:
            return


def _key(key: str) -> Item:
    return {"pk": {"S": f"dedupe#{key}"}}


def _item(reservation: Reservation) -> Item:
    return {
        **_key(reservation.key),
        "taskId": {"S": reservation.task_id},
        "digest": {"S": reservation.digest},
        "until": {"N": str(reservation.until)},
        "expiresAt": {"N": str(clock.seconds_rounded_up(reservation.until))},
    }


def _reservation(item: Item) -> Reservation:
    return Reservation(
        key=item["pk"]["S"].removeprefix("dedupe#"),
        task_id=item["taskId"]["S"],
        digest=item["digest"]["S"],
        until=int(item["until"]["N"]),
    )
