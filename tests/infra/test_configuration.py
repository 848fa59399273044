"""A wrong value of the context is told by its key, with what is allowed; nothing is synthesized."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from infra.configuration import Configuration
from infra.context import ConfigurationError
from infra.plan import Plan
from taskrail import Lambda, StepFunctions, TaskContext, TaskServer, Toolset, days, hours, minutes
from tests.infra.catalogues import batch_tools, inline_tools, server
from tests.infra.synthesis import ANONYMOUS, COGNITO, JWT, LAMBDA


def test_the_defaults_are_an_http_api_on_arm64_that_keeps_its_data() -> None:
    made = Configuration.from_context(JWT)
    assert (made.api, made.architecture, made.python) == ("http", "arm64", "3.13")
    assert (made.removal, made.deletion_protection) == ("retain", True)


@pytest.mark.parametrize(
    ("context", "key", "told"),
    [
        ({}, "auth", "choose who may call"),
        ({"auth": "none"}, "auth", "allow_anonymous=true"),
        ({**JWT, "allow_anonymous": "true"}, "allow_anonymous", "contradicts auth=jwt"),
        ({"auth": "oauth"}, "auth", "none of jwt, iam, lambda, api_key, none"),
        ({**ANONYMOUS, "api": "graphql"}, "api", "none of http, rest"),
        ({"auth": "api_key"}, "auth", "api_key needs api=rest"),
        ({"auth": "jwt", "audience": "x"}, "issuer", "is needed with auth=jwt"),
        ({"auth": "jwt", "issuer": "https://auth.example.com"}, "audience", "is needed with auth=jwt"),
        ({**JWT, "issuer": "http://auth.example.com"}, "issuer", "https://auth.example.com/"),
        ({**JWT, "issuer": "http://127.0.0.1:8080"}, "issuer", "https://auth.example.com/"),
        ({**JWT, "api": "rest"}, "issuer", "Cognito only"),
        ({**COGNITO, "api": "rest", "scopes": ""}, "scopes", "at least one"),
        ({"auth": "iam", "tenant_claim": "tenant"}, "tenant_claim", "means nothing with auth=iam"),
        ({"auth": "iam", "iam_owner": "user"}, "iam_owner", "none of role, session"),
        ({**LAMBDA, "owner_key": ""}, "owner_key", "is needed with auth=lambda"),
        ({**LAMBDA, "authorizer_arn": "authorizer"}, "authorizer_arn", "arn:aws:lambda:"),
        ({**JWT, "domain_name": "tasks.example.com"}, "certificate_arn", "is needed with domain_name"),
        ({**JWT, "hosted_zone_id": "Z1", "hosted_zone_name": "example.com"}, "hosted_zone_id", "domain_name"),
        ({**JWT, "throttle_rate": "5"}, "throttle_rate", "from 10 to 10000"),
        ({**JWT, "throttle_burst": "many"}, "throttle_burst", "from 20 to 10000"),
        ({**JWT, "log_retention_days": "31"}, "log_retention_days", "is one of 1, 3, 5, 7"),
        ({**JWT, "python": "3.11"}, "python", "none of 3.12, 3.13, 3.14"),
        ({**JWT, "allowed_origins": "example.com"}, "allowed_origins", "https://app.example.com"),
        ({**JWT, "deletion_protection": "maybe"}, "deletion_protection", "neither true nor false"),
        ({**JWT, "removal": "destroy"}, "deletion_protection", "has to be false with removal=destroy"),
        ({**JWT, "vpc_id": "vpc-0a0a0a0a"}, "vpc_subnet_ids", "is needed with vpc_id"),
        (
            {
                **JWT,
                "vpc_id": "vpc-0a0a0a0a",
                "vpc_subnet_ids": "subnet-0a0a0a0a,subnet-0b0b0b0b",
                "vpc_availability_zones": "eu-central-1a",
            },
            "vpc_availability_zones",
            "one for each",
        ),
        ({**JWT, "images": "{"}, "images", "object of texts"),
        ({**ANONYMOUS, "experimental_tasks": "true"}, "experimental_tasks", "callers must be known"),
        ({**JWT, "listen": "stream"}, "listen", "none of off, hold"),
        ({**JWT, "most_open": '{"*": 0}'}, "most_open", "whole numbers above zero"),
        ({"auth": "iam", "claims": "email"}, "claims", "it belongs to jwt and lambda"),
        ({**JWT, "alow_origins": "*"}, "alow_origins", "did you mean allowed_origins?"),
        ({**JWT, "tracing": "no"}, "tracing", "neither true nor false"),
        ({**JWT, "snap_start": "yes"}, "snap_start", "neither true nor false"),
        ({**JWT, "wait_seconds": "29"}, "wait_seconds", "from 1 to 20"),
    ],
)
def test_a_wrong_value_names_its_key_and_what_is_allowed(context: dict[str, Any], key: str, told: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Configuration.from_context(context)
    assert caught.value.key == key
    assert told in str(caught.value)


def test_keys_of_cdk_pass() -> None:
    Configuration.from_context({**JWT, "@aws-cdk/core:x": True, "aws:cdk:bundling-stacks": [], "hosted-zone:x": 1})


def test_lists_come_from_the_command_line_and_from_cdk_json() -> None:
    spoken = Configuration.from_context({**JWT, "allowed_origins": "https://a.example, https://b.example"})
    written = Configuration.from_context({**JWT, "allowed_origins": ["https://a.example", "https://b.example"]})
    assert spoken.allowed_origins == written.allowed_origins == ("https://a.example", "https://b.example")


def test_inputs_are_kept_for_as_long_as_a_task_may_read_them() -> None:
    tools = Toolset()

    @tools.task(runs_on=StepFunctions(timeout=minutes(1)), answer_within=days(40))
    def patient(task: TaskContext) -> int:
        """Asks somebody who is away."""
        return 1

    plan = Plan.of(server(tools))
    with pytest.raises(ConfigurationError, match=r"input_days: 30: the tool 'patient' may read its inputs for 41 days"):
        plan.check(Configuration.from_context(JWT))
    plan.check(Configuration.from_context({**JWT, "input_days": "41"}))
    plan.check(Configuration.from_context({**JWT, "input_days": "0"}))


def deduped(window: timedelta) -> TaskServer:
    """A server whose tool hands repeated calls the same task."""
    tools = Toolset()

    @tools.task(runs_on=StepFunctions(), dedupe=window)
    def build(task: TaskContext) -> int:
        """Build."""
        return 1

    return server(tools)


def test_repeated_calls_share_a_task_only_where_callers_are_known() -> None:
    plan = Plan.of(deduped(hours(1)))
    with pytest.raises(ConfigurationError, match=r"auth: none: the tool 'build' has dedupe="):
        plan.check(Configuration.from_context(ANONYMOUS))
    plan.check(Configuration.from_context(JWT))


def test_an_image_is_given_for_a_python_tool_on_batch_only() -> None:
    configuration = Configuration.from_context({**JWT, "images": {"transcode": "example.com/x"}})
    with pytest.raises(ConfigurationError, match="images: 'transcode' is no Python tool on Batch"):
        Plan.of(server(batch_tools())).check(configuration)
    with pytest.raises(ConfigurationError, match="images"):
        Plan.of(server(inline_tools())).check(configuration)


@pytest.mark.parametrize("runs_on", [StepFunctions(), Lambda()])
def test_a_catalogue_that_lambda_has_no_room_for_is_refused_at_synthesis(runs_on: StepFunctions | Lambda) -> None:
    tools = Toolset()
    for number in range(30):

        @tools.task(f"job_{number}", runs_on=runs_on)
        def work(task: TaskContext) -> int:
            """Work."""
            return 1

    with pytest.raises(ConfigurationError, match="split it into two servers"):
        Plan.of(server(tools)).check(Configuration.from_context(JWT))


def test_a_limit_is_given_for_a_tool_that_there_is() -> None:
    plan = Plan.of(server(inline_tools()))
    with pytest.raises(ConfigurationError, match="most_open: 'gret' is no tool of this catalogue"):
        plan.check(Configuration.from_context({**JWT, "most_open": '{"gret": 3}'}))
    plan.check(Configuration.from_context({**JWT, "most_open": {"greet": 3, "*": 20}}))
