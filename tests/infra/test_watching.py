"""What a deployment says of itself: alarms, the dashboard, outputs to copy from, a loud word about anonymity."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk
import pytest

from infra.app import build
from infra.client_configuration import commands
from infra.configuration import Configuration
from tests.infra.catalogues import inline_tools, server
from tests.infra.synthesis import ANONYMOUS, JWT, LAMBDA, TOPIC, Template, flags, shown

ENDPOINT = "https://api.example.com/mcp"


def metrics(template: Template) -> set[tuple[str, str]]:
    """Namespace and name of what alarms watch."""
    return {(each["Namespace"], each["MetricName"]) for each in template.all("AWS::CloudWatch::Alarm").values()}


def test_alarms_watch_errors_throttles_dead_letters_and_repairs(templates: dict[str, Template]) -> None:
    assert metrics(templates["everything"]) == {
        ("AWS/ApiGateway", "5xx"),
        ("AWS/Lambda", "Errors"),
        ("AWS/Lambda", "Throttles"),
        ("AWS/Lambda", "IteratorAge"),
        ("AWS/Lambda", "AsyncEventsDropped"),
        ("AWS/SQS", "ApproximateNumberOfMessagesVisible"),
        ("AWS/States", "ExecutionsFailed"),
        ("AWS/DynamoDB", "ReadThrottleEvents"),
        ("AWS/DynamoDB", "WriteThrottleEvents"),
        ("Taskrail", "Repairs"),
    }
    assert ("AWS/ApiGateway", "5XXError") in metrics(templates["jobs"])


def test_an_alarm_says_what_it_means_and_is_heard_where_it_was_asked_for(templates: dict[str, Template]) -> None:
    for name, actions in (("domain", [TOPIC]), ("everything", None)):
        for alarm in templates[name].all("AWS::CloudWatch::Alarm").values():
            assert len(alarm["AlarmDescription"]) > 20
            assert alarm["TreatMissingData"] == "notBreaching"
            assert alarm.get("AlarmActions") == actions


def test_a_workflow_that_fails_by_its_own_design_alarms_nobody(templates: dict[str, Template]) -> None:
    template = templates["everything"]
    watched = [each for each in template.all("AWS::CloudWatch::Alarm").values() if each["Namespace"] == "AWS/States"]
    assert len(watched) == 2
    assert len(template.all("AWS::StepFunctions::StateMachine")) == 3


def test_each_job_on_lambda_has_an_alarm_for_what_is_given_up(templates: dict[str, Template]) -> None:
    template = templates["functions"]
    watched = {
        name: each
        for name, each in template.all("AWS::CloudWatch::Alarm").items()
        if each["MetricName"] == "AsyncEventsDropped"
    }
    assert len(watched) == 2
    names = {each["Dimensions"][0]["Value"]["Ref"] for each in watched.values()}
    assert names == {
        name
        for name, each in template.all("AWS::Lambda::Function").items()
        if each["Handler"] == "handlers.invoked_job.handler"
    }
    graphs = json.loads(shown(template.one("AWS::CloudWatch::Dashboard")["DashboardBody"]))["widgets"]
    titles = [widget["properties"].get("title") for widget in graphs]
    assert {"Runs started", "Runs failed or out of time"} <= set(titles)


def test_the_dashboard_shows_tasks_first_and_every_tool(templates: dict[str, Template]) -> None:
    body = json.loads(shown(templates["everything"].one("AWS::CloudWatch::Dashboard")["DashboardBody"]))
    titles = [widget["properties"].get("title") for widget in body["widgets"]]
    assert titles[1:3] == ["Alarms", "Tasks: created, and how they ended"]
    text = json.dumps(body)
    for tool in ("count", "redact", "run_migration", "digest", "blacken"):
        assert f'"{tool}"' in text
    assert not any(len(widget["properties"].get("metrics", [1])) == 0 for widget in body["widgets"])
    rows: dict[int, int] = {}
    for widget in body["widgets"]:
        rows[widget["y"]] = rows.get(widget["y"], 0) + widget["width"]
    assert set(rows.values()) == {24}


def test_outputs_are_ready_to_paste(templates: dict[str, Template]) -> None:
    outputs = templates["keys"].body["Outputs"]
    assert {"Endpoint", "ClaudeCode", "FastMCP", "Strands", "Inspector"} <= set(outputs)
    assert shown(outputs["Endpoint"]["Value"]).endswith("/v1/mcp")
    assert "ReportFunction" in templates["adopted"].body["Outputs"]
    assert "ReportFunction" not in outputs


KEYS = {"auth": "api_key", "api": "rest"}
STRANDS = "MCPClient(lambda: streamablehttp_client('https://api.example.com/mcp', headers={'x-api-key': 'YOUR_KEY'})"
ADD = "claude mcp add --transport http taskrail https://api.example.com/mcp"
SIGNED = "claude mcp add taskrail -- uvx mcp-proxy-for-aws@latest https://api.example.com/mcp --service execute-api"


@pytest.mark.parametrize(
    ("context", "client", "typed"),
    [
        (ANONYMOUS, "ClaudeCode", ADD),
        (JWT, "FastMCP", "Client(StreamableHttpTransport('https://api.example.com/mcp', auth='oauth'))"),
        (LAMBDA, "ClaudeCode", f'{ADD} --header "Authorization: YOUR_CREDENTIAL"'),
        (KEYS, "Strands", f"{STRANDS}, tasks_config={{}})"),
        ({"auth": "iam"}, "ClaudeCode", SIGNED),
    ],
)
def test_each_client_is_told_how_to_prove_who_it_is(context: Mapping[str, str], client: str, typed: str) -> None:
    assert commands(Configuration.from_context(context), ENDPOINT)[client] == typed


def test_an_anonymous_deployment_says_so_loudly() -> None:
    def warnings(context: Mapping[str, Any]) -> str:
        app = cdk.App(context={**flags(), "aws:cdk:bundling-stacks": []})
        stack = build(app, server(inline_tools()), Configuration.from_context(context))
        return str([entry.data for entry in stack.node.metadata])

    assert "anybody on the internet may call this API" in warnings(ANONYMOUS)
    assert "anybody" not in warnings(JWT)
