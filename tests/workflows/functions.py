"""Functions of the test workflows."""

from __future__ import annotations

import os
from typing import Any

from taskrail import ToolError


def end(event: dict[str, Any], context: Any) -> Any:
    """End as the argument ``how`` says."""
    if "argumentsUri" in event:
        return {"uri": event["argumentsUri"]}
    how = event["arguments"]["how"]
    if how == "tool error":
        raise ToolError("told to")
    if how == "raise":
        raise ValueError("a secret")
    if how == "die":
        os._exit(1)
    return {"pid": os.getpid(), "remaining": context.get_remaining_time_in_millis()}
