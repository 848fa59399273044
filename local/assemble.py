"""The kit's runtime over the local AWS and the local engines, for the processes that need one."""

from __future__ import annotations

import importlib
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from local.engine import Jobs, Line, LocalBatch, LocalStepFunctions
from local.invocations import LocalLambda
from local.stack import Stack
from taskrail.clients import client
from taskrail.runtime import Runtime, build
from taskrail.server import TaskServer
from taskrail.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_s3 import S3Client

    from taskrail.engines.step_functions import StepFunctions


class CatalogueError(Exception):
    """The catalogue has no server; the message says what to do."""


def server_of(catalogue: str) -> TaskServer:
    """The server that a catalogue declares.

    Parameters
    ----------
    catalogue
        Name of a module.

    Raises
    ------
    CatalogueError
        There is no such module, or it has no `TaskServer` under the name ``server``.
    """
    try:
        module = importlib.import_module(catalogue)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{catalogue}.".startswith(f"{error.name}."):
            raise
        raise CatalogueError(f"there is no module {catalogue!r} in functions/ or beside it") from None
    server = getattr(module, "server", None)
    if not isinstance(server, TaskServer):
        raise CatalogueError(f"the module {catalogue!r} needs a TaskServer under the name `server`")
    return server


def runtime_of(stack: Stack) -> Runtime:
    """The runtime of a stack, in a process that has the stack's environment.

    Parameters
    ----------
    stack
        The stack that the process belongs to.

    Raises
    ------
    CatalogueError
        As in `server_of`.
    """
    server = server_of(stack.catalogue)
    # The front has refused every origin but this machine's own, on whatever port, before a handler sees it.
    settings = replace(Settings.from_environment(), allowed_origins=("*",))
    making = threading.Lock()

    def s3() -> S3Client:
        # boto3 makes clients from one session, which threads must not share while it does.
        with making:
            made: S3Client = client("s3")
            return made

    def executions(arns: Mapping[str, str]) -> StepFunctions:
        from taskrail.engines.step_functions import StepFunctions

        return StepFunctions(client("stepfunctions"), arns)

    jobs = Jobs(Line(stack.socket), stack.runs)
    return build(
        server,
        settings,
        dynamodb=client("dynamodb"),
        s3=s3,
        engines={
            "step_functions": LocalStepFunctions(jobs, stack, server.tools, executions),
            "lambda": LocalLambda(jobs, server.tools),
            "batch": LocalBatch(jobs, server.tools),
        },
    )
