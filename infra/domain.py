"""A domain of one's own in front of an API, and its records."""

from __future__ import annotations

from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_apigatewayv2 as apigw
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_route53 as route53
from aws_cdk import aws_route53_targets as targets
from constructs import Construct

from infra.configuration import Configuration


class HttpDomain(Construct):
    """The domain of an HTTP API.

    Parameters
    ----------
    configuration
        Its name, its certificate, and the zone of its records.
    """

    def __init__(self, scope: Construct, name: str, *, configuration: Configuration) -> None:
        super().__init__(scope, name)
        domain = apigw.DomainName(
            self,
            "Name",
            domain_name=str(configuration.domain_name),
            certificate=certificate(self, configuration),
            security_policy=apigw.SecurityPolicy.TLS_1_2,
        )
        self.mapping = apigw.DomainMappingOptions(domain_name=domain)
        add_records(
            self,
            configuration,
            targets.ApiGatewayv2DomainProperties(domain.regional_domain_name, domain.regional_hosted_zone_id),
        )


class RestDomain(Construct):
    """The domain of a REST API; it hides the stage.

    Parameters
    ----------
    configuration
        As for `HttpDomain`.
    api
        What is behind it.
    stage
        Its stage.
    """

    def __init__(self, scope: Construct, name: str, *, configuration: Configuration, api: apigateway.RestApi) -> None:
        super().__init__(scope, name)
        domain = apigateway.DomainName(
            self,
            "Name",
            domain_name=str(configuration.domain_name),
            certificate=certificate(self, configuration),
            endpoint_type=apigateway.EndpointType.REGIONAL,
            security_policy=apigateway.SecurityPolicy.TLS_1_2,
            mapping=api,
        )
        add_records(self, configuration, targets.ApiGatewayDomain(domain))


def certificate(scope: Construct, configuration: Configuration) -> acm.ICertificate:
    """The certificate that is there already."""
    return acm.Certificate.from_certificate_arn(scope, "Certificate", str(configuration.certificate_arn))


def add_records(scope: Construct, configuration: Configuration, target: route53.IAliasRecordTarget) -> None:
    """Records of both kinds of addresses, if a zone was given; without one, somebody else writes them."""
    if configuration.hosted_zone_id is None or configuration.hosted_zone_name is None:
        return
    zone = route53.HostedZone.from_hosted_zone_attributes(
        scope,
        "Zone",
        hosted_zone_id=configuration.hosted_zone_id,
        zone_name=configuration.hosted_zone_name.rstrip("."),
    )
    alias = route53.RecordTarget.from_alias(target)
    for kind, record in (("A", route53.ARecord), ("Aaaa", route53.AaaaRecord)):
        record(scope, kind, zone=zone, record_name=f"{configuration.domain_name}.", target=alias)
