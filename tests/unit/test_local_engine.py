"""Which of the local engines' runs go where, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from local import engine as engines
from local.engine import Jobs, Line, LocalBatch, LocalStepFunctions, job_id
from local.invocations import LocalLambda, request_id
from local.machines import Registry
from local.records import tail
from local.stack import Stack
from taskrail.engines import RunOrder, RunReport, RunState
from taskrail.errors import EngineUnavailable, StartRefused
from tests.functional.local_tools import server as lambda_server
from tests.workflows.catalogue import server

NAME = f"{'0' * 32}-1"


class Desk(Line):
    """A supervisor that remembers what it was asked."""

    def __init__(self, **answer: Any) -> None:
        self.asked: list[dict[str, Any]] = []
        self.answer = answer or {"ok": None}

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(request)
        return self.answer


class Executions:
    """Executions that remember what was asked of them."""

    def __init__(self, arns: Mapping[str, str]) -> None:
        self.arns = dict(arns)
        self.started: list[str] = []
        self.resumed: list[tuple[str, str]] = []

    def start(self, order: RunOrder) -> str:
        self.started.append(order.tool)
        return f"execution of {order.tool}"

    def stop(self, tool: str, name: str, run_id: str | None) -> bool:
        return True

    def describe(self, tool: str, name: str, run_id: str | None) -> RunReport:
        return RunReport(RunState.SUCCEEDED, output="{}")

    def resume(self, token: str, output: str) -> None:
        self.resumed.append((token, output))


def order(tool: str, **more: Any) -> RunOrder:
    return RunOrder(tool, NAME, {"taskId": "0" * 32, "run": 1}, timeout_ms=60_000, **more)


def batch(desk: Desk, directory: Path) -> LocalBatch:
    return LocalBatch(Jobs(desk, directory), server.tools)


def step_functions(desk: Desk, directory: Path) -> tuple[LocalStepFunctions, list[Executions]]:
    made: list[Executions] = []

    def connect(arns: Mapping[str, str]) -> Any:
        made.append(Executions(arns))
        return made[-1]

    stack = Stack(directory, 1, 1, 1, "catalogue")
    return LocalStepFunctions(Jobs(desk, directory), stack, server.tools, connect), made


def test_workflows_are_executions_and_jobs_are_processes(tmp_path: Path) -> None:
    Registry({"both": "arn"}, {"no_file": "because"}).save(tmp_path / "machines.json")
    desk = Desk()
    engine, made = step_functions(desk, tmp_path)
    assert engine.start(order("both")) == "execution of both"
    assert engine.describe("both", NAME, None).output == "{}"
    engine.resume("token", "{}")
    assert (made[0].arns, made[0].resumed) == ({"both": "arn"}, [("token", "{}")])
    assert desk.asked == []
    assert engine.start(order("some_job")).endswith(f":execution:some_job:{NAME}")
    assert desk.asked[0]["engine"] == "step_functions"
    with pytest.raises(StartRefused, match="because"):
        engine.start(order("no_file"))
    assert made[0].started == ["both"]


def test_state_machines_that_do_not_come_are_an_unknown_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "MACHINES_WITHIN_MS", 0)
    engine, _ = step_functions(Desk(), tmp_path)
    with pytest.raises(EngineUnavailable, match="not there yet"):
        engine.start(order("both"))


def test_a_containers_command_has_its_parameters_and_its_environment(tmp_path: Path) -> None:
    desk = Desk()
    environment = {"TASKRAIL_REPORT_TOKEN": "token"}
    run_id = batch(desk, tmp_path).start(order("shell", parameters={"how": "exit 1"}, environment=environment))
    (asked,) = desk.asked
    assert asked["command"] == ["sh", "-c", "exit 1"]
    assert asked["environment"] == {"GREETING": "hello", **environment}
    assert (asked["engine"], asked["run_id"], asked["attempts"]) == ("batch", run_id, 3)
    assert run_id == job_id(NAME) != NAME


def test_a_placeholder_without_a_value_stays(tmp_path: Path) -> None:
    desk = Desk()
    batch(desk, tmp_path).start(order("shell"))
    assert desk.asked[0]["command"] == ["sh", "-c", "Ref::how"]


def test_a_python_job_on_batch_has_no_command(tmp_path: Path) -> None:
    desk = Desk()
    batch(desk, tmp_path).start(order("on_batch"))
    assert "command" not in desk.asked[0]
    assert desk.asked[0]["attempts"] == 2


@pytest.mark.parametrize(
    ("tool", "why"),
    [("adopted_job", "its job definition is in AWS"), ("image_command", "the image's own is not known")],
)
def test_a_container_without_a_command_is_refused(tmp_path: Path, tool: str, why: str) -> None:
    desk = Desk()
    with pytest.raises(StartRefused, match=why):
        batch(desk, tmp_path).start(order(tool))
    assert desk.asked == []


def test_a_job_is_known_by_its_id(tmp_path: Path) -> None:
    desk = Desk(ok={"state": "failed", "reason": "exit code 3", "engine": "batch", "attempt": 2})
    engine = batch(desk, tmp_path)
    report = RunReport(RunState.FAILED, "exit code 3", run_id=job_id(NAME), attempt=2, log=NAME)
    assert engine.describe("shell", NAME, None) == report
    assert engine.describe("shell", NAME, job_id(NAME)) == report
    assert engine.describe("shell", NAME, "another") == RunReport(RunState.NOT_FOUND)
    asked = len(desk.asked)
    assert engine.stop("shell", NAME, "another")
    assert len(desk.asked) == asked, "a job of another id is not the one that runs here"


def test_a_job_on_lambda_is_a_process_that_can_be_neither_asked_nor_stopped(tmp_path: Path) -> None:
    desk = Desk(ok={"state": "failed", "reason": "exit code 3", "engine": "lambda", "attempt": 2})
    engine = LocalLambda(Jobs(desk, tmp_path), lambda_server.tools)
    assert engine.by_lease
    assert not engine.records_ids
    for _ in range(2):
        assert engine.start(order("twice")) == NAME
    asked = [(each["engine"], each["run_id"], each["attempts"]) for each in desk.asked]
    assert asked == [("lambda", request_id(NAME), 2)] * 2
    assert request_id(NAME) != request_id(f"{'0' * 32}-2")
    assert engine.stop("twice", NAME, None) is False
    assert engine.describe("twice", NAME, None) == RunReport(RunState.NOT_FOUND)
    engine.resume("token", "{}")
    assert engine.log_tail("twice", NAME, 5) == ()
    assert len(desk.asked) == 2, "nothing but the starts was asked of the supervisor"


def test_the_tail_of_a_log_is_its_last_lines(tmp_path: Path) -> None:
    folder = tmp_path / NAME
    folder.mkdir()
    (folder / "output.log").write_bytes(b"one\ntwo\n\xffthree\n")
    engine = batch(Desk(), tmp_path)
    assert engine.log_tail("shell", NAME, 2) == ("two", "\ufffdthree")
    assert engine.log_tail("shell", NAME, 0) == ()
    assert tail(tmp_path / "nothing", 5) == ()
