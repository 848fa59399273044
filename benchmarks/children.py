"""The processes that are measured: fresh interpreters that see one bundle, boto3 and the standard library."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from benchmarks.rivals import AWS

PROBE = Path(__file__).resolve().with_name("probe.py")

# Isolated, without site-packages of the environment that measures, and without writing what was not compiled.
_INTERPRETER = (sys.executable, "-I", "-S", "-B")


class ProbeError(Exception):
    """A measured process failed; the message has what it printed."""


def run(mode: str, order: Mapping[str, Any]) -> dict[str, Any]:
    """Start a process, wait for its end, and return what it told, with the wall time until its answer.

    Parameters
    ----------
    mode
        ``cold`` or ``record``.
    order
        What `benchmarks.probe` reads.

    Raises
    ------
    ProbeError
        It failed.
    """
    with _file(order) as path:
        begun = time.monotonic()
        done = subprocess.run([*_command(mode, path)], capture_output=True, text=True, env=_environment())
    if done.returncode:
        raise ProbeError(f"{order['module']} failed:\n{done.stderr[-4_000:]}")
    told: dict[str, Any] = json.loads(done.stdout)
    if "at" in told:
        told["wall"] = told["at"] - begun
    return told


class Worker:
    """A process that stays, and answers one request over and over when told to.

    Parameters
    ----------
    process
        The process, its input and output pipes of text.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def repeat(self, operation: str, count: int, *, outside: bool) -> dict[str, Any]:
        """Seconds of CPU and of wall time per answer, and one answer.

        Parameters
        ----------
        operation
            Name of the method.
        count
            How often.
        outside
            Whether botocore's clients are replaced by constants.

        Raises
        ------
        ProbeError
            The process failed.
        """
        given, told = self._process.stdin, self._process.stdout
        assert given is not None and told is not None
        given.write(json.dumps([operation, count, outside]) + "\n")
        given.flush()
        line = told.readline()
        if not line:
            raise ProbeError(f"a process for {operation} ended with {self._process.wait()}")
        measured: dict[str, Any] = json.loads(line)
        return measured


@contextmanager
def worker(order: Mapping[str, Any], errors: IO[str]) -> Iterator[Worker]:
    """A process that stays for the length of the block; what it logs goes to `errors`."""
    with _file(order) as path:
        process = subprocess.Popen(
            _command("warm", path),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=_environment(),
        )
        try:
            yield Worker(process)
        finally:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.close()
            process.stdout.close()
            process.wait()


def _command(mode: str, path: Path) -> list[str]:
    return [*_INTERPRETER, str(PROBE), mode, str(path)]


def _environment() -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC", **AWS}


@contextmanager
def _file(order: Mapping[str, Any]) -> Iterator[Path]:
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(order, file)
        file.flush()
        yield Path(file.name)
