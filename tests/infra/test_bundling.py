"""The zip of a function: our code and the target's wheels, nothing else, the same bytes every time."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import stat
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.bundling import FUNCTIONS, Bundle, BundlingError, Target
from infra.image import stage
from infra.plan import Plan, job_package
from tests.infra.catalogues import server, step_functions_tools

MOST_BYTES = 5_000_000
TARGET = Target(python="3.13", architecture="arm64")


def files(folder: Path) -> Iterator[str]:
    """The files below a folder."""
    return (path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file())


def digest(folder: Path) -> str:
    """The same for the same names and bytes."""
    made = hashlib.sha256()
    for name in files(folder):
        made.update(name.encode() + b"\0" + (folder / name).read_bytes())
    return made.hexdigest()


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The API's bundle for arm64 and Python 3.13, made by pip on this machine."""
    output = tmp_path_factory.mktemp("bundle")
    Bundle(TARGET).make(output)
    return output


@pytest.fixture
def functions(tmp_path: Path) -> Path:
    """An import root without requirements: a module, two jobs, and what must not be deployed."""
    root = tmp_path / "functions"
    for name in ("catalogue.py", "jobs/__init__.py", "jobs/mine/__init__.py", "jobs/other/__init__.py", ".env"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"NAME = {name!r}\n")
    (root / "__pycache__").mkdir()
    (root / "__pycache__" / "catalogue.pyc").write_bytes(b"stale")
    return root


@pytest.mark.slow
def test_the_apis_bundle_holds_functions_without_jobs_and_its_wheels(bundle: Path) -> None:
    ours = {path.name for path in FUNCTIONS.iterdir() if not path.name.startswith((".", "__pycache__"))}
    names = {path.name.partition("-")[0] for path in bundle.glob("*.dist-info")}
    assert names == {
        "annotated_types",
        "attrs",
        "jsonschema",
        "jsonschema_specifications",
        "pydantic",
        "pydantic_core",
        "referencing",
        "rpds_py",
        "typing_extensions",
        "typing_inspection",
    }
    carried = {
        "annotated_types",
        "attr",
        "attrs",
        "jsonschema",
        "jsonschema_specifications",
        "pydantic",
        "pydantic_core",
    }
    carried |= {"referencing", "rpds", "typing_extensions.py", "typing_inspection"}
    present = {path.name for path in bundle.iterdir() if not path.name.endswith((".dist-info", "__pycache__"))}
    assert present == ours - {"jobs", "requirements.txt"} | carried


@pytest.mark.slow
def test_every_wheel_is_one_for_the_target(bundle: Path) -> None:
    tags = [
        line.removeprefix("Tag: ")
        for path in bundle.glob("*.dist-info/WHEEL")
        for line in path.read_text().splitlines()
        if line.startswith("Tag: ")
    ]
    assert tags and all(tag.endswith("-none-any") or ("aarch64" in tag and tag.startswith("cp313-")) for tag in tags)
    extensions = [name for name in files(bundle) if name.endswith(".so")]
    assert extensions and all("cpython-313-aarch64" in name for name in extensions)


@pytest.mark.slow
def test_the_apis_bundle_is_small_and_even(bundle: Path, tmp_path: Path) -> None:
    archive = tmp_path / "bundle.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name in files(bundle):
            file.write(bundle / name, name)
    assert archive.stat().st_size < MOST_BYTES
    assert {path.stat().st_mtime for path in bundle.rglob("*")} == {315_532_800}
    assert {stat.S_IMODE(path.stat().st_mode) for path in bundle.rglob("*") if path.is_file()} == {0o644}


@pytest.mark.slow
def test_the_same_sources_give_the_same_bundle(bundle: Path, tmp_path: Path) -> None:
    Bundle(TARGET).make(tmp_path)
    assert digest(tmp_path) == digest(bundle)


def test_a_heavy_jobs_bundle_has_its_own_package_and_no_other(functions: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    output.mkdir()
    Bundle(TARGET, "mine", functions).copy_sources(output)
    assert list(files(output)) == ["catalogue.py", "jobs/__init__.py", "jobs/mine/__init__.py"]


def test_compiled_files_are_checked_by_hash(functions: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    output.mkdir()
    Bundle(Target(here=True), None, functions).make(output)
    (compiled,) = output.rglob("*.pyc")
    header, source = compiled.read_bytes()[:16], (output / "catalogue.py").read_bytes()
    assert header[:4] == importlib.util.MAGIC_NUMBER
    assert int.from_bytes(header[4:8], "little") == 0b11
    assert header[8:16] == importlib.util.source_hash(source)


def test_without_an_interpreter_of_the_target_nothing_is_compiled(
    monkeypatch: pytest.MonkeyPatch, functions: Path, tmp_path: Path
) -> None:
    # A stand-in of a version manager has the name of every version, and runs only some.
    stand_in = tmp_path / "bin" / "python3.14"
    stand_in.parent.mkdir()
    stand_in.write_text("#!/bin/sh\nexit 127\n")
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stand_in.parent}{os.pathsep}{os.environ['PATH']}")
    target = Target(python="3.14")
    if sys.version_info[:2] != (3, 14):
        assert target.compiler is None
    output = tmp_path / "out"
    output.mkdir()
    bundle = Bundle(Target(python="2.7"), None, functions)
    bundle.make(output)
    assert list(files(output)) == ["catalogue.py"]


def test_the_fingerprint_follows_what_is_bundled(functions: Path) -> None:
    api, job = Bundle(TARGET, None, functions), Bundle(TARGET, "mine", functions)
    before = api.fingerprint, job.fingerprint
    (functions / "jobs" / "other" / "__init__.py").write_text("changed")
    (functions / "__pycache__" / "catalogue.pyc").write_bytes(b"newer")
    assert (api.fingerprint, job.fingerprint) == before
    (functions / "jobs" / "mine" / "__init__.py").write_text("changed")
    assert api.fingerprint == before[0] and job.fingerprint != before[1]
    (functions / "catalogue.py").write_text("changed")
    assert api.fingerprint != before[0]
    assert Bundle(Target(architecture="x86_64"), None, functions).fingerprint != api.fingerprint


def test_a_requirement_that_cannot_be_met_is_told_as_pip_tells_it(
    monkeypatch: pytest.MonkeyPatch, functions: Path, tmp_path: Path
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    (functions / "jobs" / "mine" / "requirements.txt").write_text("no-such-thing==1\n")
    with pytest.raises(BundlingError, match=r"(?s)the bundle of mine:.*no-such-thing==1"):
        Bundle(TARGET, "mine", functions).make(tmp_path)


def test_the_image_of_a_job_is_laid_out_for_docker(functions: Path, tmp_path: Path) -> None:
    (functions / "jobs" / "mine" / "requirements.txt").write_text("numpy==2.0\n")
    output = tmp_path / "image"
    output.mkdir()
    stage(output, Bundle(TARGET, "mine", functions))
    assert "Dockerfile" in files(output) and "functions/jobs/mine/__init__.py" in files(output)
    assert not (output / "functions" / "jobs" / "other").exists()
    required = (output / "requirements.txt").read_text().splitlines()
    assert "numpy==2.0" in required and any(line.startswith("boto3==") for line in required)


def test_a_jobs_package_is_read_from_its_declaration() -> None:
    plan = Plan.of(server(step_functions_tools()))
    assert {tool.name: job_package(tool) for tool in plan.machines} == {"count": None, "redact": "redact_documents"}
