"""The commands of `docs/clients.md`, run as they stand there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.stack import ROOT

pytestmark = [pytest.mark.clients, pytest.mark.timeout(120)]

TEXT = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")
LINKS = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")


def blocks(language: str) -> list[str]:
    """The document's pieces of code in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")
def test_the_commands_of_curl(url: str) -> None:
    """The function of the document starts a job, finds its question, answers it and cancels it."""
    _, function, calls = blocks("sh")
    start, poll, answer, cancel = calls.splitlines()
    again = f'while ! {{ said=$({poll.split("#")[0]}); grep -q inputRequests <<<"$said"; }}; do sleep 0.2; done'
    script = "\n".join(
        (
            "set -eu",
            function,
            f"task=$({start.split('#')[0]})",
            'ID=$(grep -o \'"taskId": *"[0-9a-f]*"\' <<<"$task" | grep -o "[0-9a-f]\\{32\\}")',
            f'{again}; echo "$said"',
            answer,
            "echo",
            cancel,
        )
    )
    environ = {**os.environ, "URL": url}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, env=environ)
    assert done.returncode == 0, done.stderr
    told: list[dict[str, Any]] = [json.loads(line)["result"] for line in done.stdout.splitlines()]
    assert list(told[0]["inputRequests"]) == ["approval"]
    assert [one["resultType"] for one in told] == ["complete"] * 3


def test_every_link_leads_somewhere() -> None:
    """Files and headings that the document points to exist."""
    headings = {re.sub(r"[^a-z0-9 -]", "", line.lower()).strip().replace(" ", "-") for line in TEXT.splitlines()}
    for file, heading in LINKS.findall(TEXT):
        assert not file or (ROOT / "docs" / file).exists(), file
        assert file or not heading or heading in headings, heading
    for file in re.findall(r"`((?:tests|taskrail_client)/[^` ]*)`", TEXT):
        assert Path(ROOT, file).exists(), file
