"""An object that is gone ends its task clearly; one that cannot be had just now ends nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import requests

from taskrail import TaskContext
from taskrail.testing import BUCKET, Called, Kit, RpcFailure, harness
from tests.functional import payload_tools

LARGE = "x" * 5_000


@pytest.fixture
def kit() -> Iterator[Kit]:
    with harness(payload_tools.server) as made:
        yield made


def objects(kit: Kit, label: str = "") -> list[str]:
    """Keys of the objects whose names begin with the label."""
    found = kit.s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])
    return [one["Key"] for one in found if one["Key"].rpartition("/")[2].startswith(label)]


def lose(kit: Kit, label: str) -> None:
    """Let the one object of that label be gone."""
    (key,) = objects(kit, label)
    kit.s3.delete_object(Bucket=BUCKET, Key=key)


def ended_clearly(task: Called) -> None:
    assert task.status == "completed"
    assert task.is_error
    assert "no longer there" in task.text
    assert task.task_id in task.text
    assert "s3:" not in task.text
    assert BUCKET not in task.text


def test_arguments_that_are_gone_before_the_job_begins(kit: Kit) -> None:
    task = kit.call("remember_then_ask", text=LARGE)
    lose(kit, "arguments")
    ended_clearly(task.run())


@pytest.mark.parametrize("label", ["arguments", "step", "answer"])
def test_what_the_next_run_needs_and_does_not_find(kit: Kit, label: str) -> None:
    task = kit.call("remember_then_ask", text=LARGE, size=5_000).run()
    assert task.status == "input_required"
    task.answer(note={"text": LARGE})
    lose(kit, label)
    ended_clearly(task.run())


def test_what_nobody_needs_any_more_is_not_missed(kit: Kit) -> None:
    task = kit.call("remember_then_ask", text=LARGE, size=5_000).run()
    task.answer(note={"text": LARGE}).run()
    for label in ("arguments", "step", "answer"):
        lose(kit, label)
    assert task.text == "5000 5000 5000"


def test_an_answer_may_be_given_although_the_arguments_are_gone(kit: Kit) -> None:
    task = kit.call("remember_then_ask", text=LARGE).run()
    lose(kit, "arguments")
    assert task.status == "input_required"
    ended_clearly(task.answer(note={"text": "short"}).run())


def test_a_job_may_handle_a_lost_step_itself(kit: Kit) -> None:
    def work(task: TaskContext) -> str:
        try:
            task.step("made", lambda: "s" * 5_000)
        except Exception:
            return "made again"
        task.ask("go_on", "Go on?")
        return "never"

    payload_tools.given[0] = work
    task = kit.call("anything").run()
    lose(kit, "step")
    assert task.answer_with({"go_on": {"action": "accept"}}).run().text == "made again"


@pytest.mark.parametrize(
    ("call", "label"),
    [
        (lambda kit: kit.call("rows", count=100, width=500), "result"),
        (lambda kit: kit.call("refuse_at_length", message=10, data=50_000), "error"),
    ],
)
def test_an_outcome_that_is_gone_says_so_at_every_read(kit: Kit, call: Callable[[Kit], Called], label: str) -> None:
    task = call(kit).run()
    lose(kit, label)
    item = kit.scan()
    for _ in range(2):
        detail = task.poll()
        if label == "result":
            assert detail["status"] == "completed"
            assert task.is_error
            assert "no longer stored" in task.text
        else:
            assert detail["status"] == "failed"
            assert (detail["error"]["code"], "no longer stored" in detail["error"]["message"]) == (-32603, True)
    assert kit.scan() == item


def test_a_file_that_is_gone_takes_nothing_else_with_it(kit: Kit) -> None:
    task = kit.call("attach_many", count=2, text="done").run()
    lose(kit, "file-0")
    assert task.text == "done"
    first, second = task.result["content"][1:]
    assert requests.get(first["uri"], timeout=5).status_code in (403, 404)
    assert requests.get(second["uri"], timeout=5).text == "content 1"


def test_a_bucket_that_cannot_be_had_just_now_changes_nothing(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    done = kit.call("rows", count=100, width=500).run()
    waiting = kit.call("remember_then_ask", text=LARGE)
    before = kit.scan()
    monkeypatch.setattr(kit.runtime.rail.reports.payloads, "_bucket", "no-such-bucket")
    with pytest.raises(RpcFailure) as failure:
        done.poll()
    assert (failure.value.status, failure.value.error) == (500, {"code": -32603, "message": "Internal error."})
    assert waiting.poll()["status"] == "working"
    with pytest.raises(RpcFailure):
        kit.call("remember_then_ask", text=LARGE)
    assert kit.scan() == before
    monkeypatch.undo()
    assert done.structured["share"] == 0.1
    assert waiting.run().status == "input_required"
