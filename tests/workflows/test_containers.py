"""Commands of containers, run as processes against a real front: in sh and in Node as documented, and what goes wrong.

There is no image, no limit of memory and no user of its own: what a container's surroundings do is not tested here.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.local_help import Launched, Rpc, processes_of, wait_for
from tests.workflows import snippets

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")

ENDED = ("completed", "failed", "cancelled")

# Reports with curl, its JSON's inner part as $1.
REPORT = r"""
report() {
  curl -fsS -H "Authorization: Bearer $TASKRAIL_REPORT_TOKEN" -H "Content-Type: application/json" \
    -d "{\"job\": \"$AWS_BATCH_JOB_ID\", \"attempt\": $AWS_BATCH_JOB_ATTEMPT, $1}" "$TASKRAIL_REPORT_URL"
}
"""


def text(task: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in task["result"]["content"] if block["type"] == "text")


def log(stack: Launched, task_id: str) -> str:
    return Path(stack.facts["directory"], "runs", f"{task_id}-1", "output.log").read_text()


def ended(rpc: Rpc, tool: str, **arguments: Any) -> dict[str, Any]:
    return rpc.until(rpc.start(tool, **arguments), *ENDED)


def test_the_documented_shell_script_reports_and_leaves_a_result(rpc: Rpc) -> None:
    task = ended(rpc, "in_sh", scenes=3)
    assert (task["status"], task["result"]["isError"], text(task)) == ("completed", False, '{"scenes":3}')
    assert task["_meta"]["io.taskrail/progress"]["total"] == 3


@pytest.mark.skipif(not snippets.HAS_NODE, reason="there is no node on the PATH, nor in the environment of the tests")
@pytest.mark.parametrize(("action", "fails", "says"), [("accept", False, '{"scenes":2}'), ("decline", True, "wanted")])
def test_the_documented_node_script_asks_and_hears_the_answer(rpc: Rpc, action: str, fails: bool, says: str) -> None:
    task_id = rpc.start("in_node", scenes=2)
    task = rpc.until(task_id, "input_required", *ENDED)
    assert task["inputRequests"]["go"]["params"]["message"] == "Count 2 scenes?"
    answer = {"action": action, **({"content": {}} if action == "accept" else {})}
    rpc.call("tasks/update", taskId=task_id, inputResponses={"go": answer})
    task = rpc.until(task_id, *ENDED)
    assert task["result"]["isError"] is fails
    assert says in text(task)
    assert ("exit code 1" in text(task)) is fails


def test_the_example_counts_lines(rpc: Rpc) -> None:
    """A text with everything that a shell could trip over."""
    task = ended(rpc, "line_statistics", text="one \"two\" $(exit 3) `id`\n\n'four' five; exit 4")
    assert task["result"]["structuredContent"] == {"lines": 3, "words": 9, "longest_line": 24}


def test_a_failure_keeps_the_partial_result_and_the_end_of_the_log(rpc: Rpc) -> None:
    how = (
        REPORT
        + """report '"do": "result", "result": {"half": true}'; for n in 1 2 3 4; do echo line $n; done; exit 3"""
    )
    task = ended(rpc, "shell", how=how)
    assert (task["status"], task["result"]["isError"]) == ("completed", True)
    assert "exit code 3" in text(task)
    assert '{"half":true}' in text(task)
    assert "line 1" not in text(task) and "line 2\nline 3\nline 4" in text(task)


def test_no_result_is_an_empty_success(rpc: Rpc) -> None:
    task = ended(rpc, "shell", how=":")
    assert (task["status"], task["result"]["isError"]) == ("completed", False)


def test_the_cancel_flag_is_in_every_answer(stack: Launched, rpc: Rpc) -> None:
    """A command that does not hear SIGTERM hears of its cancellation there."""
    how = (
        REPORT
        + """
    trap '' TERM
    while :; do
      told=$(report '"do": "progress", "done": 1')
      case $told in *'"cancel": true'*) echo heard; exit 0 ;; esac
      sleep 0.1
    done"""
    )
    task_id = rpc.start("shell", how=how)
    wait_for(lambda: rpc.get(task_id)["_meta"].get("io.taskrail/progress"), what="progress")
    rpc.call("tasks/cancel", taskId=task_id)
    rpc.until(task_id, "cancelled")
    wait_for(lambda: "heard" in log(stack, task_id), what="the flag")


def test_a_cancelled_command_gets_sigterm_and_cleans_up(stack: Launched, rpc: Rpc) -> None:
    task_id = rpc.start("shell", how="trap 'echo cleaned; exit 143' TERM; echo begun; sleep 30 & wait")
    wait_for(lambda: "begun" in log(stack, task_id), what="the command")
    rpc.call("tasks/cancel", taskId=task_id)
    rpc.until(task_id, "cancelled")
    assert "cleaned" in log(stack, task_id)


def test_the_environment_is_the_contracts_and_nothing_of_the_stack(stack: Launched, rpc: Rpc) -> None:
    task_id = rpc.start("shell", how="env")
    rpc.until(task_id, *ENDED)
    told = dict(line.split("=", 1) for line in log(stack, task_id).splitlines() if "=" in line)
    assert (told["TASKRAIL_TASK_ID"], told["TASKRAIL_RUN"], told["GREETING"]) == (task_id, "1", "hello")
    assert told["TASKRAIL_REPORT_URL"] == stack.facts["url"].replace("/mcp", "/report")
    assert told["AWS_BATCH_JOB_ATTEMPT"] == "1"
    assert len(told["AWS_BATCH_JOB_ID"]) == 36
    ours = {name for name in told if name.startswith("TASKRAIL_")}
    assert ours == {
        "TASKRAIL_TASK_ID",
        "TASKRAIL_RUN",
        "TASKRAIL_REPORT_URL",
        "TASKRAIL_REPORT_TOKEN",
        "TASKRAIL_ARGUMENTS_URI",
        "TASKRAIL_RESULT_URI",
        # By which the stack finds what a command leaves running.
        "TASKRAIL_LOCAL_RUN",
    }
    assert "PYTHONPATH" not in told


def test_arguments_and_result_may_go_through_s3(rpc: Rpc) -> None:
    code = """
import boto3, json, os
s3 = boto3.client("s3")
place = lambda uri: dict(zip(("Bucket", "Key"), uri.removeprefix("s3://").split("/", 1)))
arguments = json.load(s3.get_object(**place(os.environ["TASKRAIL_ARGUMENTS_URI"]))["Body"])
result = "/".join(os.environ[name] for name in ("TASKRAIL_RESULT_URI", "AWS_BATCH_JOB_ID", "AWS_BATCH_JOB_ATTEMPT"))
s3.put_object(**place(result + "/result.json"), Body=json.dumps({"length": len(arguments["how"])}))
"""
    how = f"{sys.executable} -c '{code}'"
    assert json.loads(text(ended(rpc, "shell", how=how))) == {"length": len(how)}


def test_a_program_that_is_not_on_this_machine_is_named(rpc: Rpc) -> None:
    task = ended(rpc, "no_program")
    assert task["result"]["isError"]
    assert "exit code 127" in text(task)
    assert "'no-such-program' cannot run on this machine: No such file or directory" in text(task)


def test_a_command_that_fails_is_not_tried_again(stack: Launched, rpc: Rpc) -> None:
    task_id = rpc.start("twice", how="echo attempt $AWS_BATCH_JOB_ATTEMPT; exit 9")
    assert "exit code 9" in text(rpc.until(task_id, *ENDED))
    assert log(stack, task_id) == "attempt 1\n"


def test_the_end_of_a_container_is_passed_on_without_a_read(stack: Launched, rpc: Rpc) -> None:
    task_id = rpc.start("shell", how="exit 2")
    dynamodb = boto3.client("dynamodb", endpoint_url=stack.facts["endpoint"], region_name="us-east-1")

    def status() -> str:
        item = dynamodb.get_item(TableName="taskrail", Key={"pk": {"S": f"task#{task_id}"}})["Item"]
        return item["status"]["S"]

    wait_for(lambda: status() == "completed", what="the event's effect")


def test_a_python_job_on_batch_is_a_process_with_an_attempt(rpc: Rpc) -> None:
    assert text(ended(rpc, "on_batch", how="return")) == "attempt 1"


def test_a_process_that_is_lost_is_followed_by_another_attempt(stack: Launched, rpc: Rpc) -> None:
    """What a lost machine is to AWS Batch: nobody sees the end of the process."""
    task_id = rpc.start("on_batch", how="wait once")
    wait_for(lambda: rpc.get(task_id)["_meta"].get("io.taskrail/progress"), what="progress")
    before = stack.facts["processes"]["local.supervisor"]
    os.kill(before, signal.SIGKILL)
    for pid in processes_of(f"{task_id}-1"):
        os.kill(pid, signal.SIGKILL)
    assert text(rpc.until(task_id, *ENDED)) == "attempt 2"
    wait_for(lambda: stack.facts["processes"]["local.supervisor"] != before)


def test_a_cancelled_python_job_on_batch_ends_at_once(rpc: Rpc) -> None:
    task_id = rpc.start("on_batch", how="wait")
    wait_for(lambda: rpc.get(task_id)["_meta"].get("io.taskrail/progress"), what="progress")
    rpc.call("tasks/cancel", taskId=task_id)
    rpc.until(task_id, "cancelled")
