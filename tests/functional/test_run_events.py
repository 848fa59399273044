"""`run_events` with events as AWS publishes them: what each makes of a task, told twice and for any kind of work."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handlers import run_events
from taskrail.engines import RunState
from taskrail.testing import Called, Kit, harness
from tests.functional import work_tools

EVENTS = Path(__file__).resolve().parents[1] / "events"
NAME, JOB = "0123456789abcdef0123456789abcdef-1", "4c7599ae-0a82-49aa-ba5a-4727fcce14a8"
REQUEST = "b3b1e2c4-d5f6-4a7b-8c9d-0e1f2a3b4c5d"

# What the task is then, and words that its caller reads; a working task has none.
WORKING = ("working", "")
ENDS: dict[str, tuple[str, str]] = {
    "step_functions_running": WORKING,
    "step_functions_pending_redrive": WORKING,
    "step_functions_succeeded": ("completed", "verified"),
    "step_functions_succeeded_output_left_out": ("completed", "left out"),
    "step_functions_failed": ("completed", "ConnectionError"),
    "step_functions_failed_tool_error": ("completed", "The plan has no steps"),
    "step_functions_timed_out": ("completed", "ran out of time"),
    "step_functions_aborted": ("completed", "stopped from outside"),
    "batch_submitted": WORKING,
    "batch_pending": WORKING,
    "batch_runnable": WORKING,
    "batch_runnable_blocked": WORKING,
    "batch_runnable_between_attempts": WORKING,
    "batch_starting": WORKING,
    "batch_running": WORKING,
    "batch_running_second_attempt": WORKING,
    "batch_array_parent": WORKING,
    "batch_array_child": WORKING,
    "batch_succeeded": ("completed", "no result"),
    "batch_failed_exit_1": ("completed", "exit code 1"),
    "batch_failed_after_3_attempts": ("completed", "exit code 2"),
    "batch_host_terminated": ("completed", "host"),
    "batch_fargate_spot": ("completed", ""),
    "batch_image_pull_failure": ("completed", "image"),
    "batch_out_of_memory": ("completed", "memory"),
    "batch_attempt_timeout": ("completed", "ran out of time"),
    "batch_runnable_too_long": ("failed", "could not be placed"),
    "batch_runnable_never_fits": ("failed", "could not be placed"),
    "batch_terminated_running": ("completed", "stopped from outside"),
    "batch_terminated_runnable": ("completed", "stopped from outside"),
    "lambda_retries_exhausted": ("completed", "Runtime.ExitError"),
    "lambda_out_of_memory": ("completed", "Runtime.OutOfMemory"),
    "lambda_timed_out": ("completed", "ran out of time"),
    "lambda_timed_out_untyped": ("completed", "ran out of time"),
    "lambda_import_error": ("completed", "Runtime.ImportModuleError"),
    "lambda_event_age_exceeded": ("failed", "could not be placed"),
    "lambda_zero_concurrency": ("failed", "could not be placed"),
}


@pytest.fixture(scope="module")
def deployment() -> Iterator[Kit]:
    with harness(work_tools.server) as made:
        yield made


@pytest.fixture
def kit(deployment: Kit) -> Kit:
    deployment.clear()
    return deployment


def document(name: str, kit: Kit, task: Called) -> dict[str, Any]:
    """The event, about that task's run."""
    text = (EVENTS / f"{name}.json").read_text(encoding="utf-8")
    run = task.order.name
    own = kit.engine_of(run).ids[run]
    # A failure record has the task and the number of its run apart.
    text = text.replace(NAME, run).replace(NAME[:-2], run[:-2]).replace(JOB, own).replace(REQUEST, own)
    event: dict[str, Any] = json.loads(text)
    return event


def started(kit: Kit, name: str) -> Called:
    if name.startswith("lambda"):
        return kit.call("glance", text="f")
    return kit.call("anything") if name.startswith("step_functions") else kit.call("cut", film="f")


def told(task: Called) -> tuple[str, str]:
    """The status, and all that the caller reads of the end."""
    seen = task.poll()
    return str(seen["status"]), json.dumps(seen.get("result", seen.get("error", "")))


def test_every_document_has_its_row() -> None:
    assert {path.stem for path in EVENTS.glob("*.json")} == set(ENDS)


@pytest.mark.parametrize("name", ENDS)
def test_an_event_settles_a_task_once(kit: Kit, name: str) -> None:
    task = started(kit, name)
    event = document(name, kit, task)
    if name.endswith("left_out"):
        kit.engine.states[task.order.name] = run_events.report_of_event(
            {"status": "SUCCEEDED", "output": '"what was left out"'}
        )
    handle = run_events.bind(kit.runtime)
    handle(event, None)
    status, words = told(task)
    assert status == ENDS[name][0] and ENDS[name][1] in words, words
    for secret in ("Traceback", "arn:aws", "123456789012", "wrong input", "secret"):
        assert secret not in words
    before = task.poll()
    for other in ENDS:
        if other.startswith(name[:5]) and status != "working":
            handle(document(other, kit, task), None)
    handle(event, None)
    assert status == "working" or task.poll() == before, "the first end stays"


@pytest.mark.parametrize("name", [name for name in ENDS if name.startswith("batch") and ENDS[name] != WORKING])
def test_the_end_of_a_python_job_that_reported_is_no_news(kit: Kit, name: str) -> None:
    task = kit.call("crunch", numbers=[1, 2]).run()
    before = task.poll()
    run_events.bind(kit.runtime)(document(name, kit, task), None)
    assert task.poll() == before and before["result"]["structuredContent"] == {"result": 3}


@pytest.mark.parametrize("name", [name for name in ENDS if name.startswith("lambda")])
def test_the_end_of_a_function_that_reported_is_no_news(kit: Kit, name: str) -> None:
    task = kit.call("glance", text="four").run()
    before = task.poll()
    run_events.bind(kit.runtime)(document(name, kit, task), None)
    assert task.poll() == before and before["result"]["structuredContent"] == {"result": 4}


@pytest.mark.parametrize("name", [name for name in ENDS if name.startswith("batch") and ENDS[name] != WORKING])
def test_a_cancelled_container_is_cancelled_however_its_job_ended(
    kit: Kit, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = kit.call("cut", film="f")
    monkeypatch.setattr(kit.jobs, "stop", lambda *what: False)
    task.cancel()
    run_events.bind(kit.runtime)(document(name, kit, task), None)
    assert task.status == ("completed" if name == "batch_succeeded" else "cancelled")


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"detail-type": "Batch Job State Change"},
        {"detail-type": "Batch Job State Change", "detail": {}},
        {"detail-type": "Batch Job State Change", "detail": {"jobName": "nightly", "jobId": "j", "status": "FAILED"}},
        {"detail-type": "Step Functions Execution Status Change", "detail": {"name": "x-1", "status": "FAILED"}},
        {"detail-type": "Scheduled Event", "detail": {"name": NAME}},
        {"requestContext": {}},
        {"requestContext": {"condition": "RetriesExhausted", "requestId": REQUEST}, "requestPayload": {"run": 1}},
        {"requestContext": {"condition": "Success", "requestId": REQUEST}, "requestPayload": {}},
    ],
)
def test_events_about_other_things_are_left_alone(kit: Kit, event: dict[str, Any]) -> None:
    task = kit.call("cut", film="f")
    before = kit.scan()
    run_events.bind(kit.runtime)(event, None)
    assert kit.scan() == before and task.status == "working"
    assert kit.jobs.states[task.order.name].state is RunState.RUNNING
