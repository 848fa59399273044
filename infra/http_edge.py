"""An HTTP API: the door by default."""

from __future__ import annotations

from aws_cdk import aws_apigatewayv2 as apigw
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.access_log import HTTP_FORMAT, AccessLog
from infra.cdk import excuse
from infra.domain import HttpDomain
from infra.edge import METADATA, EdgeMetrics, edge_metrics, has_metadata
from infra.foundation import Foundation
from infra.http_authorizer import http_authorizer
from infra.http_open import OPEN_BECAUSE, cors
from infra.metadata_function import MetadataFunction
from infra.plan import Plan

_OPEN = apigw.HttpNoneAuthorizer()


class HttpEdge(Construct):
    """``/mcp`` behind the authorizer; ``/report`` and the well-known documents before it.

    Parameters
    ----------
    foundation, plan
        Who may call, from where, how often; which headers the catalogue asks for.
    """

    def __init__(self, scope: Construct, name: str, *, foundation: Foundation, plan: Plan) -> None:
        super().__init__(scope, name)
        configuration = foundation.configuration
        self._foundation, self._configuration = foundation, configuration
        self.domain = HttpDomain(self, "Domain", configuration=configuration) if configuration.domain_name else None
        self.api = apigw.HttpApi(
            self,
            "Api",
            api_name=configuration.name,
            create_default_stage=False,
            disable_execute_api_endpoint=self.domain is not None,
            cors_preflight=cors(configuration, plan),
        )
        log = AccessLog(self, "AccessLog", configuration=configuration)
        stage = apigw.HttpStage(
            self,
            "Stage",
            http_api=self.api,
            stage_name="$default",
            auto_deploy=True,
            throttle=apigw.ThrottleSettings(
                rate_limit=configuration.throttle_rate, burst_limit=configuration.throttle_burst
            ),
            domain_mapping=None if self.domain is None else self.domain.mapping,
        )
        self._stage = stage
        template = stage.node.default_child
        assert isinstance(template, apigw.CfnStage)
        template.access_log_settings = apigw.CfnStage.AccessLogSettingsProperty(
            destination_arn=log.group.log_group_arn, format=HTTP_FORMAT
        )

    @property
    def url(self) -> str:
        """Where it is; the default stage adds nothing to the path."""
        return f"https://{self._configuration.domain_name}" if self.domain else self.api.api_endpoint

    @property
    def metrics(self) -> EdgeMetrics:
        """What the API counts of itself."""
        return edge_metrics(self._stage)

    def serve(self, *, api: lambda_.IFunction, report: lambda_.IFunction | None) -> None:
        """Put the functions behind their routes."""
        mcp = integrations.HttpLambdaIntegration("Mcp", api)
        authorizer = http_authorizer(self, self._configuration)
        self.api.add_routes(
            path="/mcp",
            methods=[apigw.HttpMethod.ANY],
            integration=mcp,
            authorizer=authorizer,
            authorization_scopes=list(self._configuration.scopes) or None,
        )
        # A preflight carries no credentials (Fetch, "CORS-preflight fetch").
        routes = [("/mcp", apigw.HttpMethod.OPTIONS, mcp)]
        if report is not None:
            routes.append(("/report", apigw.HttpMethod.POST, integrations.HttpLambdaIntegration("Report", report)))
        if has_metadata(self._configuration):
            made = MetadataFunction(self, "WellKnown", foundation=self._foundation, url=self.url)
            document = integrations.HttpLambdaIntegration("Metadata", made.function)
            routes += [(path, apigw.HttpMethod.GET, document) for path in (METADATA, f"{METADATA}/mcp")]
        for path, method, integration in routes:
            for route in self.api.add_routes(path=path, methods=[method], integration=integration, authorizer=_OPEN):
                excuse(route, "AwsSolutions-APIG4", OPEN_BECAUSE[path])
        if self._configuration.auth == "none":
            excuse(self.api, "AwsSolutions-APIG4", "allow_anonymous=true: whoever deploys it wants anybody to call.")
