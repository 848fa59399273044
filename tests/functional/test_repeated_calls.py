"""`dedupe=`: the same call gets the same task, and what ended badly or never began stands in nobody's way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from taskrail.access import identify
from taskrail.clock import minutes, seconds
from taskrail.errors import EngineUnavailable, StoreUnavailable
from taskrail.testing import Called, Kit, RpcFailure, harness
from taskrail.wire.app import App
from tests.functional import work_tools

TOOLS = ("once", "once_on_batch")


@pytest.fixture(scope="module")
def deployment() -> Iterator[Kit]:
    with harness(work_tools.server) as made:
        yield made


@pytest.fixture
def kit(deployment: Kit) -> Kit:
    deployment.clear()
    return deployment


def keyed(kit: Kit, key: Any, text: str = "a", tool: str = "once") -> Called:
    """A call with an idempotency key of the client's own."""
    kit.meta = {"io.taskrail/idempotencyKey": key}
    try:
        return kit.call(tool, text=text)
    finally:
        kit.meta = {}


def starts(kit: Kit) -> int:
    return len(kit.engine.starts) + len(kit.jobs.starts)


@pytest.mark.parametrize("tool", TOOLS)
def test_the_same_call_gets_the_same_task(kit: Kit, tool: str) -> None:
    first, second = kit.call(tool, text="a"), kit.call(tool, text="a")
    assert first.task_id == second.task_id
    assert first.run().text == "a"
    assert kit.call(tool, text="a").task_id == first.task_id, "when it is over, too"
    assert starts(kit) == 1


def test_other_arguments_another_tool_another_owner_get_their_own(kit: Kit) -> None:
    ids = {kit.call("once", text="a").task_id, kit.call("once", text="b").task_id}
    ids.add(kit.call("once_on_batch", text="a").task_id)
    kit.owner = "somebody else"
    ids.add(kit.call("once", text="a").task_id)
    assert len(ids) == 4


def test_the_order_of_arguments_does_not_matter(kit: Kit) -> None:
    assert keyed(kit, "k").task_id == keyed(kit, "k").task_id


def test_after_the_window_it_is_a_new_call(kit: Kit) -> None:
    first = kit.call("once", text="a")
    kit.advance(minutes(60))
    assert kit.call("once", text="a").task_id != first.task_id


def test_a_key_of_the_callers_own_names_the_call(kit: Kit) -> None:
    first, other = keyed(kit, "k-1"), keyed(kit, "k-2")
    assert first.task_id != other.task_id != kit.call("once", text="a").task_id
    assert keyed(kit, "k-1").task_id == first.task_id


def test_a_key_used_with_other_arguments_is_refused(kit: Kit) -> None:
    keyed(kit, "k-1", "a")
    with pytest.raises(RpcFailure, match="other arguments") as failure:
        keyed(kit, "k-1", "b")
    assert failure.value.error["code"] == -32602
    assert starts(kit) == 1


@pytest.mark.parametrize("key", ["", 5, None, "k" * 257, ["k"]])
def test_a_key_that_is_none_is_refused(kit: Kit, key: Any) -> None:
    if key is None:
        assert keyed(kit, key).is_task, "null is no key"
        return
    with pytest.raises(RpcFailure, match="idempotencyKey"):
        keyed(kit, key)
    assert starts(kit) == 0


@pytest.mark.parametrize("how", ["error", "cancelled"])
def test_what_ended_badly_gives_way(kit: Kit, how: str) -> None:
    text = "bad" if how == "error" else "good"
    first = kit.call("once", text=text)
    if how == "error":
        assert first.run().is_error
    else:
        first.cancel()
    second = kit.call("once", text=text)
    assert second.task_id != first.task_id
    assert kit.call("once", text=text).task_id == second.task_id


@pytest.mark.parametrize("tool", TOOLS)
def test_a_refused_start_frees_the_key(kit: Kit, tool: str) -> None:
    kit.engine.refuse = kit.jobs.refuse = True
    with pytest.raises(RpcFailure, match="could not be started"):
        kit.call(tool, text="a")
    # What is left only keeps equal calls that come at the same moment together.
    assert [item["pk"]["S"].partition("#")[0] for item in kit.scan()] == ["dedupe"]
    kit.engine.refuse = kit.jobs.refuse = False
    assert kit.call(tool, text="a").run().text == "a"


@pytest.mark.parametrize("tool", TOOLS)
def test_a_hit_on_a_task_that_never_started_starts_it(kit: Kit, tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*arguments: Any) -> str:
        raise EngineUnavailable("nobody knows")

    with monkeypatch.context() as patched:
        patched.setattr(kit.engine, "start", lost)
        patched.setattr(kit.jobs, "start", lost)
        first = kit.call(tool, text="a")
    second = kit.call(tool, text="a")
    assert second.task_id == first.task_id
    assert second.run().text == "a"


def test_a_reservation_without_a_task_is_taken_up(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first caller died between its reservation and its task."""
    store = kit.runtime.rail._changes.store

    def died(task: Any) -> None:
        raise StoreUnavailable("died")

    with monkeypatch.context() as patched:
        patched.setattr(store, "create", died)
        with pytest.raises(RpcFailure):
            kit.call("once", text="a")
    first, second = kit.call("once", text="a"), kit.call("once", text="a")
    assert first.task_id == second.task_id
    assert len(kit.scan()) == 2, "a task and its reservation"


def test_a_reservation_ends_before_its_task_can(kit: Kit) -> None:
    """Else an id would come back to life: the window is no longer than the result is kept."""
    kit.call("once", text="a")
    [until] = [item["until"]["N"] for item in kit.scan() if "until" in item]
    assert int(until) == kit.clock.now() + 3_600_000


def test_callers_that_are_not_told_apart_are_refused(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "_app", App(kit.runtime, identify))
    with pytest.raises(RpcFailure, match="tells apart") as failure:
        kit.call("once", text="a")
    assert failure.value.error["code"] == -32603
    assert kit.scan() == []
    assert kit.call("crunch", numbers=[1]).is_task, "other tools serve them"


def test_a_repeated_call_finds_the_running_work_and_its_question(kit: Kit) -> None:
    task = kit.call("once", text="a")
    kit.advance(seconds(5))
    again = kit.call("once", text="a")
    assert again.reply["createdAt"] == task.reply["createdAt"]
