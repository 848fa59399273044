"""A run behind Step Functions: the state machine's invocation of the job, and EventBridge's word about its end.

The handlers as the Lambdas have them, over moto. The events are documents as EventBridge publishes them for
"Step Functions Execution Status Change".
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from handlers import job_runner, mcp_api, run_events
from taskrail import StepFunctions, TaskContext, TaskServer, Toolset, days, minutes
from taskrail.clock import milliseconds
from taskrail.testing import BUCKET, TABLE
from tests.functional import sample_tools
from tests.functional.deployed import Deployed, deployed
from tests.functional.sample_tools import done

more_tools = Toolset()


@more_tools.task(runs_on=StepFunctions(timeout=minutes(5)))
def never_returns(task: TaskContext) -> str:
    """Work on and on, listening."""
    while True:
        task.check()
        time.sleep(0.01)


server = TaskServer("runs", version="1", tools=[sample_tools.tools, more_tools])


@pytest.fixture
def here() -> Iterator[Deployed]:
    sample_tools.done.clear()
    with deployed(server) as made:
        yield made


def status_change(here: Deployed, name: str, status: str, **more: Any) -> dict[str, Any]:
    """An event as EventBridge delivers it: fields that do not apply are null, outputs may be left out."""
    ended = status != "RUNNING"
    output: dict[str, Any] = {"output": None, "outputDetails": None}
    if status == "SUCCEEDED":
        output = {"output": '{"outcome":"completed"}', "outputDetails": {"included": True}}
    return {
        "version": "0",
        "id": "315c1398-40ff-a850-213b-158f73e60175",
        "detail-type": "Step Functions Execution Status Change",
        "source": "aws.states",
        "account": "123456789012",
        "time": "2026-05-28T20:26:40Z",
        "region": "eu-central-1",
        "resources": [here.arn(name)],
        "detail": {
            "executionArn": here.arn(name),
            "stateMachineArn": here.machine,
            "stateMachineVersionArn": None,
            "stateMachineAliasArn": None,
            "name": name,
            "status": status,
            "startDate": 1_780_000_000_000,
            "stopDate": 1_780_000_060_000 if ended else None,
            "input": "{}",
            "inputDetails": {"included": True},
            "error": None,
            "cause": None,
            "redriveCount": 0,
            "redriveDate": None,
            "redriveStatus": "NOT_REDRIVABLE",
            "redriveStatusReason": "Execution is RUNNING and cannot be redriven",
            **output,
            **more,
        },
    }


def claimed(here: Deployed) -> str:
    """A task whose worker has taken up its run and is never heard of again."""
    task_id = here.call("count", items=["a"])
    assert here.runtime.rail.reports.claim(task_id, 1, here.arn(f"{task_id}-1"), 1) is not None
    return task_id


def test_a_job_runs_end_to_end(here: Deployed) -> None:
    task_id = here.call("count", items=["a", "b"])
    assert here.execution(f"{task_id}-1")["input"] == f'{{"run":1,"taskId":"{task_id}"}}'
    assert here.run(task_id) == {"taskId": task_id, "run": 1, "outcome": "completed"}
    assert here.get(task_id)["result"]["structuredContent"] == {"words": 2, "share": 0.1}
    assert done == ["a", "b"]


def test_a_question_ends_its_execution_and_the_answer_starts_the_next(here: Deployed) -> None:
    task_id = here.call("publish", title="Q3")
    assert here.run(task_id)["outcome"] == "asked"
    here.tell(status_change(here, f"{task_id}-1", "SUCCEEDED"))
    assert here.get(task_id)["status"] == "input_required"
    here.update(task_id, approval={"publish": True})
    assert here.run(task_id, 2)["outcome"] == "completed"
    assert here.get(task_id)["result"]["content"][0]["text"] == "Q3: 12 pages published"
    assert done == ["rendered"]


def test_a_retry_of_the_state_is_the_next_attempt(here: Deployed) -> None:
    task_id = claimed(here)
    assert here.run(task_id, retryCount=0)["outcome"] == "nothing to do"
    assert here.run(task_id, retryCount=1)["outcome"] == "completed"
    assert done == ["a"]


def test_the_state_machine_may_leave_out_what_it_does_not_know(here: Deployed) -> None:
    task_id = here.call("count", items=["a"])
    assert here.invoke({"input": {"taskId": task_id, "run": 1}})["outcome"] == "completed"


def test_a_lambda_that_runs_out_of_time_says_so_before_it_is_cut_off(here: Deployed) -> None:
    class Context:
        def get_remaining_time_in_millis(self) -> int:
            return 1_000

    task_id = here.call("never_returns")
    assert here.invoke({"input": {"taskId": task_id, "run": 1}}, Context())["outcome"] == "superseded"
    detail = here.get(task_id)
    assert (detail["status"], detail["result"]["isError"]) == ("completed", True)
    assert "out of time" in detail["statusMessage"]


def test_a_run_that_nobody_asked_for_does_nothing(here: Deployed) -> None:
    event = {"input": {"taskId": "f" * 32, "run": 1}, "retryCount": 0, "execution": here.arn("x")}
    assert here.invoke(event)["outcome"] == "nothing to do"


@pytest.mark.parametrize(
    ("status", "error", "ends_as", "text"),
    [
        ("FAILED", "Lambda.Unknown", "completed", "The job ended without a result: Lambda.Unknown."),
        ("TIMED_OUT", "States.Timeout", "completed", "The job ran out of time"),
        ("ABORTED", "Somebody.Else", "completed", "The job was stopped from outside."),
        ("SUCCEEDED", None, "failed", "The run of the job ended without a report."),
        ("FAILED", None, "failed", "The run of the job ended without a report."),
    ],
)
def test_the_end_of_a_run_without_a_report_settles_its_task(
    status: str, error: str | None, ends_as: str, text: str, here: Deployed
) -> None:
    task_id = claimed(here)
    cause = None if error is None else "Traceback (most recent call last): password=hunter2"
    event = status_change(here, f"{task_id}-1", status, error=error, cause=cause)
    here.tell(event)
    detail = here.get(task_id)
    assert detail["status"] == ends_as
    assert detail["statusMessage"].startswith(text)
    assert "hunter2" not in str(detail)
    here.clock.advance(60_000)
    here.tell(event)
    here.tell(status_change(here, f"{task_id}-1", "ABORTED"))
    assert here.get(task_id) == detail


def test_a_run_that_was_never_taken_up_could_not_be_placed(here: Deployed) -> None:
    task_id = here.call("count", items=["a"])
    here.tell(status_change(here, f"{task_id}-1", "FAILED", error="Lambda.TooManyRequestsException", cause="secret"))
    detail = here.get(task_id)
    assert detail["error"]["code"] == -32603
    assert "could not be placed (Lambda.TooManyRequestsException)" in detail["error"]["message"]


def test_the_stop_of_a_cancelled_run_is_its_cancellation(here: Deployed) -> None:
    task_id = claimed(here)
    here.cancel(task_id)
    here.tell(status_change(here, f"{task_id}-1", "ABORTED", error="Taskrail.Stopped"))
    assert here.get(task_id)["status"] == "cancelled"


def test_the_end_before_the_workers_own_report_leaves_the_first_word(here: Deployed) -> None:
    task_id = here.call("count", items=["a"])
    here.tell(status_change(here, f"{task_id}-1", "TIMED_OUT", error="States.Timeout"))
    settled = here.get(task_id)
    assert here.run(task_id)["outcome"] == "nothing to do"
    assert here.get(task_id) == settled


@pytest.mark.parametrize("status", ["RUNNING", "PENDING_REDRIVE", "A_STATUS_OF_LATER_YEARS"])
def test_a_run_that_is_not_over_changes_nothing(status: str, here: Deployed) -> None:
    task_id = claimed(here)
    before = here.get(task_id)
    here.tell(status_change(here, f"{task_id}-1", status))
    assert here.get(task_id) == before


def test_the_end_of_an_earlier_run_changes_nothing(here: Deployed) -> None:
    task_id = here.call("publish", title="Q3")
    here.run(task_id)
    here.update(task_id, approval={"publish": True})
    before = here.get(task_id)
    here.tell(status_change(here, f"{task_id}-1", "FAILED", error="Lambda.Unknown"))
    assert here.get(task_id) == before


def test_an_output_that_was_left_out_changes_nothing(here: Deployed) -> None:
    task_id = here.call("count", items=["a"])
    here.run(task_id)
    before = here.get(task_id)
    large = {"output": None, "outputDetails": {"included": False}, "input": None, "inputDetails": {"included": False}}
    here.tell(status_change(here, f"{task_id}-1", "SUCCEEDED", **large))
    assert here.get(task_id) == before


@pytest.mark.parametrize(
    "change",
    [
        {"detail-type": "Step Functions Map Run Status Change"},
        {"detail-type": None},
        {"detail": None},
        {"detail": {}},
        {"detail": {"name": None, "status": "FAILED"}},
        {"detail": {"name": "somebody-elses-execution", "status": "FAILED"}},
        {"detail": {"name": "0123456789abcdef0123456789abcdef-0", "status": "FAILED"}},
        {"detail": {"name": "0123456789abcdef0123456789abcdef-²", "status": "FAILED"}},
        {"detail": {"name": f"{'f' * 32}-1", "status": "FAILED"}},
    ],
)
def test_an_event_about_something_else_is_let_go(change: dict[str, Any], here: Deployed) -> None:
    before = here.get(here.call("count", items=["a"]))
    here.tell({**status_change(here, "other", "FAILED"), **change})
    assert here.get(before["taskId"]) == before


def test_an_event_for_an_expired_task_is_let_go(here: Deployed) -> None:
    task_id = claimed(here)
    here.clock.advance(milliseconds(days(10)))
    here.tell(status_change(here, f"{task_id}-1", "FAILED", error="Lambda.Unknown"))


@pytest.mark.parametrize("module", [job_runner, mcp_api, run_events])
def test_lambda_finds_a_handler_for_the_deployment_of_its_environment(
    module: ModuleType, here: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKRAIL_TABLE", TABLE)
    monkeypatch.setenv("TASKRAIL_BUCKET", BUCKET)
    monkeypatch.setenv("TASKRAIL_SECRET", "a secret for tests only")
    monkeypatch.delitem(vars(module), "handler", raising=False)
    handler = module.handler
    try:
        assert module.handler is handler
        answer = handler({"input": {"taskId": "f" * 32, "run": 1}, "httpMethod": "GET", "path": "/mcp"}, None)
    finally:
        del module.handler
    told = {job_runner: "nothing to do", mcp_api: 405, run_events: None}[module]
    assert (answer or {}).get("outcome", (answer or {}).get("statusCode")) == told
