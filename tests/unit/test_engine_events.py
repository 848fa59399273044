"""What engines say of runs: their event documents, as AWS publishes them, each beside the account it becomes.

The documents lie in ``tests/events``. Sources: Step Functions Developer Guide, "EventBridge for Step Functions
execution status changes"; Batch User Guide, "Job state change events", "Jobs stuck in a RUNNABLE status" and
"Automated job retries"; Batch API Reference, JobDetail.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from taskrail.engines import RunReport, RunState, parse_run_name
from taskrail.engines.batch import report_of_job
from taskrail.engines.step_functions import report_of_event

EVENTS = Path(__file__).resolve().parents[1] / "events"
NAME = "0123456789abcdef0123456789abcdef-1"
EXECUTION = f"arn:aws:states:us-east-1:123456789012:execution:run_migration:{NAME}"
JOB = "4c7599ae-0a82-49aa-ba5a-4727fcce14a8"
LOGS = [
    f"transcode/default/{task}"
    for task in (
        "6cf0f0a2f5a24ff0a4f0c7a5f3b8b1d1",
        "b3b1e2c4d5f64a7b8c9d0e1f2a3b4c5d",
        "d0c1b2a3948576615243342516070809",
    )
]


def execution(state: RunState, reason: str | None = None, **more: Any) -> RunReport:
    """The account of an execution."""
    return RunReport(state, reason, run_id=EXECUTION, **more)


def job(state: RunState, attempt: int, reason: str | None = None, log: str | None = None) -> RunReport:
    """The account of a job."""
    return RunReport(state, reason, run_id=JOB, attempt=attempt, log=log)


RUNNING, SUCCEEDED, FAILED = RunState.RUNNING, RunState.SUCCEEDED, RunState.FAILED
TIMED_OUT, STOPPED = RunState.TIMED_OUT, RunState.STOPPED

TABLE: dict[str, RunReport | None] = {
    "step_functions_running": execution(RUNNING),
    "step_functions_succeeded": execution(SUCCEEDED, output='{"steps":4,"verified":true}'),
    "step_functions_succeeded_output_left_out": execution(SUCCEEDED, whole=False),
    "step_functions_failed": execution(FAILED, "ConnectionError"),
    "step_functions_failed_tool_error": execution(
        FAILED, "ToolError", told="The plan has no steps: name a database that has tables."
    ),
    "step_functions_timed_out": execution(TIMED_OUT),
    "step_functions_aborted": execution(STOPPED, "Taskrail.Stopped"),
    "step_functions_pending_redrive": execution(RUNNING),
    "batch_submitted": job(RUNNING, 0),
    "batch_pending": job(RUNNING, 0),
    "batch_runnable": job(RUNNING, 0),
    "batch_runnable_blocked": job(RUNNING, 0),
    "batch_starting": job(RUNNING, 0, log=LOGS[0]),
    "batch_running": job(RUNNING, 1, log=LOGS[0]),
    "batch_succeeded": job(SUCCEEDED, 1, log=LOGS[0]),
    "batch_failed_exit_1": job(FAILED, 1, "exit code 1", LOGS[0]),
    "batch_failed_after_3_attempts": job(FAILED, 3, "exit code 2", LOGS[2]),
    "batch_runnable_between_attempts": job(RUNNING, 1, log=LOGS[0]),
    "batch_running_second_attempt": job(RUNNING, 2, log=LOGS[1]),
    "batch_array_parent": job(RUNNING, 0),
    "batch_array_child": None,
    "batch_host_terminated": job(FAILED, 1, "its host was lost", LOGS[0]),
    "batch_fargate_spot": job(FAILED, 1, "exit code 137 (its Spot capacity was taken back)", LOGS[0]),
    "batch_image_pull_failure": job(FAILED, 1, "its image could not be pulled"),
    "batch_runnable_too_long": job(FAILED, 0, "there was no capacity for it in time"),
    "batch_runnable_never_fits": job(FAILED, 0, "its queue has nothing that can run it"),
    "batch_terminated_running": job(STOPPED, 1, log=LOGS[0]),
    "batch_terminated_runnable": job(STOPPED, 0),
    "batch_attempt_timeout": job(TIMED_OUT, 1, log=LOGS[0]),
    "batch_out_of_memory": job(FAILED, 1, "exit code 137 (it ran out of memory)", LOGS[0]),
}


def document(name: str) -> dict[str, Any]:
    """An event document."""
    event: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text(encoding="utf-8"))
    return event


def report(name: str) -> RunReport | None:
    """What an event document becomes."""
    detail = document(name)["detail"]
    return report_of_job(detail) if name.startswith("batch_") else report_of_event(detail)


@pytest.mark.parametrize("name", TABLE)
def test_every_event_becomes_its_account(name: str) -> None:
    assert report(name) == TABLE[name]


def test_every_document_is_in_the_table() -> None:
    # Records of Lambda's failure destination are no events; their table is in `test_lambda_engine`.
    assert {path.stem for path in EVENTS.glob("*.json") if not path.stem.startswith("lambda_")} == set(TABLE)


@pytest.mark.parametrize("name", TABLE)
def test_documents_are_of_runs_that_the_kit_named(name: str) -> None:
    detail = document(name)["detail"]
    assert parse_run_name(detail["jobName" if name.startswith("batch_") else "name"]) == (NAME[:-2], 1)


def changed(name: str, **changes: Any) -> RunReport:
    """The account of a job's document with other values in its detail."""
    made = report_of_job({**document(name)["detail"], **changes})
    assert made is not None
    return made


def test_what_people_and_jobs_wrote_is_not_told() -> None:
    words = ("secret-of-the-job", "person on call", "pull access denied", "i-0c1f2d3e4a5b6c7d8", "stackTrace")
    for name in TABLE:
        told = repr(report(name))
        assert not [word for word in words if word in told], name


def test_an_unknown_reason_of_batchs_own_is_told_in_one_line_without_the_accounts_names() -> None:
    text = "Something new:\n the role arn:aws:iam::123456789012:role/jobs of 123456789012 " + "x" * 500
    reason = changed("batch_runnable_too_long", statusReason=text, isCancelled=False).reason
    assert reason is not None
    assert reason.startswith("Something new: the role … of … xxx")
    assert len(reason) == 200


def test_a_failure_without_any_reason_says_so() -> None:
    assert changed("batch_runnable_too_long", statusReason=None, isCancelled=False).reason == "AWS Batch gave no reason"


def test_a_container_that_left_no_exit_code() -> None:
    detail = document("batch_failed_exit_1")["detail"]
    attempts = [{**detail["attempts"][0], "container": {}}]
    assert changed("batch_failed_exit_1", attempts=attempts, container={}).reason == "its container left no exit code"


def test_a_kill_that_nothing_explains_is_its_exit_code() -> None:
    detail = document("batch_out_of_memory")["detail"]
    attempts = [{**detail["attempts"][0], "container": {"exitCode": 137}}]
    assert changed("batch_out_of_memory", attempts=attempts).reason == "exit code 137"


def test_a_text_that_only_mentions_a_kind_is_not_of_that_kind() -> None:
    detail = document("batch_failed_exit_1")["detail"]
    attempts = [{**detail["attempts"][0], "container": {"exitCode": 1, "reason": "see CannotPullContainerError"}}]
    assert changed("batch_failed_exit_1", attempts=attempts).reason == "exit code 1"


def test_a_job_that_succeeded_although_it_was_to_be_stopped_has_succeeded() -> None:
    assert changed("batch_succeeded", isTerminated=True).state is SUCCEEDED


def test_a_log_group_of_the_definitions_own_stands_before_the_stream() -> None:
    container = document("batch_running")["detail"]["container"]
    configuration = {"logDriver": "awslogs", "options": {"awslogs-group": "/jobs"}, "secretOptions": []}
    assert (
        changed("batch_running", container={**container, "logConfiguration": configuration}).log == f"/jobs:{LOGS[0]}"
    )
    other = {"logDriver": "splunk", "options": {"awslogs-group": "/jobs"}}
    assert changed("batch_running", container={**container, "logConfiguration": other}).log == LOGS[0]


def test_nodes_of_a_multi_node_job_are_not_the_kits() -> None:
    assert report_of_job({**document("batch_running")["detail"], "jobId": f"{JOB}#0"}) is None


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        ("Name a database.", "Name a database."),
        ('{"errorMessage": "Name a database.", "stackTrace": ["File"]}', "Name a database."),
        ('{"errorMessage": null, "stackTrace": ["File"]}', None),
        ('{"stackTrace": ["File"]}', None),
        ('{"missing": ["database"]}', '{"missing": ["database"]}'),
        ("[1]", "[1]"),
        ("[" * 100_000, "[" * 100_000),
        ("", ""),
        (None, None),
    ],
)
def test_only_the_text_of_a_tool_error_is_told(cause: str | None, told: str | None) -> None:
    detail = {"status": "FAILED", "error": "ToolError", "cause": cause}
    assert report_of_event(detail) == RunReport(FAILED, "ToolError", told=told)
    for other in ("ToolErrors", "States.TaskFailed", None):
        assert report_of_event({**detail, "error": other}).told is None


@pytest.mark.parametrize("details", [None, {}, {"included": True}])
def test_an_output_that_is_there_is_whole(details: Any) -> None:
    assert report_of_event({"status": "SUCCEEDED", "output": "1", "outputDetails": details}) == RunReport(
        SUCCEEDED, output="1"
    )


def test_an_event_without_what_it_should_have_is_of_a_run_that_goes_on() -> None:
    assert report_of_event({}) == RunReport(RUNNING)
    assert report_of_job({}) == RunReport(RUNNING, attempt=0)
