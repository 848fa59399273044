"""What the environment says: the one place that reads it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from taskrail.errors import TaskrailError

_PREFIX = "TASKRAIL_"


class SettingsError(TaskrailError):
    """The environment lacks a variable or holds one that cannot be used; the message names it."""


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
        Key for the sealed state of pre-flight questions, at least 16 bytes. Never logged.
    state_machines
        ARN of the state machine of each Step Functions tool, by the tool's name.
    allowed_origins
        Browser origins that may call, as ``https://host``; the API's own origin always may.
    wait_budget_ms
        How long a request may wait for the task of a client that knows no tasks, in milliseconds.
        API Gateway ends a request after 29 s; the default leaves room for a last read that hangs.
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
    secret: str = field(repr=False)
    state_machines: Mapping[str, str] = field(default_factory=dict)
    allowed_origins: tuple[str, ...] = ()
    wait_budget_ms: int = 15_000
    probe_after_ms: int = 15_000
    cancel_grace_ms: int = 10_000
    missing_grace_ms: int = 10_000
    link_seconds: int = 3_600
    max_body_bytes: int = 6_000_000
    max_depth: int = 64
    max_values: int = 250_000

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        if len(self.secret) < 16:
            raise SettingsError(
                f"{_PREFIX}SECRET must be at least 16 characters long; make one with `openssl rand -hex 32`."
            )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """Read ``TASKRAIL_TABLE``, ``TASKRAIL_BUCKET``, ``TASKRAIL_SECRET`` and the optional rest.

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

        def required(name: str) -> str:
            value = env.get(_PREFIX + name)
            if not value:
                raise SettingsError(f"The environment variable {_PREFIX}{name} is missing.")
            return value

        def number(name: str, default: int) -> int:
            text = env.get(_PREFIX + name)
            if text is None:
                return default
            if not text.isdecimal() or int(text) == 0:
                raise SettingsError(f"The environment variable {_PREFIX}{name} must be a whole number above zero.")
            return int(text)

        origins = env.get(_PREFIX + "ALLOWED_ORIGINS", "")
        return cls(
            table=required("TABLE"),
            bucket=required("BUCKET"),
            secret=required("SECRET"),
            state_machines=_arns(env.get(_PREFIX + "STATE_MACHINES", "{}")),
            allowed_origins=tuple(origin.strip() for origin in origins.split(",") if origin.strip()),
            wait_budget_ms=number("WAIT_BUDGET_MS", cls.wait_budget_ms),
            probe_after_ms=number("PROBE_AFTER_MS", cls.probe_after_ms),
            cancel_grace_ms=number("CANCEL_GRACE_MS", cls.cancel_grace_ms),
            missing_grace_ms=number("MISSING_GRACE_MS", cls.missing_grace_ms),
            link_seconds=number("LINK_SECONDS", cls.link_seconds),
            max_body_bytes=number("MAX_BODY_BYTES", cls.max_body_bytes),
            max_depth=number("MAX_DEPTH", cls.max_depth),
            max_values=number("MAX_VALUES", cls.max_values),
        )


def _arns(text: str) -> dict[str, str]:
    problem = SettingsError(
        f"The environment variable {_PREFIX}STATE_MACHINES must be a JSON object of tool name to ARN."
    )
    try:
        value = json.loads(text)
    except ValueError as error:
        raise problem from error
    if not isinstance(value, dict) or not all(isinstance(arn, str) for arn in value.values()):
        raise problem
    return value
