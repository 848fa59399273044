"""How many tasks an owner has open: one record per owner and tool, a map of task ids that never has too few.

An id goes in with a condition on the map's size, so that the limit holds however many calls come together. It is
taken out only when a call finds the map full: then the tasks in it are looked at, and those that are over give
their places up. A task may end in many ways, and none of them has to remember this.

Each id has the moment at which it went in: a task that is not stored may be about to be. A place is given up only
if it is still that of the moment that was seen, so that a call which comes again with its id keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping
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

    def enter(self, key: str, task_id: str, most: int, now: int) -> Mapping[str, int] | None:
        """Take a place for a task; when there is none, the ids that hold all places, and since when.

        Parameters
        ----------
        key
            Opaque: a hash of owner and tool.
        task_id
            The task; one that has a place keeps it, from now on.
        most
            How many places there are.
        now
            Milliseconds since the epoch.

        Raises
        ------
        StoreUnavailable
            It may or may not have a place.
        """
        place = {"N": str(now)}
        try:
            write(
                lambda: self._client.update_item(
                    TableName=self._table,
                    Key=_key(key),
                    UpdateExpression="SET #open.#id = :now",
                    ConditionExpression="attribute_exists(#open) AND "
                    "(size(#open) < :most OR attribute_exists(#open.#id))",
                    ExpressionAttributeNames={"#open": "open", "#id": task_id},
                    ExpressionAttributeValues={":now": place, ":most": {"N": str(most)}},
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            )
            return None
        except Refused as refused:
            if refused.item is not None:
                return _holders(refused.item)
        try:
            write(
                lambda: self._client.put_item(
                    TableName=self._table,
                    Item={**_key(key), "open": {"M": {task_id: place}}},
                    ConditionExpression="attribute_not_exists(pk)",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            )
        except Refused as refused:
            holders: dict[str, int] = {} if refused.item is None else _holders(refused.item)
            # Another call has made the record meanwhile; if it is not full, this one comes again.
            return None if holders.get(task_id) == now else holders
        return None

    def leave(self, key: str, places: Mapping[str, int]) -> bool:
        """Give places up, if all of them are still held since the moments that were seen; False if not.

        Raises
        ------
        StoreUnavailable
            They may or may not have been given up.
        """
        ids = {f"#id{number}": task_id for number, task_id in enumerate(places)}
        since = {f":at{number}": {"N": str(moment)} for number, moment in enumerate(places.values())}
        held = [f"#open.#id{number} = :at{number}" for number in range(len(places))]
        try:
            write(
                lambda: self._client.update_item(
                    TableName=self._table,
                    Key=_key(key),
                    UpdateExpression="REMOVE " + ", ".join(f"#open.{name}" for name in ids),
                    ConditionExpression=" AND ".join(held),
                    ExpressionAttributeNames={"#open": "open", **ids},
                    ExpressionAttributeValues=since,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            )
        except Refused:
            return False
        return True


def _holders(item: Item) -> dict[str, int]:
    return {task_id: int(place["N"]) for task_id, place in item["open"]["M"].items()}


def _key(key: str) -> Item:
    return {"pk": {"S": f"open#{key}"}}
