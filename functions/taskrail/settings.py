"""What the environment says: the one place that reads it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from taskrail.errors import TaskrailError

_PREFIX = "TASKRAIL_"

AUTHS = ("none", "jwt", "iam", "lambda", "api_key")
IAM_OWNERS = ("role", "session")
LISTENS = ("off", "hold", "stream")


class SettingsError(TaskrailError):
    """The environment lacks a variable or holds one that cannot be used; the message names it."""


def required(name: str, environ: Mapping[str, str] | None = None) -> str:
    """The value of a variable that must be there.

    Parameters
    ----------
    name
        Of the variable.
    environ
        Variables to read in place of the process's own.

    Raises
    ------
    SettingsError
        It is missing or empty.
    """
    value = (os.environ if environ is None else environ).get(name)
    if not value:
        raise SettingsError(f"The environment variable {name} is missing.")
    return value


@dataclass(frozen=True)
class Settings:
    """One deployment's settings.

    Parameters
    ----------
    table
        Name of the DynamoDB table that holds the tasks.
    bucket
        Name of the S3 bucket that holds payloads too large for an item.
    secret
        Key for the sealed state of pre-flight questions and for report tokens, at least 16 characters; empty
        where `secret_arn` says where it is, and for workers, which need none. Never logged.
    secret_arn
        ARN of the secret in Secrets Manager, read at its first use.
    state_machines
        ARN of the state machine of each Step Functions tool, by the tool's name; or ``tag:key=value``.
    functions
        ARN of the function of each Lambda tool, by the tool's name.
    jobs
        ``queue`` and ``definition`` of each Batch tool, by the tool's name: ARNs, names, or ``tag:key=value``.
    report_url
        Where containers report to; needed with container tools only.
    event_bus
        Name of the event bus that is told of tasks; None for none.
    most_open
        How many tasks an owner may have open, by the tool's name; ``*`` for every tool that is not named.
    deployment
        Name of the deployment, which its metrics carry; None for one that has none.
    auth
        Which authorizer the API has: ``none``, ``jwt``, ``iam``, ``lambda`` or ``api_key``.
    tenant_claim
        The claim, or the key of a Lambda authorizer's context, that names a caller's tenant; None for no tenants.
    iam_owner
        With ``iam``: whether tasks belong to a ``role``, or to one ``session`` of it.
    owner_key
        With ``lambda``: the key of the authorizer's context that names the caller.
    claims
        Claims that tools may know of.
    resource_metadata_url
        Where the protected resource metadata is, for the challenge to callers whose scopes do not suffice.
    allowed_origins
        Browser origins that may call, as ``https://host``; the API's own origin always may.
    wait_budget_ms
        How long a request may wait for the task of a client that knows no tasks, in milliseconds.
        API Gateway ends a request after 29 s; the default leaves room for a last read that hangs.
    listen
        What `subscriptions/listen` does for task ids: ``off`` acknowledges none, ``hold`` holds an answer in one piece
        back until something changes, ``stream`` tells of changes as they come where the door can stream, and is
        ``hold`` where it cannot.
    listen_seconds
        How long a request that listens lasts at most, in seconds; with ``hold`` never longer than `wait_budget_ms`.
    experimental_tasks
        Whether clients of revision 2025-11-25 get the experimental tasks of that revision. Needs the table's index.
    probe_after_ms
        Silence, in milliseconds, after which a read asks the engine about an open run.
    cancel_grace_ms
        Time, in milliseconds, that claimed work has for hearing a cancellation before it is stopped.
    missing_grace_ms
        Time, in milliseconds, between the two looks that it takes to believe that a run is gone.
    link_seconds
        Life of a presigned link, in seconds.
    max_body_bytes
        Largest request body that is read, in bytes. Lambda takes 6 MB.
    max_depth
        Deepest nesting of JSON that is read.
    max_values
        Most values, in lists and objects, of a body that is read: a fault told of each takes memory.
    """

    table: str
    bucket: str
    secret: str = field(repr=False, default="")
    secret_arn: str | None = None
    state_machines: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)
    jobs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    report_url: str | None = None
    event_bus: str | None = None
    most_open: Mapping[str, int] = field(default_factory=dict)
    deployment: str | None = None
    auth: str = "none"
    tenant_claim: str | None = None
    iam_owner: str = "role"
    owner_key: str | None = None
    claims: tuple[str, ...] = ()
    resource_metadata_url: str | None = None
    allowed_origins: tuple[str, ...] = ()
    wait_budget_ms: int = 15_000
    listen: str = "off"
    listen_seconds: int = 15
    experimental_tasks: bool = False
    probe_after_ms: int = 15_000
    cancel_grace_ms: int = 10_000
    missing_grace_ms: int = 10_000
    link_seconds: int = 3_600
    max_body_bytes: int = 6_000_000
    max_depth: int = 64
    max_values: int = 250_000

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        if self.secret and len(self.secret) < 16:
            raise SettingsError(
                f"{_PREFIX}SECRET must be at least 16 characters long; make one with `openssl rand -hex 32`."
            )

        for name, value, allowed in (
            ("AUTH", self.auth, AUTHS),
            ("IAM_OWNER", self.iam_owner, IAM_OWNERS),
            ("LISTEN", self.listen, LISTENS),
        ):
            if value not in allowed:
                raise SettingsError(f"{_PREFIX}{name} must be one of {', '.join(allowed)}.")
        if self.auth == "lambda" and not self.owner_key:
            raise SettingsError(
                f"{_PREFIX}OWNER_KEY must name the key of the Lambda authorizer's context that names the caller."
            )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None, *, worker: bool = False) -> Settings:
        """Read ``TASKRAIL_TABLE``, ``TASKRAIL_BUCKET``, ``TASKRAIL_SECRET`` or ``TASKRAIL_SECRET_ARN``, and the rest.

        Parameters
        ----------
        environ
            Variables to read in place of the process's own.
        worker
            Whether they are a worker's, which signs nothing and so has no secret.

        Raises
        ------
        SettingsError
            A variable is missing or unusable; the message names it.
        """
        env = os.environ if environ is None else environ

        def number(name: str, default: int) -> int:
            text = env.get(_PREFIX + name)
            if text is None:
                return default
            if not text.isdecimal() or int(text) == 0:
                raise SettingsError(f"The environment variable {_PREFIX}{name} must be a whole number above zero.")
            return int(text)

        def switch(name: str) -> bool:
            text = env.get(_PREFIX + name, "").lower()
            if text not in ("", "true", "false"):
                raise SettingsError(f"The environment variable {_PREFIX}{name} must be true or false.")
            return text == "true"

        unsigned = worker or bool(env.get(_PREFIX + "SECRET_ARN"))
        return cls(
            table=required(_PREFIX + "TABLE", env),
            bucket=required(_PREFIX + "BUCKET", env),
            secret=env.get(_PREFIX + "SECRET", "") if unsigned else required(_PREFIX + "SECRET", env),
            secret_arn=env.get(_PREFIX + "SECRET_ARN") or None,
            state_machines=_arns("STATE_MACHINES", env),
            functions=_arns("FUNCTIONS", env),
            jobs=_jobs(env.get(_PREFIX + "JOBS", "{}")),
            report_url=env.get(_PREFIX + "REPORT_URL") or None,
            event_bus=env.get(_PREFIX + "EVENT_BUS") or None,
            most_open=_counts(env.get(_PREFIX + "MOST_OPEN", "{}")),
            deployment=env.get(_PREFIX + "DEPLOYMENT") or None,
            auth=env.get(_PREFIX + "AUTH") or cls.auth,
            tenant_claim=env.get(_PREFIX + "TENANT_CLAIM") or None,
            iam_owner=env.get(_PREFIX + "IAM_OWNER") or cls.iam_owner,
            owner_key=env.get(_PREFIX + "OWNER_KEY") or None,
            claims=_list(env.get(_PREFIX + "CLAIMS", "")),
            resource_metadata_url=env.get(_PREFIX + "RESOURCE_METADATA_URL") or None,
            allowed_origins=_list(env.get(_PREFIX + "ALLOWED_ORIGINS", "")),
            wait_budget_ms=number("WAIT_BUDGET_MS", cls.wait_budget_ms),
            listen=env.get(_PREFIX + "LISTEN") or cls.listen,
            listen_seconds=number("LISTEN_SECONDS", cls.listen_seconds),
            experimental_tasks=switch("EXPERIMENTAL_TASKS"),
            probe_after_ms=number("PROBE_AFTER_MS", cls.probe_after_ms),
            cancel_grace_ms=number("CANCEL_GRACE_MS", cls.cancel_grace_ms),
            missing_grace_ms=number("MISSING_GRACE_MS", cls.missing_grace_ms),
            link_seconds=number("LINK_SECONDS", cls.link_seconds),
            max_body_bytes=number("MAX_BODY_BYTES", cls.max_body_bytes),
            max_depth=number("MAX_DEPTH", cls.max_depth),
            max_values=number("MAX_VALUES", cls.max_values),
        )


@dataclass(frozen=True)
class JobEnvironment:
    """What a worker on Batch is told of the run that it is to do.

    Parameters
    ----------
    task_id, run
        Which run.
    job_id, attempt
        Batch's own id of the job, and which attempt of it this is, from 1.
    """

    task_id: str
    run: int
    job_id: str
    attempt: int

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> JobEnvironment:
        """Read ``TASKRAIL_TASK_ID``, ``TASKRAIL_RUN``, ``AWS_BATCH_JOB_ID`` and ``AWS_BATCH_JOB_ATTEMPT``.

        Parameters
        ----------
        environ
            Variables to read in place of the process's own.

        Raises
        ------
        SettingsError
            A variable is missing or unusable; the message names it.
        """
        env = os.environ if environ is None else environ
        values: dict[str, str] = {}
        for name in ("TASKRAIL_TASK_ID", "TASKRAIL_RUN", "AWS_BATCH_JOB_ID", "AWS_BATCH_JOB_ATTEMPT"):
            values[name] = env.get(name, "")
            if not values[name]:
                raise SettingsError(f"The environment variable {name} is missing: a worker is started by AWS Batch.")
        for name in ("TASKRAIL_RUN", "AWS_BATCH_JOB_ATTEMPT"):
            if not values[name].isdecimal() or int(values[name]) == 0:
                raise SettingsError(f"The environment variable {name} must be a whole number above zero.")
        return cls(
            task_id=values["TASKRAIL_TASK_ID"],
            run=int(values["TASKRAIL_RUN"]),
            job_id=values["AWS_BATCH_JOB_ID"],
            attempt=int(values["AWS_BATCH_JOB_ATTEMPT"]),
        )


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _arns(name: str, env: Mapping[str, str]) -> dict[str, str]:
    value = _object(name, env.get(_PREFIX + name, "{}"), "tool name to ARN")
    if not all(isinstance(arn, str) for arn in value.values()):
        raise _no_object(name, "tool name to ARN")
    return value


def _counts(text: str) -> dict[str, int]:
    what = "tool name (or *) to a whole number above zero"
    value = _object("MOST_OPEN", text, what)
    for count in value.values():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise _no_object("MOST_OPEN", what)
    return value


def _jobs(text: str) -> dict[str, dict[str, str]]:
    what = 'tool name to {"queue": ..., "definition": ...}'
    value = _object("JOBS", text, what)
    for names in value.values():
        if not isinstance(names, dict) or not {"queue", "definition"} <= names.keys():
            raise _no_object("JOBS", what)
    return value


def _object(name: str, text: str, what: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise _no_object(name, what) from error
    if not isinstance(value, dict):
        raise _no_object(name, what)
    return value


def _no_object(name: str, what: str) -> SettingsError:
    return SettingsError(f"The environment variable {_PREFIX}{name} must be a JSON object of {what}.")
