"""The door: who is let in where, what a page may send, what a refusal says, and that polling is never refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infra.check import variants
from infra.configuration import LEAST_BURST, LEAST_RATE, Configuration
from tests.infra.synthesis import Template, shown

WELL_KNOWN = ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp")


def routes(template: Template) -> dict[str, dict[str, Any]]:
    """The routes of an HTTP API by their key."""
    return {each["RouteKey"]: each for each in template.all("AWS::ApiGatewayV2::Route").values()}


def methods(template: Template) -> dict[str, dict[str, Any]]:
    """The methods of a REST API, as ``POST /mcp``."""
    resources = template.all("AWS::ApiGateway::Resource")

    def path(resource: Any) -> str:
        if "Ref" not in resource:
            return ""
        parent = resources[resource["Ref"]]
        return f"{path(parent['ParentId'])}/{parent['PathPart']}"

    found = template.all("AWS::ApiGateway::Method").values()
    return {f"{each['HttpMethod']} {path(each['ResourceId'])}": each for each in found}


def responses(template: Template) -> dict[str, dict[str, str]]:
    """The headers of gateway responses by their type, without the prefix."""
    return {
        each["ResponseType"]: {
            name.removeprefix("gatewayresponse.header."): shown(value)
            for name, value in each["ResponseParameters"].items()
        }
        for each in template.all("AWS::ApiGateway::GatewayResponse").values()
    }


def test_an_http_api_asks_who_calls_except_where_it_must_not(templates: dict[str, Template]) -> None:
    asked = {key: route["AuthorizationType"] for key, route in routes(templates["everything"]).items()}
    assert asked == {
        "ANY /mcp": "JWT",
        "OPTIONS /mcp": "NONE",
        "POST /report": "NONE",
        **{f"GET {path}": "NONE" for path in WELL_KNOWN},
    }


def test_a_rest_api_asks_who_calls_except_where_it_must_not(templates: dict[str, Template]) -> None:
    asked = {key: method["AuthorizationType"] for key, method in methods(templates["jobs"]).items()}
    assert asked == {
        "ANY /mcp": "COGNITO_USER_POOLS",
        "OPTIONS /mcp": "NONE",
        **{f"GET {path}": "NONE" for path in WELL_KNOWN},
    }
    assert methods(templates["jobs"])["ANY /mcp"]["AuthorizationScopes"] == ["tasks/use"]


@pytest.mark.parametrize(("name", "auth"), [("batch", "AWS_IAM"), ("domain", "CUSTOM"), ("inline", "NONE")])
def test_every_kind_of_caller_of_an_http_api(templates: dict[str, Template], name: str, auth: str) -> None:
    assert routes(templates[name])["ANY /mcp"]["AuthorizationType"] == auth


def test_keys_open_a_rest_api_within_a_usage_plan(templates: dict[str, Template]) -> None:
    template = templates["keys"]
    assert methods(template)["ANY /mcp"]["ApiKeyRequired"] is True
    assert "ApiKeyRequired" not in methods(template)["OPTIONS /mcp"]
    assert template.one("AWS::ApiGateway::UsagePlan")["Throttle"] == {"RateLimit": 50, "BurstLimit": 100}


def test_the_function_is_told_how_callers_are_known(templates: dict[str, Template]) -> None:
    def setting(name: str, key: str) -> Any:
        return templates[name].setting("handlers.mcp_api.handler", key)

    assert setting("everything", "AUTH") == "jwt"
    assert (setting("domain", "AUTH"), setting("domain", "OWNER_KEY")) == ("lambda", "sub")
    assert (setting("adopted", "AUTH"), setting("adopted", "IAM_OWNER")) == ("iam", "session")
    assert (setting("inline", "AUTH"), setting("inline", "OWNER_KEY")) == ("none", None)
    assert shown(setting("everything", "RESOURCE_METADATA_URL")).endswith("/.well-known/oauth-protected-resource/mcp")


def test_a_page_may_send_every_header_that_mcp_has(templates: dict[str, Template]) -> None:
    cors = templates["everything"].one("AWS::ApiGatewayV2::Api")["CorsConfiguration"]
    assert cors["AllowOrigins"] == ["https://app.example.com"]
    assert cors["AllowMethods"] == ["POST", "GET", "OPTIONS"]
    named = {"content-type", "authorization", "mcp-protocol-version", "mcp-method", "mcp-name", "mcp-param-tenant-name"}
    assert named <= set(cors["AllowHeaders"])
    assert "*" not in cors["AllowHeaders"]
    assert "CorsConfiguration" not in templates["inline"].one("AWS::ApiGatewayV2::Api")
    assert templates["everything"].setting("handlers.mcp_api.handler", "ALLOWED_ORIGINS") == "https://app.example.com"


def test_a_rest_api_hands_preflights_to_the_function_and_lets_pages_read_refusals(
    templates: dict[str, Template],
) -> None:
    assert methods(templates["jobs"])["OPTIONS /mcp"]["Integration"]["Type"] == "AWS_PROXY"
    assert responses(templates["jobs"])["DEFAULT_4XX"]["Access-Control-Allow-Origin"] == "'*'"
    assert "DEFAULT_4XX" not in responses(templates["keys"])


@pytest.mark.parametrize(("name", "base"), [("jobs", "/v1"), ("restdomain", None)])
def test_a_refusal_of_a_rest_api_names_the_metadata(
    templates: dict[str, Template], name: str, base: str | None
) -> None:
    for kind in ("UNAUTHORIZED", "ACCESS_DENIED", "EXPIRED_TOKEN"):
        challenge = responses(templates[name])[kind]["WWW-Authenticate"]
        url = challenge.split('resource_metadata="')[1].split('"')[0]
        assert challenge.startswith("'Bearer ") and 'scope="tasks/use"' in challenge
        if base is None:
            assert url == "https://tasks.example.com/.well-known/oauth-protected-resource/mcp"
        else:
            assert url.endswith(f"{base}/.well-known/oauth-protected-resource/mcp")
            assert ".execute-api." in url


@pytest.mark.parametrize(("name", "base"), [("jobs", "/v1"), ("restdomain", None)])
def test_a_rest_api_answers_the_metadata_itself(templates: dict[str, Template], name: str, base: str | None) -> None:
    for path in WELL_KNOWN:
        integration = methods(templates[name])[f"GET {path}"]["Integration"]
        assert integration["Type"] == "MOCK"
        (answer,) = integration["IntegrationResponses"]
        document = json.loads(shown(answer["ResponseTemplates"]["application/json"]))
        assert document["authorization_servers"] == [
            "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_AbC123"
        ]
        assert document["scopes_supported"] == ["tasks/use"]
        if base is None:
            assert document["resource"] == "https://tasks.example.com/mcp"
        else:
            assert document["resource"].endswith(f"{base}/mcp")


def test_an_http_api_has_a_function_for_the_metadata_that_may_do_nothing(templates: dict[str, Template]) -> None:
    template = templates["everything"]
    document = json.loads(shown(template.setting("handlers.metadata.handler", "RESOURCE_METADATA")))
    assert document["authorization_servers"] == ["https://auth.example.com/"]
    assert document["resource"].endswith("/mcp")
    actions = set(template.actions(template.role_of("handlers.metadata.handler")))
    assert {action.split(":")[0] for action in actions} == {"logs", "xray"}


def test_a_domain_is_the_only_door_and_has_records_of_both_kinds(templates: dict[str, Template]) -> None:
    for name, kind in (("domain", "AWS::ApiGatewayV2::Api"), ("restdomain", "AWS::ApiGateway::RestApi")):
        template = templates[name]
        assert template.one(kind)["DisableExecuteApiEndpoint"] is True
        records = template.all("AWS::Route53::RecordSet").values()
        assert sorted(each["Type"] for each in records) == ["A", "AAAA"]
        assert {each["Name"] for each in records} == {"tasks.example.com."}
        assert template.body["Outputs"]["Endpoint"]["Value"] == "https://tasks.example.com/mcp"


def test_throttles_leave_room_for_clients_that_poll_as_told(templates: dict[str, Template]) -> None:
    settings = templates["inline"].one("AWS::ApiGatewayV2::Stage")["DefaultRouteSettings"]
    default = Configuration(auth="iam")
    assert settings["ThrottlingRateLimit"] == default.throttle_rate
    assert settings["ThrottlingBurstLimit"] == default.throttle_burst
    # FastMCP's first reads, 20 ms apart and doubling: nine in five seconds.
    assert LEAST_BURST >= 9 and LEAST_RATE * 5 >= 9


@pytest.mark.parametrize(
    ("name", "kind"), [("everything", "AWS::ApiGatewayV2::Stage"), ("jobs", "AWS::ApiGateway::Stage")]
)
def test_access_is_logged_without_a_token_or_a_body(templates: dict[str, Template], name: str, kind: str) -> None:
    stage = templates[name].one(kind)
    logged = stage.get("AccessLogSettings") or stage["AccessLogSetting"]
    text = logged["Format"].lower()
    assert json.loads(logged["Format"])["status"] == "$context.status"
    for secret in ("header", "body", "claims", "authorizer.principal", "path", "querystring", "apikey"):
        assert secret not in text.replace("resourcepath", "")
    for setting in stage.get("MethodSettings", []):
        assert setting["DataTraceEnabled"] is False


def test_a_request_waits_no_longer_than_it_is_let(templates: dict[str, Template]) -> None:
    function = templates["inline"].function("handlers.mcp_api.handler")
    assert function["Timeout"] == 29
    assert function["Environment"]["Variables"]["TASKRAIL_WAIT_BUDGET_MS"] == "15000"


def test_what_is_checked_by_lint_is_every_api_with_every_caller_that_it_knows() -> None:
    pairs = [(api, auth) for api, auth, _ in variants()]
    assert len(pairs) == len(set(pairs)) == 9
    for _, _, context in variants():
        Configuration.from_context(context)
