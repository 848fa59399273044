"""How many tasks an owner has open: one record per owner and tool, a set of task ids that is never too small.

An id goes in with a condition on the set's size, so that the limit holds however many calls come together. It is
taken out only when a call finds the set full: then the tasks in it are looked at, and those that are over give
their places up. A task may end in many ways, and none of them has to remember this.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from taskrail.store.calls import Refused, write
from taskrail.store.items import Item

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class Limits:
    """The records of open tasks, in the tasks' table.

    Parameters
    ----------
    client, table
        As for `taskrail.store.Store`.
    """

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def enter(self, key: str, task_id: str, most: int) -> frozenset[str] | None:
        """Take a place for a task; the ids that hold all places when there is none.

        Parameters
        ----------
        key
            Opaque: a hash of owner and tool.
        task_id
            The task; one that has a place keeps it.
        most
            How many places there are.

        Raises
        ------
        StoreUnavailable
            It may or may not have a place.
        """
        try:
            write(
                lambda: self._client.update_item(
                    TableName=self._table,
                    Key=_key(key),
                    UpdateExpression="ADD #open :ids",
                    ConditionExpression="attribute_not_exists(#open) OR size(#open) < :most OR contains(#open, :id)",
                    ExpressionAttributeNames={"#open": "open"},
                    ExpressionAttributeValues={
                        ":ids": {"SS": [task_id]},
                        ":id": {"S": task_id},
                        ":most": {"N": str(most)},
                    },
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            )
        except Refused as refused:
            return frozenset() if refused.item is None else frozenset(refused.item["open"]["SS"])
        return None

    def leave(self, key: str, task_ids: Collection[str]) -> None:
        """Give places up; those of ids that have none are no matter.

        Raises
        ------
        StoreUnavailable
            They may or may not have been given up.
        """
        if task_ids:
            write(
                lambda: self._client.update_item(
                    TableName=self._table,
                    Key=_key(key),
                    UpdateExpression="DELETE #open :ids",
                    ExpressionAttributeNames={"#open": "open"},
                    ExpressionAttributeValues={":ids": {"SS": sorted(task_ids)}},
                )
            )


def _key(key: str) -> Item:
    return {"pk": {"S": f"open#{key}"}}
