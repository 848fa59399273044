"""The engine of one machine: runs are processes under `local.supervisor`."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from local.stack import ACCOUNT, REGION
from taskrail.engines import RunReport, RunState
from taskrail.errors import EngineUnavailable, StartRefused

ANSWER_WITHIN = 3.0
"""Seconds until the supervisor counts as unavailable; a stop may take it one second."""


def execution_arn(tool: str, name: str) -> str:
    """The id of a run, in the form that Step Functions gives one."""
    return f"arn:aws:states:{REGION}:{ACCOUNT}:execution:{tool}:{name}"


class LocalEngine:
    """Starts, stops and describes runs on this machine; an `Engine` like any other.

    Parameters
    ----------
    socket_path
        Where the supervisor listens.
    within
        Seconds to wait for an answer.
    """

    def __init__(self, socket_path: Path, within: float = ANSWER_WITHIN) -> None:
        self._socket_path = str(socket_path)
        self._within = within

    def start(self, tool: str, name: str, payload: dict[str, object], timeout_ms: int) -> str:
        """Start the run `name`, as in `Engine.start`.

        Raises
        ------
        StartRefused, EngineUnavailable
            As there.
        """
        answer = self.ask({"do": "start", "tool": tool, "name": name, "payload": payload, "timeout_ms": timeout_ms})
        if "refused" in answer:
            raise StartRefused(str(answer["refused"]))
        return execution_arn(tool, name)

    def stop(self, tool: str, name: str) -> bool:
        """Stop the run `name`, as in `Engine.stop`; False while it has not ended after being told to.

        Raises
        ------
        EngineUnavailable
            As there.
        """
        answer = self.ask({"do": "stop", "name": name})
        return bool(answer.get("ok", True))

    def describe(self, tool: str, name: str) -> RunReport:
        """How the run `name` stands, as in `Engine.describe`.

        Raises
        ------
        EngineUnavailable
            As there.
        """
        answer = self.ask({"do": "describe", "name": name})
        if "refused" in answer:
            return RunReport(RunState.NOT_FOUND)
        try:
            return RunReport(RunState(answer["ok"]["state"]), answer["ok"]["reason"])
        except (KeyError, TypeError, ValueError) as error:
            raise EngineUnavailable("The supervisor's answer cannot be read.") from error

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send the supervisor one request and read its answer.

        Raises
        ------
        EngineUnavailable
            No answer, or none that can be read.
        """
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(self._within)
                connection.connect(self._socket_path)
                connection.sendall(json.dumps(request).encode() + b"\n")
                with connection.makefile("rb") as stream:
                    answer = json.loads(stream.readline())
        except (OSError, ValueError) as error:
            raise EngineUnavailable(f"The supervisor gave no answer ({type(error).__name__}).") from error
        if not isinstance(answer, dict) or "error" in answer:
            raise EngineUnavailable("The supervisor could not answer.")
        return answer
