"""API Gateway to the wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from taskrail.caller import Caller
from taskrail.wire.app import App

if TYPE_CHECKING:
    from taskrail.runtime import Runtime

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]


def bind(runtime: Runtime, identify: Callable[[Any], Caller] | None = None, *, streams: bool = False) -> Handler:
    """A handler over a given runtime.

    Parameters
    ----------
    runtime
        The catalogue, the rail, the settings and the clock.
    identify
        Tells the caller of an event, in place of what the settings say.
    streams
        Whether whoever takes the answers can send a body that comes in parts.
    """
    app = App(runtime, identify, streams=streams)

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        """Answer one API Gateway event."""
        return app.handle(event, getattr(context, "get_remaining_time_in_millis", None))

    return handler


def __getattr__(name: str) -> Handler:
    """`handler`, for Lambda: made when Lambda looks for it, so that others can import `bind` anywhere."""
    if name != "handler":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from catalogue import server
    from taskrail.runtime import from_environment

    made = globals()["handler"] = bind(from_environment(server))
    return made
