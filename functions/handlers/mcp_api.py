"""API Gateway to the wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from taskrail.loading import made_late

if TYPE_CHECKING:
    from taskrail.caller import Caller
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
    from taskrail.wire.app import App

    app = App(runtime, identify, streams=streams)

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        """Answer one API Gateway event."""
        return app.handle(event, getattr(context, "get_remaining_time_in_millis", None))

    return handler


def _handler() -> Handler:
    from catalogue import server
    from taskrail.runtime import from_environment

    return bind(from_environment(server))


__getattr__ = made_late(__name__, handler=_handler)
