"""Each role may do exactly its calls on exactly its resources; a wildcard is one that AWS forces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.client import BaseClient
from pydantic import BaseModel

from infra.task_table import JOB_ATTRIBUTES
from taskrail import Lambda, StepFunctions, TaskContext, Toolset
from taskrail.testing import harness
from tests.infra.catalogues import server
from tests.infra.synthesis import Template, shown

LOGS = {"logs:CreateLogStream", "logs:PutLogEvents"}
TRACES = {"xray:PutTraceSegments", "xray:PutTelemetryRecords"}
FUNCTION = LOGS | TRACES

# Calls that know no resources (Service Authorization Reference).
FORCED = {
    *TRACES,
    "batch:DescribeJobs",
    "batch:ListJobs",
    "dynamodb:ListStreams",
    "ecr:GetAuthorizationToken",
    "tag:GetResources",
}
# What Step Functions needs to deliver logs and traces (Step Functions Developer Guide, "Logging").
DELIVERY = {
    "logs:CreateLogDelivery",
    "logs:DeleteLogDelivery",
    "logs:DescribeLogGroups",
    "logs:DescribeResourcePolicies",
    "logs:GetLogDelivery",
    "logs:ListLogDeliveries",
    "logs:PutResourcePolicy",
    "logs:UpdateLogDelivery",
    "xray:GetSamplingRules",
    "xray:GetSamplingTargets",
}


@pytest.mark.parametrize(
    ("handler", "calls"),
    [
        (
            "handlers.mcp_api.handler",
            {
                "dynamodb:GetItem",
                "dynamodb:PutItem",
                "dynamodb:UpdateItem",
                "dynamodb:DeleteItem",
                "s3:GetObject",
                "s3:PutObject",
                "secretsmanager:GetSecretValue",
                "states:StartExecution",
                "states:StopExecution",
                "states:DescribeExecution",
                "states:SendTaskSuccess",
                "lambda:InvokeFunction",
                "batch:SubmitJob",
                "batch:TerminateJob",
                "batch:DescribeJobs",
                "batch:ListJobs",
                "logs:GetLogEvents",
                "tag:GetResources",
            },
        ),
        (
            "handlers.run_events.handler",
            {
                "dynamodb:GetItem",
                "dynamodb:UpdateItem",
                "s3:GetObject",
                "s3:PutObject",
                "sqs:SendMessage",
                "states:StopExecution",
                "states:DescribeExecution",
                "batch:TerminateJob",
                "batch:DescribeJobs",
                "batch:ListJobs",
                "logs:GetLogEvents",
                "tag:GetResources",
            },
        ),
        (
            "handlers.expired.handler",
            {
                "dynamodb:DeleteItem",
                "dynamodb:DescribeStream",
                "dynamodb:GetRecords",
                "dynamodb:GetShardIterator",
                "dynamodb:ListStreams",
                "s3:DeleteObject",
                "s3:ListBucket",
                "sqs:SendMessage",
                "states:StopExecution",
                "states:DescribeExecution",
                "batch:TerminateJob",
                "batch:DescribeJobs",
                "batch:ListJobs",
                "logs:GetLogEvents",
                "tag:GetResources",
            },
        ),
        (
            "handlers.report.handler",
            {
                "dynamodb:GetItem",
                "dynamodb:UpdateItem",
                "s3:GetObject",
                "s3:PutObject",
                "secretsmanager:GetSecretValue",
                "states:SendTaskSuccess",
            },
        ),
        (
            "handlers.task_events.handler",
            {
                "dynamodb:DescribeStream",
                "dynamodb:GetRecords",
                "dynamodb:GetShardIterator",
                "dynamodb:ListStreams",
                "events:PutEvents",
                "sqs:SendMessage",
            },
        ),
        ("handlers.metadata.handler", set()),
        ("workflows.run_migration.plan", {"s3:GetObject"}),
    ],
)
def test_a_function_may_make_its_calls_and_no_others(
    templates: dict[str, Template], handler: str, calls: set[str]
) -> None:
    template = templates["everything"]
    assert set(template.actions(template.role_of(handler))) - FUNCTION == calls


def test_lists_and_subscriptions_read_more_only_where_they_are_chosen(templates: dict[str, Template]) -> None:
    template = templates["adopted"]
    actions = template.actions(template.role_of("handlers.mcp_api.handler"))
    (query,) = actions["dynamodb:Query"]
    assert shown(query["Resource"]).endswith(".Arn}/index/byOwner")
    assert "dynamodb:BatchGetItem" in actions
    plain = templates["everything"].actions(templates["everything"].role_of("handlers.mcp_api.handler"))
    assert not {"dynamodb:Query", "dynamodb:BatchGetItem"} & set(plain)


def test_places_under_a_limit_are_given_up_by_whoever_cleans_up(templates: dict[str, Template]) -> None:
    template = templates["adopted"]
    assert "dynamodb:UpdateItem" in template.actions(template.role_of("handlers.expired.handler"))
    for handler in ("handlers.mcp_api.handler", "handlers.expired.handler"):
        assert template.setting(handler, "MOST_OPEN") == '{"*": 20}'


def test_an_api_with_inline_tools_only_reads_its_secret_and_nothing_else(templates: dict[str, Template]) -> None:
    template = templates["inline"]
    role = template.role_of("handlers.mcp_api.handler")
    assert set(template.actions(role)) - FUNCTION == {"secretsmanager:GetSecretValue"}


def test_a_job_reads_and_changes_tasks_but_not_what_they_are(templates: dict[str, Template]) -> None:
    template = templates["jobs"]
    for role in roles_of_jobs(template):
        actions = template.actions(role)
        assert set(actions) - FUNCTION == {"dynamodb:GetItem", "dynamodb:UpdateItem", "s3:GetObject", "s3:PutObject"}
        (update,) = actions["dynamodb:UpdateItem"]
        assert update["Condition"]["ForAllValues:StringLike"] == {"dynamodb:LeadingKeys": ["task#*"]}
        named = update["Condition"]["ForAllValues:StringEquals"]["dynamodb:Attributes"]
        assert not {"tool", "engine", "createdAt", "runDeadline", "keepMs", "cancelRequestedAt"} & set(named)
        (put,) = actions["s3:PutObject"]
        assert shown(put["Resource"]).endswith(".Arn}/tasks/*")


def test_an_invoked_job_may_do_what_any_job_may_and_tell_of_its_end(templates: dict[str, Template]) -> None:
    template = templates["functions"]
    other = templates["jobs"]
    (plain, *_) = (set(other.actions(role)) for role in roles_of_jobs(other))
    (heard,) = template.functions_with("handlers.run_events.handler")
    roles = roles_of_jobs(template, "handlers.invoked_job.handler")
    assert len(roles) == 2
    for role in roles:
        actions = template.actions(role)
        assert set(actions) == plain | {"lambda:InvokeFunction"}
        (update,) = actions["dynamodb:UpdateItem"]
        assert "leaseUntil" in update["Condition"]["ForAllValues:StringEquals"]["dynamodb:Attributes"]
        (invoke,) = actions["lambda:InvokeFunction"]
        assert invoke["Resource"] == {"Fn::GetAtt": [heard, "Arn"]}


def test_exactly_the_functions_of_jobs_may_be_invoked_by_whoever_starts_runs(templates: dict[str, Template]) -> None:
    template = templates["functions"]
    jobs = set(template.functions_with("handlers.invoked_job.handler"))
    (invoke,) = template.actions(template.role_of("handlers.mcp_api.handler"))["lambda:InvokeFunction"]
    assert {each["Fn::GetAtt"][0] for each in invoke["Resource"]} == jobs
    for handler in ("handlers.run_events.handler", "handlers.expired.handler"):
        assert "lambda:InvokeFunction" not in template.actions(template.role_of(handler))
    for name in ("jobs", "batch", "inline"):
        api = templates[name].role_of("handlers.mcp_api.handler")
        assert "lambda:InvokeFunction" not in templates[name].actions(api)


def test_a_container_reads_arguments_writes_results_and_never_sees_the_table(templates: dict[str, Template]) -> None:
    template = templates["batch"]
    (container,) = (
        each["ContainerProperties"]
        for each in template.all("AWS::Batch::JobDefinition").values()
        if "Command" in each["ContainerProperties"] and each["ContainerProperties"]["Command"][0] == "transcode"
    )
    actions = template.actions(container["JobRoleArn"]["Fn::GetAtt"][0])
    assert set(actions) == {"s3:GetObject", "s3:PutObject"}
    (read,), (write,) = actions["s3:GetObject"], actions["s3:PutObject"]
    assert {shown(each).split("}/")[1] for each in read["Resource"]} == {"tasks/*/arguments.json", "inputs/*"}
    assert shown(write["Resource"]).endswith("/tasks/*/results/*")


def test_a_state_machine_may_invoke_its_functions_only(templates: dict[str, Template]) -> None:
    template = templates["everything"]
    functions = template.all("AWS::Lambda::Function")
    for machine in template.all("AWS::StepFunctions::StateMachine").values():
        actions = template.actions(machine["RoleArn"]["Fn::GetAtt"][0])
        assert set(actions) - DELIVERY - TRACES == {"lambda:InvokeFunction"}
        (invoke,) = actions["lambda:InvokeFunction"]
        resources = invoke["Resource"] if isinstance(invoke["Resource"], list) else [invoke["Resource"]]
        invoked = {each["Fn::GetAtt"][0] for each in resources}
        named = {each["Fn::GetAtt"][0] for each in machine["DefinitionSubstitutions"].values()}
        assert invoked == named <= set(functions)


def test_what_is_adopted_by_tag_may_be_started_only_with_that_tag(templates: dict[str, Template]) -> None:
    template = templates["adopted"]
    actions = template.actions(template.role_of("handlers.mcp_api.handler"))
    tagged = [each for each in actions["states:StartExecution"] if "Condition" in each]
    assert [each["Condition"] for each in tagged] == [{"StringEquals": {"aws:ResourceTag/team": "reports"}}]
    conditions = [each["Condition"] for each in actions["batch:SubmitJob"] if "Condition" in each]
    assert {"StringEquals": {"aws:ResourceTag/team": "q"}} in conditions
    wanted = {"StringEquals": {"aws:ResourceTag/team": "d"}}
    (definitions,) = (each for each in actions["batch:SubmitJob"] if each.get("Condition") == wanted)
    # Batch looks at the tags of a definition only when its revision is named (Batch User Guide, IAM examples).
    assert shown(definitions["Resource"]).endswith(":job-definition/*:*")


def test_every_wildcard_is_one_that_aws_forces(templates: dict[str, Template]) -> None:
    for template in templates.values():
        for statement in statements(template):
            actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
            assert not any("*" in action for action in actions), actions
            resources = statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
            if "*" in resources:
                assert set(actions) <= FORCED | DELIVERY | {"logs:DescribeLogStreams"}, actions


class Approval(BaseModel):
    """A form."""

    go: bool


def busy_tools(runs_on: StepFunctions | Lambda) -> Toolset:
    """A job that does everything that a worker can tell."""
    tools = Toolset()

    @tools.task(runs_on=runs_on)
    def busy(task: TaskContext, rows: int) -> list[str]:
        """Work."""
        large = task.step("read", lambda: "x" * 10_000)
        for _ in task.track(range(rows), "Row"):
            pass
        task.ask("go", "Go on?", Approval)
        task.attach("rows.txt", large.encode())
        return [large] * 10

    @tools.task(runs_on=runs_on)
    def broken(task: TaskContext) -> int:
        """Fail."""
        raise ValueError

    return tools


def test_a_worker_names_no_attribute_that_its_policy_keeps_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    named: set[str] = set()
    calls: set[str] = set()
    working = False

    def watched(client: BaseClient, operation: str, parameters: dict[str, Any]) -> Any:
        if working:
            calls.add(operation)
            names = parameters.get("ExpressionAttributeNames", {})
            named.update(names.values() if operation == "UpdateItem" else ())
        return made(client, operation, parameters)

    made = BaseClient._make_api_call  # type: ignore[attr-defined]
    monkeypatch.setattr(BaseClient, "_make_api_call", watched)
    for runs_on in (StepFunctions(), Lambda()):
        with harness(server(busy_tools(runs_on))) as kit:
            task = kit.call("busy", rows=3)
            for act in (task.run, lambda task=task: task.answer(go={"go": True}), task.run, kit.call("broken").run):
                working = act is not None and getattr(act, "__name__", "") == "run"
                act()
            working = False
            assert not task.is_error
    assert {"UpdateItem", "PutObject"} <= calls <= {"UpdateItem", "GetItem", "PutObject", "GetObject"}
    assert named <= set(JOB_ATTRIBUTES)
    # Beside those: the key, a protocol error raised on purpose, and the tokens of state machines, which end is shared.
    assert set(JOB_ATTRIBUTES) - named == {"pk", "error", "tokens"}


def statements(template: Template) -> Iterator[dict[str, Any]]:
    """The statements of all roles of ours."""
    for policy in template.all("AWS::IAM::Policy").values():
        yield from policy["PolicyDocument"]["Statement"]


def roles_of_jobs(template: Template, handler: str = "handlers.job_runner.handler") -> list[str]:
    """The roles of the functions that run Python jobs."""
    functions = template.all("AWS::Lambda::Function")
    return [functions[name]["Role"]["Fn::GetAtt"][0] for name in template.functions_with(handler)]
