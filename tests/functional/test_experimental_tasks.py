"""The experimental tasks of 2025-11-25 over a real table: made, followed, listed by the index, cancelled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from local.aws import index_by_owner
from taskrail import minutes, seconds
from taskrail.settings import Settings
from taskrail.testing import BUCKET, TABLE, Kit, RpcFailure, harness
from tests.functional import sample_tools

SETTINGS = Settings(table=TABLE, bucket=BUCKET, secret="a secret for tests only", experimental_tasks=True)
RELATED = "io.modelcontextprotocol/related-task"


@pytest.fixture
def kit() -> Iterator[Kit]:
    with harness(sample_tools.server, settings=SETTINGS) as made:
        made.dynamodb.update_table(TableName=TABLE, **index_by_owner())
        made.owner = "somebody"
        yield made


def ask(kit: Kit, method: str, **params: Any) -> dict[str, Any]:
    """A request of that revision; its result."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    payload = json.loads(kit.post(body, {"mcp-protocol-version": "2025-11-25"})["body"])
    if "error" in payload:
        raise RpcFailure(payload["error"], 200)
    result: dict[str, Any] = payload["result"]
    return result


def call(kit: Kit, tool: str, **arguments: Any) -> str:
    """Call a tool as a task; the task's id."""
    task = ask(kit, "tools/call", name=tool, arguments=arguments, task={"ttl": 60_000})["task"]
    assert task["status"] == "working"
    return str(task["taskId"])


def listed(kit: Kit) -> list[tuple[str, str]]:
    """Ids and states of all tasks of the caller, page by page."""
    page = ask(kit, "tasks/list")
    tasks = page["tasks"]
    while "nextCursor" in page:
        page = ask(kit, "tasks/list", cursor=page["nextCursor"])
        tasks += page["tasks"]
    return [(task["taskId"], task["status"]) for task in tasks]


def test_from_the_call_to_the_result(kit: Kit) -> None:
    task_id = call(kit, "count", items=["a", "b", "c"])
    told = ask(kit, "tasks/get", taskId=task_id)
    assert told["pollInterval"] == 2_000
    assert told["ttl"] > minutes(60).total_seconds() * 1_000, "the ticket outlives its work, whatever was asked for"
    # The job happens while the request waits.
    result = ask(kit, "tasks/result", taskId=task_id)
    assert result["structuredContent"] == {"words": 3, "share": 0.1}
    assert result["_meta"][RELATED] == {"taskId": task_id}
    assert ask(kit, "tasks/get", taskId=task_id)["status"] == "completed"


def test_a_task_of_one_wire_is_a_task_of_the_other(kit: Kit) -> None:
    modern = kit.call("text_back", text="x")
    assert ask(kit, "tasks/get", taskId=modern.task_id)["status"] == "working"
    assert ask(kit, "tasks/result", taskId=modern.task_id)["content"][0]["text"] == "x"
    old = call(kit, "text_back", text="y")
    assert kit.request("tasks/get", {"taskId": old})["status"] == "working"


def test_a_question_of_the_job_is_answered_through_the_tools(kit: Kit) -> None:
    task_id = call(kit, "publish", title="Report")
    with pytest.raises(RpcFailure, match="task_answer"):
        ask(kit, "tasks/result", taskId=task_id)
    status = ask(kit, "tools/call", name="task_status", arguments={"task_id": task_id})
    assert status["structuredContent"]["questions"].keys() == {"approval"}
    answer = {"task_id": task_id, "key": "approval", "content": {"publish": True}}
    ask(kit, "tools/call", name="task_answer", arguments=answer)
    assert ask(kit, "tasks/result", taskId=task_id)["content"][0]["text"] == "Report: 12 pages published"


@pytest.mark.parametrize(("how", "code"), [("tool_error", None), ("exception", None), ("protocol_error", 4711)])
def test_work_that_failed(kit: Kit, how: str, code: int | None) -> None:
    task_id = call(kit, "end_as", how=how)
    kit.run()
    assert ask(kit, "tasks/get", taskId=task_id)["status"] == "failed"
    assert listed(kit) == [(task_id, "failed")]
    if code is None:
        assert ask(kit, "tasks/result", taskId=task_id)["isError"] is True
        return
    with pytest.raises(RpcFailure) as failure:
        ask(kit, "tasks/result", taskId=task_id)
    assert failure.value.error["code"] == code


def test_work_that_does_not_listen_is_stopped_within_the_request(kit: Kit) -> None:
    kit.clock.on_sleep = lambda: None
    task_id = call(kit, "text_back", text="x")
    (name,) = kit.engine.waiting
    kit.runtime.rail.reports.claim(task_id, run=1, run_id=name, attempt=1)
    began = kit.clock.now()
    assert ask(kit, "tasks/cancel", taskId=task_id)["status"] == "cancelled"
    assert 10_000 <= kit.clock.now() - began <= 15_000
    assert kit.engine.states[name].ended


def test_the_list_is_paged_by_the_index_and_shows_each_task_as_it_stands(kit: Kit) -> None:
    made = []
    for _ in range(25):
        kit.advance(seconds(1))
        made.append(call(kit, "text_back", text="x"))
    kit.run()
    kit.advance(seconds(1))
    made.append(call(kit, "publish", title="Report"))
    kit.owner = "somebody else"
    foreign = call(kit, "text_back", text="x")
    assert listed(kit) == [(foreign, "working")]
    kit.owner = "somebody"
    assert listed(kit) == [(made[-1], "working"), *((task_id, "completed") for task_id in reversed(made[:-1]))]


def test_a_cursor_of_another_caller_leads_to_nothing_of_theirs(kit: Kit) -> None:
    for owner in ("somebody else", "somebody"):
        kit.owner = owner
        for _ in range(25):
            kit.advance(seconds(1))
            call(kit, "text_back", text="x")
    kit.owner = "somebody else"
    theirs = {task_id for task_id, _ in listed(kit)}
    cursor = ask(kit, "tasks/list")["nextCursor"]
    kit.owner = "somebody"
    seen = {task["taskId"] for task in ask(kit, "tasks/list", cursor=cursor)["tasks"]}
    assert len(theirs) == 25 and not seen & theirs


def test_what_has_expired_is_not_listed(kit: Kit) -> None:
    call(kit, "text_back", text="x")
    kit.run()
    kit.advance(minutes(60 * 24 * 30))
    assert listed(kit) == []
