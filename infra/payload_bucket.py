"""The bucket: payloads too large for an item, attachments, and inputs that callers uploaded."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.cdk import allow, excuse, removal
from infra.configuration import Configuration

TASKS = "tasks/*"
INPUTS = "inputs/*"
ARGUMENTS = "tasks/*/arguments.json"
RESULTS = "tasks/*/results/*"

_KEYS = (
    "Objects have random keys of their own, known to nobody before they are written; the prefix is what can be named."
)


class PayloadBucket(Construct):
    """The bucket of payloads.

    What lies under ``tasks/`` is deleted by `expired` together with its task, whenever that is: a task that asks
    questions lives for as long as they stay open, so no number of days fits, and none is set here.

    Parameters
    ----------
    configuration
        What becomes of it, and how long inputs are kept.
    """

    def __init__(self, scope: Construct, name: str, *, configuration: Configuration) -> None:
        super().__init__(scope, name)
        rules = [s3.LifecycleRule(id="unfinished", abort_incomplete_multipart_upload_after=cdk.Duration.days(7))]
        if configuration.input_days is not None:
            days = cdk.Duration.days(configuration.input_days)
            rules.append(s3.LifecycleRule(id="inputs", prefix=INPUTS.rstrip("*"), expiration=days))
        origins = list(configuration.allowed_origins)
        upload = s3.CorsRule(
            allowed_methods=[s3.HttpMethods.GET, s3.HttpMethods.PUT, s3.HttpMethods.POST],
            allowed_origins=origins,
            allowed_headers=["content-type"],
        )
        self.bucket = s3.Bucket(
            self,
            "Bucket",
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            lifecycle_rules=rules,
            cors=[upload] if origins else None,
            removal_policy=removal(configuration),
        )
        excuse(
            self.bucket,
            "AwsSolutions-S1",
            "Every object is written and read by the kit's own roles or by a link that names one object for an hour; "
            "who asked for it is in the API's log. Server access logs would need a second bucket that outlives this.",
        )
        if configuration.removal == "destroy":
            # CloudFormation cannot delete a bucket that holds objects; the rule empties it, the stack says how.
            cdk.Annotations.of(self).add_info(
                "removal=destroy: empty the payload bucket before `cdk destroy` (`make destroy` does it)."
            )

    def allow(self, role: iam.Role, *, read: tuple[str, ...] = (), write: tuple[str, ...] = ()) -> None:
        """Let a role get and put objects below prefixes, `TASKS` and `INPUTS`."""
        for action, prefixes in (("s3:GetObject", read), ("s3:PutObject", write)):
            if prefixes:
                allow(role, [action], [self.bucket.arn_for_objects(prefix) for prefix in prefixes], because=_KEYS)

    def allow_delete(self, role: iam.Role) -> None:
        """Let a role find and delete the payloads of tasks."""
        allow(role, ["s3:DeleteObject"], [self.bucket.arn_for_objects(TASKS)], because=_KEYS)
        allow(role, ["s3:ListBucket"], [self.bucket.bucket_arn], conditions={"StringLike": {"s3:prefix": TASKS}})
