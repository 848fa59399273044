"""State machines executed by moto's interpreter in a real local stack, with our handlers behind their states.

What moto's interpreter does in another way than Step Functions stands in `local.moto_workflows`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.local_help import Launched, Rpc, launched, wait_for

ENDED = ("completed", "failed", "cancelled")
YES = {"action": "accept", "content": {"go": True}}
NOTE = "what an expression could trip over: 'a', \"b\", \\, {% $c %}"
COUNTS = {
    "before": [{"table": "a", "rows": 3}, {"table": "b", "rows": 4}, {"table": "c", "rows": 1}],
    "after": [{"table": "a", "rows": 3}, {"table": "b", "rows": 5}],
}


def text(task: dict[str, Any]) -> str:
    return str(task["result"]["content"][0]["text"])


def answer(rpc: Rpc, task_id: str, **answers: dict[str, Any]) -> None:
    reply = rpc.call("tasks/update", taskId=task_id, inputResponses=answers)
    assert "error" not in reply, reply


def asked(rpc: Rpc, task_id: str, *keys: str) -> dict[str, Any]:
    """The open questions, once they are these."""

    def questions() -> dict[str, Any]:
        task = rpc.get(task_id)
        assert task["status"] not in ENDED, task
        found = task.get("inputRequests", {})
        return found if set(found) == set(keys) else {}

    return wait_for(questions, what=f"the questions {keys}")


def item(stack: Launched, task_id: str) -> dict[str, Any]:
    dynamodb = boto3.client("dynamodb", endpoint_url=stack.facts["endpoint"], region_name="us-east-1")
    found: dict[str, Any] = dynamodb.get_item(TableName="taskrail", Key={"pk": {"S": f"task#{task_id}"}})["Item"]
    return found


def step_functions(stack: Launched) -> Any:
    return boto3.client("stepfunctions", endpoint_url=stack.facts["endpoint"], region_name="us-east-1")


def execution(stack: Launched, tool: str, task_id: str) -> dict[str, Any]:
    arn = f"arn:aws:states:us-east-1:000000000000:execution:{tool}:{task_id}-1"
    described: dict[str, Any] = step_functions(stack).describe_execution(executionArn=arn)
    return described


def test_a_migration_asks_applies_and_verifies(rpc: Rpc) -> None:
    """The first call comes while the interpreter is still being loaded."""
    task_id = rpc.start("run_migration", table="orders", rows=1000, batch_size=300)
    (question,) = asked(rpc, task_id, "approve").values()
    assert question["params"]["message"] == "Migrate 1,000 rows of orders in 4 batches?"
    answer(rpc, task_id, approve=YES)
    task = rpc.until(task_id, *ENDED)
    assert task["result"]["structuredContent"] == {"table": "orders", "rows": 1000, "batches": 4, "total": "498405.00"}
    assert task["_meta"]["io.taskrail/progress"] == {"done": 4, "total": 4}


@pytest.mark.parametrize("no", [{"action": "decline"}, {"action": "accept", "content": {"go": False}}])
def test_a_migration_that_is_not_approved_changes_nothing(rpc: Rpc, no: dict[str, Any]) -> None:
    task_id = rpc.start("run_migration", table="orders", rows=10)
    asked(rpc, task_id, "approve")
    answer(rpc, task_id, approve=no)
    task = rpc.until(task_id, *ENDED)
    assert (task["status"], task["result"]["isError"]) == ("completed", True)
    assert text(task) == "The migration was not approved; nothing was changed."


def test_the_text_of_a_functions_tool_error_is_told(rpc: Rpc) -> None:
    task = rpc.until(rpc.start("run_migration", table="orders", rows=1000, batch_size=1), *ENDED)
    assert task["result"]["isError"]
    assert text(task).startswith("That would be 1000 batches")


def test_counts_are_compared_in_jsonata(rpc: Rpc) -> None:
    task_id = rpc.start("compare_counts", **COUNTS)
    (question,) = asked(rpc, task_id, "expected").values()
    assert question["params"]["message"] == "These tables have other counts: b, c. Was that to be expected?"
    answer(rpc, task_id, expected={"action": "accept", "content": {"expected": True}})
    assert rpc.until(task_id, *ENDED)["result"]["structuredContent"] == {
        "tables": 3,
        "differences": [{"table": "b", "before": 4, "after": 5}, {"table": "c", "before": 1, "after": 0}],
    }


def test_differences_that_were_not_expected_are_told(rpc: Rpc) -> None:
    task_id = rpc.start("compare_counts", **COUNTS)
    asked(rpc, task_id, "expected")
    answer(rpc, task_id, expected={"action": "cancel"})
    assert text(rpc.until(task_id, *ENDED)) == "The counts of these tables differ: b, c."


def test_equal_counts_ask_nothing(rpc: Rpc) -> None:
    task = rpc.until(rpc.start("compare_counts", before=COUNTS["before"], after=COUNTS["before"]), *ENDED)
    assert task["result"]["structuredContent"] == {"tables": 3, "differences": []}


def test_two_questions_are_open_at_the_same_time(rpc: Rpc) -> None:
    task_id = rpc.start("both")
    asked(rpc, task_id, "name", "color")
    answer(rpc, task_id, color={"action": "accept", "content": {}})
    asked(rpc, task_id, "name")
    answer(rpc, task_id, name={"action": "accept", "content": {"name": "Ada"}})
    assert json.loads(text(rpc.until(task_id, *ENDED))) == {
        "name": {"action": "accept", "content": {"name": "Ada"}},
        "color": "accept",
    }


def test_a_question_that_is_retried_is_answered_under_its_new_token(stack: Launched, rpc: Rpc) -> None:
    task_id = rpc.start("again")
    asked(rpc, task_id, "go")
    first = item(stack, task_id)["tokens"]
    wait_for(lambda: item(stack, task_id)["tokens"] != first, what="the new token")
    second = item(stack, task_id)["tokens"]
    answer(rpc, task_id, go={"action": "accept", "content": {}})
    assert json.loads(text(rpc.until(task_id, *ENDED))) == {"action": "accept"}
    for tokens in (first, second):
        (token,) = json.loads(tokens["S"]).values()
        with pytest.raises(ClientError, match="TaskTimedOut"):
            step_functions(stack).send_task_success(taskToken=token, output="{}")
    with pytest.raises(ClientError, match="TaskDoesNotExist"):
        step_functions(stack).send_task_success(taskToken="made up", output="{}")


def test_a_name_started_by_many_is_one_execution(stack: Launched, rpc: Rpc) -> None:
    rpc.until(rpc.start("ends", how="well"), *ENDED)
    machine = "arn:aws:states:us-east-1:000000000000:stateMachine:quoted"
    client = step_functions(stack)

    def start(name: str) -> None:
        with contextlib.suppress(client.exceptions.ExecutionAlreadyExists):
            client.start_execution(stateMachineArn=machine, name=name, input='{"reportToken": "none"}')

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(start, ["by-many"] * 20))
    listed = client.list_executions(stateMachineArn=machine)["executions"]
    assert [each["name"] for each in listed].count("by-many") == 1


@pytest.mark.parametrize("language", ["jsonpath", "jsonata"])
@pytest.mark.parametrize("go", [True, False])
def test_the_states_of_the_readme_work_as_they_stand_there(rpc: Rpc, language: str, go: bool) -> None:
    task_id = rpc.start(f"snippets_{language}", note=NOTE)
    asked(rpc, task_id, "approve")
    assert rpc.get(task_id)["_meta"]["io.taskrail/progress"] == {"done": 1, "total": 2}
    answer(rpc, task_id, approve={"action": "accept", "content": {"go": go}})
    task = rpc.until(task_id, *ENDED)
    assert task["result"]["isError"] is not go
    assert text(task) == (json.dumps({"note": NOTE}, separators=(",", ":")) if go else "Not approved.")


def test_a_text_is_the_same_in_a_variable(rpc: Rpc) -> None:
    told = json.loads(text(rpc.until(rpc.start("quoted", note=NOTE), *ENDED)))
    assert told == {
        "note": NOTE,
        "length": len(NOTE),
        "id": 36,
        "hash": hashlib.sha1(NOTE.encode(), usedforsecurity=False).hexdigest(),
    }


def test_the_documented_workflow_works_as_it_stands_there(rpc: Rpc) -> None:
    task_id = rpc.start("print_book", chapters=["one", "two"], copies=3)
    (question,) = asked(rpc, task_id, "approval").values()
    assert question["params"]["message"] == "Print 6 pages?"
    answer(rpc, task_id, approval=YES)
    assert json.loads(text(rpc.until(task_id, *ENDED))) == {"pages": 6}


def test_the_documented_parallel_questions_work_as_they_stand_there(rpc: Rpc) -> None:
    task_id = rpc.start("ask_both", copies=2)
    questions = asked(rpc, task_id, "editor", "printer")
    assert questions["printer"]["params"]["message"] == "Is there paper for 2 copies?"
    answer(rpc, task_id, editor={"action": "accept", "content": {}}, printer={"action": "decline"})
    assert json.loads(text(rpc.until(task_id, *ENDED))) == {"agreed": False}


def test_of_an_error_that_is_none_of_ours_only_the_name_is_told(rpc: Rpc) -> None:
    task = rpc.until(rpc.start("ends", how="raise"), *ENDED)
    assert task["result"]["isError"]
    assert "ValueError" in text(task)
    assert "secret" not in json.dumps(task)


def test_a_function_has_a_context_and_a_process_of_its_own(stack: Launched, rpc: Rpc) -> None:
    told = json.loads(text(rpc.until(rpc.start("ends", how="well"), *ENDED)))
    assert told["pid"] == stack.facts["processes"]["local.functions"]
    assert 800_000 < told["remaining"] <= 900_000


def test_large_arguments_are_behind_a_uri(rpc: Rpc) -> None:
    told = json.loads(text(rpc.until(rpc.start("ends", how="x" * 110_000), *ENDED)))
    assert told["uri"].startswith("s3://taskrail-payloads/tasks/")


def test_a_workflow_that_waits_is_stopped_when_its_task_is_cancelled(stack: Launched, rpc: Rpc) -> None:
    task_id = rpc.start("run_migration", table="orders", rows=10)
    asked(rpc, task_id, "approve")
    rpc.call("tasks/cancel", taskId=task_id)
    rpc.until(task_id, "cancelled")
    told = execution(stack, "run_migration", task_id)
    assert (told["status"], told["error"]) == ("ABORTED", "Taskrail.Stopped")


def test_the_end_of_an_execution_is_passed_on_without_a_read(stack: Launched, rpc: Rpc) -> None:
    task_id = rpc.start("ends", how="well")
    wait_for(lambda: item(stack, task_id)["status"]["S"] == "completed", what="the event's effect")


def test_the_end_of_an_execution_that_nobody_could_pass_on_is_found_by_a_read(stack: Launched, rpc: Rpc) -> None:
    events = stack.facts["processes"]["local.events"]
    os.kill(events, signal.SIGSTOP)
    try:
        assert rpc.until(rpc.start("ends", how="well"), *ENDED)["status"] == "completed"
    finally:
        os.kill(events, signal.SIGCONT)


def test_functions_that_die_are_started_again(stack: Launched, rpc: Rpc) -> None:
    before = stack.facts["processes"]["local.functions"]
    task = rpc.until(rpc.start("ends", how="die"), *ENDED)
    assert task["result"]["isError"]
    assert "Lambda.ServiceException" in text(task)
    wait_for(lambda: stack.facts["processes"]["local.functions"] != before, what="new functions")
    assert json.loads(text(rpc.until(rpc.start("ends", how="well"), *ENDED)))["pid"] != before


def test_what_cannot_run_here_is_refused_and_the_terminal_says_why(definitions: dict[str, str]) -> None:
    with launched("--port", "0", "--catalogue", "tests.workflows.catalogue", environ=definitions) as stack:
        rpc = Rpc(stack.facts["url"])
        for tool in ("no_file", "no_machine", "adopted_machine", "adopted_job", "image_command"):
            refused = rpc.call("tools/call", tool, name=tool, arguments={})
            assert "could not be started" in json.dumps(refused), refused
            assert "command" not in json.dumps(refused) and "arn:" not in json.dumps(refused)
        output = stack.end()
    assert "no_file was not started: no_file: there is no file workflows/no_such.asl.json below functions/" in output
    assert "no_machine was not started: the definition of no_machine is refused" in output
    assert "adopted_machine: its state machine is in AWS (existing=...)" in output
    assert "adopted_job was not started: a container runs here as a plain process" in output
    assert "image_command was not started: a container runs here as a plain process" in output
    listed = {line.split()[0]: line for line in output.splitlines() if line.startswith("  ") and line.strip()}
    assert "(a state machine)" in listed["both"]
    assert "(a state machine in AWS: not on this machine)" in listed["adopted_machine"]
    assert "(a container: here its command is a process)" in listed["shell"]
    assert "(a container without command=: not on this machine)" in listed["image_command"]
