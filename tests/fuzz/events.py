"""Requests as API Gateway hands them over, and valid ones of every kind to begin with."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from taskrail.errors import TASKS_EXTENSION
from taskrail.wire import protocol
from tests.fuzz.bench import Bench
from tests.fuzz.strategies import VERSION


def http_event(body: bytes, headers: Mapping[str, str], path: str = "/mcp") -> dict[str, Any]:
    """An HTTP API event, payload format 2.0; a body that is no text comes as base64."""
    try:
        text, encoded = body.decode("utf-8"), False
    except UnicodeDecodeError:
        text, encoded = base64.b64encode(body).decode("ascii"), True
    return {
        "version": "2.0",
        "rawPath": path,
        "headers": {"host": "api.example.com", **headers},
        "requestContext": {"http": {"method": "POST", "path": path}, "stage": "$default"},
        "body": text,
        "isBase64Encoded": encoded,
    }


def rest_event(body: bytes, headers: Mapping[str, str], path: str = "/mcp") -> dict[str, Any]:
    """A REST API event, payload format 1.0, its body as base64."""
    return {
        "httpMethod": "POST",
        "path": path,
        "headers": dict(headers) or None,
        "multiValueHeaders": {name: [value] for name, value in headers.items()} or None,
        "requestContext": {"stage": "prod", "path": f"/prod{path}"},
        "body": base64.b64encode(body).decode("ascii"),
        "isBase64Encoded": True,
    }


def meaning(body: bytes) -> Any:
    """What a body says, the last of two equal keys counting; None when it is no JSON."""
    try:
        return json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        return None


def good_requests(live: Bench) -> list[tuple[bytes, dict[str, str]]]:
    """Valid requests of every kind, valid changes among them, with their headers."""
    capabilities = {"elicitation": {}, "extensions": {TASKS_EXTENSION: {}}}
    meta = {
        protocol.VERSION_KEY: VERSION,
        protocol.CAPABILITIES_KEY: capabilities,
        protocol.CLIENT_KEY: {"name": "fuzz", "version": "1"},
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    }
    requests: list[tuple[str, dict[str, Any]]] = [("server/discover", {}), ("tools/list", {})]
    calls: dict[str, dict[str, Any]] = {
        "greet": {"name": "Ada"},
        "count": {"items": ["a", "b"]},
        "text_back": {"text": "ä\ud83d\ude00", "times": 2},
        "measure": {"region": "eu", "count": 3},
        "by_hand": {"shape": [1, "two", None]},
        "big_order": {"pages": 400},
    }
    requests += [("tools/call", {"name": name, "arguments": arguments}) for name, arguments in calls.items()]
    answers = {"approval": {"action": "accept", "content": {"publish": True}}, "first": {"action": "decline"}}
    retry = {"large": {"action": "accept", "content": {"publish": True}}}
    retried = {"name": "big_order", "arguments": {"pages": 400}, "inputResponses": retry}
    requests.append(("tools/call", {**retried, "requestState": live.states[0]}))
    for task_id in live.task_ids:
        requests.append(("tasks/get", {"taskId": task_id}))
        requests.append(("tasks/cancel", {"taskId": task_id}))
        requests.append(("tasks/update", {"taskId": task_id, "inputResponses": answers}))
    requests.append(("subscriptions/listen", {"notifications": {"taskIds": live.task_ids}}))
    made = []
    for method, params in requests:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        headers = {"mcp-protocol-version": VERSION, "mcp-method": method}
        if name := params.get("name", params.get("taskId")):
            headers["mcp-name"] = name
        if params.get("name") == "measure":
            headers |= {"mcp-param-region": "eu", "mcp-param-count": "3"}
        made.append((json.dumps(body).encode(), headers))
    return made


def plain_body(event: Mapping[str, Any]) -> bytes:
    """The bytes of an event's body."""
    text = event.get("body", "")
    return base64.b64decode(text) if event.get("isBase64Encoded") else text.encode("utf-8", "surrogatepass")
