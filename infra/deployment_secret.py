"""The secret that seals the state of questions and signs the tokens of reports."""

from __future__ import annotations

from aws_cdk import aws_iam as iam
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from infra.cdk import allow, excuse, removal
from infra.configuration import Configuration


class DeploymentSecret(Construct):
    """A random text that only the API and `report` read.

    Parameters
    ----------
    configuration
        What becomes of it.
    """

    def __init__(self, scope: Construct, name: str, *, configuration: Configuration) -> None:
        super().__init__(scope, name)
        self.secret = secretsmanager.Secret(
            self,
            "Secret",
            description="Seals the state of pre-flight questions and signs report tokens",
            generate_secret_string=secretsmanager.SecretStringGenerator(password_length=64, exclude_punctuation=True),
            removal_policy=removal(configuration),
        )
        excuse(
            self.secret,
            "AwsSolutions-SMG4",
            "A rotation would void the tokens of runs that go on and the answers that are on their way; the operator's "
            "guide says how to replace the secret when it must be.",
        )

    def allow_read(self, role: iam.Role) -> None:
        """Let a role read the secret, and no other."""
        allow(role, ["secretsmanager:GetSecretValue"], [self.secret.secret_arn])
