"""The stack holds exactly what the catalogue names, and what it holds is set up as the kit promises."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infra.bundling import ROOT
from tests.infra.synthesis import Template, shown

BATCH = ("AWS::Batch::ComputeEnvironment", "AWS::Batch::JobQueue", "AWS::Batch::JobDefinition", "AWS::EC2::VPC")


@pytest.mark.parametrize(
    ("name", "machines", "queues", "definitions", "networks", "report", "expired"),
    [
        ("inline", 0, 0, 0, 0, False, False),
        ("jobs", 2, 0, 0, 0, False, True),
        ("functions", 0, 0, 0, 0, False, True),
        ("batch", 0, 2, 3, 1, True, True),
        ("given", 0, 2, 3, 0, True, True),
        ("adopted", 0, 0, 0, 0, True, True),
        ("everything", 3, 2, 3, 1, True, True),
    ],
)
def test_nothing_is_made_that_the_catalogue_does_not_name(
    templates: dict[str, Template],
    name: str,
    machines: int,
    queues: int,
    definitions: int,
    networks: int,
    report: bool,
    expired: bool,
) -> None:
    template = templates[name]
    handlers = {each["Handler"] for each in template.all("AWS::Lambda::Function").values()}
    assert len(template.all("AWS::StepFunctions::StateMachine")) == machines
    assert len(template.all("AWS::Batch::JobQueue")) == queues
    assert len(template.all("AWS::Batch::JobDefinition")) == definitions
    assert len(template.all("AWS::EC2::VPC")) == networks
    assert not template.all("AWS::EC2::NatGateway")
    assert ("handlers.report.handler" in handlers) is report
    assert ("handlers.expired.handler" in handlers) is expired
    assert ("handlers.run_events.handler" in handlers) is expired
    assert ("handlers.task_events.handler" in handlers) is (name == "everything")
    assert template.all("AWS::DynamoDB::GlobalTable") and template.all("AWS::S3::Bucket")


def test_the_table_has_time_to_live_a_stream_and_a_way_back(templates: dict[str, Template]) -> None:
    table = templates["everything"].one("AWS::DynamoDB::GlobalTable")
    (replica,) = table["Replicas"]
    assert table["KeySchema"] == [{"AttributeName": "pk", "KeyType": "HASH"}]
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expiresAt", "Enabled": True}
    assert table["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert replica["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert replica["DeletionProtectionEnabled"] is True


def test_an_index_of_owners_is_made_only_for_lists(templates: dict[str, Template]) -> None:
    (index,) = templates["adopted"].one("AWS::DynamoDB::GlobalTable")["GlobalSecondaryIndexes"]
    assert [key["AttributeName"] for key in index["KeySchema"]] == ["owner", "createdAt"]
    assert index["Projection"] == {"ProjectionType": "KEYS_ONLY"}
    assert "GlobalSecondaryIndexes" not in templates["everything"].one("AWS::DynamoDB::GlobalTable")


def test_data_outlives_the_stack_unless_it_is_to_be_destroyed(templates: dict[str, Template]) -> None:
    kinds = ("AWS::DynamoDB::GlobalTable", "AWS::S3::Bucket", "AWS::SecretsManager::Secret")
    for name, policy in (("everything", "Retain"), ("inline", "Delete")):
        resources = templates[name].body["Resources"].values()
        assert {each["DeletionPolicy"] for each in resources if each["Type"] in kinds} == {policy}
    (replica,) = templates["inline"].one("AWS::DynamoDB::GlobalTable")["Replicas"]
    assert replica["DeletionProtectionEnabled"] is False


def test_the_bucket_is_private_and_its_lifecycle_spares_what_tasks_point_to(templates: dict[str, Template]) -> None:
    template = templates["everything"]
    bucket = template.one("AWS::S3::Bucket")
    assert all(bucket["PublicAccessBlockConfiguration"].values())
    assert bucket["BucketEncryption"]
    expiring = [rule for rule in bucket["LifecycleConfiguration"]["Rules"] if "ExpirationInDays" in rule]
    assert [(rule["Prefix"], rule["ExpirationInDays"]) for rule in expiring] == [("inputs/", 30)]
    (policy,) = template.all("AWS::S3::BucketPolicy").values()
    denied = [each for each in policy["PolicyDocument"]["Statement"] if each["Effect"] == "Deny"]
    assert {"Bool": {"aws:SecureTransport": "false"}} in [each["Condition"] for each in denied]


def test_a_job_is_one_state_that_retries_only_what_lambda_itself_did_wrong(templates: dict[str, Template]) -> None:
    template = templates["jobs"]
    for machine in template.all("AWS::StepFunctions::StateMachine").values():
        definition = json.loads(shown(machine["DefinitionString"]).replace("${AWS::Partition}", "aws"))
        (state,) = definition["States"].values()
        assert machine["StateMachineType"] == "STANDARD"
        assert state["Parameters"]["Payload"] == {
            "input.$": "$",
            "retryCount.$": "$$.State.RetryCount",
            "execution.$": "$$.Execution.Id",
        }
        (retry,) = state["Retry"]
        assert all(error.startswith("Lambda.") for error in retry["ErrorEquals"])
        assert "Lambda.Unknown" not in retry["ErrorEquals"]
        assert definition["TimeoutSeconds"] > state["TimeoutSeconds"]
        assert machine["LoggingConfiguration"]["IncludeExecutionData"] is False


def test_a_jobs_function_lives_ten_seconds_longer_than_its_tool(templates: dict[str, Template]) -> None:
    functions = templates["jobs"].all("AWS::Lambda::Function").values()
    runners = {each["Description"]: each for each in functions if each["Handler"] == "handlers.job_runner.handler"}
    assert runners["Runs count"]["Timeout"] == 130
    assert runners["Runs count"]["MemorySize"] == 1024
    assert runners["Runs redact"]["Timeout"] == 850
    assert "TASKRAIL_SECRET_ARN" not in runners["Runs count"]["Environment"]["Variables"]


def test_a_job_on_lambda_is_a_function_and_nothing_else(templates: dict[str, Template]) -> None:
    template = templates["functions"]
    runners = invoked(template)
    assert {tool: (each["Timeout"], each["MemorySize"]) for tool, (_, each) in runners.items()} == {
        "digest": (130, 256),
        "blacken": (850, 512),
    }
    for _, function in runners.values():
        names = set(function["Environment"]["Variables"])
        assert names == {"TASKRAIL_DEPLOYMENT", "TASKRAIL_TABLE", "TASKRAIL_BUCKET"}
    functions = json.loads(shown(template.setting("handlers.mcp_api.handler", "FUNCTIONS")))
    assert functions == {tool: f"${{{name}.Arn}}" for tool, (name, _) in runners.items()}
    assert template.setting("handlers.run_events.handler", "FUNCTIONS") is None
    assert template.setting("handlers.mcp_api.handler", "STATE_MACHINES") is None
    assert not template.all("AWS::Events::Rule")


def test_an_invocation_is_tried_as_declared_and_its_end_is_told(templates: dict[str, Template]) -> None:
    template = templates["functions"]
    settings = {each["FunctionName"]["Ref"]: each for each in template.all("AWS::Lambda::EventInvokeConfig").values()}
    (heard,) = template.functions_with("handlers.run_events.handler")
    tried = {
        tool: (settings[name]["MaximumRetryAttempts"], settings[name]["MaximumEventAgeInSeconds"])
        for tool, (name, _) in invoked(template).items()
    }
    assert tried == {"digest": (2, 1_800), "blacken": (0, 21_600)}
    for name, _ in invoked(template).values():
        assert settings[name]["Qualifier"] == "$LATEST"
        assert settings[name]["DestinationConfig"] == {"OnFailure": {"Destination": {"Fn::GetAtt": [heard, "Arn"]}}}


def test_what_run_events_cannot_digest_is_kept(templates: dict[str, Template]) -> None:
    for name in ("functions", "jobs", "batch"):
        template = templates[name]
        (heard,) = template.functions_with("handlers.run_events.handler")
        configured = template.all("AWS::Lambda::EventInvokeConfig").values()
        (settings,) = (each for each in configured if each["FunctionName"] == {"Ref": heard})
        assert settings["MaximumRetryAttempts"] == 2
        kept = settings["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"][0]
        assert kept in template.all("AWS::SQS::Queue")


def test_settings_of_invocations_wait_until_their_role_may_tell(templates: dict[str, Template]) -> None:
    template = templates["functions"]
    resources = template.body["Resources"]
    for name, each in resources.items():
        if each["Type"] == "AWS::Lambda::EventInvokeConfig":
            role = resources[each["Properties"]["FunctionName"]["Ref"]]["Properties"]["Role"]["Fn::GetAtt"][0]
            policies = {
                key for key, policy in template.all("AWS::IAM::Policy").items() if {"Ref": role} in policy["Roles"]
            }
            assert policies and policies <= set(each["DependsOn"]), name


def test_an_api_may_start_from_a_snapshot_of_a_published_version(templates: dict[str, Template]) -> None:
    template = templates["functions"]
    function = template.function("handlers.mcp_api.handler")
    assert function["SnapStart"] == {"ApplyOn": "PublishedVersions"}
    others = [each for each in template.all("AWS::Lambda::Function").values() if each is not function]
    assert not any("SnapStart" in each for each in others)
    ((version, published),) = template.all("AWS::Lambda::Version").items()
    ((live, alias),) = template.all("AWS::Lambda::Alias").items()
    (name,) = template.functions_with("handlers.mcp_api.handler")
    assert (published["FunctionName"], alias["FunctionName"]) == ({"Ref": name}, {"Ref": name})
    assert alias["FunctionVersion"] == {"Fn::GetAtt": [version, "Version"]}
    # An earlier version goes with the deployment that replaces it: its snapshot would cost on.
    assert template.body["Resources"][version].get("DeletionPolicy", "Delete") == "Delete"
    behind = {shown(each["IntegrationUri"]) for each in template.all("AWS::ApiGatewayV2::Integration").values()}
    assert f"${{{live}}}" in behind
    assert f"${{{name}.Arn}}" not in behind
    allowed = [each["FunctionName"] for each in template.all("AWS::Lambda::Permission").values()]
    assert {"Ref": live} in allowed
    for name, plain in templates.items():
        if name != "functions":
            assert not plain.all("AWS::Lambda::Version") and not plain.all("AWS::Lambda::Alias")


def test_whether_anything_is_traced_is_a_choice(templates: dict[str, Template]) -> None:
    for name, traced in (("jobs", True), ("untraced", False)):
        template = templates[name]
        functions = template.all("AWS::Lambda::Function").values()
        # CDK's own helpers, such as the one that empties nothing here, are not ours to trace.
        ours = [each for each in functions if str(each.get("Handler", "")).startswith("handlers.")]
        assert ours and all(("TracingConfig" in each) == traced for each in ours), name
        (stage,) = template.all("AWS::ApiGateway::Stage").values()
        assert stage.get("TracingEnabled", False) is traced
        machines = template.all("AWS::StepFunctions::StateMachine").values()
        assert machines and all(each["TracingConfiguration"]["Enabled"] is traced for each in machines), name
        assert ("xray:PutTraceSegments" in json.dumps(template.body)) == traced


def test_a_heavy_job_has_a_bundle_of_its_own_and_the_others_share_one(templates: dict[str, Template]) -> None:
    functions = templates["jobs"].all("AWS::Lambda::Function").values()
    codes = {each["Description"]: each["Code"]["S3Key"] for each in functions}
    assert codes["Runs redact"] != codes["Runs count"]
    assert codes["Runs count"] == codes["MCP: tools and tasks"]
    assert len(set(codes.values())) == 2


def test_functions_run_on_arm64_and_keep_a_log_of_their_own(templates: dict[str, Template]) -> None:
    template = templates["everything"]
    groups = template.all("AWS::Logs::LogGroup")
    for function in template.all("AWS::Lambda::Function").values():
        assert function["Runtime"] == "python3.13"
        assert function["Architectures"] == ["arm64"]
        assert function["LoggingConfig"]["LogGroup"]["Ref"] in groups
    assert {group["RetentionInDays"] for group in groups.values()} == {30}


def test_fargate_runs_jobs_and_a_queue_gives_up_what_finds_no_place(templates: dict[str, Template]) -> None:
    template = templates["batch"]
    environments = [each["ComputeResources"] for each in template.all("AWS::Batch::ComputeEnvironment").values()]
    assert sorted(each["Type"] for each in environments) == ["FARGATE", "FARGATE_SPOT"]
    assert {each["MaxvCpus"] for each in environments} == {8}
    for queue in template.all("AWS::Batch::JobQueue").values():
        limits = queue["JobStateTimeLimitActions"]
        assert len(limits) == 3
        assert {limit["State"] for limit in limits} == {"RUNNABLE"}
        assert {limit["MaxTimeSeconds"] for limit in limits} in ({21_600}, {1_800})


def test_a_python_job_on_batch_is_a_worker_that_knows_where_its_task_is(templates: dict[str, Template]) -> None:
    container = job_of(templates["batch"], "example.com/render:1")["ContainerProperties"]
    assert container["Command"] == ["python", "-m", "taskrail.worker"]
    assert {each["Name"] for each in container["Environment"]} == {"TASKRAIL_TABLE", "TASKRAIL_BUCKET"}
    assert {each["Type"]: each["Value"] for each in container["ResourceRequirements"]} == {
        "VCPU": "2",
        "MEMORY": "4096",
    }
    assert container["EphemeralStorage"] == {"SizeInGiB": 50}
    assert container["RuntimePlatform"]["CpuArchitecture"] == "ARM64"
    assert container["NetworkConfiguration"] == {"AssignPublicIp": "ENABLED"}


def test_only_a_lost_machine_or_the_worker_itself_asks_for_another_attempt(templates: dict[str, Template]) -> None:
    python = job_of(templates["batch"], "example.com/render:1")
    retries = python["RetryStrategy"]["EvaluateOnExit"]
    assert python["RetryStrategy"]["Attempts"] == 3
    assert retries[0] == {"Action": "RETRY", "OnExitCode": "75"}
    assert {"Action": "RETRY", "OnStatusReason": "Your Spot Task was interrupted*"} in retries
    assert retries[-1] == {"Action": "EXIT", "OnReason": "*"}
    container = job_of(templates["batch"], "111122223333.dkr.ecr")
    assert "EvaluateOnExit" not in container["RetryStrategy"]


def test_a_given_network_is_used_and_none_is_made(templates: dict[str, Template]) -> None:
    template = templates["given"]
    (environment, *_) = template.all("AWS::Batch::ComputeEnvironment").values()
    assert environment["ComputeResources"]["Subnets"] == ["subnet-0a0a0a0a", "subnet-0b0b0b0b"]
    (group,) = template.all("AWS::EC2::SecurityGroup").values()
    assert group["VpcId"] == "vpc-0a0a0a0a"
    assert "SecurityGroupIngress" not in group
    properties = job_of(template, "example.com/render:1")["ContainerProperties"]
    assert properties["NetworkConfiguration"] == {"AssignPublicIp": "DISABLED"}


def test_a_workflows_placeholders_become_its_functions(templates: dict[str, Template]) -> None:
    template = templates["everything"]
    (machine,) = (
        each
        for each in template.all("AWS::StepFunctions::StateMachine").values()
        if "report" in each["DefinitionSubstitutions"]
    )
    assert set(machine["DefinitionSubstitutions"]) == {"report", "plan", "apply_batch", "verify"}
    given = json.loads((ROOT / "functions/workflows/run_migration.asl.json").read_text())
    assert json.loads(shown(machine["DefinitionString"]))["States"].keys() == given["States"].keys()
    assert template.function("workflows.run_migration.plan")["Timeout"] == 900


def test_the_end_of_every_run_of_this_stack_is_heard_of_for_a_day(templates: dict[str, Template]) -> None:
    template = templates["everything"]
    rules = {each["EventPattern"]["source"][0]: each for each in template.all("AWS::Events::Rule").values()}
    machines = rules["aws.states"]["EventPattern"]["detail"]["stateMachineArn"]
    assert len(machines) == len(template.all("AWS::StepFunctions::StateMachine")) + 1
    assert "arn:aws:states:eu-central-1:111122223333:stateMachine:nightly" in machines
    assert (
        len(rules["aws.batch"]["EventPattern"]["detail"]["jobQueue"]) == len(template.all("AWS::Batch::JobQueue")) + 1
    )
    for rule in rules.values():
        (target,) = rule["Targets"]
        assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 86_400, "MaximumRetryAttempts": 185}
        assert target["DeadLetterConfig"]["Arn"]["Fn::GetAtt"][0] in template.all("AWS::SQS::Queue")


def test_removed_tasks_reach_expired_and_a_bad_record_stops_nobody(templates: dict[str, Template]) -> None:
    template = templates["jobs"]
    mapping = template.one("AWS::Lambda::EventSourceMapping")
    (pattern,) = mapping["FilterCriteria"]["Filters"]
    assert json.loads(pattern["Pattern"])["eventName"] == ["REMOVE"]
    assert mapping["BisectBatchOnFunctionError"] is True
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"][0] in template.all("AWS::SQS::Queue")


def test_adopted_work_is_named_to_the_api(templates: dict[str, Template]) -> None:
    template = templates["adopted"]
    assert json.loads(template.setting("handlers.mcp_api.handler", "STATE_MACHINES")) == {
        "nightly": "arn:aws:states:eu-central-1:111122223333:stateMachine:nightly",
        "tagged": "tag:team=reports",
    }
    assert json.loads(template.setting("handlers.mcp_api.handler", "JOBS")) == {
        "named": {"queue": "nightly", "definition": "report:3"},
        "tagged_job": {"queue": "tag:team=q", "definition": "tag:team=d"},
    }


def job_of(template: Template, image: str) -> dict[str, Any]:
    """The properties of the job definition of an image."""
    (found,) = (
        each
        for each in template.all("AWS::Batch::JobDefinition").values()
        if shown(each["ContainerProperties"]["Image"]).startswith(image)
    )
    return found


def invoked(template: Template) -> dict[str, tuple[str, dict[str, Any]]]:
    """Logical id and properties of the functions that run jobs without a state machine, by tool."""
    functions = template.all("AWS::Lambda::Function")
    names = template.functions_with("handlers.invoked_job.handler")
    return {functions[name]["Description"].removeprefix("Runs "): (name, functions[name]) for name in names}
