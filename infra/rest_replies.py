"""What a REST API answers by itself: refusals that tell the way on, and the well-known document."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_apigateway as apigateway

from infra.configuration import Configuration
from infra.edge import METADATA, has_metadata, metadata

_REFUSALS = {
    "Unauthorized": (apigateway.ResponseType.UNAUTHORIZED, "401", ""),
    "ExpiredToken": (apigateway.ResponseType.EXPIRED_TOKEN, "401", ', error="invalid_token"'),
    "AccessDenied": (apigateway.ResponseType.ACCESS_DENIED, "403", ', error="insufficient_scope"'),
}


def add_gateway_responses(api: apigateway.RestApi, configuration: Configuration, url: str) -> None:
    """Let refusals name the metadata, and let pages read them.

    A function cannot: API Gateway renames its ``WWW-Authenticate`` (API Gateway Developer Guide, "Important notes").
    """
    shared = {}
    if configuration.allowed_origins:
        # A refusal says nothing that a page of any origin may not know.
        shared = {"Access-Control-Allow-Origin": "'*'", "Access-Control-Expose-Headers": "'WWW-Authenticate'"}
        for name, every in (
            ("4xx", apigateway.ResponseType.DEFAULT_4_XX),
            ("5xx", apigateway.ResponseType.DEFAULT_5_XX),
        ):
            api.add_gateway_response(f"Default{name}", type=every, response_headers=shared)
    if not has_metadata(configuration):
        return
    scope = f', scope="{" ".join(configuration.scopes)}"' if configuration.scopes else ""
    for name, (kind, status, error) in _REFUSALS.items():
        challenge = f"""'Bearer resource_metadata="{url}{METADATA}/mcp"{scope}{error}'"""
        api.add_gateway_response(
            name, type=kind, status_code=status, response_headers={**shared, "WWW-Authenticate": challenge}
        )


def add_metadata(api: apigateway.RestApi, configuration: Configuration, url: str) -> list[apigateway.Method]:
    """The document at both of its addresses, answered without a function."""
    document = metadata(configuration, url, cdk.Stack.of(api))
    headers = {
        "Content-Type": "'application/json'",
        "Cache-Control": "'public, max-age=3600'",
        "Access-Control-Allow-Origin": "'*'",
    }
    reply = apigateway.MockIntegration(
        passthrough_behavior=apigateway.PassthroughBehavior.NEVER,
        request_templates={"application/json": '{"statusCode": 200}'},
        integration_responses=[
            apigateway.IntegrationResponse(
                status_code="200",
                response_templates={"application/json": document},
                response_parameters={f"method.response.header.{name}": value for name, value in headers.items()},
            )
        ],
    )
    declared = apigateway.MethodResponse(
        status_code="200", response_parameters={f"method.response.header.{name}": True for name in headers}
    )
    first = api.root.resource_for_path(METADATA)
    both = (first, first.add_resource("mcp"))
    return [resource.add_method("GET", reply, method_responses=[declared]) for resource in both]
