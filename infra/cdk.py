"""Small things that several constructs need: clean-up, permissions, and reasons for what a rule would refuse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam

if TYPE_CHECKING:
    from constructs import IConstruct

    from infra.configuration import Configuration

_ACKNOWLEDGED = "aws:cdk:acknowledged-rules"
"""Where CDK keeps acknowledged findings. Its own method refuses ids with "::" in them, which ARNs bring along."""


def removal(configuration: Configuration) -> cdk.RemovalPolicy:
    """What becomes of data when the stack is deleted."""
    return cdk.RemovalPolicy.DESTROY if configuration.removal == "destroy" else cdk.RemovalPolicy.RETAIN


def excuse(construct: IConstruct, rule: str, reason: str) -> None:
    """Say why a rule of cdk-nag does not hold for a construct and what is below it.

    Parameters
    ----------
    rule
        Its id, as ``AwsSolutions-S1``, with the finding in brackets where a rule has several.
    reason
        What a reviewer reads.
    """
    construct.node.add_metadata(_ACKNOWLEDGED, {rule: reason})


def allow(
    grantee: iam.Role | iam.Policy,
    actions: Sequence[str],
    resources: Sequence[str],
    *,
    conditions: Mapping[str, Mapping[str, object]] | None = None,
    because: str | None = None,
) -> None:
    """Let a role make exactly these calls on exactly these resources.

    Parameters
    ----------
    because
        Why a resource has a wildcard in it; a wildcard without a reason does not pass `make lint`.
    """
    statement = iam.PolicyStatement(actions=list(actions), resources=list(resources), conditions=conditions or {})
    if isinstance(grantee, iam.Role):
        grantee.add_to_principal_policy(statement)
    else:
        grantee.add_statements(statement)
    if because is not None:
        for resource in resources:
            excuse(grantee, f"AwsSolutions-IAM5[Resource::{_shown(cdk.Stack.of(grantee).resolve(resource))}]", because)


def _shown(value: Any) -> str:
    """A resource as cdk-nag shows it: references in angle brackets."""
    if isinstance(value, str):
        return value
    name, inner = next(iter(value.items()))
    if name == "Ref":
        return f"<{inner}>"
    if name == "Fn::GetAtt":
        return f"<{'.'.join(inner)}>"
    if name == "Fn::Join":
        return str(inner[0]).join(_shown(part) for part in inner[1])
    raise AssertionError(f"a resource made of {name} is not expected")
