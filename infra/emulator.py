"""MiniStack on this machine: a process on loopback that takes a deployment as AWS would, without Batch."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MINISTACK = Path(os.environ.get("MINISTACK") or ROOT / ".venv-ministack" / "bin" / "ministack")
ACCOUNT, REGION = "000000000000", "eu-central-1"

_PATIENCE_S = 60


class EmulatorError(Exception):
    """MiniStack is not there, or does not come up; the message says what to do."""


@dataclass(frozen=True)
class Emulator:
    """A running one.

    Parameters
    ----------
    port
        Where it listens, on 127.0.0.1.
    """

    port: int

    @property
    def endpoint(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """Variables that let every SDK talk to it, and to nobody else."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    def local_url(self, endpoint: str) -> str:
        """Where an API answers that says it is at an address of API Gateway's.

        Parameters
        ----------
        endpoint
            As the stack's output names it: ``https://{id}.execute-api…/{stage}/mcp``, without a stage for HTTP APIs.
        """
        host, _, path = endpoint.partition("://")[2].partition("/")
        stage, _, rest = path.rpartition("/")
        return f"{self.endpoint}/restapis/{host.split('.')[0]}/{stage or '$default'}/_user_request_/{rest}"


@contextmanager
def running(port: int | None = None, executable: Path = MINISTACK) -> Iterator[Emulator]:
    """MiniStack within the block, with an empty state of its own.

    Parameters
    ----------
    port
        Where it is to listen; a free one by default.
    executable
        The program.

    Raises
    ------
    EmulatorError
        It is not installed, or does not come up.
    """
    if not executable.exists():
        raise EmulatorError(f"{executable} is missing; `make deploy-local` installs it")
    emulator = Emulator(port or _free_port())
    with tempfile.TemporaryDirectory() as folder:
        more = {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(emulator.port)}
        with (Path(folder) / "log").open("wb") as log:
            # A group of its own: it starts processes for functions, and they have to end with it.
            process = subprocess.Popen(
                [executable], env={**os.environ, **more}, cwd=folder, stdout=log, stderr=log, start_new_session=True
            )
        try:
            _wait(emulator, process, Path(folder) / "log")
            yield emulator
        finally:
            _end(process)


def _wait(emulator: Emulator, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            urllib.request.urlopen(f"{emulator.endpoint}/_ministack/health", timeout=2).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise EmulatorError(
        f"MiniStack did not come up on port {emulator.port}:\n{log.read_text(errors='replace')[-2000:]}"
    )


def _end(process: subprocess.Popen[bytes]) -> None:

    for order in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, order)
        except ProcessLookupError:
            break
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
