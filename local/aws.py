"""The local AWS: moto's server for DynamoDB, S3 and Step Functions, with the table and the bucket in it."""

from __future__ import annotations

import http.client
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from local import moto_workflows
from local.child import Wiring, vanish, when_cut
from local.engine import Line
from local.events import told
from local.moto_patches import WrongMoto, apply
from local.moto_workflows import Invoked, Uninvoked
from local.stack import ACCOUNT, HOST, REGION, Stack
from taskrail.errors import EngineUnavailable
from taskrail.settings import Settings
from taskrail.store.tasks import OWNED

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

TTL_ATTRIBUTE = "expiresAt"

FUNCTION_WITHIN = 900.0
"""Seconds that an invocation may take, as in Lambda."""

_STEP_FUNCTIONS = "AWSStepFunctions."

log = logging.getLogger("taskrail.local")


def create(dynamodb: DynamoDBClient, s3: S3Client, table: str, bucket: str, *, listed: bool = False) -> None:
    """Create the table and the bucket as a deployment does.

    Parameters
    ----------
    dynamodb, s3
        Clients.
    table, bucket
        Names.
    listed
        Whether callers list their tasks, which takes an index.
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
    if listed:
        dynamodb.update_table(TableName=table, **index_by_owner())
    s3.create_bucket(Bucket=bucket)


def index_by_owner() -> dict[str, Any]:
    """What UpdateTable takes to add the index of tasks by owner."""
    keys = {"owner": "HASH", "createdAt": "RANGE"}
    index = {
        "IndexName": OWNED,
        "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind in keys.items()],
        "Projection": {"ProjectionType": "KEYS_ONLY"},
    }
    return {
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in keys],
        "GlobalSecondaryIndexUpdates": [{"Create": index}],
    }


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


class Interpreter:
    """Loads moto's interpreter of state machines before the first request that is about one.

    Parameters
    ----------
    stack
        Whose functions are invoked, and whose supervisor is told of ends.
    """

    def __init__(self, stack: Stack) -> None:
        self._functions = (HOST, stack.functions_port)
        self._line = Line(stack.socket, within=1.0)
        self._lock = threading.Lock()
        self._loaded = False

    def before(self, application: Wsgi) -> Wsgi:
        """Serve an application whose requests may need the interpreter."""

        def serving(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            if environ.get("HTTP_X_AMZ_TARGET", "").startswith(_STEP_FUNCTIONS):
                with self._lock:
                    if not self._loaded:
                        moto_workflows.apply(self._invoke, self._ended)
                        self._loaded = True
            return application(environ, start_response)

        return serving

    def _invoke(self, name: str, payload: bytes) -> Invoked:
        connection = http.client.HTTPConnection(*self._functions, timeout=FUNCTION_WITHIN)
        try:
            connection.request("POST", f"/2015-03-31/functions/{quote(name)}/invocations", payload)
            answer = connection.getresponse()
            body, status = answer.read(), answer.status
        except (OSError, http.client.HTTPException) as error:
            # The process of the functions is being started again: a state with Retry tries again.
            raise Uninvoked("ServiceException", f"The function did not answer ({type(error).__name__}).") from error
        finally:
            connection.close()
        if status == 404:
            raise Uninvoked("ResourceNotFoundException", f"Function not found: {name}")
        if status != 200:
            raise Uninvoked("ServiceException", f"The function's process answered {status}.")
        return Invoked(body, answer.headers.get("X-Amz-Function-Error") is not None)

    def _ended(self, detail: dict[str, Any]) -> None:
        try:
            self._line.ask({"do": "tell", "event": told(detail)})
        except EngineUnavailable:
            # Events of Step Functions are best effort, here as there: the next read of the task settles it.
            log.info("the end of an execution was not passed on")


def serve(wiring: Wiring) -> None:
    """Serve until the process ends."""
    os.environ.update(MOTO_ACCOUNT_ID=ACCOUNT, MOTO_PORT=str(wiring.stack.aws_port))
    apply()
    import boto3
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    stack = wiring.stack
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application = no_web_pages(
        Interpreter(stack).before(DomainDispatcherApplication(create_backend_app)),
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
        listed=Settings.from_environment().experimental_tasks,
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
