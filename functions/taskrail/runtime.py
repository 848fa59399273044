"""Puts a deployment's parts together; the handlers, the local stack and the harness all start here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taskrail.clock import Clock, SystemClock
from taskrail.engines import Engine
from taskrail.ids import Ids, RandomIds
from taskrail.payloads import Payloads
from taskrail.rail.changes import Changes
from taskrail.rail.rail import Rail
from taskrail.rail.runs import Runs
from taskrail.server import TaskServer
from taskrail.settings import Settings
from taskrail.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client


@dataclass(frozen=True)
class Runtime:
    """One deployment, ready to serve.

    Parameters
    ----------
    server
        The catalogue.
    rail
        The tasks.
    settings, clock
        Limits, and the time.
    """

    server: TaskServer
    rail: Rail
    settings: Settings
    clock: Clock


def build(
    server: TaskServer,
    settings: Settings,
    *,
    dynamodb: DynamoDBClient,
    s3: Callable[[], S3Client],
    engines: Mapping[str, Engine],
    clock: Clock | None = None,
    ids: Ids | None = None,
) -> Runtime:
    """A deployment from its parts.

    Parameters
    ----------
    server, settings
        The catalogue and the limits.
    dynamodb, s3
        A client, and what makes one at its first use.
    engines
        By the name that `runs_on` gives them.
    clock, ids
        Time and randomness; the machine's own when left out.
    """
    clock = clock or SystemClock()
    ids = ids or RandomIds()
    changes = Changes(Store(dynamodb, settings.table), clock, ids)
    payloads = Payloads(s3, settings.bucket, ids)
    runs = Runs(server, engines, changes, settings)
    return Runtime(server, Rail(changes, runs, payloads, settings), settings, clock)


def from_environment(server: TaskServer) -> Runtime:
    """The deployment that the Lambda's environment describes; clients but DynamoDB's are made when used.

    Raises
    ------
    SettingsError
        The environment lacks something; the message names it.
    """
    settings = Settings.from_environment()
    engine = _Lazy(lambda: _step_functions(settings))
    return build(
        server, settings, dynamodb=client("dynamodb"), s3=lambda: client("s3"), engines={"step_functions": engine}
    )


def client(service: str, **more: Any) -> Any:
    """A boto3 client whose time-outs and retries leave room for a second call in API Gateway's 29 s.

    A hung connection costs 1 s and a hung answer 2 s (S3: 3 s), three times at most, with up to 3 s of the
    SDK's own back-off between them: 12 s in all (S3: 15 s).

    Parameters
    ----------
    service
        Name of the service.
    more
        Handed to boto3 as they are, ``endpoint_url`` for instance.
    """
    import boto3
    from botocore.config import Config

    config = Config(connect_timeout=1, read_timeout=2, retries={"mode": "standard", "total_max_attempts": 3})
    if service == "s3":
        # Signature 4 with the bucket in the path works for every endpoint, emulators included.
        config = config.merge(Config(signature_version="s3v4", read_timeout=3))
    make: Any = boto3.client
    return make(service, config=config, **more)


class _Lazy:
    """An engine that is made at its first use: most requests are polls and need none."""

    def __init__(self, make: Callable[[], Engine]) -> None:
        self._make = make
        self._made: Engine | None = None

    @property
    def _engine(self) -> Engine:
        if self._made is None:
            self._made = self._make()
        return self._made

    def start(self, tool: str, name: str, payload: dict[str, object], timeout_ms: int) -> str:
        """As `Engine.start`."""
        return self._engine.start(tool, name, payload, timeout_ms)

    def stop(self, tool: str, name: str) -> bool:
        """As `Engine.stop`."""
        return self._engine.stop(tool, name)

    def describe(self, tool: str, name: str) -> Any:
        """As `Engine.describe`."""
        return self._engine.describe(tool, name)


def _step_functions(settings: Settings) -> Engine:
    from taskrail.engines.step_functions import StepFunctions

    return StepFunctions(client("stepfunctions"), settings.state_machines)
