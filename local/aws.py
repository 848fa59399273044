"""The local AWS: moto's server for DynamoDB and S3, with the table and the bucket in it."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from local.child import Wiring, vanish, when_cut
from local.moto_patches import WrongMoto, apply
from local.stack import HOST, REGION

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

TTL_ATTRIBUTE = "expiresAt"


def create(dynamodb: DynamoDBClient, s3: S3Client, table: str, bucket: str) -> None:
    """Create the table and the bucket as a deployment does.

    Parameters
    ----------
    dynamodb, s3
        Clients.
    table, bucket
        Names.
    """
    dynamodb.create_table(
        TableName=table,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    dynamodb.update_time_to_live(
        TableName=table, TimeToLiveSpecification={"Enabled": True, "AttributeName": TTL_ATTRIBUTE}
    )
    s3.create_bucket(Bucket=bucket)


def no_web_pages(application: Wsgi, hosts: frozenset[str]) -> Wsgi:
    """Refuse what the pages of a browser send: moto would answer any of them, and reset itself for them.

    Parameters
    ----------
    application
        moto's.
    hosts
        The values of ``Host`` that mean this server.
    """

    def guarded(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if "HTTP_ORIGIN" in environ or environ.get("HTTP_HOST") not in hosts:
            start_response("403 Forbidden", [("Content-Type", "text/plain"), ("Content-Length", "0")])
            return []
        return application(environ, start_response)

    return guarded


def serve(wiring: Wiring) -> None:
    """Serve until the process ends."""
    apply()
    import boto3
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    stack = wiring.stack
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application = no_web_pages(
        DomainDispatcherApplication(create_backend_app),
        frozenset({f"{HOST}:{stack.aws_port}", f"localhost:{stack.aws_port}"}),
    )
    server = make_server(
        HOST, stack.aws_port, application, threaded=True, request_handler=MotoRequestHandler, fd=wiring.listener
    )
    threading.Thread(target=server.serve_forever, name="aws", daemon=True).start()
    create(
        boto3.client("dynamodb", region_name=REGION),
        boto3.client("s3", region_name=REGION),
        stack.table,
        stack.bucket,
    )
    wiring.ready()
    threading.Event().wait()


def main(argv: Sequence[str]) -> None:
    """Be the local AWS of a stack."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    wiring = Wiring.of(argv)
    when_cut(wiring.lifeline, lambda: vanish(wiring.stack))
    try:
        serve(wiring)
    except WrongMoto as problem:
        sys.exit(f"taskrail: {problem}")


if __name__ == "__main__":
    main(sys.argv[1:])
