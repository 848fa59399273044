"""Containers as tools: their channel, their exit, and what it means that one may be submitted twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from taskrail.clock import minutes, seconds
from taskrail.engines import RunReport, RunState
from taskrail.rail.remote import ReportRefused
from taskrail.testing import Called, Kit, RpcFailure, harness
from tests.functional import work_tools

SOMEBODY_ELSE = "job-of-a-second-submission"


@pytest.fixture(scope="module")
def deployment() -> Iterator[Kit]:
    with harness(work_tools.server) as made:
        yield made


@pytest.fixture
def kit(deployment: Kit) -> Kit:
    deployment.clear()
    return deployment


@pytest.fixture
def task(kit: Kit) -> Called:
    return kit.call("cut", film="a.mov")


def job_of(kit: Kit, task: Called) -> str:
    return kit.jobs.ids[task.order.name]


def told(kit: Kit, task: Called, state: RunState, job: str, **more: Any) -> None:
    """Batch tells of a job."""
    kit.runtime.rail.run_heard(task.task_id, 1, RunReport(state, run_id=job, attempt=1, **more))


def test_a_job_gets_its_channel_in_its_environment(kit: Kit, task: Called) -> None:
    told = dict(task.order.environment)
    token = told.pop("TASKRAIL_REPORT_TOKEN")
    arguments = told.pop("TASKRAIL_ARGUMENTS_URI")
    assert token.startswith(f"{task.task_id}.1.")
    assert told == {
        "TASKRAIL_TASK_ID": task.task_id,
        "TASKRAIL_RUN": "1",
        "TASKRAIL_REPORT_URL": "https://api.example.com/report",
        "TASKRAIL_RESULT_URI": f"s3://payloads/tasks/{task.task_id}/results/1",
    }
    assert arguments.startswith(f"s3://payloads/tasks/{task.task_id}/")
    body = kit.s3.get_object(Bucket="payloads", Key=arguments.removeprefix("s3://payloads/"))["Body"].read()
    assert json.loads(body) == {"film": "a.mov", "count": 2, "colour": True, "label": None}


def test_arguments_fill_the_placeholders_that_the_command_names(task: Called) -> None:
    assert task.order.parameters == {"film": "a.mov", "count": "2", "colour": "true"}


def test_the_overrides_stay_small_whatever_the_arguments(kit: Kit) -> None:
    task = kit.call("silent", film="f" * 200_000)
    assert len(json.dumps(task.order.environment)) < 2_000 and task.order.parameters == {}


def test_the_job_is_recorded_when_it_is_submitted(kit: Kit, task: Called) -> None:
    assert kit.runtime.rail.read(kit.owner, task.task_id).run_id == job_of(kit, task)


def test_a_job_reads_its_arguments_over_the_channel(task: Called) -> None:
    assert task.report("arguments")["arguments"]["film"] == "a.mov"


def test_large_arguments_come_as_a_url(kit: Kit) -> None:
    reply = kit.call("cut", film="f" * 1_500_000).report("arguments")
    assert "arguments" not in reply and reply["argumentsUrl"].startswith("https://")


def test_exit_0_with_a_result(task: Called) -> None:
    task.report("result", result={"scenes": 2})
    assert task.status == "working", "the result counts when the job ends"
    assert task.end().structured == {"scenes": 2}


def test_exit_0_without_a_result_is_an_empty_success(task: Called) -> None:
    task.end()
    assert (task.status, task.is_error) == ("completed", False)
    assert "no result" in task.text


def test_exit_0_without_the_promised_result_is_an_error(kit: Kit) -> None:
    task = kit.call("silent", film="a.mov").end()
    assert task.is_error and "left no result" in task.text


def test_a_result_that_is_uploaded_counts_as_well(kit: Kit, task: Called) -> None:
    url = task.report("result", upload=True)["uploadUrl"]
    key = urlsplit(url).path.removeprefix("/").removeprefix("payloads/")
    kit.s3.put_object(Bucket="payloads", Key=key, Body=b'{"scenes": 9}')
    assert task.end().structured == {"scenes": 9}


def test_a_result_that_is_no_json_is_text(kit: Kit, task: Called) -> None:
    key = kit.runtime.rail.reports.payloads.result_key(
        kit.runtime.rail.read(kit.owner, task.task_id), job_of(kit, task), 1
    )
    kit.s3.put_object(Bucket="payloads", Key=key, Body=b"two scenes \xff")
    assert task.end().text == "two scenes \ufffd"


def test_a_result_too_large_to_be_sent_is_linked(kit: Kit, task: Called) -> None:
    key = kit.runtime.rail.reports.payloads.result_key(
        kit.runtime.rail.read(kit.owner, task.task_id), job_of(kit, task), 1
    )
    kit.s3.put_object(Bucket="payloads", Key=key, Body=b'"' + b"x" * 6_000_000 + b'"')
    [link] = task.end().result["content"]
    assert (link["type"], link["size"]) == ("resource_link", 6_000_002) and link["uri"].startswith("https://")


def test_exit_1_tells_code_partial_result_and_the_tail_of_the_log(kit: Kit, task: Called) -> None:
    task.report("result", result={"scenes": 1})
    kit.jobs.logs[task.order.name] = ("starting", "one", "two", "the last")
    task.end(exit_code=3)
    assert (task.status, task.is_error) == ("completed", True)
    assert "exit code 3" in task.text
    assert '{"scenes":1}' in task.text
    assert task.text.endswith("one\ntwo\nthe last") and "starting" not in task.text


def test_a_log_is_told_only_where_the_tool_allows_it(kit: Kit) -> None:
    task = kit.call("silent", film="a.mov")
    kit.jobs.logs[task.order.name] = ("a secret",)
    task.end(exit_code=3)
    assert "exit code 3" in task.text and "secret" not in json.dumps(task.result)


@pytest.mark.parametrize(
    ("report", "words", "status"),
    [
        (RunReport(RunState.FAILED, "its host was lost", attempt=2), "its host was lost", "completed"),
        (RunReport(RunState.TIMED_OUT, attempt=1), "ran out of time", "completed"),
        (RunReport(RunState.STOPPED, attempt=1), "stopped from outside", "completed"),
        (RunReport(RunState.FAILED, "the image could not be pulled", attempt=0), "could not be placed", "failed"),
        (RunReport(RunState.FAILED, attempt=1), "without a report", "failed"),
    ],
)
def test_what_ends_how(kit: Kit, report: RunReport, words: str, status: str) -> None:
    task = kit.call("silent", film="a.mov")
    kit.jobs.end(task.order.name, report)
    kit.runtime.rail.run_heard(task.task_id, 1, report)
    assert task.status == status
    assert words in (task.text if status == "completed" else task.error["message"])


def test_an_end_that_nobody_told_is_found_by_a_read(kit: Kit, task: Called) -> None:
    task.report("result", result={"scenes": 2})
    kit.jobs.end(task.order.name, RunReport(RunState.SUCCEEDED, attempt=1))
    kit.advance(seconds(20))
    assert task.structured == {"scenes": 2}


def test_a_container_asks_and_polls_for_the_answer(kit: Kit, task: Called) -> None:
    ask = {"key": "go", "message": "Go on?"}
    assert task.report("ask", **ask) == {"cancel": False, "answers": {}, "waiting": ["go"]}
    assert task.report("answers", keys=["go"])["waiting"] == ["go"]
    task.answer(go={})
    answer = {"action": "accept", "content": {}}
    assert task.report("answers") == {"cancel": False, "answers": {"go": answer}, "waiting": []}
    assert task.report("ask", **ask)["answers"] == {"go": answer}, "asked again, it is there"
    assert kit.jobs.starts == [task.order.name]


def test_only_the_recorded_job_counts(kit: Kit, task: Called) -> None:
    """`SubmitJob` has no client token: a repetition makes another job, which nothing of the kit's guards."""
    assert task.report("progress", message="theirs", job=SOMEBODY_ELSE)["cancel"] is True
    assert task.report("result", result={"scenes": 0}, job=SOMEBODY_ELSE)["cancel"] is True
    told(kit, task, RunState.SUCCEEDED, SOMEBODY_ELSE)
    told(kit, task, RunState.FAILED, SOMEBODY_ELSE, reason="exit code 1")
    assert task.status == "working" and "statusMessage" not in task.poll()
    task.report("result", result={"scenes": 2})
    assert task.end().structured == {"scenes": 2}


def test_a_second_job_is_terminated_when_batch_tells_of_it(
    kit: Kit, task: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[Any] = []
    monkeypatch.setattr(kit.jobs, "stop", lambda *what: stopped.append(what[2]) or True)
    told(kit, task, RunState.RUNNING, SOMEBODY_ELSE)
    told(kit, task, RunState.RUNNING, job_of(kit, task))
    assert stopped == [SOMEBODY_ELSE]


def test_a_job_that_outlives_its_task_is_terminated(kit: Kit, task: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    job = job_of(kit, task)
    task.end()
    stopped: list[Any] = []
    monkeypatch.setattr(kit.jobs, "stop", lambda *what: stopped.append(what[2]) or True)
    told(kit, task, RunState.RUNNING, job)
    assert stopped == [job]


def test_a_job_of_a_task_that_is_not_here_is_left_alone(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another deployment may use the same queue."""
    stopped: list[Any] = []
    monkeypatch.setattr(kit.jobs, "stop", lambda *what: stopped.append(what[2]) or True)
    kit.runtime.rail.run_heard("f" * 32, 1, RunReport(RunState.RUNNING, run_id="job"))
    assert stopped == []


def unrecorded(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> Called:
    """The process died between the submission and the record of the job's id."""
    write = kit.runtime.rail._changes.store.write

    def lost(old: Any, new: Any, now: int, nonce: str) -> Any:
        if new.run_id is not None and old.run_id is None:
            from taskrail.errors import StoreUnavailable

            raise StoreUnavailable("died")
        return write(old, new, now, nonce)

    with monkeypatch.context() as patched:
        patched.setattr(kit.runtime.rail._changes.store, "write", lost)
        task = kit.call("cut", film="a.mov")
    assert kit.runtime.rail.read(kit.owner, task.task_id).run_id is None
    return task


def test_a_job_that_was_not_recorded_is_found_by_its_name(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    task = unrecorded(kit, monkeypatch)
    kit.advance(seconds(20))
    task.poll()
    assert kit.runtime.rail.read(kit.owner, task.task_id).run_id == job_of(kit, task)
    assert kit.jobs.starts == [task.order.name]


@pytest.mark.parametrize("state", [RunState.RUNNING, RunState.SUCCEEDED])
def test_a_job_that_was_not_recorded_is_known_by_its_event(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, state: RunState
) -> None:
    task = unrecorded(kit, monkeypatch)
    told(kit, task, state, job_of(kit, task))
    assert kit.runtime.rail.read(kit.owner, task.task_id).run_id == job_of(kit, task)
    assert task.status == ("working" if state is RunState.RUNNING else "completed")


def test_a_job_that_was_not_recorded_is_known_by_its_report(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    task = unrecorded(kit, monkeypatch)
    assert task.report("progress", message="here") == {"cancel": False}
    assert kit.runtime.rail.read(kit.owner, task.task_id).run_id == job_of(kit, task)


def test_a_job_that_has_not_begun_is_cancelled_at_once(kit: Kit, task: Called) -> None:
    task.cancel()
    assert task.status == "cancelled"
    assert kit.jobs.states[task.order.name].state is RunState.STOPPED


def test_a_running_container_is_told_at_once_and_cancelled_when_it_has_ended(
    kit: Kit, task: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[Any] = []
    monkeypatch.setattr(kit.jobs, "stop", lambda *what: bool(stopped.append(what[2])))
    task.cancel()
    assert (stopped, task.status) == ([job_of(kit, task)], "working")
    assert task.report("progress", message="cleaning up") == {"cancel": True}
    told(kit, task, RunState.STOPPED, job_of(kit, task))
    assert task.status == "cancelled"


def test_a_container_that_finished_before_the_signal_keeps_its_result(
    kit: Kit, task: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    task.report("result", result={"scenes": 2})
    monkeypatch.setattr(kit.jobs, "stop", lambda *what: False)
    task.cancel()
    told(kit, task, RunState.SUCCEEDED, job_of(kit, task))
    assert task.structured == {"scenes": 2}


def test_a_refused_submission_leaves_nothing(kit: Kit) -> None:
    kit.jobs.refuse = True
    with pytest.raises(RpcFailure, match="could not be started"):
        kit.call("cut", film="a.mov")
    assert kit.scan() == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"do": "progress", "message": "x", "attempt": 1},
        {"do": "progress", "message": "x", "job": "j"},
        {"do": "progress", "message": "x", "job": "j", "attempt": 0},
        {"do": "progress", "message": "x", "job": "../j", "attempt": 1},
        {"do": "progress", "message": "x", "job": "j", "attempt": "9" * 5_001},
        {"do": "progress", "message": "x", "job": "j", "attempt": True},
        {"do": "progress", "job": "j", "attempt": 1},
        {"do": "progress", "done": float("inf"), "job": "j", "attempt": 1},
        {"do": "progress", "done": float("nan"), "job": "j", "attempt": 1},
        {"do": "progress", "done": 10**400, "job": "j", "attempt": 1},
        {"do": "result", "job": "j", "attempt": 1},
        {"do": "dance", "job": "j", "attempt": 1},
    ],
)
def test_a_report_that_cannot_be_taken_says_why_and_changes_nothing(
    kit: Kit, task: Called, wrong: dict[str, Any]
) -> None:
    before = kit.scan()
    job = {"job": job_of(kit, task)} if wrong.get("job") == "j" else {}
    with pytest.raises(ReportRefused):
        kit.runtime.remote.take(task.order.environment["TASKRAIL_REPORT_TOKEN"], {**wrong, **job})
    assert kit.scan() == before


def test_out_of_time_it_is_stopped(kit: Kit, task: Called) -> None:
    kit.advance(minutes(30 * 2 + 60) + seconds(1))
    assert task.is_error and "ran out of time" in task.text
    assert kit.jobs.states[task.order.name].state is RunState.STOPPED


def test_an_adopted_job_gets_the_parameters_that_were_named(kit: Kit) -> None:
    assert kit.call("adopted_job", film="b.mov").order.parameters == {"film": "b.mov"}
