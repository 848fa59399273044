"""Ends of runs as EventBridge would tell them, and moto's patches."""

from __future__ import annotations

from typing import Any

import pytest

from local import moto_patches
from local.engine import Line as RealLine
from local.events import TRIES, Deliveries, event_of, told
from taskrail.engines import RunReport, RunState
from taskrail.engines.batch import report_of_job
from taskrail.engines.lambda_functions import report_of_record
from taskrail.engines.step_functions import report_of_event
from taskrail.errors import EngineUnavailable

END: dict[str, Any] = {
    "name": f"{'0' * 32}-1",
    "engine": "step_functions",
    "tool": "render",
    "payload": {"taskId": "0" * 32, "run": 1},
    "state": "failed",
    "reason": "exit code 3",
    "startedAt": 1_700_000_000_000,
    "endedAt": 1_700_000_001_500,
}

JOB: dict[str, Any] = {
    "engine": "batch",
    "runId": "4c7599ae-0a82-49aa-ba5a-4727fcce14a8",
    "command": ["sh", "-c", "exit 3"],
    "timeoutMs": 60_000,
    "attempts": 3,
    "attempt": 2,
    "attemptAt": 1_700_000_001_000,
}


INVOCATION: dict[str, Any] = {
    **END,
    "engine": "lambda",
    "runId": "0ba5ab58-6b1e-5f5f-a4f5-7f2a6c0e3f10",
    "attempts": 2,
    "attempt": 2,
}


class Line(RealLine):
    """A supervisor that hands out ends and remembers what was reported."""

    def __init__(self, *ends: dict[str, Any] | None) -> None:
        self.ends = list(ends)
        self.reported: list[str] = []
        self.away = False

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        if self.away:
            raise EngineUnavailable("away")
        if request["do"] == "ended":
            return {"ok": self.ends.pop(0)}
        self.reported.append(request["name"])
        return {"ok": None}


class StillClock:
    """A clock whose time passes by sleeping only."""

    def __init__(self) -> None:
        self.time = 0

    def now(self) -> int:
        return self.time

    def sleep(self, milliseconds: int) -> None:
        self.time += milliseconds


@pytest.mark.parametrize(
    ("state", "reason", "status"),
    [
        (RunState.SUCCEEDED, None, "SUCCEEDED"),
        (RunState.FAILED, "signal SIGKILL", "FAILED"),
        (RunState.FAILED, None, "FAILED"),
        (RunState.TIMED_OUT, None, "TIMED_OUT"),
        (RunState.STOPPED, None, "ABORTED"),
    ],
)
def test_an_end_is_told_in_the_words_of_step_functions(state: RunState, reason: str | None, status: str) -> None:
    event = event_of({**END, "state": state.value, "reason": reason})
    assert event is not None
    assert event["source"] == "aws.states"
    assert event["detail-type"] == "Step Functions Execution Status Change"
    assert event["detail"]["status"] == status
    assert event["detail"]["executionArn"] == f"arn:aws:states:us-east-1:000000000000:execution:render:{END['name']}"
    assert report_of_event(event["detail"]) == RunReport(state, reason, run_id=event["resources"][0])


@pytest.mark.parametrize(
    ("state", "reason", "status", "exit_code"),
    [
        (RunState.SUCCEEDED, None, "SUCCEEDED", 0),
        (RunState.FAILED, "exit code 3", "FAILED", 3),
        (RunState.FAILED, None, "FAILED", None),
        (RunState.TIMED_OUT, None, "FAILED", None),
        (RunState.STOPPED, None, "FAILED", None),
    ],
)
def test_the_end_of_a_job_is_told_in_the_words_of_batch(
    state: RunState, reason: str | None, status: str, exit_code: int | None
) -> None:
    event = event_of({**END, **JOB, "state": state.value, "reason": reason})
    assert event is not None
    assert (event["source"], event["detail-type"]) == ("aws.batch", "Batch Job State Change")
    detail = event["detail"]
    assert (detail["status"], detail["jobId"], detail["jobName"]) == (status, JOB["runId"], END["name"])
    assert detail["container"].get("exitCode") == exit_code
    assert len(detail["attempts"]) == 2
    report = report_of_job(detail)
    assert report is not None
    assert (report.state, report.run_id, report.attempt, report.log) == (state, JOB["runId"], 2, END["name"])
    if reason is not None:
        assert report.reason is not None and report.reason.startswith(reason)


@pytest.mark.parametrize(
    ("state", "reason", "error_type"),
    [
        (RunState.FAILED, "signal SIGKILL", "Runtime.ExitError"),
        (RunState.FAILED, None, "Runtime.ExitError"),
        (RunState.TIMED_OUT, None, "Sandbox.Timedout"),
    ],
)
def test_an_invocation_that_is_given_up_is_told_in_the_words_of_lambda(
    state: RunState, reason: str | None, error_type: str
) -> None:
    record = event_of({**INVOCATION, "state": state.value, "reason": reason})
    assert record is not None
    assert "detail" not in record
    report = RunReport(state, error_type, run_id=INVOCATION["runId"], attempt=2)
    assert report_of_record(record) == (END["name"], report)


@pytest.mark.parametrize("state", [RunState.SUCCEEDED, RunState.STOPPED])
def test_of_an_invocation_that_is_not_given_up_nobody_is_told(state: RunState) -> None:
    end = {**INVOCATION, "state": state.value, "reason": None}
    line, seen = Line(end), []
    assert Deliveries(line, lambda event, context: seen.append(event), StillClock()).one()
    assert (seen, line.reported) == ([], [END["name"]])


def test_the_end_of_an_execution_in_the_local_aws_is_passed_on_as_it_was_told() -> None:
    event = told({"executionArn": "arn", "stopDate": END["endedAt"], "status": "SUCCEEDED", "name": END["name"]})
    line, seen = Line({"name": event["id"], "event": event}), []
    assert Deliveries(line, lambda event, context: seen.append(event), StillClock()).one()
    assert (seen, line.reported) == ([event], [event["id"]])


def test_an_end_is_delivered_and_then_reported() -> None:
    line, seen = Line(END, None), []
    deliveries = Deliveries(line, lambda event, context: seen.append(event["detail"]["name"]), StillClock())
    assert deliveries.one()
    assert not deliveries.one(), "nothing more to tell"
    assert (seen, line.reported) == ([END["name"]], [END["name"]])


def test_a_delivery_that_fails_is_tried_again_for_a_while() -> None:
    line, tries = Line(END, END), 0

    def handler(event: dict[str, Any], context: Any) -> None:
        nonlocal tries
        tries += 1
        if tries != 3:
            raise RuntimeError

    clock = StillClock()
    assert Deliveries(line, handler, clock).one()
    assert tries == 3
    assert clock.time > 0
    assert Deliveries(line, handler, clock).one()
    assert tries == 3 + TRIES
    assert len(line.reported) == 2, "given up: the next read settles it"


def test_a_supervisor_that_is_away_is_waited_for() -> None:
    line, clock = Line(), StillClock()
    line.away = True
    assert not Deliveries(line, lambda event, context: None, clock).one()
    assert clock.time > 0


def test_another_version_of_moto_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moto_patches, "version", lambda name: "5.2.6")
    with pytest.raises(moto_patches.WrongMoto, match=r"needs moto 5\.2\.5 and found 5\.2\.6"):
        moto_patches.apply()
