"""Where jobs on Batch run: a network of their own without NAT gateways, or one that is there already."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.cdk import excuse, removal
from infra.configuration import Configuration
from infra.function import retention


class Network(Construct):
    """Subnets from which a job reaches the internet, and into which nothing comes.

    Parameters
    ----------
    configuration
        The network to use; without one it is made: two public subnets, whose jobs have addresses of their own in
        place of a NAT gateway's 32 dollars a month.
    """

    def __init__(self, scope: Construct, name: str, *, configuration: Configuration) -> None:
        super().__init__(scope, name)
        self.public_ip = configuration.vpc_public_ip or configuration.vpc_id is None
        if configuration.vpc_id is None:
            self.vpc: ec2.IVpc = self._make(configuration)
            self.subnets = ec2.SubnetSelection(subnet_type=ec2.SubnetType.PUBLIC)
        else:
            # By attributes, since a lookup would need credentials at synthesis.
            self.vpc = ec2.Vpc.from_vpc_attributes(
                self,
                "Given",
                vpc_id=configuration.vpc_id,
                availability_zones=list(configuration.vpc_availability_zones),
                private_subnet_ids=list(configuration.vpc_subnet_ids),
            )
            cdk.Annotations.of(self.vpc).acknowledge_warning(
                "@aws-cdk/aws-ec2:noSubnetRouteTableId", "Nothing here looks at the routes of a given network."
            )
            self.subnets = ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS)
        self.security_group = ec2.SecurityGroup(
            self, "Jobs", vpc=self.vpc, description="Jobs of Taskrail: out, never in", allow_all_outbound=True
        )

    def _make(self, configuration: Configuration) -> ec2.Vpc:
        gateways = {
            "S3": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.S3),
            "DynamoDB": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.DYNAMODB),
        }
        vpc = ec2.Vpc(
            self,
            "Vpc",
            max_azs=2,
            nat_gateways=0,
            subnet_configuration=[
                ec2.SubnetConfiguration(
                    name="Jobs", subnet_type=ec2.SubnetType.PUBLIC, cidr_mask=20, map_public_ip_on_launch=False
                )
            ],
            gateway_endpoints=gateways,
            restrict_default_security_group=False,
        )
        log = logs.LogGroup(self, "Refused", retention=retention(configuration), removal_policy=removal(configuration))
        # What was let through would be most of the bill and says nothing; what was refused is worth a look.
        flow = vpc.add_flow_log(
            "FlowLog",
            destination=ec2.FlowLogDestination.to_cloud_watch_logs(log),
            traffic_type=ec2.FlowLogTrafficType.REJECT,
        )
        excuse(flow, "AwsSolutions-IAM5[Resource::*]", "CDK's own role of the flow log.")
        return vpc
