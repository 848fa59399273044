"""The requests that everybody answers: events of an HTTP API with a JWT authorizer (payload format 2.0)."""

from __future__ import annotations

import json
from typing import Any

VERSION = "2026-07-28"
TASKS = "io.modelcontextprotocol/tasks"
ARGUMENTS = {"report": "The year in numbers", "pages": 12}
ANSWER = {"approval": {"action": "accept", "content": {"publish": True}}}

OPERATIONS = ("server/discover", "tools/call", "tasks/get", "tasks/update")


def request(operation: str, task_id: str = "") -> dict[str, Any]:
    """The event of one of `OPERATIONS`, about a task where it is about one.

    Parameters
    ----------
    operation
        Name of the method.
    task_id
        Of the task that `tasks/get` and `tasks/update` are about.
    """
    if operation == "tools/call":
        return event(operation, "render", {"name": "render", "arguments": ARGUMENTS})
    if operation == "tasks/update":
        return event(operation, task_id, {"taskId": task_id, "inputResponses": ANSWER})
    return event(operation, task_id, {"taskId": task_id}) if operation == "tasks/get" else event(operation, None, {})


def event(method: str, name: str | None, params: dict[str, Any]) -> dict[str, Any]:
    """What API Gateway invokes a function with when a client that knows tasks sends a request.

    Parameters
    ----------
    method, params
        Of the JSON-RPC request; what every request carries in ``_meta`` is added.
    name
        The ``Mcp-Name`` header; None for a method that has none.
    """
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "extensions": {TASKS: {}}},
    }
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": {**params, "_meta": meta}}
    headers = {
        "accept": "application/json, text/event-stream",
        "authorization": "Bearer eyJhbGciOiJSUzI1NiJ9.e30.c2lnbmF0dXJl",
        "content-length": "512",
        "content-type": "application/json",
        "host": "bench.execute-api.eu-central-1.amazonaws.com",
        "mcp-method": method,
        "mcp-protocol-version": VERSION,
        "user-agent": "bench/1",
        "x-amzn-trace-id": "Root=1-68e1c1b4-1f1f1f1f1f1f1f1f1f1f1f1f",
        "x-forwarded-for": "203.0.113.7",
        "x-forwarded-port": "443",
        "x-forwarded-proto": "https",
    }
    claims = {"iss": "https://issuer.example", "sub": "ada", "scope": "tasks", "exp": "1900000000"}
    return {
        "version": "2.0",
        "routeKey": "POST /mcp",
        "rawPath": "/mcp",
        "rawQueryString": "",
        "headers": headers if name is None else {**headers, "mcp-name": name},
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "bench",
            "authorizer": {"jwt": {"claims": claims, "scopes": None}},
            "domainName": headers["host"],
            "domainPrefix": "bench",
            "http": {
                "method": "POST",
                "path": "/mcp",
                "protocol": "HTTP/1.1",
                "sourceIp": "203.0.113.7",
                "userAgent": "bench/1",
            },
            "requestId": "JKJaXmPLvHcESHA=",
            "routeKey": "POST /mcp",
            "stage": "$default",
            "time": "30/Nov/2026:12:00:00 +0000",
            "timeEpoch": 1_796_040_000_000,
        },
        "body": json.dumps(body),
        "isBase64Encoded": False,
    }
