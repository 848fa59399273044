"""A REST API: for API keys, WAF, and a 401 that names the metadata."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.access_log import REST_FORMAT, AccessLog
from infra.cdk import excuse, removal
from infra.configuration import Configuration
from infra.domain import RestDomain
from infra.edge import EdgeMetrics, edge_metrics, has_metadata
from infra.rest_authorizer import RestCallers
from infra.rest_replies import add_gateway_responses, add_metadata


class RestEdge(Construct):
    """``/mcp`` behind the authorizer; ``/report`` and the well-known documents before it.

    Parameters
    ----------
    configuration
        Who may call, from where, how often.
    """

    def __init__(self, scope: Construct, name: str, *, configuration: Configuration) -> None:
        super().__init__(scope, name)
        self._configuration = configuration
        log = AccessLog(self, "AccessLog", configuration=configuration)
        self.api = apigateway.RestApi(
            self,
            "Api",
            rest_api_name=configuration.name,
            endpoint_types=[apigateway.EndpointType.REGIONAL],
            disable_execute_api_endpoint=configuration.domain_name is not None,
            cloud_watch_role=True,
            cloud_watch_role_removal_policy=removal(configuration),
            deploy_options=apigateway.StageOptions(
                stage_name=configuration.stage,
                throttling_rate_limit=configuration.throttle_rate,
                throttling_burst_limit=configuration.throttle_burst,
                access_log_destination=apigateway.LogGroupLogDestination(log.group),
                access_log_format=apigateway.AccessLogFormat.custom(REST_FORMAT),
                # Errors only, and no data: an execution log of everything would hold tokens and arguments.
                logging_level=apigateway.MethodLoggingLevel.ERROR,
                data_trace_enabled=False,
                metrics_enabled=True,
                tracing_enabled=configuration.tracing,
            ),
        )
        if configuration.domain_name:
            RestDomain(self, "Domain", configuration=configuration, api=self.api)
        managed = "Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs"
        excuse(self.api, f"AwsSolutions-IAM4[{managed}]", "The role with which API Gateway logs, as AWS documents it.")
        for rule, reason in _REASONS.items():
            excuse(self.api, rule, reason)

    @property
    def url(self) -> str:
        """Where it is: behind its stage, unless a domain hides that."""
        if self._configuration.domain_name:
            return f"https://{self._configuration.domain_name}"
        stack = cdk.Stack.of(self)
        host = f"{self.api.rest_api_id}.execute-api.{stack.region}.{stack.url_suffix}"
        # Not the API's own `url`: that waits for the stage, which waits for the functions, which want to know it.
        return f"https://{host}/{self._configuration.stage}"

    @property
    def metrics(self) -> EdgeMetrics:
        """What the API counts of itself."""
        return edge_metrics(self.api)

    def serve(self, *, api: lambda_.IFunction, report: lambda_.IFunction | None) -> None:
        """Put the functions behind their routes."""
        callers = RestCallers(self, "Callers", configuration=self._configuration, api=self.api)
        mcp = apigateway.LambdaIntegration(api, allow_test_invoke=False)
        endpoint = self.api.root.add_resource("mcp")
        endpoint.add_method("ANY", mcp, **callers.options)
        open_methods = {endpoint.add_method("OPTIONS", mcp): "A browser's preflight carries no credentials."}
        if report is not None:
            reports = apigateway.LambdaIntegration(report, allow_test_invoke=False)
            method = self.api.root.add_resource("report").add_method("POST", reports)
            open_methods[method] = "Reports carry a token of the kit's own, good for one run; the function checks it."
        if has_metadata(self._configuration):
            for method in add_metadata(self.api, self._configuration, self.url):
                open_methods[method] = "Clients read it to find out where to get a token (RFC 9728)."
        for method, reason in open_methods.items():
            excuse(method, "AwsSolutions-APIG4", reason)
        add_gateway_responses(self.api, self._configuration, self.url)


_REASONS = {
    "AwsSolutions-APIG2": "The function checks the JSON-RPC envelope and every argument, and says what was wrong "
    "in the protocol's own words; a validator in front would answer in others.",
    "AwsSolutions-APIG3": "A web ACL is a choice, and a bill, of the deployment; docs/deploy.md says how to add one.",
    "AwsSolutions-COG4": "Who may call is the deployment's choice: Cognito, IAM, keys, or an authorizer of its own.",
}
