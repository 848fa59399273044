"""The table's stream → what nobody waits for any more is stopped and deleted.

Takes the REMOVE records of a stream with old images, whoever removed the item: its time to live, an operator, or
the rail itself, which takes back a ticket whose work was refused.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from taskrail.loading import made_late
from taskrail.store import from_item

if TYPE_CHECKING:
    from taskrail.runtime import Runtime

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]

_log = logging.getLogger("taskrail")


def bind(runtime: Runtime) -> Handler:
    """The handler over a given runtime.

    Parameters
    ----------
    runtime
        Whose tasks are gone.
    """

    def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
        failed = []
        for record in event.get("Records", ()):
            try:
                _removed(runtime, record)
            except Exception:
                _log.exception("a removed item was not cleaned up after")
                failed.append({"itemIdentifier": record["dynamodb"]["SequenceNumber"]})
        return {"batchItemFailures": failed}

    return handle


def _removed(runtime: Runtime, record: dict[str, Any]) -> None:
    image = record.get("dynamodb", {}).get("OldImage", {})
    if record.get("eventName") != "REMOVE" or not image.get("pk", {}).get("S", "").startswith("task#"):
        return
    runtime.cleanup.removed(from_item(image))


def _handler() -> Handler:
    from catalogue import server
    from taskrail.runtime import from_environment

    return bind(from_environment(server))


__getattr__ = made_late(__name__, handler=_handler)
