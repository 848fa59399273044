"""What both kinds of API have in common: addresses, headers, and the document that names who signs tokens."""

from __future__ import annotations

import json
from typing import Protocol, TypedDict

import aws_cdk as cdk
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_apigatewayv2 as apigw
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_

from infra.configuration import Configuration
from infra.metrics import FIVE_MINUTES
from infra.plan import Plan

METADATA = "/.well-known/oauth-protected-resource"
"""RFC 9728. Clients try it with the endpoint's path behind it as well (basic/authorization)."""

_HEADERS = (
    "content-type",
    "accept",
    "authorization",
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
    "last-event-id",
    "mcp-session-id",
    "traceparent",
    "tracestate",
    "x-api-key",
    "x-amz-date",
    "x-amz-security-token",
    "x-amz-content-sha256",
)


class EdgeMetrics(TypedDict):
    """What an API counts of itself."""

    requests: cloudwatch.Metric
    client_errors: cloudwatch.Metric
    server_errors: cloudwatch.Metric
    latency: tuple[cloudwatch.IMetric, ...]


class Edge(Protocol):
    """An API in front of the functions."""

    @property
    def url(self) -> str:
        """Where it is, without a slash at the end."""
        ...

    @property
    def metrics(self) -> EdgeMetrics:
        """What the API counts of itself."""
        ...

    def serve(self, *, api: lambda_.IFunction, report: lambda_.IFunction | None) -> None:
        """Put the functions behind their routes; None for those that the catalogue does not need."""
        ...


def edge_metrics(counted: apigw.HttpStage | apigateway.RestApi) -> EdgeMetrics:
    """The metrics of either kind of API."""
    return EdgeMetrics(
        requests=counted.metric_count(period=FIVE_MINUTES, statistic="Sum"),
        client_errors=counted.metric_client_error(period=FIVE_MINUTES, statistic="Sum"),
        server_errors=counted.metric_server_error(period=FIVE_MINUTES, statistic="Sum"),
        latency=tuple(
            counted.metric_latency(period=FIVE_MINUTES, label=statistic, statistic=statistic)
            for statistic in ("p50", "p95", "p99")
        ),
    )


def browser_headers(plan: Plan) -> list[str]:
    """Headers that pages may send: each by its name, since ``*`` does not cover ``authorization``."""
    return [*_HEADERS, *plan.header_parameters]


def has_metadata(configuration: Configuration) -> bool:
    """Whether there is an authorization server to name."""
    return configuration.auth == "jwt"


def metadata(configuration: Configuration, url: str, scope: cdk.Stack) -> str:
    """The protected resource's metadata as JSON text.

    Parameters
    ----------
    url
        The API's address, stage included.
    """
    document: dict[str, object] = {
        "resource": f"{url}/mcp",
        "authorization_servers": [configuration.issuer],
        "bearer_methods_supported": ["header"],
    }
    if configuration.scopes:
        document["scopes_supported"] = list(configuration.scopes)
    return json.dumps(document) if not cdk.Token.is_unresolved(url) else scope.to_json_string(document)
