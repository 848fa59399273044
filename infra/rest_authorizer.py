"""Who may call a REST API."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_cognito as cognito
from constructs import Construct

from infra.cdk import excuse
from infra.configuration import Configuration
from infra.http_authorizer import existing_authorizer


class RestCallers(Construct):
    """The authorizer of ``/mcp``; with API keys: a usage plan, and a first key.

    Parameters
    ----------
    configuration
        Who may call.
    api
        The API.
    """

    def __init__(self, scope: Construct, name: str, *, configuration: Configuration, api: apigateway.RestApi) -> None:
        super().__init__(scope, name)
        self.options: dict[str, Any] = {}
        if configuration.auth == "jwt":
            pool = cognito.UserPool.from_user_pool_arn(self, "Pool", _pool_arn(self, str(configuration.issuer)))
            self.options = {
                "authorizer": apigateway.CognitoUserPoolsAuthorizer(self, "Cognito", cognito_user_pools=[pool]),
                "authorization_type": apigateway.AuthorizationType.COGNITO,
                "authorization_scopes": list(configuration.scopes),
            }
        elif configuration.auth == "iam":
            self.options = {"authorization_type": apigateway.AuthorizationType.IAM}
        elif configuration.auth == "lambda":
            self.options = {
                "authorizer": apigateway.RequestAuthorizer(
                    self,
                    "Lambda",
                    handler=existing_authorizer(self, configuration),
                    identity_sources=[apigateway.IdentitySource.header("Authorization")],
                ),
                "authorization_type": apigateway.AuthorizationType.CUSTOM,
            }
        elif configuration.auth == "api_key":
            self.options = {"api_key_required": True}
            self._add_key(configuration, api)
            excuse(api, "AwsSolutions-APIG4", "auth=api_key: keys of the usage plan let callers in.")
        else:
            excuse(api, "AwsSolutions-APIG4", "allow_anonymous=true: whoever deploys it wants anybody to call.")

    def _add_key(self, configuration: Configuration, api: apigateway.RestApi) -> None:
        plan = api.add_usage_plan(
            "Plan",
            name=configuration.name,
            throttle=apigateway.ThrottleSettings(
                rate_limit=configuration.throttle_rate, burst_limit=configuration.throttle_burst
            ),
        )
        plan.add_api_stage(stage=api.deployment_stage)
        key = api.add_api_key("Key", description="The first caller; each further one gets a key of its own")
        plan.add_api_key(key)
        cdk.CfnOutput(
            self,
            "ApiKeyId",
            description="aws apigateway get-api-key --include-value --api-key …",
            value=key.key_id,
        )


def _pool_arn(scope: Construct, issuer: str) -> str:
    """The ARN of the user pool that an issuer's address names; it is in this account."""
    host, _, pool = issuer.removeprefix("https://cognito-idp.").partition("/")
    stack = cdk.Stack.of(scope)
    return f"arn:{stack.partition}:cognito-idp:{host.split('.')[0]}:{stack.account}:userpool/{pool}"
