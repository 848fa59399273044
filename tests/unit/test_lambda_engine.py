"""The Lambda engine: one Invoke per run, clear about what is refused and what is unknown; and its failure records."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError
from botocore.response import StreamingBody
from botocore.session import get_session
from botocore.stub import Stubber
from hypothesis import given
from hypothesis import strategies as st

from taskrail.engines import Engine, RunOrder, RunReport, RunState, parse_run_name
from taskrail.engines.lambda_functions import LambdaFunctions, report_of_record
from taskrail.errors import EngineUnavailable, StartRefused
from taskrail.settings import Settings, SettingsError

EVENTS = Path(__file__).resolve().parents[1] / "events"
TASK_ID = "0123456789abcdef" * 2
NAME = f"{TASK_ID}-1"
ARN = "arn:aws:lambda:eu-central-1:123456789012:function:work"
ORDER = RunOrder(
    "work", NAME, {"run": 1, "taskId": TASK_ID}, {"TASKRAIL_RUN": "1"}, timeout_ms=60_000, traceparent=None
)
REQUEST = "b3b1e2c4-d5f6-4a7b-8c9d-0e1f2a3b4c5d"
ASKED = {
    "FunctionName": ARN,
    "InvocationType": "Event",
    "Payload": b'{"run":1,"taskId":"0123456789abcdef0123456789abcdef"}',
}

# API reference, Invoke, Errors, and Common Error Types: in all of them no event is queued.
REFUSALS = (
    "AccessDeniedException",
    "InvalidParameterValueException",
    "InvalidRequestContentException",
    "KMSAccessDeniedException",
    "KMSDisabledException",
    "KMSInvalidStateException",
    "KMSNotFoundException",
    "RequestTooLargeException",
    "ResourceConflictException",
    "ResourceNotFoundException",
    "ThrottlingException",
    "TooManyRequestsException",
    "UnrecognizedClientException",
)
THROTTLES = ("ThrottlingException", "TooManyRequestsException")
UNKNOWN = ("ServiceException", "ServiceUnavailable", "InternalFailure", "EC2UnexpectedException", "SomethingNew")


@pytest.fixture
def stubbed() -> Iterator[tuple[LambdaFunctions, Stubber]]:
    made = get_session().create_client("lambda", region_name="eu-central-1")
    with Stubber(made) as stubber:
        yield LambdaFunctions(made, {"work": ARN}), stubber
        stubber.assert_no_pending_responses()


def accepted(status: int = 202) -> dict[str, Any]:
    return {"StatusCode": status, "Payload": StreamingBody(io.BytesIO(b""), 0)}


def test_it_is_an_engine_that_cannot_be_asked(stubbed: tuple[LambdaFunctions, Stubber]) -> None:
    checked: Engine = stubbed[0]
    assert checked.by_lease
    assert not checked.records_ids
    assert not checked.stops_gently


def test_a_start_is_one_event_that_says_only_which_run_it_is(stubbed: tuple[LambdaFunctions, Stubber]) -> None:
    engine, stubber = stubbed
    stubber.add_response("invoke", accepted(), ASKED)
    assert engine.start(ORDER) == NAME


@pytest.mark.parametrize(
    ("code", "tries"), [*((code, 0) for code in REFUSALS), *((code, 2) for code in REFUSALS if code not in THROTTLES)]
)
def test_a_refusal_starts_nothing(stubbed: tuple[LambdaFunctions, Stubber], code: str, tries: int) -> None:
    engine, stubber = stubbed
    stubber.add_client_error(
        "invoke", code, "arn:aws:secret", http_status_code=400, response_meta={"RetryAttempts": tries}
    )
    with pytest.raises(StartRefused) as refused:
        engine.start(ORDER)
    assert str(refused.value) == code


@pytest.mark.parametrize("code", [*THROTTLES, *UNKNOWN])
def test_a_throttle_after_a_try_without_an_answer_tells_nothing(
    stubbed: tuple[LambdaFunctions, Stubber], code: str
) -> None:
    """An earlier try of the same call may have been queued."""
    engine, stubber = stubbed
    stubber.add_client_error("invoke", code, response_meta={"RetryAttempts": 1})
    with pytest.raises(EngineUnavailable):
        engine.start(ORDER)


@pytest.mark.parametrize("code", UNKNOWN)
def test_an_error_that_says_nothing_is_an_unknown_outcome(stubbed: tuple[LambdaFunctions, Stubber], code: str) -> None:
    engine, stubber = stubbed
    stubber.add_client_error("invoke", code, http_status_code=500)
    with pytest.raises(EngineUnavailable):
        engine.start(ORDER)


def test_an_answer_that_is_no_acceptance_is_an_unknown_outcome(stubbed: tuple[LambdaFunctions, Stubber]) -> None:
    engine, stubber = stubbed
    stubber.add_response("invoke", accepted(200), ASKED)
    with pytest.raises(EngineUnavailable, match="200"):
        engine.start(ORDER)


@pytest.mark.parametrize("error", [ReadTimeoutError(endpoint_url="x"), ConnectTimeoutError(endpoint_url="x")])
def test_no_answer_is_an_unknown_outcome(error: Exception) -> None:
    class Silent:
        def invoke(self, **_: Any) -> Any:
            raise error

    with pytest.raises(EngineUnavailable):
        LambdaFunctions(Silent(), {"work": ARN}).start(ORDER)


def test_a_tool_without_a_function_is_refused(stubbed: tuple[LambdaFunctions, Stubber]) -> None:
    with pytest.raises(StartRefused, match="No function is configured for the tool 'other'"):
        stubbed[0].start(RunOrder("other", NAME, {}))


def test_what_it_cannot_do_makes_no_call(stubbed: tuple[LambdaFunctions, Stubber]) -> None:
    engine, _ = stubbed
    assert engine.stop("work", NAME, None) is False
    assert engine.describe("work", NAME, None) == RunReport(RunState.NOT_FOUND)
    assert engine.log_tail("work", "log", 5) == ()
    engine.resume("token", "{}")


# What Lambda sends to a failure destination.


def record(name: str = "lambda_retries_exhausted") -> dict[str, Any]:
    made: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text(encoding="utf-8"))
    return made


def lost(reason: str | None, attempt: int, state: RunState = RunState.FAILED) -> tuple[str, RunReport]:
    return NAME, RunReport(state, reason, run_id=REQUEST, attempt=attempt)


TABLE: dict[str, tuple[str, RunReport]] = {
    "lambda_retries_exhausted": lost("Runtime.ExitError", 3),
    "lambda_out_of_memory": lost("Runtime.OutOfMemory", 1),
    "lambda_timed_out": lost("Sandbox.Timedout", 1, RunState.TIMED_OUT),
    "lambda_timed_out_untyped": lost(None, 2, RunState.TIMED_OUT),
    "lambda_import_error": lost("Runtime.ImportModuleError", 1),
    "lambda_event_age_exceeded": lost("its event grew too old in Lambda's queue", 0),
    "lambda_zero_concurrency": lost("its function may not run at all: its reserved concurrency is zero", 0),
}


@pytest.mark.parametrize("name", TABLE)
def test_a_record_becomes_its_account(name: str) -> None:
    assert report_of_record(record(name)) == TABLE[name]


def test_every_document_is_in_the_table() -> None:
    assert {path.stem for path in EVENTS.glob("lambda_*.json")} == set(TABLE)


GONE = object()


def changed(path: str, value: object) -> dict[str, Any]:
    """The record with something else, or nothing, in one place."""
    made = copy.deepcopy(record())
    *way, last = path.split(".")
    inner = made
    for key in way:
        inner = inner[key]
    if value is GONE:
        del inner[last]
    else:
        inner[last] = value
    return made


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("requestContext", GONE),
        ("requestContext", []),
        ("requestContext", None),
        ("requestContext.condition", GONE),
        ("requestContext.condition", "Success"),
        ("requestContext.condition", ["RetriesExhausted"]),
        ("requestContext.condition", {}),
        ("requestContext.requestId", GONE),
        ("requestContext.requestId", 7),
        ("requestContext.requestId", ""),
        ("requestContext.requestId", "x" * 65),
        ("requestContext.requestId", "a b"),
        ("requestPayload", GONE),
        ("requestPayload", "text"),
        ("requestPayload.taskId", GONE),
        ("requestPayload.taskId", "F" * 32),
        ("requestPayload.taskId", "f" * 31),
        ("requestPayload.taskId", "f" * 32 + "\n"),
        ("requestPayload.taskId", 12),
        ("requestPayload.run", GONE),
        ("requestPayload.run", 0),
        ("requestPayload.run", -1),
        ("requestPayload.run", True),
        ("requestPayload.run", 1.0),
        ("requestPayload.run", "1"),
        ("requestPayload.run", 10**6),
        ("requestPayload.run", 10**400),
    ],
)
def test_a_record_that_names_no_run_is_none(path: str, value: object) -> None:
    assert report_of_record(changed(path, value)) is None


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("responsePayload", GONE, lost(None, 3)),
        ("responsePayload", "text", lost(None, 3)),
        ("responsePayload.errorType", GONE, lost(None, 3)),
        ("responsePayload.errorType", 5, lost(None, 3)),
        ("responsePayload.errorType", "", lost(None, 3)),
        ("responsePayload.errorType", "a sentence of the job's own", lost(None, 3)),
        ("responsePayload.errorType", "x" * 101, lost(None, 3)),
        ("responsePayload.errorType", "arn:aws:lambda", lost(None, 3)),
        ("responsePayload.errorType", "mine.errors.OutOfPaper", lost("mine.errors.OutOfPaper", 3)),
        ("responseContext", GONE, lost("Runtime.ExitError", 3)),
        ("requestContext.approximateInvokeCount", GONE, lost("Runtime.ExitError", 1)),
        ("requestContext.approximateInvokeCount", "3", lost("Runtime.ExitError", 1)),
        ("requestContext.approximateInvokeCount", True, lost("Runtime.ExitError", 1)),
        ("requestContext.approximateInvokeCount", 10**400, lost("Runtime.ExitError", 1)),
        ("requestContext.approximateInvokeCount", -1, lost("Runtime.ExitError", 1)),
    ],
)
def test_a_record_says_as_much_as_can_be_believed(path: str, value: object, expected: tuple[str, RunReport]) -> None:
    assert report_of_record(changed(path, value)) == expected


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from([TASK_ID, REQUEST, "Success"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.data())
def test_whatever_a_record_holds_it_is_believed_or_left_alone(data: st.DataObject) -> None:
    """It comes from AWS, and is read like anybody's."""
    made = record()
    for _ in range(data.draw(st.integers(1, 3))):
        inner: dict[str, Any] = made
        while True:
            key = data.draw(st.sampled_from(sorted(inner) or ["x"]))
            if isinstance(inner.get(key), dict) and data.draw(st.booleans()):
                inner = inner[key]
                continue
            inner[key] = data.draw(values)
            break
    told = report_of_record(made)
    if told is not None:
        assert parse_run_name(told[0]) is not None
        assert told[1].ended and told[1].run_id and told[1].attempt is not None
        assert told[1].reason is None or len(told[1].reason) <= 100


def test_no_message_and_no_trace_of_the_job_is_taken_over() -> None:
    for path in EVENTS.glob("lambda_*.json"):
        assert "secret" in path.read_text(encoding="utf-8")
        assert "secret" not in repr(report_of_record(record(path.stem)))


def test_the_environment_names_the_function_of_each_tool() -> None:
    environ = {"TASKRAIL_TABLE": "t", "TASKRAIL_BUCKET": "b", "TASKRAIL_SECRET": "s" * 16}
    assert Settings.from_environment(environ).functions == {}
    assert Settings.from_environment({**environ, "TASKRAIL_FUNCTIONS": f'{{"work": "{ARN}"}}'}).functions == {
        "work": ARN
    }
    for text in ("[]", "no JSON", '{"work": 1}'):
        with pytest.raises(SettingsError, match="TASKRAIL_FUNCTIONS must be a JSON object of tool name to ARN"):
            Settings.from_environment({**environ, "TASKRAIL_FUNCTIONS": text})
