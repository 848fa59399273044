"""The Batch engine: submitted once, found by id or by name, ended in every state. On answers put into the client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from botocore.stub import ANY, Stubber
from moto import mock_aws

from taskrail.clients import client
from taskrail.engines import Engine, RunOrder, RunReport, RunState
from taskrail.engines.adopted import Adopted
from taskrail.engines.batch import Batch
from taskrail.errors import EngineUnavailable, StartRefused

NAME = "0123456789abcdef0123456789abcdef-1"
QUEUE = "arn:aws:batch:us-east-1:123456789012:job-queue/jobs"
DEFINITION = "arn:aws:batch:us-east-1:123456789012:job-definition/work:3"
JOBS: Mapping[str, Mapping[str, str]] = {
    "work": {"queue": QUEUE, "definition": DEFINITION},
    "adopted": {"queue": "tag:team=reports", "definition": "tag:team=reports"},
}
ID, OTHER, THIRD = "job-a", "job-b", "job-c"
ORDER = RunOrder(
    "work", NAME, {}, {"TASKRAIL_TASK_ID": NAME[:-2], "TASKRAIL_RUN": "1"}, {"source": "a.mov"}, timeout_ms=3_600_001
)
SUBMITTED = {
    "jobName": NAME,
    "jobQueue": QUEUE,
    "jobDefinition": DEFINITION,
    "containerOverrides": {
        "environment": [
            {"name": "TASKRAIL_TASK_ID", "value": NAME[:-2]},
            {"name": "TASKRAIL_RUN", "value": "1"},
        ]
    },
    "parameters": {"source": "a.mov"},
    "timeout": {"attemptDurationSeconds": 3_631},
}
REFUSED = ("ClientException", "AccessDeniedException", "ThrottlingException", "TooManyRequestsException")
UNKNOWN = ("ServerException", "InternalFailure", "ServiceUnavailable", "SomethingNew")


class Bench:
    """An engine over clients whose answers a test puts in, in the order of the calls."""

    def __init__(self, batch: Stubber, logs: Stubber, tagging: Stubber) -> None:
        self.batch, self.logs, self.tagging = batch, logs, tagging
        adopted = Adopted(lambda: tagging.client)
        self.engine = Batch(batch.client, JOBS, adopted, lambda: logs.client)

    def expect_list(self, *jobs: Mapping[str, Any], more: str | None = None, after: str | None = None) -> None:
        """ListJobs by the run's name."""
        asked: dict[str, Any] = {"jobQueue": QUEUE, "filters": [{"name": "JOB_NAME", "values": [NAME]}]}
        if after is not None:
            asked["nextToken"] = after
        answer: dict[str, Any] = {"jobSummaryList": list(jobs)}
        if more is not None:
            answer["nextToken"] = more
        self.batch.add_response("list_jobs", answer, asked)

    def expect_describe(self, *details: Mapping[str, Any], asked: list[str] | None = None) -> None:
        """DescribeJobs of those jobs."""
        ids = [detail["jobId"] for detail in details] if asked is None else asked
        self.batch.add_response("describe_jobs", {"jobs": list(details)}, {"jobs": ids})

    def expect_terminate(self, job_id: str) -> None:
        """TerminateJob."""
        self.batch.add_response("terminate_job", {}, {"jobId": job_id, "reason": "Taskrail.Stopped"})


@pytest.fixture
def bench() -> Iterator[Bench]:
    stubbers = [Stubber(client(service)) for service in ("batch", "logs", "resourcegroupstaggingapi")]
    for stubber in stubbers:
        stubber.activate()
    yield Bench(*stubbers)
    for stubber in stubbers:
        stubber.assert_no_pending_responses()


def detail(job_id: str, status: str, created: int = 1, **more: Any) -> dict[str, Any]:
    """A job as DescribeJobs has it."""
    return {
        "jobId": job_id,
        "jobName": NAME,
        "jobQueue": QUEUE,
        "jobDefinition": DEFINITION,
        "status": status,
        "createdAt": created,
        "startedAt": created,
        **more,
    }


def summary(job_id: str, name: str = NAME) -> dict[str, Any]:
    """A job as ListJobs has it."""
    return {"jobId": job_id, "jobName": name}


def test_it_is_an_engine_that_has_to_be_told_ids_and_stops_gently(bench: Bench) -> None:
    checked: Engine = bench.engine
    assert checked.records_ids
    assert checked.stops_gently


def test_a_start_is_one_job_with_all_that_it_is_told(bench: Bench) -> None:
    bench.batch.add_response("submit_job", {"jobName": NAME, "jobId": ID}, SUBMITTED)
    assert bench.engine.start(ORDER) == ID


@pytest.mark.parametrize(("timeout_ms", "seconds"), [(1, 60), (30_000, 60), (30_001, 61), (7_200_000, 7_230)])
def test_batchs_own_time_out_comes_after_the_tools(bench: Bench, timeout_ms: int, seconds: int) -> None:
    asked = {**SUBMITTED, "timeout": {"attemptDurationSeconds": seconds}}
    bench.batch.add_response("submit_job", {"jobName": NAME, "jobId": ID}, asked)
    bench.engine.start(RunOrder("work", NAME, {}, ORDER.environment, ORDER.parameters, timeout_ms))


@pytest.mark.parametrize("code", REFUSED)
def test_a_start_that_is_refused_says_so(bench: Bench, code: str) -> None:
    bench.batch.add_client_error("submit_job", code, "secret detail", http_status_code=400)
    with pytest.raises(StartRefused, match=f"^{code}$"):
        bench.engine.start(ORDER)


@pytest.mark.parametrize("code", UNKNOWN)
def test_a_start_that_failed_in_another_way_is_unknown(bench: Bench, code: str) -> None:
    bench.batch.add_client_error("submit_job", code, "secret detail", http_status_code=500)
    with pytest.raises(EngineUnavailable, match=f"^{code}$"):
        bench.engine.start(ORDER)


@pytest.mark.parametrize("code", REFUSED)
def test_a_refusal_of_a_repeated_call_is_unknown_since_the_first_may_have_been_heard(bench: Bench, code: str) -> None:
    bench.batch.add_client_error("submit_job", code, http_status_code=400, response_meta={"RetryAttempts": 1})
    with pytest.raises(EngineUnavailable):
        bench.engine.start(ORDER)


def test_a_start_of_a_tool_without_a_job_is_refused(bench: Bench) -> None:
    with pytest.raises(StartRefused, match="'other'"):
        bench.engine.start(RunOrder("other", NAME, {}))


def test_overrides_that_batch_would_not_take_are_refused_without_a_call(bench: Bench) -> None:
    frame = len('{"environment": [{"name": "A", "value": ""}]}')
    with pytest.raises(StartRefused, match=r"'work' take 8193 bytes; AWS Batch allows 8192"):
        bench.engine.start(RunOrder("work", NAME, {}, {"A": "x" * (8_193 - frame)}))
    bench.batch.add_response("submit_job", {"jobName": NAME, "jobId": ID})
    assert bench.engine.start(RunOrder("work", NAME, {}, {"A": "x" * (8_192 - frame)})) == ID


def test_characters_count_as_they_are_sent(bench: Bench) -> None:
    with pytest.raises(StartRefused, match="bytes"):
        bench.engine.start(RunOrder("work", NAME, {}, {"A": "ü" * 2_000}))


def expect_tags(bench: Bench, *kinds: str) -> None:
    """Lookups of the tag, each with one answer."""
    for kind in kinds:
        arn = QUEUE if kind == "batch:job-queue" else DEFINITION
        asked = {"TagFilters": ANY, "ResourceTypeFilters": [kind]}
        found = [{"ResourceARN": arn, "Tags": []}]
        bench.tagging.add_response("get_resources", {"ResourceTagMappingList": found}, asked)


def test_what_is_in_the_account_is_found_by_its_tag(bench: Bench) -> None:
    expect_tags(bench, "batch:job-queue", "batch:job-definition")
    bench.batch.add_response("submit_job", {"jobName": NAME, "jobId": ID}, SUBMITTED)
    assert bench.engine.start(RunOrder("adopted", NAME, {}, ORDER.environment, ORDER.parameters, 3_600_001)) == ID


def test_a_tag_that_cannot_be_looked_up_has_started_nothing(bench: Bench) -> None:
    bench.tagging.add_client_error("get_resources", "InternalServiceException", http_status_code=500)
    with pytest.raises(StartRefused, match="InternalServiceException"):
        bench.engine.start(RunOrder("adopted", NAME, {}))


def test_a_tag_that_names_nothing_is_no_proof_that_a_run_is_gone(bench: Bench) -> None:
    bench.tagging.add_response("get_resources", {"ResourceTagMappingList": []})
    with pytest.raises(EngineUnavailable, match="none has it"):
        bench.engine.describe("adopted", NAME, None)


def test_a_job_is_described_by_its_id(bench: Bench) -> None:
    bench.expect_describe(detail(ID, "RUNNING"))
    assert bench.engine.describe("work", NAME, ID) == RunReport(RunState.RUNNING, run_id=ID, attempt=1)


def test_a_job_whose_id_is_unknown_is_not_found(bench: Bench) -> None:
    bench.expect_describe(asked=[ID])
    assert bench.engine.describe("work", NAME, ID) == RunReport(RunState.NOT_FOUND)


def test_a_job_without_a_recorded_id_is_found_by_its_name(bench: Bench) -> None:
    bench.expect_list(summary(ID))
    bench.expect_describe(detail(ID, "RUNNABLE"))
    assert bench.engine.describe("work", NAME, None) == RunReport(RunState.RUNNING, run_id=ID, attempt=0)


def test_a_name_that_nobody_has_is_not_found(bench: Bench) -> None:
    bench.expect_list()
    assert bench.engine.describe("work", NAME, None) == RunReport(RunState.NOT_FOUND)
    assert bench.engine.describe("other", NAME, None) == RunReport(RunState.NOT_FOUND)


def test_only_that_very_name_counts_on_every_page(bench: Bench) -> None:
    bench.expect_list(summary(OTHER, NAME.upper()), more="2")
    bench.expect_list(summary(ID), summary(THIRD, NAME + "0"), after="2")
    bench.expect_describe(detail(ID, "SUBMITTED"))
    assert bench.engine.describe("work", NAME, None).run_id == ID


def test_children_of_arrays_are_not_the_run(bench: Bench) -> None:
    bench.expect_list(summary(f"{ID}:0"))
    bench.expect_describe(detail(f"{ID}:0", "RUNNING"))
    assert bench.engine.describe("work", NAME, None) == RunReport(RunState.NOT_FOUND)


@pytest.mark.parametrize(
    ("statuses", "speaks"),
    [
        (["RUNNING", "RUNNABLE"], ID),
        (["FAILED", "RUNNING"], OTHER),
        (["SUCCEEDED", "SUBMITTED"], OTHER),
        (["FAILED", "SUCCEEDED"], ID),
    ],
)
def test_of_a_run_submitted_twice_the_first_that_goes_on_speaks(bench: Bench, statuses: list[str], speaks: str) -> None:
    # The most recent comes first, as Batch sorts them.
    bench.expect_list(summary(OTHER), summary(ID))
    bench.expect_describe(detail(OTHER, statuses[1], created=2), detail(ID, statuses[0], created=1))
    assert bench.engine.describe("work", NAME, None).run_id == speaks


def test_more_jobs_than_one_call_takes_are_described_in_several(bench: Bench) -> None:
    ids = [f"job-{number:03}" for number in range(101)]
    bench.expect_list(*map(summary, ids))
    bench.expect_describe(*(detail(job, "FAILED") for job in ids[:100]))
    bench.expect_describe(detail(ids[100], "RUNNING"))
    assert bench.engine.describe("work", NAME, None).run_id == ids[100]


@pytest.mark.parametrize("status", ["SUCCEEDED", "FAILED"])
def test_a_stop_of_what_has_ended_has_nothing_to_do(bench: Bench, status: str) -> None:
    bench.expect_describe(detail(ID, status))
    assert bench.engine.stop("work", NAME, ID)


def test_a_stop_of_what_is_unknown_has_nothing_to_do(bench: Bench) -> None:
    bench.expect_describe(asked=[ID])
    assert bench.engine.stop("work", NAME, ID)
    bench.expect_list()
    assert bench.engine.stop("work", NAME, None)
    assert bench.engine.stop("other", NAME, None)


@pytest.mark.parametrize(
    ("before", "after", "stopped"),
    [
        ("SUBMITTED", "FAILED", True),
        ("PENDING", "PENDING", True),
        ("RUNNABLE", "RUNNABLE", True),
        ("RUNNABLE", "FAILED", True),
        ("RUNNABLE", "STARTING", False),
        ("STARTING", "STARTING", False),
        ("STARTING", "FAILED", True),
        ("RUNNING", "RUNNING", False),
        ("RUNNING", "FAILED", True),
        ("RUNNING", "SUCCEEDED", True),
        ("A_STATUS_OF_LATER_YEARS", "A_STATUS_OF_LATER_YEARS", False),
    ],
)
def test_a_stop_terminates_and_says_whether_the_job_can_still_go_on(
    bench: Bench, before: str, after: str, stopped: bool
) -> None:
    bench.expect_describe(detail(ID, before))
    bench.expect_terminate(ID)
    bench.expect_describe(detail(ID, after))
    assert bench.engine.stop("work", NAME, ID) is stopped


def test_a_job_that_is_gone_after_it_was_terminated_does_not_go_on(bench: Bench) -> None:
    bench.expect_describe(detail(ID, "RUNNABLE"))
    bench.expect_terminate(ID)
    bench.expect_describe(asked=[ID])
    assert bench.engine.stop("work", NAME, ID)


def test_a_stop_by_name_terminates_every_job_of_the_run(bench: Bench) -> None:
    bench.expect_list(summary(THIRD), summary(OTHER), summary(ID))
    bench.expect_describe(detail(THIRD, "RUNNABLE", 3), detail(OTHER, "FAILED", 2), detail(ID, "RUNNING", 1))
    bench.expect_terminate(ID)
    bench.expect_terminate(THIRD)
    bench.expect_describe(detail(ID, "RUNNING", 1), detail(THIRD, "FAILED", 3))
    assert not bench.engine.stop("work", NAME, None)


@pytest.mark.parametrize("code", ["ClientException", "AccessDeniedException", "ServerException"])
def test_a_stop_or_a_look_without_a_clear_answer_says_so(bench: Bench, code: str) -> None:
    bench.batch.add_client_error("describe_jobs", code, http_status_code=400)
    with pytest.raises(EngineUnavailable, match=f"^{code}$"):
        bench.engine.describe("work", NAME, ID)
    bench.batch.add_client_error("list_jobs", code, http_status_code=400)
    with pytest.raises(EngineUnavailable, match=f"^{code}$"):
        bench.engine.describe("work", NAME, None)
    bench.expect_describe(detail(ID, "RUNNING"))
    bench.batch.add_client_error("terminate_job", code, http_status_code=400)
    with pytest.raises(EngineUnavailable, match=f"^{code}$"):
        bench.engine.stop("work", NAME, ID)


def test_what_gets_no_answer_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda seconds: None))
    made = client("batch")

    def fail(**_: Any) -> None:
        raise ReadTimeoutError(endpoint_url="https://batch.example")

    made.meta.events.register_first("before-send", fail)
    engine = Batch(made, JOBS, Adopted(lambda: None), lambda: None)
    for ask in (
        lambda: engine.start(ORDER),
        lambda: engine.stop("work", NAME, ID),
        lambda: engine.describe("work", NAME, None),
    ):
        with pytest.raises(EngineUnavailable, match="ReadTimeoutError"):
            ask()


def test_the_tail_of_a_log_is_its_last_lines(bench: Bench) -> None:
    asked = {"logGroupName": "/aws/batch/job", "logStreamName": "work/default/1", "limit": 2, "startFromHead": False}
    events = [{"message": text} for text in ("one", "two", "x" * 5_000)]
    bench.logs.add_response("get_log_events", {"events": events}, asked)
    assert bench.engine.log_tail("work", "work/default/1", 2) == ("two", "x" * 1_000)


def test_a_log_may_lie_in_a_group_of_the_definitions_own(bench: Bench) -> None:
    asked = {"logGroupName": "/jobs", "logStreamName": "work/default/1", "limit": 1, "startFromHead": False}
    bench.logs.add_response("get_log_events", {"events": []}, asked)
    assert bench.engine.log_tail("work", "/jobs:work/default/1", 1) == ()


@pytest.mark.parametrize("code", ["ResourceNotFoundException", "AccessDeniedException", "ServiceUnavailableException"])
def test_a_log_without_an_answer_is_empty(bench: Bench, code: str) -> None:
    bench.logs.add_client_error("get_log_events", code, http_status_code=400)
    assert bench.engine.log_tail("work", "work/default/1", 5) == ()


def test_no_lines_are_wanted_without_a_call(bench: Bench) -> None:
    assert bench.engine.log_tail("work", "work/default/1", 0) == ()


def test_no_job_waits_for_an_answer(bench: Bench) -> None:
    bench.engine.resume("token", "{}")


def test_on_moto_a_job_is_submitted_found_by_name_and_known_by_its_id() -> None:
    with mock_aws(config={"batch": {"use_docker": False}}):
        batch, iam, ec2 = client("batch"), client("iam"), client("ec2")
        role = iam.create_role(RoleName="batch", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
        subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
        group = ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]
        resources = {"type": "FARGATE", "maxvCpus": 4, "subnets": [subnet], "securityGroupIds": [group]}
        place = batch.create_compute_environment(
            computeEnvironmentName="jobs", type="MANAGED", computeResources=resources, serviceRole=role
        )["computeEnvironmentArn"]
        order = [{"order": 1, "computeEnvironment": place}]
        queue = batch.create_job_queue(jobQueueName="jobs", state="ENABLED", priority=1, computeEnvironmentOrder=order)[
            "jobQueueArn"
        ]
        batch.register_job_definition(
            jobDefinitionName="work",
            type="container",
            containerProperties={
                "image": "work",
                "resourceRequirements": [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "2048"}],
            },
        )
        jobs = {"work": {"queue": queue, "definition": "work"}}
        engine = Batch(batch, jobs, Adopted(lambda: None), lambda: None)
        job = engine.start(ORDER)
        by_name, by_id = engine.describe("work", NAME, None), engine.describe("work", NAME, job)
        assert by_name == by_id
        assert by_id.run_id == job
        assert engine.stop("work", NAME, job)
        [described] = batch.describe_jobs(jobs=[job])["jobs"]
        assert described["timeout"] == {"attemptDurationSeconds": 3_631}
        sent = {pair["name"]: pair["value"] for pair in described["container"]["environment"]}
        assert ORDER.environment.items() <= sent.items()
