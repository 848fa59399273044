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
from botocore.stub import ANY, Stubber
from moto import mock_aws

from taskrail.clients import client
from taskrail.engines import Engine, RunOrder, RunReport, RunState
from taskrail.engines.adopted import Adopted
from taskrail.engines.step_functions import StepFunctions
from taskrail.errors import EngineUnavailable, StartRefused

TASK_ID = "0123456789abcdef" * 2
NAME = f"{TASK_ID}-1"
PAYLOAD: dict[str, object] = {"taskId": TASK_ID, "run": 1}
MACHINE = "arn:aws:states:eu-central-1:123456789012:stateMachine:jobs"
ORDER = RunOrder("work", NAME, PAYLOAD, timeout_ms=60_000)
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
    assert not checked.records_ids
    assert not checked.stops_gently


def test_a_start_is_one_execution_by_its_name_told_only_which_run_it_is(engine: StepFunctions, sfn: Any) -> None:
    assert engine.start(ORDER) == EXECUTION
    assert executions(sfn) == [NAME]
    assert json.loads(sfn.describe_execution(executionArn=EXECUTION)["input"]) == PAYLOAD


def test_a_start_repeated_while_it_runs_is_the_same_execution(engine: StepFunctions, sfn: Any) -> None:
    starts = {engine.start(RunOrder("work", NAME, dict(reversed(PAYLOAD.items())))) for _ in range(3)}
    assert starts == {EXECUTION}
    assert executions(sfn) == [NAME]


def test_a_start_of_a_name_that_has_ended_answers_as_started(stubbed: tuple[StepFunctions, Stubber]) -> None:
    engine, stubber = stubbed
    stubber.add_client_error("start_execution", "ExecutionAlreadyExists", http_status_code=400)
    assert engine.start(ORDER) == EXECUTION


@pytest.mark.parametrize("code", REFUSALS)
def test_a_start_that_is_refused_says_so(code: str, stubbed: tuple[StepFunctions, Stubber]) -> None:
    engine, stubber = stubbed
    stubber.add_client_error("start_execution", code, "secret detail", http_status_code=400)
    with pytest.raises(StartRefused) as refusal:
        engine.start(ORDER)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize("code", UNKNOWN)
def test_a_start_that_failed_in_another_way_is_unknown(code: str, stubbed: tuple[StepFunctions, Stubber]) -> None:
    engine, stubber = stubbed
    stubber.add_client_error("start_execution", code, http_status_code=500)
    with pytest.raises(EngineUnavailable):
        engine.start(ORDER)


def test_a_start_of_a_tool_without_a_state_machine_is_refused(engine: StepFunctions) -> None:
    with pytest.raises(StartRefused, match="other"):
        engine.start(RunOrder("other", NAME, PAYLOAD))


def test_a_start_on_a_state_machine_that_is_gone_is_refused(engine: StepFunctions, sfn: Any) -> None:
    sfn.delete_state_machine(stateMachineArn=MACHINE)
    with pytest.raises(StartRefused):
        engine.start(ORDER)


@pytest.mark.parametrize("error", [ReadTimeoutError, ConnectTimeoutError])
def test_what_gets_no_answer_is_unknown(error: Any, sfn: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda seconds: None))

    def fail(**_: Any) -> None:
        raise error(endpoint_url="https://states.example")

    sfn.meta.events.register_first("before-send", fail)
    engine = StepFunctions(sfn, {"work": MACHINE})
    for ask in (
        lambda: engine.start(ORDER),
        lambda: engine.stop("work", NAME, None),
        lambda: engine.describe("work", NAME, None),
        lambda: engine.resume("token", "{}"),
    ):
        with pytest.raises(EngineUnavailable):
            ask()


def test_a_stop_ends_it_and_may_be_repeated(engine: StepFunctions) -> None:
    engine.start(ORDER)
    assert engine.describe("work", NAME, None) == RunReport(RunState.RUNNING, run_id=EXECUTION)
    assert engine.stop("work", NAME, None)
    assert engine.describe("work", NAME, None).state is RunState.STOPPED
    assert engine.stop("work", NAME, None)
    assert engine.describe("work", NAME, None).state is RunState.STOPPED


def test_a_stop_of_what_never_started_has_nothing_to_do(engine: StepFunctions) -> None:
    assert engine.stop("work", NAME, None)
    assert engine.stop("other", NAME, None)


def test_an_unknown_execution_is_not_found(engine: StepFunctions) -> None:
    assert engine.describe("work", NAME, None) == RunReport(RunState.NOT_FOUND)
    assert engine.describe("other", NAME, None) == RunReport(RunState.NOT_FOUND)


@pytest.mark.parametrize("code", ["AccessDeniedException", "ThrottlingException", "InternalServerError"])
def test_a_stop_or_a_look_without_a_clear_answer_says_so(code: str, stubbed: tuple[StepFunctions, Stubber]) -> None:
    engine, stubber = stubbed
    stubber.add_client_error("stop_execution", code, http_status_code=400)
    with pytest.raises(EngineUnavailable):
        engine.stop("work", NAME, None)
    stubber.add_client_error("describe_execution", code, http_status_code=400)
    with pytest.raises(EngineUnavailable):
        engine.describe("work", NAME, None)


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
    stubber.add_response("describe_execution", described(status), {"executionArn": EXECUTION})
    assert engine.describe("work", NAME, None) == RunReport(state, "Lambda.Unknown", run_id=EXECUTION)


def described(status: str, **more: Any) -> dict[str, Any]:
    """An answer of DescribeExecution."""
    return {
        "executionArn": EXECUTION,
        "stateMachineArn": MACHINE,
        "name": NAME,
        "status": status,
        "startDate": 1_780_000_000,
        "error": "Lambda.Unknown",
        "cause": "Traceback (most recent call last): secret",
        **more,
    }


def test_an_output_and_what_a_tool_error_tells_come_along(stubbed: tuple[StepFunctions, Stubber]) -> None:
    engine, stubber = stubbed
    whole = described("SUCCEEDED", output='{"steps":4}', outputDetails={"included": True})
    stubber.add_response("describe_execution", whole)
    report = engine.describe("work", NAME, None)
    assert (report.output, report.whole, report.told) == ('{"steps":4}', True, None)
    stubber.add_response("describe_execution", described("FAILED", error="ToolError", cause="Name a database."))
    assert engine.describe("work", NAME, None).told == "Name a database."


def test_an_execution_whose_arn_is_known_needs_no_state_machine(stubbed: tuple[StepFunctions, Stubber]) -> None:
    engine, stubber = stubbed
    known = f"arn:aws:states:eu-central-1:123456789012:execution:before:{NAME}"
    stubber.add_response("describe_execution", described("RUNNING"), {"executionArn": known})
    assert engine.describe("other", NAME, known).state is RunState.RUNNING
    stubber.add_response("stop_execution", {"stopDate": 1_780_000_000}, {"executionArn": known, "error": ANY})
    assert engine.stop("other", NAME, known)


@pytest.mark.parametrize("run_id", [f"run:{NAME}", f"{EXECUTION}0", "4c7599ae-0a82-49aa-ba5a-4727fcce14a8"])
def test_an_id_that_is_not_this_runs_execution_is_left_alone(
    run_id: str, stubbed: tuple[StepFunctions, Stubber]
) -> None:
    engine, stubber = stubbed
    stubber.add_response("describe_execution", described("RUNNING"), {"executionArn": EXECUTION})
    assert engine.describe("work", NAME, run_id).state is RunState.RUNNING


@pytest.fixture
def tagged() -> Iterator[tuple[StepFunctions, Stubber, Stubber]]:
    states, tagging = client("stepfunctions"), client("resourcegroupstaggingapi")
    with Stubber(states) as calls, Stubber(tagging) as tags:
        yield StepFunctions(states, {"work": "tag:team=reports"}, Adopted(lambda: tagging)), calls, tags
        calls.assert_no_pending_responses()
        tags.assert_no_pending_responses()


def test_a_state_machine_is_found_by_its_tag(tagged: tuple[StepFunctions, Stubber, Stubber]) -> None:
    engine, calls, tags = tagged
    tags.add_response("get_resources", {"ResourceTagMappingList": [{"ResourceARN": MACHINE, "Tags": []}]})
    body = json.dumps(PAYLOAD, separators=(",", ":"), sort_keys=True)
    asked = {"stateMachineArn": MACHINE, "name": NAME, "input": body}
    calls.add_response("start_execution", {"executionArn": EXECUTION, "startDate": 1_780_000_000}, asked)
    assert engine.start(ORDER) == EXECUTION


def test_a_tag_that_cannot_be_looked_up_has_started_nothing_and_proves_nothing(
    tagged: tuple[StepFunctions, Stubber, Stubber],
) -> None:
    engine, _, tags = tagged
    tags.add_client_error("get_resources", "InternalServiceException", http_status_code=500)
    with pytest.raises(StartRefused, match="InternalServiceException"):
        engine.start(ORDER)
    for ask in (engine.stop, engine.describe):
        tags.add_response("get_resources", {"ResourceTagMappingList": []})
        with pytest.raises(EngineUnavailable, match="none has it"):
            ask("work", NAME, None)


def test_an_answer_ends_the_wait_of_a_state(stubbed: tuple[StepFunctions, Stubber]) -> None:
    engine, stubber = stubbed
    stubber.add_response("send_task_success", {}, {"taskToken": "token", "output": '{"action":"accept"}'})
    engine.resume("token", '{"action":"accept"}')
    stubber.assert_no_pending_responses()


@pytest.mark.parametrize("code", ["TaskTimedOut", "TaskDoesNotExist", "InvalidToken", "InvalidOutput"])
def test_a_state_that_waits_no_more_is_as_good(
    code: str, stubbed: tuple[StepFunctions, Stubber], caplog: pytest.LogCaptureFixture
) -> None:
    engine, stubber = stubbed
    stubber.add_client_error("send_task_success", code, http_status_code=400)
    with caplog.at_level("INFO", "taskrail"):
        engine.resume("secret-token", '{"action":"accept"}')
    assert code in caplog.text
    assert "secret-token" not in caplog.text


@pytest.mark.parametrize("code", ["AccessDeniedException", "ThrottlingException", "KmsThrottlingException"])
def test_an_answer_that_may_not_have_been_handed_over_says_so(
    code: str, stubbed: tuple[StepFunctions, Stubber]
) -> None:
    engine, stubber = stubbed
    stubber.add_client_error("send_task_success", code, http_status_code=400)
    with pytest.raises(EngineUnavailable, match=f"^{code}$"):
        engine.resume("token", "{}")


def test_an_execution_has_no_log_of_its_own(engine: StepFunctions) -> None:
    assert engine.log_tail("work", "log", 10) == ()
