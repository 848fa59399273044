"""What all processes of one local stack know: where things are, in one file of the stack's directory."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REGION = "us-east-1"
ACCOUNT = "000000000000"
HOST = "127.0.0.1"
REPORT_PATH = "/report"

LISTEN_SECONDS = "3600"
"""Longest life of a stream."""

PAUSE_MS = 45_500
"""Milliseconds between two attempts of an invocation. Lambda waits one minute and then two; nothing is gained here by
waiting for longer than the lease of a worker that has died (`taskrail.rail.leases`)."""

_FILE = "stack.json"

# Variables that would send a client of ours to a real account, or around the local AWS.
_FOREIGN = (
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_SESSION_TOKEN",
    "AWS_SECURITY_TOKEN",
    "AWS_ROLE_ARN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_USE_DUALSTACK_ENDPOINT",
    "AWS_USE_FIPS_ENDPOINT",
)


@dataclass(frozen=True)
class Stack:
    """One running local stack.

    Parameters
    ----------
    directory
        Directory of this stack alone: run records, logs, the supervisor's socket. Removed at the end.
    port
        Port of the HTTP front on 127.0.0.1.
    aws_port
        Port of the local AWS on 127.0.0.1.
    functions_port
        Port of the Lambda functions of workflows on 127.0.0.1.
    catalogue
        Module that has the `server`.
    verbose
        Whether requests and the output of jobs are shown in the terminal.
    table, bucket, secret
        As in `taskrail.settings.Settings`; the secret is a new one for every stack.
    pause_ms
        How long an invocation is left alone between two attempts, in milliseconds.
    job_command
        Command line that becomes a job process; empty for `python -m local.job_process`.
    """

    directory: Path
    port: int
    aws_port: int
    functions_port: int
    catalogue: str
    verbose: bool = False
    table: str = "taskrail"
    bucket: str = "taskrail-payloads"
    secret: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)
    pause_ms: int = PAUSE_MS
    job_command: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        """URL of the MCP endpoint."""
        return f"http://{HOST}:{self.port}/mcp"

    @property
    def report_url(self) -> str:
        """URL at which containers report."""
        return f"http://{HOST}:{self.port}{REPORT_PATH}"

    @property
    def endpoint(self) -> str:
        """URL of the local AWS."""
        return f"http://{HOST}:{self.aws_port}"

    @property
    def socket(self) -> Path:
        """The socket on which the supervisor listens."""
        return self.directory / "supervisor.sock"

    @property
    def machines(self) -> Path:
        """The file that says which state machines there are, as soon as there are any (`local.machines`)."""
        return self.directory / "machines.json"

    @property
    def runs(self) -> Path:
        """The directory of run records, one folder per run."""
        return self.directory / "runs"

    def save(self) -> None:
        """Write the stack into its directory, for its processes only: it holds the secret."""
        values = {**asdict(self), "directory": str(self.directory)}
        descriptor = os.open(self.directory / _FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(values, file)

    @classmethod
    def load(cls, directory: Path) -> Stack:
        """The stack that `save` wrote into that directory."""
        values = json.loads((directory / _FILE).read_text(encoding="utf-8"))
        values["directory"] = directory
        values["job_command"] = tuple(values["job_command"])
        return cls(**values)

    def environment(self, base: Mapping[str, str] | None = None) -> dict[str, str]:
        """Variables for every process of the stack: the local AWS in place of any other, and the kit's settings.

        Parameters
        ----------
        base
            Variables to start from in place of this process's own.
        """
        environ = dict(os.environ if base is None else base)
        for name in list(environ):
            if name in _FOREIGN or name.startswith("AWS_ENDPOINT_URL"):
                del environ[name]
        environ.update(
            AWS_ENDPOINT_URL=self.endpoint,
            AWS_ACCESS_KEY_ID="local",
            AWS_SECRET_ACCESS_KEY="local",
            AWS_REGION=REGION,
            AWS_DEFAULT_REGION=REGION,
            AWS_EC2_METADATA_DISABLED="true",
            AWS_CONFIG_FILE=os.devnull,
            AWS_SHARED_CREDENTIALS_FILE=os.devnull,
            TASKRAIL_TABLE=self.table,
            TASKRAIL_BUCKET=self.bucket,
            TASKRAIL_SECRET=self.secret,
            TASKRAIL_REPORT_URL=self.report_url,
        )
        # One machine can stream; whoever sets these sees what a deployment does.
        environ.setdefault("TASKRAIL_LISTEN", "stream")
        environ.setdefault("TASKRAIL_LISTEN_SECONDS", LISTEN_SECONDS)
        # A proxy of the machine's owner must not stand between two processes of this machine.
        for name in ("NO_PROXY", "no_proxy"):
            environ[name] = ",".join(filter(None, (environ.get(name), HOST, "localhost")))
        roots = (str(ROOT / "functions"), str(ROOT), environ.get("PYTHONPATH"))
        environ["PYTHONPATH"] = os.pathsep.join(filter(None, roots))
        return environ
