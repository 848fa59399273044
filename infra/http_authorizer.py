"""Who may call an HTTP API."""

from __future__ import annotations

from aws_cdk import aws_apigatewayv2 as apigw
from aws_cdk import aws_apigatewayv2_authorizers as authorizers
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.configuration import Configuration


def http_authorizer(scope: Construct, configuration: Configuration) -> apigw.IHttpRouteAuthorizer:
    """The authorizer of ``/mcp``."""
    if configuration.auth == "jwt":
        return authorizers.HttpJwtAuthorizer(
            "Jwt", str(configuration.issuer), jwt_audience=list(configuration.audience)
        )
    if configuration.auth == "iam":
        return authorizers.HttpIamAuthorizer()
    if configuration.auth == "lambda":
        kinds = authorizers.HttpLambdaResponseType
        return authorizers.HttpLambdaAuthorizer(
            "Lambda",
            existing_authorizer(scope, configuration),
            identity_source=["$request.header.Authorization"],
            response_types=[kinds.SIMPLE, kinds.IAM],
        )
    return apigw.HttpNoneAuthorizer()


def existing_authorizer(scope: Construct, configuration: Configuration) -> lambda_.IFunction:
    """The Lambda authorizer that is there already; it may be called by this stack's API."""
    return lambda_.Function.from_function_attributes(
        scope, "Authorizer", function_arn=str(configuration.authorizer_arn), same_environment=True
    )
