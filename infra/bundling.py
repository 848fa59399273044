"""What a Lambda's zip holds: our code and the wheels for its platform, the same bytes on every machine.

pip fetches the wheels of the target platform on any host, so that no Docker is needed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FUNCTIONS = ROOT / "functions"
CONSTRAINTS = ROOT / "requirements" / "constraints-functions.txt"

_MOMENT = 315_532_800
"""1980-01-01, the first that a zip can hold."""
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", ".*", "requirements.txt")
_UNUSED = ("*/tests", "*/test_*.py", "jsonschema/benchmarks", "**/*.pyi", "**/py.typed")
"""What wheels bring along that no Lambda imports."""
_NOT_COMPILED = "/pydantic/v1/"
"""Old interfaces that nothing of ours imports; who does, waits a little longer."""
_FORMAT = 1
"""Goes up when the same sources come to give another bundle."""

# Wheels that run on Amazon Linux 2023 (glibc 2.34), the oldest tag that pip is to take first.
_PLATFORMS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
_MACHINES = {"arm64": "aarch64", "x86_64": "x86_64"}


class BundlingError(Exception):
    """A bundle could not be made; the message has what pip said."""


@dataclass(frozen=True)
class Target:
    """Where a bundle is to run.

    Parameters
    ----------
    python
        Minor version of Python, as ``3.13``.
    architecture
        ``arm64`` or ``x86_64``.
    here
        Build for this process's own Python and machine instead: an emulator runs it there.
    """

    python: str = "3.13"
    architecture: str = "arm64"
    here: bool = False

    @property
    def pip_options(self) -> list[str]:
        """What makes pip choose the target's wheels."""
        if self.here:
            return []
        machine = _MACHINES[self.architecture]
        platforms = [option for name in _PLATFORMS for option in ("--platform", f"{name}_{machine}")]
        return [*platforms, "--implementation", "cp", "--python-version", self.python, "--only-binary=:all:"]

    @property
    def compiler(self) -> str | None:
        """An interpreter of the target's minor version; None when there is none at hand."""
        if self.here or f"{sys.version_info[0]}.{sys.version_info[1]}" == self.python:
            return sys.executable
        found = shutil.which(f"python{self.python}")
        # The name alone proves nothing: version managers put a stand-in under every name.
        return found if found is not None and _version(found) == self.python else None


@dataclass(frozen=True)
class Bundle:
    """The sources of one bundle.

    Parameters
    ----------
    target
        Where it is to run.
    job
        The folder below ``jobs/`` that goes along, with its own requirements; None for none of them.
    functions
        The import root.
    """

    target: Target
    job: str | None = None
    functions: Path = FUNCTIONS

    @property
    def requirements(self) -> list[Path]:
        """The lists of what is installed into it."""
        lists = [self.functions / "requirements.txt"]
        if self.job is not None:
            lists.append(self.functions / "jobs" / self.job / "requirements.txt")
        return [path for path in lists if path.exists()]

    @property
    def fingerprint(self) -> str:
        """The same for the same sources, requirements and target."""
        digest = hashlib.sha256(repr((_FORMAT, self.target, self.target.compiler is not None, self.job)).encode())
        for path in (CONSTRAINTS, *self.requirements, *self._sources()):
            name = path.relative_to(self.functions if self.functions in path.parents else ROOT)
            digest.update(f"\0{name.as_posix()}\0".encode() + path.read_bytes())
        return digest.hexdigest()

    def make(self, output: Path) -> None:
        """Write the bundle into a folder.

        Raises
        ------
        BundlingError
            pip cannot install what is required for the target.
        """
        self._install(output)
        self.copy_sources(output)
        compiler = self.target.compiler
        if compiler is not None:
            # Checked by hash: Lambda unpacks with times of its own, which make ordinary .pyc files stale.
            compile_all = ["-m", "compileall", "-qq", "-x", _NOT_COMPILED, "-s", str(output), "-p", "/var/task"]
            environment = {**os.environ, "PYTHONHASHSEED": "0", "SOURCE_DATE_EPOCH": str(_MOMENT)}
            command = [compiler, *compile_all, "--invalidation-mode", "checked-hash", str(output)]
            subprocess.run(command, check=True, env=environment)
        _make_even(output)

    def copy_sources(self, output: Path) -> None:
        """Copy our own code, without the jobs of others."""
        for path in sorted(self.functions.iterdir()):
            if path.name == "jobs" or path.name in _LEFT_OUT(str(self.functions), [path.name]):
                continue
            if path.is_dir():
                shutil.copytree(path, output / path.name, ignore=_LEFT_OUT, dirs_exist_ok=True)
            else:
                shutil.copy(path, output / path.name)
        if self.job is not None:
            (output / "jobs").mkdir()
            shutil.copy(self.functions / "jobs" / "__init__.py", output / "jobs" / "__init__.py")
            shutil.copytree(self.functions / "jobs" / self.job, output / "jobs" / self.job, ignore=_LEFT_OUT)

    def _install(self, output: Path) -> None:
        if not self.requirements:
            return
        lists = [option for path in self.requirements for option in ("-r", str(path))]
        constraints = ["-c", str(CONSTRAINTS)] if CONSTRAINTS.exists() else []
        options = ["--target", str(output), "--no-compile", "--disable-pip-version-check", "--quiet", "--no-user"]
        command = [sys.executable, "-m", "pip", "install", *options, *self.target.pip_options, *constraints, *lists]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise BundlingError(f"pip could not make the bundle of {self.job or 'functions/'}:\n{done.stderr.strip()}")
        for name in _UNUSED:
            for path in output.glob(name):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        # Scripts name the interpreter of this machine, and the records of pip name them.
        shutil.rmtree(output / "bin", ignore_errors=True)
        for record in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json"):
            for path in output.glob(f"*.dist-info/{record}"):
                path.unlink()

    def _sources(self) -> Iterator[Path]:
        for folder, folders, files in os.walk(self.functions):
            ignored = _LEFT_OUT(folder, [*folders, *files])
            folders[:] = sorted(name for name in folders if name not in ignored)
            if Path(folder) == self.functions / "jobs":
                folders[:] = [name for name in folders if name == self.job]
                files = files if self.job is not None else []
            yield from (Path(folder) / name for name in sorted(files) if name not in ignored)


@cache
def _version(interpreter: str) -> str | None:
    """The minor version that an interpreter says it is; None when it does not run."""
    ask = [interpreter, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    done = subprocess.run(ask, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def _make_even(output: Path) -> None:
    """Give everything the same times and modes."""
    for path in sorted(output.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
        os.utime(path, (_MOMENT, _MOMENT))
