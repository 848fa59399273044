"""What is logged of each request at the door: never a header, a body or a claim."""

from __future__ import annotations

import json

from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.cdk import removal
from infra.configuration import Configuration
from infra.function import retention

_COMMON = {
    "requestId": "$context.requestId",
    "at": "$context.requestTimeEpoch",
    "ip": "$context.identity.sourceIp",
    "method": "$context.httpMethod",
    "status": "$context.status",
    "bytes": "$context.responseLength",
    "ms": "$context.responseLatency",
    "functionMs": "$context.integrationLatency",
    "error": "$context.error.message",
    "functionError": "$context.integrationErrorMessage",
}

HTTP_FORMAT = json.dumps({**_COMMON, "route": "$context.routeKey", "authorizer": "$context.authorizer.error"})
REST_FORMAT = json.dumps({**_COMMON, "route": "$context.resourcePath", "authorizer": "$context.authorizer.error"})


class AccessLog(Construct):
    """The log group of an API.

    Parameters
    ----------
    configuration
        How long it is kept.
    """

    def __init__(self, scope: Construct, name: str, *, configuration: Configuration) -> None:
        super().__init__(scope, name)
        self.group: logs.ILogGroup = logs.LogGroup(
            self,
            "Group",
            retention=retention(configuration),
            removal_policy=removal(configuration),
        )
