"""What every other part stands on: table, bucket, secret, code, and where dead letters go."""

from __future__ import annotations

import json

from constructs import Construct

from infra.code import Codes
from infra.configuration import Configuration
from infra.dead_letters import DeadLetters
from infra.deployment_secret import DeploymentSecret
from infra.payload_bucket import PayloadBucket
from infra.task_table import TaskTable


class Foundation(Construct):
    """The common parts of a deployment.

    Parameters
    ----------
    configuration
        What was chosen.
    codes
        The bundles.
    """

    def __init__(self, scope: Construct, name: str, *, configuration: Configuration, codes: Codes) -> None:
        super().__init__(scope, name)
        self.configuration = configuration
        self.codes = codes
        self.table = TaskTable(self, "Tasks", configuration=configuration)
        self.bucket = PayloadBucket(self, "Payloads", configuration=configuration)
        self.secret = DeploymentSecret(self, "Sealing", configuration=configuration)
        self.dead_letters = DeadLetters(self, "DeadLetters")

    @property
    def worker_environment(self) -> dict[str, str]:
        """The settings of whoever only reports: no secret."""
        return {"TABLE": self.table.table.table_name, "BUCKET": self.bucket.bucket.bucket_name}

    @property
    def environment(self) -> dict[str, str]:
        """The settings of whoever changes tasks on behalf of callers, seals states or checks tokens."""
        limits = self.configuration.most_open
        given = {"MOST_OPEN": json.dumps(dict(limits))} if limits else {}
        return {**self.worker_environment, "SECRET_ARN": self.secret.secret.secret_arn, **given}
