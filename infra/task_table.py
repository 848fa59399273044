"""The table: one item per task."""

from __future__ import annotations

from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.cdk import allow, removal
from infra.configuration import Configuration
from taskrail.store.tasks import OWNED

TASKS = "task#*"

JOB_ATTRIBUTES = (
    "pk",
    "schema",
    "rev",
    "nonce",
    "owner",
    "status",
    "statusMessage",
    "progress",
    "lastUpdatedAt",
    "ttlMs",
    "expiresAt",
    "run",
    "attempt",
    "runId",
    "claim",
    "leaseUntil",
    "runOpen",
    "answerDeadline",
    "missingSince",
    "questions",
    "answers",
    "tokens",
    "steps",
    "arguments",
    "result",
    "error",
)
"""What a worker's writes may name. DynamoDB counts what a condition compares as well, such as ``owner``, and what the
last write of a task drops, such as ``arguments``.

Out of its reach: what the task is (``tool``, ``engine``, ``createdAt``, ``client``, ``traceparent``), how long it may
take and is kept (``runDeadline``, ``keepMs``, ``pollMs``), and that somebody wants it to stop (``cancelRequestedAt``).
"""


class TaskTable(Construct):
    """The table of tasks, on demand, with a stream of what expired.

    Parameters
    ----------
    configuration
        What becomes of it, and whether it may be deleted.
    """

    def __init__(self, scope: Construct, name: str, *, configuration: Configuration) -> None:
        super().__init__(scope, name)
        self._listed = configuration.experimental_tasks
        self.table = dynamodb.TableV2(
            self,
            "Table",
            partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
            billing=dynamodb.Billing.on_demand(),
            encryption=dynamodb.TableEncryptionV2.dynamo_owned_key(),
            time_to_live_attribute="expiresAt",
            dynamo_stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            global_secondary_indexes=[_by_owner()] if self._listed else None,
            deletion_protection=configuration.deletion_protection,
            removal_policy=removal(configuration),
        )

    def allow(self, role: iam.Role, *actions: str) -> None:
        """Let a function make calls on the table's items, ``GetItem`` and the like."""
        allow(role, [f"dynamodb:{action}" for action in actions], [self.table.table_arn])

    def allow_lists(self, role: iam.Role) -> None:
        """Let a function list the tasks of an owner, if there is an index for that."""
        if self._listed:
            allow(role, ["dynamodb:Query"], [f"{self.table.table_arn}/index/{OWNED}"])

    def allow_job(self, role: iam.Role) -> None:
        """Let a job read tasks, and write what a worker reports."""
        keys = {"dynamodb:LeadingKeys": [TASKS]}
        named = {"dynamodb:Attributes": list(JOB_ATTRIBUTES)}
        arns = [self.table.table_arn]
        allow(role, ["dynamodb:GetItem"], arns, conditions={"ForAllValues:StringLike": keys})
        conditions = {"ForAllValues:StringLike": keys, "ForAllValues:StringEquals": named}
        allow(role, ["dynamodb:UpdateItem"], arns, conditions=conditions)


def _by_owner() -> dynamodb.GlobalSecondaryIndexPropsV2:
    return dynamodb.GlobalSecondaryIndexPropsV2(
        index_name=OWNED,
        partition_key=dynamodb.Attribute(name="owner", type=dynamodb.AttributeType.STRING),
        sort_key=dynamodb.Attribute(name="createdAt", type=dynamodb.AttributeType.STRING),
        projection_type=dynamodb.ProjectionType.KEYS_ONLY,
    )
