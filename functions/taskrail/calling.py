"""Calling functions that may be ``async def``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any


def call_through(function: Callable[..., Any], keywords: Mapping[str, Any]) -> Any:
    """Call a function and, if it is a coroutine function, run it to its end.

    Parameters
    ----------
    function
        A tool's function or hook.
    keywords
        Its keyword arguments.

    Returns
    -------
    Any
        What it returned. What it raised comes through, `BaseException` included.
    """
    value = function(**keywords)
    if not inspect.isawaitable(value):
        return value
    # Only functions that need an event loop pay for importing one.
    import asyncio

    async def finish() -> Any:
        return await value

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(finish())
    return _in_a_thread(finish)


def _in_a_thread(finish: Callable[[], Any]) -> Any:
    """Run a coroutine where this thread's own loop is busy, as in an asynchronous test."""
    import asyncio
    import contextvars
    import threading

    outcome: dict[str, Any] = {}

    def work() -> None:
        try:
            outcome["value"] = asyncio.run(finish())
        except BaseException as error:
            outcome["error"] = error

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
    thread.start()
    thread.join()
    if "error" in outcome:
        raise outcome["error"]
    return outcome.get("value")
