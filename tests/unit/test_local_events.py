"""Ends of runs as EventBridge would tell them, and moto's patches."""

from __future__ import annotations

from typing import Any

import pytest

from local import moto_patches
from local.engine import LocalEngine
from local.events import TRIES, Deliveries, event_of
from taskrail.engines import RunReport, RunState
from taskrail.engines.step_functions import report_of_event
from taskrail.errors import EngineUnavailable

END: dict[str, Any] = {
    "name": f"{'0' * 32}-1",
    "tool": "render",
    "payload": {"taskId": "0" * 32, "run": 1},
    "state": "failed",
    "reason": "exit code 3",
    "startedAt": 1_700_000_000_000,
    "endedAt": 1_700_000_001_500,
}


class Line(LocalEngine):
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
    assert event["source"] == "aws.states"
    assert event["detail-type"] == "Step Functions Execution Status Change"
    assert event["detail"]["status"] == status
    assert event["detail"]["executionArn"] == f"arn:aws:states:us-east-1:000000000000:execution:render:{END['name']}"
    assert report_of_event(event["detail"]) == RunReport(state, reason)


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
