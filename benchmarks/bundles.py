"""The bundles that are compared, made alike: the kit's bundler, the same constraints, the same kind of ``.pyc``."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.rivals import ROOT, TASKRAIL, Rival
from infra.bundling import CONSTRAINTS, FUNCTIONS, Bundle, Target

FOLDER = ROOT / "build" / "bench"
REQUIREMENTS = ROOT / "requirements"


@dataclass(frozen=True)
class Made:
    """A bundle on this machine's disk.

    Parameters
    ----------
    folder
        Its root.
    zipped, unzipped
        Its size as a zip (deflate, as Lambda takes it) and laid out, in bytes.
    """

    folder: Path
    zipped: int
    unzipped: int


@dataclass(frozen=True)
class _RivalBundle(Bundle):
    """What a rival's function would carry."""

    lists: tuple[Path, ...] = ()
    sources: tuple[Path, ...] = ()

    @property
    def requirements(self) -> list[Path]:
        """The lists of what is installed into it."""
        return list(self.lists)

    def copy_sources(self, output: Path) -> None:
        """Copy the handler and what it stands on."""
        for path in self.sources:
            shutil.copy(path, output / path.name)


@dataclass(frozen=True)
class _KitBundle(Bundle):
    """The kit's own bundle, its catalogue replaced by the one of the comparison."""

    def copy_sources(self, output: Path) -> None:
        """Copy functions/, and the catalogue over the one of the examples."""
        super().copy_sources(output)
        shutil.copy(TASKRAIL.sources[0] / "bench_catalogue.py", output / "catalogue.py")


class Busy(Exception):
    """Another run measures at this moment; the message says so."""


@contextmanager
def alone() -> Iterator[None]:
    """Within the block nobody else makes bundles here, nor measures.

    Raises
    ------
    Busy
        Somebody does: one run would take the other's processor, and the bundles from under it.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Busy(
                f"Another run uses {FOLDER.relative_to(ROOT)}. Wait for its end: they would slow each other."
            ) from error
        yield


def bundle(rival: Rival) -> Made:
    """Make a rival's bundle if its sources changed since the last time.

    Raises
    ------
    BundlingError
        pip cannot install what it needs.
    """
    target = Target(here=True)
    if rival.requirements is None:
        return _made(_KitBundle(target), FOLDER / rival.name, _digest(FUNCTIONS, *rival.sources))
    lists = (REQUIREMENTS / rival.requirements,)
    made = _RivalBundle(target, functions=rival.sources[0].parent, lists=lists, sources=rival.sources)
    return _made(made, FOLDER / rival.name, _digest(*lists, *REQUIREMENTS.glob("constraints*.txt"), *rival.sources))


def aws() -> Made:
    """boto3 as everybody gets it: the Lambda runtime carries it, so it counts for no bundle."""
    lists = (REQUIREMENTS / "bench-aws.txt",)
    made = _RivalBundle(Target(here=True), functions=ROOT / "benchmarks", lists=lists)
    return _made(made, FOLDER / "aws", _digest(*lists, REQUIREMENTS / "constraints.txt"))


def _made(bundle: Bundle, folder: Path, digest: str) -> Made:
    stamp = folder.with_suffix(".stamp")
    if not (stamp.exists() and folder.exists() and stamp.read_text() == digest):
        stamp.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        bundle.make(folder)
        stamp.write_text(digest)
    archive = folder.with_suffix(".zip")
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in _files(folder):
            file.write(path, path.relative_to(folder))
    return Made(folder, archive.stat().st_size, sum(path.stat().st_size for path in _files(folder)))


def _digest(*paths: Path) -> str:
    made = hashlib.sha256(sys.version.encode())
    for path in (CONSTRAINTS, ROOT / "infra" / "bundling.py", *paths):
        for file in [path] if path.is_file() else _files(path):
            if file.parent.name != "__pycache__":
                made.update(f"\0{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return made.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    yield from (path for path in sorted(folder.rglob("*")) if path.is_file())
