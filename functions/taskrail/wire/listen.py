"""`subscriptions/listen`: acknowledged, then ended gracefully; nothing that can be subscribed to exists yet."""

from __future__ import annotations

from typing import Any

from taskrail.errors import InvalidParams
from taskrail.wire import protocol
from taskrail.wire.envelope import Reply
from taskrail.wire.ladder import Route

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


def listen(route: Route) -> Reply:
    """A stream answered whole: the acknowledgement of what is honoured, and its end (basic/patterns/subscriptions).

    Parameters
    ----------
    route
        The request.

    Raises
    ------
    InvalidParams
        The filter is malformed.
    """
    wanted = route.params.get("notifications")
    if not isinstance(wanted, dict):
        raise InvalidParams("params.notifications must be an object.")
    task_ids = wanted.get("taskIds")
    if task_ids is not None and not (isinstance(task_ids, list) and all(isinstance(item, str) for item in task_ids)):
        raise InvalidParams("params.notifications.taskIds must be a list of strings.")
    honoured: dict[str, Any] = {}
    # The id keeps its JSON type: clients compare it with the one that they sent.
    meta = {protocol.SUBSCRIPTION_KEY: route.id}
    acknowledgement = {"method": ACKNOWLEDGED, "params": {"_meta": meta, "notifications": honoured}}
    return Reply({"_meta": meta}, notifications=(acknowledgement,))
