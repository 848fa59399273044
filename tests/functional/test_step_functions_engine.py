"""The Step Functions engine: safe to repeat by name, clear about what is refused and what is unknown.

On moto's Step Functions, and on answers put into the client where moto cannot give them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError
from botocore.stub import Stubber
from moto import mock_aws

from taskrail.engines import Engine, RunReport, RunState
from taskrail.engines.step_functions import StepFunctions
from taskrail.errors import EngineUnavailable, StartRefused
from taskrail.runtime import client

TASK_ID = "0123456789abcdef" * 2
NAME = f"{TASK_ID}-1"
PAYLOAD: dict[str, object] = {"taskId": TASK_ID, "run": 1}
MACHINE = "arn:aws:states:eu-central-1:123456789012:stateMachine:jobs"
EXECUTION = f"arn:aws:states:eu-central-1:123456789012:execution:jobs:{NAME}"

# API reference, StartExecution, Errors, and Common Error Types: in all of them no execution exists.
REFUSALS = (
    "AccessDeniedException",
    "ExecutionLimitExceeded",
    "InvalidArn",
    "InvalidExecutionInput",
    "InvalidName",
    "KmsAccessDeniedException",
    "KmsInvalidStateException",
    "KmsThrottlingException",
    "StateMachineDeleting",
    "StateMachineDoesNotExist",
    "ThrottlingException",
    "ValidationException",
)
UNKNOWN = ("InternalServerError", "ServiceUnavailable", "InternalFailure", "SomethingNew")


@pytest.fixture
def sfn() -> Iterator[Any]:
    with mock_aws():
        made = client("stepfunctions")
        definition = {"StartAt": "Wait", "States": {"Wait": {"Type": "Wait", "Seconds": 600, "End": True}}}
        made.create_state_machine(
            name="jobs", definition=json.dumps(definition), roleArn="arn:aws:iam::123456789012:role/jobs"
        )
        yield made


@pytest.fixture
def engine(sfn: Any) -> StepFunctions:
    return StepFunctions(sfn, {"work": MACHINE})


@pytest.fixture
def stubbed() -> Iterator[tuple[StepFunctions, Stubber]]:
    made = client("stepfunctions")
    with Stubber(made) as stubber:
        yield StepFunctions(made, {"work": MACHINE}), stubber


def executions(sfn: Any) -> list[str]:
    return [execution["name"] for execution in sfn.list_executions(stateMachineArn=MACHINE)["executions"]]


def test_it_is_an_engine(engine: StepFunctions) -> None:
    checked: Engine = engine
    assert checked is engine


def test_a_start_is_one_execution_by_its_name_told_only_which_run_it_is(engine: StepFunctions, sfn: Any) -> None:
    assert engine.start("work", NAME, PAYLOAD, 60_000) == EXECUTION
    assert executions(sfn) == [NAME]
    assert json.loads(sfn.describe_execution(executionArn=EXECUTION)["input"]) == PAYLOAD


def test_a_start_repeated_while_it_runs_is_the_same_execution(engine: StepFunctions, sfn: Any) -> None:
    starts = {engine.start("work", NAME, dict(reversed(PAYLOAD.items())), 60_000) for _ in range(3)}
    assert starts == {EXECUTION}
    assert executions(sfn) == [NAME]


def test_a_start_of_a_name_that_has_ended_answers_as_started(stubbed: tuple[StepFunctions, Stubber]) -> None:
    engine, stubber = stubbed
    stubber.add_client_error("start_execution", "ExecutionAlreadyExists", http_status_code=400)
    assert engine.start("work", NAME, PAYLOAD, 60_000) == EXECUTION


@pytest.mark.parametrize("code", REFUSALS)
def test_a_start_that_is_refused_says_so(code: str, stubbed: tuple[StepFunctions, Stubber]) -> None:
    engine, stubber = stubbed
    stubber.add_client_error("start_execution", code, "secret detail", http_status_code=400)
    with pytest.raises(StartRefused) as refusal:
        engine.start("work", NAME, PAYLOAD, 60_000)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize("code", UNKNOWN)
def test_a_start_that_failed_in_another_way_is_unknown(code: str, stubbed: tuple[StepFunctions, Stubber]) -> None:
    engine, stubber = stubbed
    stubber.add_client_error("start_execution", code, http_status_code=500)
    with pytest.raises(EngineUnavailable):
        engine.start("work", NAME, PAYLOAD, 60_000)


def test_a_start_of_a_tool_without_a_state_machine_is_refused(engine: StepFunctions) -> None:
    with pytest.raises(StartRefused, match="other"):
        engine.start("other", NAME, PAYLOAD, 60_000)


def test_a_start_on_a_state_machine_that_is_gone_is_refused(engine: StepFunctions, sfn: Any) -> None:
    sfn.delete_state_machine(stateMachineArn=MACHINE)
    with pytest.raises(StartRefused):
        engine.start("work", NAME, PAYLOAD, 60_000)


@pytest.mark.parametrize("error", [ReadTimeoutError, ConnectTimeoutError])
def test_what_gets_no_answer_is_unknown(error: Any, sfn: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda seconds: None))

    def fail(**_: Any) -> None:
        raise error(endpoint_url="https://states.example")

    sfn.meta.events.register_first("before-send", fail)
    engine = StepFunctions(sfn, {"work": MACHINE})
    for ask in (
        lambda: engine.start("work", NAME, PAYLOAD, 60_000),
        lambda: engine.stop("work", NAME),
        lambda: engine.describe("work", NAME),
    ):
        with pytest.raises(EngineUnavailable):
            ask()


def test_a_stop_ends_it_and_may_be_repeated(engine: StepFunctions) -> None:
    engine.start("work", NAME, PAYLOAD, 60_000)
    assert engine.describe("work", NAME) == RunReport(RunState.RUNNING)
    assert engine.stop("work", NAME)
    assert engine.describe("work", NAME).state is RunState.STOPPED
    assert engine.stop("work", NAME)
    assert engine.describe("work", NAME).state is RunState.STOPPED


def test_a_stop_of_what_never_started_has_nothing_to_do(engine: StepFunctions) -> None:
    assert engine.stop("work", NAME)
    assert engine.stop("other", NAME)


def test_an_unknown_execution_is_not_found(engine: StepFunctions) -> None:
    assert engine.describe("work", NAME) == RunReport(RunState.NOT_FOUND)
    assert engine.describe("other", NAME) == RunReport(RunState.NOT_FOUND)


@pytest.mark.parametrize("code", ["AccessDeniedException", "ThrottlingException", "InternalServerError"])
def test_a_stop_or_a_look_without_a_clear_answer_says_so(code: str, stubbed: tuple[StepFunctions, Stubber]) -> None:
    engine, stubber = stubbed
    stubber.add_client_error("stop_execution", code, http_status_code=400)
    with pytest.raises(EngineUnavailable):
        engine.stop("work", NAME)
    stubber.add_client_error("describe_execution", code, http_status_code=400)
    with pytest.raises(EngineUnavailable):
        engine.describe("work", NAME)


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("RUNNING", RunState.RUNNING),
        ("PENDING_REDRIVE", RunState.RUNNING),
        ("SUCCEEDED", RunState.SUCCEEDED),
        ("FAILED", RunState.FAILED),
        ("TIMED_OUT", RunState.TIMED_OUT),
        ("ABORTED", RunState.STOPPED),
        ("A_STATUS_OF_LATER_YEARS", RunState.RUNNING),
    ],
)
def test_every_status_has_a_state(status: str, state: RunState, stubbed: tuple[StepFunctions, Stubber]) -> None:
    engine, stubber = stubbed
    answer = {
        "executionArn": EXECUTION,
        "stateMachineArn": MACHINE,
        "name": NAME,
        "status": status,
        "startDate": 1_780_000_000,
        "error": "Lambda.Unknown",
        "cause": "Traceback (most recent call last): secret",
    }
    stubber.add_response("describe_execution", answer, {"executionArn": EXECUTION})
    assert engine.describe("work", NAME) == RunReport(state, "Lambda.Unknown")
