"""What a caller may see, call and be told of: scopes, the server's rule, and what tools know of the caller."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from taskrail import Call, Caller, StepFunctions, TaskContext, TaskServer, Toolset, minutes
from taskrail.errors import DeclarationError
from taskrail.testing import Kit, RpcFailure, harness

tools = Toolset()
WORK = StepFunctions(timeout=minutes(5))


@tools.tool()
def everybody(call: Call) -> dict[str, Any]:
    """For everybody."""
    caller = call.caller
    return {"subject": caller.subject, "tenant": caller.tenant, "claims": dict(caller.claims)}


@tools.tool(scopes=["reports:read"])
def read_report() -> str:
    """For readers."""
    return "read"


@tools.task(runs_on=WORK, scopes=["reports:read", "reports:write"])
def write_report(task: TaskContext) -> dict[str, Any]:
    """For writers."""
    caller = task.caller
    return {"subject": caller.subject, "scopes": sorted(caller.scopes), "claims": dict(caller.claims)}


@tools.task(runs_on=WORK)
def purge(task: TaskContext) -> str:
    """For one tenant."""
    return "purged"


@tools.task(runs_on=WORK, mode="required")
def purge_as_task(task: TaskContext) -> str:
    """For one tenant, as a task only."""
    return "purged"


server = TaskServer("guarded", version="1", tools=[tools])


@server.authorize
def only_acme_purges(caller: Caller, tool: str) -> bool:
    """Purging is for the tenant acme."""
    if caller.tenant == "broken":
        raise RuntimeError("the rule fails")
    return not tool.startswith("purge") or caller.tenant == "acme"


READER = Caller("reader", subject="r", scopes=frozenset({"reports:read"}))
WRITER = Caller(
    "writer",
    subject="w",
    tenant="acme",
    scopes=frozenset({"reports:read", "reports:write", "more"}),
    claims={"email": "w@acme.test"},
)


@pytest.fixture(scope="module")
def deployment() -> Iterator[Kit]:
    with harness(server) as made:
        yield made


@pytest.fixture
def kit(deployment: Kit) -> Kit:
    deployment.clear()
    return deployment


def listed(kit: Kit) -> list[str]:
    return [tool["name"] for tool in kit.request("tools/list")["tools"]]


@pytest.mark.parametrize(
    ("caller", "names"),
    [
        (Caller("nobody"), ["everybody"]),
        (READER, ["everybody", "read_report"]),
        (WRITER, ["everybody", "read_report", "write_report", "purge", "purge_as_task"]),
        (Caller("broken", tenant="broken"), []),
    ],
)
def test_the_list_shows_what_the_caller_may_use(kit: Kit, caller: Caller, names: list[str]) -> None:
    kit.caller = caller
    assert listed(kit) == names
    assert kit.request("tools/list")["cacheScope"] == "private"


def test_there_is_one_rule(kit: Kit) -> None:
    with pytest.raises(DeclarationError, match="authorize"):
        server.authorize(lambda caller, tool: True)


def test_missing_scopes_are_a_403_that_names_them(kit: Kit) -> None:
    kit.caller = READER
    with pytest.raises(RpcFailure) as failure:
        kit.call("write_report")
    assert failure.value.status == 403
    assert failure.value.error["data"] == {"requiredScopes": ["reports:read", "reports:write"]}
    assert kit.scan() == [] and kit.engine.starts == []


def test_the_challenge_is_the_one_that_the_specification_asks_for(kit: Kit) -> None:
    kit.caller = READER
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "write_report", "_meta": meta}}
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "write_report"}
    answer = kit.post(json.dumps(body), headers)
    assert answer["headers"]["WWW-Authenticate"] == (
        'Bearer error="insufficient_scope", scope="reports:read reports:write"'
    )


def test_what_the_rule_forbids_is_as_unknown_as_what_does_not_exist(kit: Kit) -> None:
    kit.caller = READER
    errors = []
    for name in ("purge", "no_such_tool"):
        with pytest.raises(RpcFailure) as failure:
            kit.call(name)
        errors.append((failure.value.error, failure.value.status))
    assert errors[0] == errors[1]
    assert kit.scan() == []


def test_whoever_may_call_is_served(kit: Kit) -> None:
    kit.caller = WRITER
    assert kit.call("purge").run().text == "purged"
    assert kit.call("read_report").text == "read"


def test_tools_know_the_caller_and_never_a_token(kit: Kit) -> None:
    kit.caller = WRITER
    assert kit.call("everybody").structured == {"subject": "w", "tenant": "acme", "claims": {"email": "w@acme.test"}}
    assert kit.call("write_report").run().structured == {
        "subject": "w",
        "scopes": ["more", "reports:read", "reports:write"],
        "claims": {"email": "w@acme.test"},
    }


@pytest.mark.parametrize("scopes", ["reports:read", [""], ["two words"], ['quo"te'], [5], 5])
def test_scopes_that_no_token_could_have_are_refused(scopes: Any) -> None:
    with pytest.raises(DeclarationError, match="scopes"):

        @Toolset().tool(scopes=scopes)
        def tool() -> str:
            """A tool."""
            return ""


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
def test_that_a_hidden_tool_needs_tasks_is_hidden_too(kit: Kit, version: str) -> None:
    """An error of its own would tell that it is there."""
    kit.caller = READER
    answers = []
    for name in ("purge_as_task", "no_such_tool"):
        params: dict[str, Any] = {"name": name}
        headers = {"mcp-protocol-version": version}
        if version == "2026-07-28":
            meta = {
                "io.modelcontextprotocol/protocolVersion": version,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            params["_meta"] = meta
            headers |= {"mcp-method": "tools/call", "mcp-name": name}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answers.append(kit.post(json.dumps(body), headers))
    assert answers[0] == answers[1]
