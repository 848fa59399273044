"""The command line of MCP Inspector: one process for each call, of either era.

python -m tests.clients.inspector_driver ERA URL FAULTY_URL...        prints what happened, as JSON
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.clients.tickets import is_ticket, next_call
from tests.stack import ROOT

INSPECTOR = ROOT / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
NODE = Path(sys.executable).parent / "node"
PATIENCE = 5
"""Looks at a task that may fail in a row."""


class InspectorError(RuntimeError):
    """The command gave no result; the message is what it printed."""


class Inspector:
    """Runs the command.

    Parameters
    ----------
    era
        `legacy`, which is its default, or `modern`.
    home
        Where it keeps its files, in place of the user's own.
    """

    def __init__(self, era: str, home: str) -> None:
        self._era = era
        self._environ = {**os.environ, "HOME": home, "MCP_INSPECTOR_SECRET_STORE": "memory"}

    def run(self, url: str, method: str, *options: str) -> dict[str, Any]:
        """The result of one request.

        Parameters
        ----------
        url
            The MCP endpoint.
        method, options
            What to ask.

        Raises
        ------
        InspectorError
            There is none.
        """
        command = [str(NODE), str(INSPECTOR), "--cli", url, "--transport", "http", "--protocol-era", self._era]
        command += ["--format", "json", "--method", method, *options]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=150, env=self._environ, stdin=subprocess.DEVNULL
        )
        try:
            answer: dict[str, Any] = json.loads(done.stdout)["result"]
        except (ValueError, KeyError):
            raise InspectorError(done.stdout + done.stderr) from None
        return answer

    def call(self, url: str, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool."""
        return self.run(url, "tools/call", "--tool-name", name, "--tool-args-json", json.dumps(arguments))

    def follow(self, url: str, result: dict[str, Any], asked: list[str]) -> dict[str, Any]:
        """Read a ticket to the end, if it is one."""
        failures = 0
        while is_ticket(result.get("structuredContent")):
            name, arguments = next_call(result["structuredContent"], asked)
            try:
                result = self.call(url, name, **arguments)
            except InspectorError:
                failures += 1
                if failures == PATIENCE:
                    raise
        return result


def story(era: str, url: str, faulty_urls: list[str]) -> dict[str, Any]:
    """Drive every way a call can go.

    Parameters
    ----------
    era
        `legacy` or `modern`.
    url
        The MCP endpoint.
    faulty_urls
        The same endpoint behind proxies that spoil the first look at each task.
    """
    with tempfile.TemporaryDirectory() as home:
        inspector = Inspector(era, home)
        asked: list[str] = []

        def call(name: str, **arguments: Any) -> dict[str, Any]:
            return inspector.follow(url, inspector.call(url, name, **arguments), asked)

        told: dict[str, Any] = {
            "tools": [tool["name"] for tool in inspector.run(url, "tools/list")["tools"]],
            "inline": call("add", a=2, b=3)["structuredContent"],
            "task": call("measure_words", words=["one", "three", "fourteen"])["structuredContent"],
            "question": {"texts": texts(call("publish", title="Rails")), "asked": list(asked)},
            "error": outcome(call("break_down")),
            "long": texts(call("take_two_minutes")),
        }
        asked.clear()
        told["before"] = {"texts": before(inspector, url), "asked": asked}
        if era == "legacy":
            task_id = inspector.call(url, "wait_long")["structuredContent"]["taskId"]
            ended = texts(call("task_cancel", task_id=task_id))
            told["cancel"] = "cancelled" if "was cancelled" in ended[0] else ended
        else:
            told["cancel"] = no_cancel(inspector, url)
        told["faults"] = [fault(inspector, one) for one in faulty_urls]
    return told


def before(inspector: Inspector, url: str) -> list[str]:
    """What a call comes to whose tool asks before it starts."""
    try:
        return texts(inspector.call(url, "guarded", title="Rails"))
    except InspectorError as error:
        return [str(error)]


def no_cancel(inspector: Inspector, url: str) -> str:
    """What the command says when it is asked to cancel."""
    try:
        return str(inspector.run(url, "tasks/cancel"))
    except InspectorError as error:
        return str(error)


def fault(inspector: Inspector, url: str) -> dict[str, Any]:
    """Run a job of which the first look is spoiled."""
    try:
        return {"plain": texts(inspector.follow(url, inspector.call(url, "take_two_minutes"), []))}
    except InspectorError as error:
        return {"failed": str(error)}


def outcome(result: dict[str, Any]) -> dict[str, Any]:
    """A result as the tests compare it."""
    return {"isError": result["isError"], "texts": texts(result)}


def texts(result: dict[str, Any]) -> list[str]:
    """The text blocks of a result."""
    return [block["text"] for block in result["content"] if block["type"] == "text"]


if __name__ == "__main__":
    json.dump(story(sys.argv[1], sys.argv[2], sys.argv[3:]), sys.stdout)
