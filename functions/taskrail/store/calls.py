"""Conditional writes: what their refusals mean, and which failures leave the outcome open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from taskrail.errors import StoreUnavailable, TaskrailError
from taskrail.store.items import Item


class Refused(TaskrailError):
    """A condition did not hold.

    Parameters
    ----------
    item
        The item as it stands, or None when there is none.
    """

    def __init__(self, item: Item | None) -> None:
        super().__init__("The condition of a write did not hold.")
        self.item = item


def write(call: Callable[[], Any]) -> Any:
    """Make a conditional write with ``ReturnValuesOnConditionCheckFailure=ALL_OLD``; its answer.

    Raises
    ------
    Refused, StoreUnavailable
        The condition did not hold; or the outcome is unknown.
    """
    try:
        return call()
    except ClientError as error:
        if error_name(error) != "ConditionalCheckFailedException":
            raise StoreUnavailable(error_name(error)) from error
        item: Item | None = error.response.get("Item")  # type: ignore[assignment]
        raise Refused(item or None) from error
    except BotoCoreError as error:
        raise StoreUnavailable(error_name(error)) from error


def read(call: Callable[[], Any]) -> Item | None:
    """Make a GetItem call; the item, or None.

    Raises
    ------
    StoreUnavailable
        No answer after the client's own retries.
    """
    try:
        item: Item | None = call().get("Item")
    except (ClientError, BotoCoreError) as error:
        raise StoreUnavailable(error_name(error)) from error
    return item


def error_name(error: ClientError | BotoCoreError) -> str:
    """What an error is called: a code of the service's, or a class of the SDK's."""
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code", "Unknown"))
    return type(error).__name__
