"""`curl` and nothing else: the modern wire by hand.

python -m tests.clients.curl_driver URL FAULTY_URL...        prints what happened, as JSON
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

VERSION = "2026-07-28"
TASKS = "io.modelcontextprotocol/tasks"
TERMINAL = ("completed", "failed", "cancelled")
AGAIN = ("--retry", "5", "--retry-all-errors", "--retry-delay", "1")
"""For what may be asked twice: a poll, an answer, a cancel; never the call of a tool."""


class CurlError(RuntimeError):
    """There is no answer; the message is what curl said."""


def request(url: str, method: str, params: dict[str, Any], *options: str) -> dict[str, Any]:
    """The result of one request.

    Parameters
    ----------
    url
        The MCP endpoint.
    method, params
        The request.
    options
        More options of curl's.

    Raises
    ------
    CurlError
        There is no answer, or it is an error.
    """
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "extensions": {TASKS: {}}},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    headers = ["Content-Type: application/json", f"MCP-Protocol-Version: {VERSION}", f"Mcp-Method: {method}"]
    if name := params.get("name", params.get("taskId")):
        headers.append(f"Mcp-Name: {name}")
    with tempfile.TemporaryDirectory() as directory:
        answer = Path(directory, "answer.json")
        command = ["curl", "--silent", "--show-error", "--fail", "--max-time", "60", "-o", str(answer), *options, url]
        for header in headers:
            command += ["-H", header]
        done = subprocess.run([*command, "-d", json.dumps(body)], capture_output=True, text=True)
        if done.returncode:
            raise CurlError(done.stderr)
        message = json.loads(answer.read_text())
    if "error" in message:
        raise CurlError(str(message["error"]))
    result: dict[str, Any] = message["result"]
    return result


def finish(url: str, task_id: str, asked: list[str]) -> dict[str, Any]:
    """Poll a task to its end, answering what it asks with yes.

    Parameters
    ----------
    url
        The MCP endpoint.
    task_id
        The task.
    asked
        Where the questions are noted.
    """
    while True:
        state = request(url, "tasks/get", {"taskId": task_id}, *AGAIN)
        if state["status"] in TERMINAL:
            return state
        if state["status"] == "input_required":
            answers = answered(state["inputRequests"], asked)
            request(url, "tasks/update", {"taskId": task_id, "inputResponses": answers}, *AGAIN)
        time.sleep(0.5)


def answered(requests: dict[str, Any], asked: list[str]) -> dict[str, Any]:
    """Yes to everything."""
    asked += [one["params"]["message"] for one in requests.values()]
    return {key: {"action": "accept", "content": {"publish": True}} for key in requests}


def call(url: str, asked: list[str], name: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool and see it through."""
    params = {"name": name, "arguments": arguments}
    result = request(url, "tools/call", params)
    if result["resultType"] == "input_required":
        more = {"inputResponses": answered(result["inputRequests"], asked), "requestState": result["requestState"]}
        result = request(url, "tools/call", {**params, **more})
    if result["resultType"] == "task":
        state = finish(url, result["taskId"], asked)
        ended: dict[str, Any] = state["result"]
        return ended
    return result


def story(url: str, faulty_urls: list[str]) -> dict[str, Any]:
    """Drive every way a call can go.

    Parameters
    ----------
    url
        The MCP endpoint.
    faulty_urls
        The same endpoint behind proxies that spoil the first look at each task.
    """
    asked: list[str] = []
    told: dict[str, Any] = {
        "tools": [tool["name"] for tool in request(url, "tools/list", {})["tools"]],
        "inline": call(url, asked, "add", a=2, b=3)["structuredContent"],
        "task": call(url, asked, "measure_words", words=["one", "three", "fourteen"])["structuredContent"],
        "question": {"texts": texts(call(url, asked, "publish", title="Rails")), "asked": list(asked)},
        "error": outcome(call(url, asked, "break_down")),
        "long": texts(call(url, asked, "take_two_minutes")),
    }
    asked.clear()
    told["before"] = {"texts": texts(call(url, asked, "guarded", title="Rails")), "asked": asked}
    handle = request(url, "tools/call", {"name": "wait_long", "arguments": {}})
    request(url, "tasks/cancel", {"taskId": handle["taskId"]}, *AGAIN)
    told["cancel"] = finish(url, handle["taskId"], [])["status"]
    told["faults"] = [{"plain": texts(call(one, [], "take_two_minutes"))} for one in faulty_urls]
    return told


def outcome(result: dict[str, Any]) -> dict[str, Any]:
    """A result as the tests compare it."""
    return {"isError": result["isError"], "texts": texts(result)}


def texts(result: dict[str, Any]) -> list[str]:
    """The text blocks of a result."""
    return [block["text"] for block in result["content"] if block["type"] == "text"]


if __name__ == "__main__":
    json.dump(story(sys.argv[1], sys.argv[2:]), sys.stdout)
