"""Synthesis in this process, and questions that tests ask of a template."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import aws_cdk as cdk

from infra.app import build
from infra.configuration import Configuration
from taskrail.server import TaskServer

ROOT = Path(__file__).resolve().parents[2]

ANONYMOUS = {"auth": "none", "allow_anonymous": "true"}
JWT = {"auth": "jwt", "issuer": "https://auth.example.com/", "audience": "https://api.example.com/mcp"}
COGNITO = {
    "auth": "jwt",
    "issuer": "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_AbC123",
    "audience": "client",
    "scopes": "tasks/use",
}
LAMBDA = {
    "auth": "lambda",
    "authorizer_arn": "arn:aws:lambda:eu-central-1:111122223333:function:authorizer",
    "owner_key": "sub",
}
IMAGES = {"images": json.dumps({"render": "example.com/render:1", "thumbnails": "example.com/thumbnails:1"})}

DOMAIN = {
    "domain_name": "tasks.example.com",
    "certificate_arn": "arn:aws:acm:eu-central-1:111122223333:certificate/1",
    "hosted_zone_id": "Z1",
    "hosted_zone_name": "example.com",
}
NETWORK = {
    "vpc_id": "vpc-0a0a0a0a",
    "vpc_subnet_ids": "subnet-0a0a0a0a,subnet-0b0b0b0b",
    "vpc_availability_zones": "eu-central-1a,eu-central-1b",
}
TOPIC = "arn:aws:sns:eu-central-1:111122223333:alarms"


@cache
def flags() -> Mapping[str, Any]:
    """The context of cdk.json."""
    context: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]
    return context


class Template:
    """A synthesized template.

    Parameters
    ----------
    body
        As CloudFormation gets it.
    """

    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body

    def all(self, kind: str) -> dict[str, dict[str, Any]]:
        """The properties of all resources of a type, by logical id."""
        return {
            name: resource.get("Properties", {})
            for name, resource in self.body["Resources"].items()
            if resource["Type"] == kind
        }

    def one(self, kind: str) -> dict[str, Any]:
        """The properties of the only resource of a type."""
        found = self.all(kind)
        assert len(found) == 1, sorted(found)
        return next(iter(found.values()))

    def functions_with(self, handler: str) -> list[str]:
        """The logical ids of the functions with a handler."""
        return [name for name, each in self.all("AWS::Lambda::Function").items() if each["Handler"] == handler]

    def function(self, handler: str) -> dict[str, Any]:
        """The properties of the only function with a handler."""
        (found,) = (each for each in self.all("AWS::Lambda::Function").values() if each["Handler"] == handler)
        return found

    def setting(self, handler: str, name: str) -> Any:
        """A setting of a function, named without prefix; None when it has none of that name."""
        return self.function(handler)["Environment"]["Variables"].get(f"TASKRAIL_{name}")

    def statements(self, role: str) -> Iterator[dict[str, Any]]:
        """The statements of all policies of a role."""
        for policy in self.all("AWS::IAM::Policy").values():
            if {"Ref": role} in policy["Roles"]:
                yield from policy["PolicyDocument"]["Statement"]

    def role_of(self, handler: str) -> str:
        """The logical id of a function's role."""
        found: str = self.function(handler)["Role"]["Fn::GetAtt"][0]
        return found

    def actions(self, role: str) -> dict[str, list[dict[str, Any]]]:
        """The statements of a role by each action in them."""
        by_action: dict[str, list[dict[str, Any]]] = {}
        for statement in self.statements(role):
            named = statement["Action"]
            for action in [named] if isinstance(named, str) else named:
                by_action.setdefault(action, []).append(statement)
        return by_action


def synthesize(variants: Mapping[str, tuple[TaskServer, Mapping[str, Any]]]) -> dict[str, Template]:
    """The templates of several deployments, synthesized together: nothing is bundled, nobody is asked.

    Parameters
    ----------
    variants
        Catalogue and context by a name.
    """
    app = cdk.App(context={**flags(), "aws:cdk:bundling-stacks": []})
    for name, (server, context) in variants.items():
        build(app, server, Configuration.from_context({"name": name, **context}), name)
    return {stack.stack_name: Template(stack.template) for stack in app.synth().stacks}


def shown(value: Any) -> str:
    """A value of a template as one text: references as ``${Name}``."""
    if isinstance(value, str):
        return value
    name, inner = next(iter(value.items()))
    if name == "Ref":
        return f"${{{inner}}}"
    if name == "Fn::GetAtt":
        return f"${{{'.'.join(inner)}}}"
    assert name == "Fn::Join", name
    return str(inner[0]).join(shown(part) for part in inner[1])
