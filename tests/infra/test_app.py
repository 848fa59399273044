"""The app as it is started: a wrong value ends it with one line, and no credentials, network or Docker are needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from infra.app import with_file
from infra.bundling import ROOT
from infra.context import ConfigurationError


def start(tmp_path: Path, *context: str) -> subprocess.CompletedProcess[str]:
    """Run app.py as CDK does, with an environment that finds no credentials, no Docker and no way out."""
    values = dict(pair.split("=") for pair in context)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "CDK_OUTDIR": str(tmp_path / "cdk.out"),
        "CDK_CONTEXT_JSON": json.dumps({"aws:cdk:bundling-stacks": [], "deployment": "", **values}),
        "CDK_DOCKER": "/nowhere/docker",
        "https_proxy": "http://127.0.0.1:9",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    return subprocess.run(
        [sys.executable, "app.py"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240
    )


def test_a_wrong_value_ends_synthesis_with_one_line(tmp_path: Path) -> None:
    done = start(tmp_path, "auth=oauth")
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if not line.startswith("b'")]
    assert said == ["Cannot synthesize: auth: 'oauth' is none of jwt, iam, lambda, api_key, none"]


def test_the_catalogue_is_synthesized_without_credentials_network_or_docker(tmp_path: Path) -> None:
    done = start(tmp_path, "auth=iam")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "cdk.out" / "Taskrail.template.json").exists()


def test_what_a_clone_chose_stands_in_a_file_of_its_own(tmp_path: Path) -> None:
    assert with_file({"auth": "iam"}, tmp_path) == {"auth": "iam"}
    (tmp_path / "deployment.json").write_text('{"auth": "jwt", "stage": "prod"}')
    (tmp_path / "staging.json").write_text('{"stage": "staging"}')
    assert with_file({"auth": "iam"}, tmp_path) == {"auth": "iam", "stage": "prod"}
    assert with_file({"deployment": "staging.json"}, tmp_path) == {"stage": "staging"}
    assert with_file({"deployment": ""}, tmp_path) == {}
    assert with_file({"emulator": "true"}, tmp_path) == {"emulator": "true"}


@pytest.mark.parametrize(("name", "text"), [("other.json", None), ("deployment.json", "{"), ("deployment.json", "[]")])
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, name: str, text: str | None) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(ConfigurationError, match=f"deployment: {name}"):
        with_file({"deployment": name}, tmp_path)


def test_an_extension_of_the_users_gets_the_stack(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from infra import app

    (tmp_path / "extensions.py").write_text("SEEN = []\n\ndef extend(stack):\n    SEEN.append(stack)\n")
    monkeypatch.syspath_prepend(tmp_path)
    stack = object()
    app.extend(stack)  # type: ignore[arg-type]
    assert [stack] == sys.modules["extensions"].SEEN
    monkeypatch.delitem(sys.modules, "extensions")
