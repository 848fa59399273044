"""Puts a deployment's parts together; the handlers, the local stack and the harness all start here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

from taskrail.clients import client
from taskrail.clock import Clock, SystemClock
from taskrail.engines import Engine, RunOrder, RunReport
from taskrail.ids import Ids, RandomIds
from taskrail.payloads import Payloads
from taskrail.rail.changes import Changes
from taskrail.rail.orders import Orders
from taskrail.rail.outcomes import Outcomes
from taskrail.rail.quotas import Quotas
from taskrail.rail.rail import Rail
from taskrail.rail.repeats import Repeats
from taskrail.rail.runs import Runs
from taskrail.server import TaskServer
from taskrail.settings import Settings, SettingsError
from taskrail.signing import Signer
from taskrail.store import Limits, Reservations, Store
from taskrail.telemetry import Telemetry, configure

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

    from taskrail.rail.approvals import Approvals
    from taskrail.rail.cleanup import Cleanup
    from taskrail.rail.remote import RemoteReports


@dataclass(frozen=True)
class Parts:
    """What a deployment's parts are made from."""

    changes: Changes
    runs: Runs
    payloads: Payloads
    repeats: Repeats
    signer: Signer


@dataclass(frozen=True)
class Runtime:
    """One deployment, ready to serve. What only some functions need is made, and imported, at its first use.

    Parameters
    ----------
    server
        The catalogue.
    rail
        The tasks.
    settings, clock, telemetry
        Limits, the time, and what is told of requests and tasks.
    secret
        Gives the deployment's secret; asked for at its first use.
    parts
        What the rest is made from.
    """

    server: TaskServer
    rail: Rail
    settings: Settings
    clock: Clock
    telemetry: Telemetry
    secret: Callable[[], str]
    parts: Parts

    @cached_property
    def remote(self) -> RemoteReports:
        """Takes the reports of workflows and containers."""
        from taskrail.rail.remote import RemoteReports

        parts = self.parts
        return RemoteReports(self.server, parts.changes, parts.runs, parts.payloads, parts.signer, self.settings)

    @cached_property
    def cleanup(self) -> Cleanup:
        """Ends what removed tasks leave behind."""
        from taskrail.rail.cleanup import Cleanup

        return Cleanup(self.parts.runs, self.parts.payloads, self.parts.repeats)

    @cached_property
    def approvals(self) -> Approvals:
        """Answers questions for whoever holds a token."""
        from taskrail.rail.approvals import Approvals

        return Approvals(self.rail, self.parts.changes, self.parts.signer)


def build(
    server: TaskServer,
    settings: Settings,
    *,
    dynamodb: DynamoDBClient,
    s3: Callable[[], S3Client],
    engines: Mapping[str, Engine],
    clock: Clock | None = None,
    ids: Ids | None = None,
    telemetry: Telemetry | None = None,
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
    telemetry
        Told of requests and of tasks' turns; the log when left out.
    """
    telemetry = telemetry or Telemetry(deployment=settings.deployment)
    clock = clock or SystemClock()
    ids = ids or RandomIds()
    secret = _secret_of(settings)
    signer = Signer(secret)
    changes = Changes(Store(dynamodb, settings.table), clock, ids, telemetry)
    payloads = Payloads(s3, settings.bucket, ids)
    runs = Runs(server, engines, changes, settings, Orders(payloads, signer, settings.report_url), Outcomes(payloads))
    repeats = Repeats(changes, Reservations(dynamodb, settings.table), payloads)
    quotas = Quotas(changes, Limits(dynamodb, settings.table), settings.most_open)
    rail = Rail(changes, runs, payloads, settings, repeats, quotas)
    return Runtime(
        server=server,
        rail=rail,
        settings=settings,
        clock=clock,
        telemetry=telemetry,
        secret=secret,
        parts=Parts(changes, runs, payloads, repeats, signer),
    )


def from_environment(server: TaskServer) -> Runtime:
    """The deployment that the Lambda's environment describes; clients but DynamoDB's are made when used.

    Raises
    ------
    SettingsError
        The environment lacks something; the message names it.
    """
    return _from(server, Settings.from_environment())


def worker_from_environment(server: TaskServer) -> Runtime:
    """The deployment as a worker sees it: without the secret, since a worker signs nothing.

    Raises
    ------
    SettingsError
        The environment lacks something; the message names it.
    """
    return _from(server, Settings.from_environment(worker=True))


def _from(server: TaskServer, settings: Settings) -> Runtime:
    configure()
    engines: dict[str, Engine] = {
        "step_functions": Lazy(lambda: _step_functions(settings), records_ids=False, stops_gently=False),
        "batch": Lazy(lambda: _batch(settings), records_ids=True, stops_gently=True),
        "lambda": Lazy(lambda: _lambda_functions(settings), records_ids=False, stops_gently=False, by_lease=True),
    }
    return build(server, settings, dynamodb=client("dynamodb"), s3=lambda: client("s3"), engines=engines)


def _secret_of(settings: Settings) -> Callable[[], str]:
    @cache
    def secret() -> str:
        if settings.secret:
            return settings.secret
        if settings.secret_arn is None:
            raise SettingsError("This function signs tokens, so it needs TASKRAIL_SECRET or TASKRAIL_SECRET_ARN.")
        text: str = client("secretsmanager").get_secret_value(SecretId=settings.secret_arn)["SecretString"]
        return text

    return secret


class Lazy:
    """An engine that is made at its first use: most requests are polls and need none.

    Parameters
    ----------
    make
        Makes the engine.
    records_ids, stops_gently, by_lease
        As that engine has them.
    """

    def __init__(
        self, make: Callable[[], Engine], *, records_ids: bool, stops_gently: bool, by_lease: bool = False
    ) -> None:
        self.records_ids = records_ids
        self.stops_gently = stops_gently
        self.by_lease = by_lease
        self._make = make

    @cached_property
    def _engine(self) -> Engine:
        return self._make()

    def start(self, order: RunOrder) -> str:
        """As `Engine.start`."""
        return self._engine.start(order)

    def stop(self, tool: str, name: str, run_id: str | None) -> bool:
        """As `Engine.stop`."""
        return self._engine.stop(tool, name, run_id)

    def describe(self, tool: str, name: str, run_id: str | None) -> RunReport:
        """As `Engine.describe`."""
        return self._engine.describe(tool, name, run_id)

    def resume(self, token: str, output: str) -> None:
        """As `Engine.resume`."""
        self._engine.resume(token, output)

    def log_tail(self, tool: str, log: str, lines: int) -> tuple[str, ...]:
        """As `Engine.log_tail`."""
        return self._engine.log_tail(tool, log, lines)


def _step_functions(settings: Settings) -> Engine:
    from taskrail.engines.adopted import Adopted
    from taskrail.engines.step_functions import StepFunctions

    adopted = Adopted(lambda: client("resourcegroupstaggingapi"))
    return StepFunctions(client("stepfunctions"), settings.state_machines, adopted)


def _lambda_functions(settings: Settings) -> Engine:
    from taskrail.engines.lambda_functions import LambdaFunctions

    return LambdaFunctions(client("lambda"), settings.functions)


def _batch(settings: Settings) -> Engine:
    from taskrail.engines.adopted import Adopted
    from taskrail.engines.batch import Batch

    adopted = Adopted(lambda: client("resourcegroupstaggingapi"))
    # SubmitJob has no client token: repeated by the SDK, it would submit a second job.
    return Batch(client("batch", repeats=False), settings.jobs, adopted, lambda: client("logs"))
