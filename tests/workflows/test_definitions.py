"""Definitions checked by asl-validator, which finds what neither emulator does: a `Next` that leads nowhere."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.workflows import snippets

ROOT = Path(__file__).resolve().parents[2]
VALIDATOR = ROOT / "node_modules" / ".bin" / "asl-validator"
OURS = sorted((ROOT / "functions" / "workflows").glob("*.asl.json"))
THEIRS = sorted((Path(__file__).parent / "workflows").glob("*.asl.json"))

pytestmark = pytest.mark.skipif(
    not VALIDATOR.exists() or not snippets.HAS_NODE,
    reason="asl-validator is not in node_modules, or node not on the PATH: `npm ci` installs the one, make both",
)


def check(*paths: Path) -> subprocess.CompletedProcess[str]:
    """Let the validator look at definitions."""
    command = [VALIDATOR, *(argument for path in paths for argument in ("--json-path", path))]
    environ = {**os.environ, "PATH": snippets.PATH}
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=30, check=False)


def test_every_definition_is_valid(tmp_path: Path) -> None:
    """The examples', the documents' and the tests'; in one call, since Node takes its time to start."""
    snippets.write(tmp_path)
    documented = [path for path in (tmp_path / "workflows").glob("*.asl.json") if path.name != "no_machine.asl.json"]
    assert len(documented) == 4
    checked = check(*OURS, *THEIRS, *documented)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    for path in (*OURS, *THEIRS, *documented):
        assert f'"{path}" is valid' in checked.stdout


def test_a_state_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    machine = json.loads((ROOT / "functions" / "workflows" / "run_migration.asl.json").read_text(encoding="utf-8"))
    machine["States"]["Plan"]["Next"] = "Nowhere"
    (tmp_path / "broken.asl.json").write_text(json.dumps(machine), encoding="utf-8")
    checked = check(tmp_path / "broken.asl.json")
    assert checked.returncode != 0
    assert "Nowhere" in checked.stdout + checked.stderr
