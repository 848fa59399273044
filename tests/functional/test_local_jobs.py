"""Real tasks on a real local stack: every way in which a job process can end, and what its caller reads."""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from local.records import Records
from tests.local_help import Launched, Rpc, launched, processes_of, wait_for


@pytest.fixture(scope="module")
def stack() -> Iterator[Launched]:
    arguments = ("--port", "0", "--catalogue", "tests.functional.local_tools")
    with launched(*arguments, environ={"TASKRAIL_CANCEL_GRACE_MS": "1000"}) as made:
        yield made


@pytest.fixture
def rpc(stack: Launched) -> Rpc:
    return Rpc(stack.facts["url"])


def text(task: dict[str, Any]) -> str:
    return str(task["result"]["content"][0]["text"])


@pytest.mark.parametrize(
    ("how", "is_error", "says"),
    [
        ("return", False, "returned"),
        ("tool error", True, "told to"),
        ("raise", True, "The job failed."),
        ("exit", True, "exit code 3"),
        ("hard exit", True, "exit code 3"),
        ("kill", True, "signal SIGKILL"),
    ],
)
def test_a_job_ends_and_its_task_says_how(rpc: Rpc, how: str, is_error: bool, says: str) -> None:
    task = rpc.until(rpc.start("end", how=how), "completed", "failed", "cancelled")
    assert task["status"] == "completed"
    assert task["result"]["isError"] is is_error
    assert says in text(task)
    assert "secret" not in json.dumps(task)


def test_a_job_out_of_time_says_so(rpc: Rpc) -> None:
    task = rpc.until(rpc.start("outstay"), "completed", "failed")
    assert (task["status"], task["result"]["isError"]) == ("completed", True)
    assert "ran out of time" in text(task)


def test_a_question_ends_one_process_and_its_answer_starts_another(rpc: Rpc) -> None:
    task_id = rpc.start("approve")
    task = rpc.until(task_id, "input_required")
    assert list(task["inputRequests"]) == ["go"]
    rpc.call("tasks/update", taskId=task_id, inputResponses={"go": {"action": "accept", "content": {"go": True}}})
    assert text(rpc.until(task_id, "completed")) == "go=True another process=True"


def test_a_cancelled_job_hears_of_it(rpc: Rpc) -> None:
    task_id = rpc.start("work")
    wait_for(lambda: "_meta" in rpc.get(task_id), what="progress")
    rpc.call("tasks/cancel", taskId=task_id)
    rpc.until(task_id, "cancelled")


def test_a_job_that_does_not_hear_is_stopped_by_the_reads_that_follow(rpc: Rpc, tmp_path: Path) -> None:
    marker = tmp_path.name
    task_id = rpc.start("leave_a_child", marker=marker)
    wait_for(lambda: processes_of(f": {marker};"), what="the job's own child")
    rpc.call("tasks/cancel", taskId=task_id)
    rpc.until(task_id, "cancelled", within=40)
    wait_for(lambda: not processes_of(f": {marker};"), what="the end of the job's own child")


def test_a_job_that_is_stopped_cleans_up(rpc: Rpc, tmp_path: Path) -> None:
    task_id = rpc.start("clean_up", path=str(tmp_path / "clean"))
    wait_for((tmp_path / "clean.begun").exists)
    rpc.call("tasks/cancel", taskId=task_id)
    rpc.until(task_id, "cancelled")
    wait_for((tmp_path / "clean").exists)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_an_invoked_job_that_dies_is_tried_again_and_finishes(stack: Launched, rpc: Rpc, tmp_path: Path) -> None:
    task_id = rpc.start("twice", path=str(tmp_path / "note"))
    wait_for((tmp_path / "note").exists)
    wait_for(lambda: not processes_of(f"{task_id}-1"), what="the end of the first attempt")
    assert rpc.get(task_id)["status"] == "working", "another attempt is to come"
    task = rpc.until(task_id, "completed", "failed", within=90)
    assert text(task) == "done by another process: True"
    record = Records(Path(stack.facts["directory"]) / "runs").read(f"{task_id}-1")
    assert (record.attempt, record.attempts) == (2, 2)


def test_the_end_of_an_invoked_job_without_attempts_left_is_told(stack: Launched, rpc: Rpc) -> None:
    """Told by the function's failure destination, long before its lease is over."""
    task = rpc.until(rpc.start("once_invoked", how="kill"), "completed", "failed", within=20)
    assert (task["status"], task["result"]["isError"]) == ("completed", True)
    assert "Runtime.ExitError" in text(task)


def test_an_invoked_job_reports_by_itself(rpc: Rpc) -> None:
    assert text(rpc.until(rpc.start("once_invoked", how="return"), "completed")) == "returned"
    task = rpc.until(rpc.start("once_invoked", how="raise"), "completed")
    assert task["result"]["isError"]
    assert "secret" not in json.dumps(task)


def test_a_question_of_an_invoked_job_is_answered_to_another_process(rpc: Rpc) -> None:
    task_id = rpc.start("approve_invoked")
    rpc.until(task_id, "input_required")
    rpc.call("tasks/update", taskId=task_id, inputResponses={"go": {"action": "accept", "content": {"go": True}}})
    assert text(rpc.until(task_id, "completed")) == "go=True another process=True"


def test_a_cancelled_invoked_job_hears_of_it(rpc: Rpc) -> None:
    task_id = rpc.start("work_invoked")
    wait_for(lambda: "_meta" in rpc.get(task_id), what="progress")
    rpc.call("tasks/cancel", taskId=task_id)
    rpc.until(task_id, "cancelled")
    wait_for(lambda: not processes_of(f"{task_id}-1"), what="the end of the job")


def test_an_invoked_job_that_does_not_hear_goes_on_after_its_cancellation(rpc: Rpc, tmp_path: Path) -> None:
    """Nobody can stop it: its task says so until it ends."""
    path = tmp_path / "go"
    task_id = rpc.start("deaf_invoked", path=str(path))
    wait_for((tmp_path / "go.begun").exists)
    rpc.call("tasks/cancel", taskId=task_id)
    # Past the grace of this stack, in which any other engine's work would have been stopped.
    until = time.monotonic() + 2.5
    while time.monotonic() < until:
        assert rpc.get(task_id)["status"] == "working"
    assert processes_of(f"{task_id}-1")
    path.touch()
    rpc.until(task_id, "cancelled", "completed")


def test_every_caller_is_the_one_developer_of_this_machine(stack: Launched, rpc: Rpc) -> None:
    """Known, not anonymous: so the same call again finds the same task."""
    first, second = (rpc.start("once", note="a") for _ in range(2))
    assert first == second != rpc.start("once", note="b")
    dynamodb = boto3.client("dynamodb", endpoint_url=stack.facts["endpoint"], region_name="us-east-1")
    item = dynamodb.get_item(TableName="taskrail", Key={"pk": {"S": f"task#{first}"}})["Item"]
    assert item["owner"]["S"] == "local"


def test_a_file_is_uploaded_and_read_by_a_job(rpc: Rpc) -> None:
    given = {"filename": "notes.txt", "content_type": "text/plain", "size_bytes": 5}
    told = rpc.tool("request_upload", **given)["structuredContent"]
    upload = urllib.request.Request(told["url"], b"hello", told["headers"], method=told["method"])
    urllib.request.urlopen(upload).close()
    task = rpc.until(rpc.start("length", file=told["uri"]), "completed")
    assert task["result"]["structuredContent"] == {"result": 5}


def test_the_table_and_the_bucket_are_as_deployed(stack: Launched) -> None:
    dynamodb = boto3.client("dynamodb", endpoint_url=stack.facts["endpoint"], region_name="us-east-1")
    table = dynamodb.describe_table(TableName="taskrail")["Table"]
    assert table["KeySchema"] == [{"AttributeName": "pk", "KeyType": "HASH"}]
    assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    ttl = dynamodb.describe_time_to_live(TableName="taskrail")["TimeToLiveDescription"]
    assert (ttl["TimeToLiveStatus"], ttl["AttributeName"]) == ("ENABLED", "expiresAt")


def test_one_of_many_writers_wins(stack: Launched) -> None:
    """Without the lock around it, moto lets several of them win now and then."""
    from concurrent.futures import ThreadPoolExecutor

    dynamodb = boto3.client("dynamodb", endpoint_url=stack.facts["endpoint"], region_name="us-east-1")

    def put(key: str) -> bool:
        try:
            dynamodb.put_item(
                TableName="taskrail", Item={"pk": {"S": key}}, ConditionExpression="attribute_not_exists(pk)"
            )
        except dynamodb.exceptions.ConditionalCheckFailedException:
            return False
        return True

    with ThreadPoolExecutor(10) as pool:
        for number in range(20):
            assert sum(pool.map(put, [f"race#{number}"] * 10)) == 1


def test_the_local_aws_answers_no_web_page(stack: Launched) -> None:
    endpoint = stack.facts["endpoint"]
    for headers in ({"Origin": "http://evil.example.com"}, {"Host": "evil.example.com"}):
        request = urllib.request.Request(f"{endpoint}/moto-api/reset", method="POST", headers=headers)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request)
        assert refused.value.code == 403
        refused.value.close()


def test_a_front_that_is_killed_is_started_again_and_nothing_is_lost(stack: Launched, rpc: Rpc, tmp_path: Path) -> None:
    task_id = rpc.start("wait_for_file", path=str(tmp_path / "go"))
    wait_for((tmp_path / "go.begun").exists)
    before = stack.facts["processes"]["local.front"]
    os.kill(before, signal.SIGKILL)
    assert rpc.tool("ping")["content"][0]["text"] == "pong", "the connection waits for the next front"
    (tmp_path / "go").touch()
    assert text(rpc.until(task_id, "completed")) == "there"
    wait_for(lambda: stack.facts["processes"]["local.front"] != before)


def test_a_supervisor_that_is_killed_is_started_again_and_adopts_what_runs(
    stack: Launched, rpc: Rpc, tmp_path: Path
) -> None:
    lives = rpc.start("wait_for_file", path=str(tmp_path / "go"))
    dies = rpc.start("wait_for_file", path=str(tmp_path / "never"))
    wait_for(lambda: (tmp_path / "go.begun").exists() and (tmp_path / "never.begun").exists())
    before = stack.facts["processes"]["local.supervisor"]
    os.kill(before, signal.SIGKILL)
    for pid in processes_of(f"{dies}-1"):
        os.kill(pid, signal.SIGKILL)
    (tmp_path / "go").touch()
    assert text(rpc.until(lives, "completed")) == "there"
    assert rpc.until(dies, "failed")["error"]["code"] == -32603
    wait_for(lambda: stack.facts["processes"]["local.supervisor"] != before)
    assert text(rpc.until(rpc.start("end", how="return"), "completed")) == "returned"


def test_ends_are_passed_on_without_a_read(stack: Launched, rpc: Rpc) -> None:
    """The second line works by itself: the item says so before anybody asks for it."""
    os.kill(stack.facts["processes"]["local.events"], signal.SIGKILL)
    task_id = rpc.start("end", how="hard exit")
    dynamodb = boto3.client("dynamodb", endpoint_url=stack.facts["endpoint"], region_name="us-east-1")

    def status() -> str:
        item = dynamodb.get_item(TableName="taskrail", Key={"pk": {"S": f"task#{task_id}"}})["Item"]
        return item["status"]["S"]

    wait_for(lambda: status() == "completed", what="the event's effect")
