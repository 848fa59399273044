"""What an HTTP API answers without asking who calls, and why."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_apigatewayv2 as apigw

from infra.configuration import Configuration
from infra.edge import METADATA, browser_headers
from infra.plan import Plan

OPEN_BECAUSE = {
    "/mcp": "A browser's preflight carries no credentials; it is answered without a word about tasks.",
    "/report": "Reports carry a token of the kit's own, good for one run of one task; the function checks it.",
    METADATA: "Clients read it to find out where to get a token (RFC 9728).",
    f"{METADATA}/mcp": "Clients read it to find out where to get a token (RFC 9728).",
}


def cors(configuration: Configuration, plan: Plan) -> apigw.CorsPreflightOptions | None:
    """The gateway answers for pages, so that its own 401 can be read by them as well."""
    if not configuration.allowed_origins:
        return None
    return apigw.CorsPreflightOptions(
        allow_origins=list(configuration.allowed_origins),
        allow_headers=browser_headers(plan),
        allow_methods=[apigw.CorsHttpMethod.POST, apigw.CorsHttpMethod.GET, apigw.CorsHttpMethod.OPTIONS],
        expose_headers=["www-authenticate"],
        max_age=cdk.Duration.hours(2),
    )
