"""Payloads of every size: inline, in the bucket, linked; never cut, never a 500."""

from __future__ import annotations

import json

from taskrail.testing import BUCKET, Kit


def answer_size(kit: Kit, task_id: str) -> int:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tasks/get",
        "params": {
            "taskId": task_id,
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
            },
        },
    }
    return len(
        json.dumps(kit.post(json.dumps(body), {"mcp-protocol-version": "2026-07-28", "mcp-method": "tasks/get"}))
    )


def test_small_payloads_stay_in_the_item(kit: Kit) -> None:
    kit.call("text_back", text="x" * 3000).run()
    assert "Contents" not in kit.s3.list_objects_v2(Bucket=BUCKET)


def test_arguments_of_300_kb_go_to_the_bucket_and_come_back(kit: Kit) -> None:
    text = "ä" * 150_000
    task = kit.call("text_back", text=text)
    assert kit.scan()[0]["arguments"]["S"].startswith("s3:tasks/")
    assert task.run().text == text
    assert len(json.dumps(kit.scan())) < 5_000


def test_a_result_of_300_kb_is_inline_on_read(kit: Kit) -> None:
    task = kit.call("text_back", text="x" * 1000, times=300).run()
    assert kit.scan()[0]["result"]["S"].startswith("s3:tasks/")
    assert task.text == "x" * 300_000


def test_a_result_of_7_mb_is_linked(kit: Kit) -> None:
    task = kit.call("text_back", text="x" * 1000, times=7_000).run()
    (link,) = task.result["content"]
    assert link["type"] == "resource_link"
    assert link["size"] == 7_000_000
    assert task.attachment(link["name"]) == b"x" * 7_000_000
    assert answer_size(kit, task.task_id) < 10_000


def test_a_result_is_measured_after_escaping(kit: Kit) -> None:
    # 3 MB that quotes and line breaks double twice: once in JSON, once more inside Lambda's answer.
    task = kit.call("text_back", text='"\n', times=1_500_000).run()
    assert task.result["content"][0]["type"] == "resource_link"
    assert answer_size(kit, task.task_id) < 6_000_000


def test_structured_content_too_large_to_send_is_linked_as_an_error(kit: Kit) -> None:
    task = kit.call("numbers_back", size=6_000_000).run()
    assert task.status == "completed"
    assert task.is_error
    assert "structuredContent" not in task.result
    stored = json.loads(task.attachment("result.json"))
    assert len(stored["structuredContent"]["values"]) == 6_000_000
    assert answer_size(kit, task.task_id) < 10_000


def test_structured_content_of_3_mb_stays_while_its_text_is_linked(kit: Kit) -> None:
    task = kit.call("numbers_back", size=3_000_000).run()
    assert len(task.structured["values"]) == 3_000_000
    assert task.structured["more"] == [0.1, 1e300, 3]
    assert task.result["content"][0]["type"] == "resource_link"
    assert answer_size(kit, task.task_id) < 6_000_000


def test_a_result_that_is_gone_says_so(kit: Kit) -> None:
    task = kit.call("text_back", text="x" * 1000, times=300).run()
    kit.s3.delete_object(Bucket=BUCKET, Key=kit.scan()[0]["result"]["S"].removeprefix("s3:"))
    assert task.is_error
    assert "no longer stored" in task.text


def test_a_presigned_link_is_fresh_at_every_read(kit: Kit) -> None:
    task = kit.call("text_back", text="x" * 1000, times=7_000).run()
    stored = kit.scan()[0]["result"]["S"]
    assert "https://" not in stored
    assert "Signature=" in task.result["content"][0]["uri"]
