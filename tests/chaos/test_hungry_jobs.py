"""A job takes more than it should: its task ends as promised, and the stack serves on as before."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from local.records import KILL_AFTER_MS
from tests.chaos.hungry_tools import PRINTED, UPDATES
from tests.counts import count
from tests.local_help import Launched, Rpc, launched, processes_of, wait_for

GRACE_MS = 500

SIZE_OF_AN_ITEM = 8_000
"""Bytes of the item of a task with small arguments, whatever its job told."""

SIZE_OF_AN_ANSWER = 10_000
"""Bytes of the answer to a poll: a status message has five hundred characters, each of twelve bytes at most."""


@pytest.fixture(scope="module")
def stack() -> Iterator[Launched]:
    environ = {"TASKRAIL_CANCEL_GRACE_MS": str(GRACE_MS), "TASKRAIL_PROBE_AFTER_MS": "2000"}
    with launched("--port", "0", "--catalogue", "tests.chaos.hungry_tools", environ=environ) as made:
        yield made


@pytest.fixture
def rpc(stack: Launched) -> Rpc:
    return Rpc(stack.facts["url"])


def item_of(stack: Launched, task_id: str) -> dict[str, Any]:
    dynamodb = boto3.client("dynamodb", endpoint_url=stack.facts["endpoint"], region_name="us-east-1")
    item: dict[str, Any] = dynamodb.get_item(TableName="taskrail", Key={"pk": {"S": f"task#{task_id}"}})["Item"]
    return item


def ended(rpc: Rpc, task_id: str, within: float = 30.0) -> tuple[str, bool, str]:
    """Status, whether it is an error, and the text of a task once it has ended; its process is gone soon after."""
    task = rpc.until(task_id, "completed", "failed", "cancelled", within=within)
    wait_for(lambda: not processes_of(task_id), what="the end of the process")
    count("hungry jobs")
    result = task.get("result", {})
    text = str(result["content"][0]["text"]) if result else ""
    assert "Traceback" not in json.dumps(task)
    return task["status"], bool(result.get("isError")), text


def run(rpc: Rpc, tool: str, **arguments: Any) -> tuple[str, bool, str]:
    return ended(rpc, rpc.start(tool, **arguments))


def test_memory_that_runs_out_once_is_an_error_of_the_job(rpc: Rpc) -> None:
    status, is_error, text = run(rpc, "eat_memory", to_the_last_byte=False)
    assert (status, is_error) == ("completed", True)
    assert text.startswith("The job failed.")


def test_a_job_without_a_byte_left_still_ends(rpc: Rpc) -> None:
    """Whether there is room for its own report or not."""
    status, is_error, text = run(rpc, "eat_memory", to_the_last_byte=True)
    assert (status, is_error) == ("completed", True)
    assert re.match(r"The job (failed\.|ended without a result: (exit code \d+|signal SIG[A-Z]+)\.)", text), text


def test_a_job_that_the_system_kills_says_by_what(rpc: Rpc) -> None:
    status, is_error, text = run(rpc, "be_killed")
    assert (status, is_error) == ("completed", True)
    assert "signal SIGKILL" in text


def test_a_disk_that_is_full_is_an_error_of_the_job(rpc: Rpc, tmp_path: Path) -> None:
    status, is_error, text = run(rpc, "fill_the_disk", path=str(tmp_path / "big"), caught=False)
    assert (status, is_error) == ("completed", True)
    assert text.startswith("The job failed.")
    status, is_error, text = run(rpc, "find_no_space")
    assert (status, is_error) == ("completed", True)
    assert text.startswith("The job failed.")


def test_a_job_may_cope_with_a_full_disk(rpc: Rpc, tmp_path: Path) -> None:
    """Nothing that the kit itself wants to write stands in its way."""
    status, is_error, text = run(rpc, "fill_the_disk", path=str(tmp_path / "big"), caught=True)
    assert (status, is_error) == ("completed", False)
    assert text.startswith("full after")


@pytest.mark.parametrize("how", ["busy", "in the way", "alone"])
def test_a_job_that_never_ends_is_told_its_limit(rpc: Rpc, how: str) -> None:
    status, is_error, text = run(rpc, "never_end", how=how)
    assert (status, is_error) == ("completed", True)
    assert "ran out of time; it had 62 s, queueing included" in text


def test_a_flood_of_progress_is_a_trickle_in_the_table_and_on_the_wire(stack: Launched, rpc: Rpc) -> None:
    began = time.monotonic()
    task_id = rpc.start("flood")
    sizes, messages = set(), set()

    def over() -> bool:
        task = rpc.get(task_id)
        sizes.add(len(json.dumps(task)))
        messages.add(len(task.get("statusMessage", "")))
        assert len(json.dumps(item_of(stack, task_id))) < SIZE_OF_AN_ITEM
        return bool(task["status"] == "completed")

    wait_for(over, within=50, what="the end of the flood")
    assert ended(rpc, task_id) == ("completed", False, "told")
    writes = int(item_of(stack, task_id)["rev"]["N"])
    # The creation, the claim and the end; between them one for every half second, and the last.
    assert writes <= 4 + (time.monotonic() - began) / 0.5
    assert max(sizes) < SIZE_OF_AN_ANSWER
    assert max(messages) == 500
    count("updates in a flood of progress", UPDATES)
    count("writes for a flood of progress", writes)


def test_a_job_that_ignores_its_cancellation_is_stopped(rpc: Rpc) -> None:
    task_id = rpc.start("listen_to_nobody")
    wait_for(lambda: rpc.get(task_id).get("statusMessage") == "Deaf", what="the job's first word")
    began = time.monotonic()
    rpc.call("tasks/cancel", taskId=task_id)
    assert rpc.get(task_id)["statusMessage"] == "Cancellation was requested; the work has been told."
    assert ended(rpc, task_id)[0] == "cancelled"
    assert time.monotonic() - began < (GRACE_MS + KILL_AFTER_MS) / 1000 + 10


def test_a_job_that_prints_a_lot_disturbs_nobody(stack: Launched, rpc: Rpc) -> None:
    task_id = rpc.start("print_a_lot")
    assert ended(rpc, task_id) == ("completed", False, "printed")
    log = Path(stack.facts["directory"], "runs", f"{task_id}-1", "output.log")
    assert log.stat().st_size >= PRINTED
    log.unlink()


@pytest.mark.parametrize("session", [False, True])
def test_processes_that_a_job_leaves_behind_end_with_it(rpc: Rpc, tmp_path: Path, session: bool) -> None:
    marker = str(tmp_path)
    assert run(rpc, "leave_children", marker=marker, session=session) == ("completed", False, "returned")
    wait_for(lambda: not processes_of(f": {marker};"), what="the end of what the job started")


@pytest.mark.parametrize("silent", [False, True])
def test_a_thread_that_runs_on_does_not_hold_the_run_open(rpc: Rpc, silent: bool) -> None:
    assert run(rpc, "leave_a_thread", silent=silent) == ("completed", False, "returned")


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("exit", "The job ended without a result: exit code 3."),
        ("segfault", "The job ended without a result: signal SIGSEGV."),
        ("abort", "The job ended without a result: signal SIGABRT."),
        ("recursion", "The job failed."),
    ],
)
def test_a_crash_says_how(rpc: Rpc, how: str, says: str) -> None:
    status, is_error, text = run(rpc, "crash", how=how)
    assert (status, is_error) == ("completed", True)
    assert text.startswith(says)


def test_a_job_that_returns_twice_ends_once(rpc: Rpc) -> None:
    assert run(rpc, "fork") == ("completed", False, "returned")


def test_a_job_that_closes_what_is_not_its_own_ends_as_well(rpc: Rpc) -> None:
    assert run(rpc, "close_everything")[0] in ("completed", "failed")


def test_the_stack_serves_on(stack: Launched, rpc: Rpc) -> None:
    """After all of the above, in whatever order: the same processes as at the start."""
    assert run(rpc, "crash", how="exit")[0] == "completed"
    for module, pid in stack.facts["processes"].items():
        assert pid in processes_of(f"{module} {stack.facts['directory']}"), module
