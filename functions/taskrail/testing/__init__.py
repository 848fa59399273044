"""The harness: a whole deployment inside a test, on moto, without threads and without waiting.

Requests go through the real handler as API Gateway events; the table and the bucket are moto's;
runs wait in a queue until the test lets them happen; time stands still until the test moves it::

    from taskrail.testing import harness
    from catalogue import server

    def test_publishing_asks_first():
        with harness(server) as kit:
            task = kit.call("publish_report", documents=[{"name": "a", "text": "one two"}])
            task.run()                                   # the job, up to its question
            assert task.status == "input_required"
            task.answer(approval={"publish": True})
            assert task.run().structured == {"published": True}

`taskrail.pytest_plugin` has the same as a pytest fixture. The harness needs moto, which the kit's
development requirements bring.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from taskrail.clients import client
from taskrail.runtime import build
from taskrail.server import TaskServer
from taskrail.settings import Settings
from taskrail.testing.fakes import START, CountingIds, QueueEngine, StandingClock
from taskrail.testing.kit import BUCKET, TABLE, VERSION, Called, Kit, RpcFailure

__all__ = [
    "BUCKET",
    "START",
    "TABLE",
    "VERSION",
    "Called",
    "CountingIds",
    "Kit",
    "QueueEngine",
    "RpcFailure",
    "StandingClock",
    "harness",
]


@contextmanager
def harness(server: TaskServer, *, settings: Settings | None = None) -> Iterator[Kit]:
    """A deployment of a catalogue, alive within the block.

    Parameters
    ----------
    server
        The catalogue.
    settings
        Limits; the defaults when left out.
    """
    from moto import mock_aws

    keys: Any = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing", "region_name": "us-east-1"}
    with mock_aws():
        dynamodb = client("dynamodb", **keys)
        s3 = client("s3", **keys)
        dynamodb.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        s3.create_bucket(Bucket=BUCKET)
        engine, jobs, functions = QueueEngine(), QueueEngine(records_ids=True), QueueEngine(by_lease=True)
        clock = StandingClock()
        runtime = build(
            server,
            settings
            or Settings(
                table=TABLE,
                bucket=BUCKET,
                secret="a secret for tests only",
                report_url="https://api.example.com/report",
            ),
            dynamodb=dynamodb,
            s3=lambda: s3,
            engines={"step_functions": engine, "batch": jobs, "lambda": functions},
            clock=clock,
            ids=CountingIds(),
        )
        yield Kit(runtime, engine, clock, dynamodb, s3, jobs, functions)
