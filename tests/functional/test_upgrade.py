"""An upgrade is a merge that touches none of the user's files: docs/upgrade.md, done to two real histories."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
YOURS = ("functions/catalogue.py", "functions/tools", "functions/jobs", "functions/workflows")

QUIET = {
    "GIT_AUTHOR_NAME": "someone",
    "GIT_AUTHOR_EMAIL": "someone@example.com",
    "GIT_COMMITTER_NAME": "someone",
    "GIT_COMMITTER_EMAIL": "someone@example.com",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


def git(where: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=where, env={**os.environ, **QUIET}, capture_output=True, text=True, check=True
    )
    return done.stdout


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".py").write_text(text, encoding="utf-8")


def tree(root: Path, *folders: str) -> dict[str, str]:
    """The committed files below some folders, with their content's hash."""
    listed = git(root, "ls-tree", "-r", "HEAD", *folders).splitlines()
    return {line.split("\t")[1]: line.split()[2] for line in listed}


@pytest.fixture
def histories(tmp_path: Path) -> tuple[Path, Path]:
    """The kit and a clone of it, both gone on since: the clone in its own folders, the kit everywhere."""
    kit, clone = tmp_path / "kit", tmp_path / "clone"
    kit.mkdir()
    git(kit, "init", "-q", "-b", "main")
    write(
        kit,
        functions__catalogue="the example",
        functions__tools__example="one",
        functions__tools__other="one",
        functions__jobs__heavy__main="one",
        functions__workflows__flow="one",
        functions__taskrail__rail="one",
        infra__stack="one",
    )
    git(kit, "add", ".")
    git(kit, "commit", "-qm", "first")
    git(tmp_path, "clone", "-q", str(kit), str(clone))
    git(clone, "remote", "add", "kit", str(kit))
    write(clone, functions__catalogue="mine", functions__tools__example="mine", functions__tools__mine="mine")
    (clone / "functions/tools/other.py").unlink()
    (clone / "extensions.py").write_text("mine", encoding="utf-8")
    git(clone, "add", "-A")
    git(clone, "commit", "-qm", "my tools")
    write(
        kit,
        functions__catalogue="the newer example",
        functions__tools__example="two",
        functions__tools__other="two",
        functions__tools__newer="two",
        functions__jobs__heavy__main="two",
        functions__taskrail__rail="two",
        functions__taskrail__more="two",
        infra__stack="two",
    )
    git(kit, "add", "-A")
    git(kit, "commit", "-qm", "second")
    return kit, clone


def test_the_documented_commands_leave_the_users_folders_alone(histories: tuple[Path, Path]) -> None:
    kit, clone = histories
    before = tree(clone, *YOURS, "extensions.py")
    text = (ROOT / "docs/upgrade.md").read_text(encoding="utf-8")
    commands = re.findall(r"```sh\n(git .*?)```", text, re.DOTALL)[0]
    subprocess.run(["sh", "-ec", commands], cwd=clone, env={**os.environ, **QUIET}, check=True, capture_output=True)
    assert tree(clone, *YOURS, "extensions.py") == before
    assert tree(clone, "functions/taskrail", "infra") == tree(kit, "functions/taskrail", "infra")
    assert git(clone, "status", "--porcelain") == ""
    assert "second" in git(clone, "log", "--format=%s")


def test_every_file_is_the_users_or_the_kits_and_never_both() -> None:
    """The table of docs/upgrade.md names every top-level entry once."""
    text = (ROOT / "docs/upgrade.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.*?) \| (.*?) \|$", text, re.MULTILINE)[2:]
    yours = {name.rstrip("/") for row in rows for name in re.findall(r"`([^`]+)`", row[0])}
    kits = {name.rstrip("/") for row in rows for name in re.findall(r"`([^`]+)`", row[1])}
    assert set(YOURS) <= yours
    assert not any(mine == theirs or mine.startswith(f"{theirs}/") for mine in yours for theirs in kits - {"functions"})
    folders = {
        path.name
        for path in ROOT.iterdir()
        if path.is_dir() and not path.name.startswith(".") and path.name not in ("node_modules", "build", "cdk.out")
    }
    assert folders - {"functions"} <= kits, "a new folder has to be told in the table"


def test_no_file_of_the_kit_names_one_of_the_users() -> None:
    """The library, the handlers and the deployment know the catalogue as a whole, never a tool in it."""
    tools = {path.stem for path in (ROOT / "functions/tools").glob("*.py")} - {"__init__"}
    named = []
    for folder in ("functions/taskrail", "functions/handlers", "infra", "local"):
        for path in (ROOT / folder).rglob("*.py"):
            for line in path.read_text(encoding="utf-8").splitlines():
                if re.match(rf"\s*(from|import) (tools|jobs|workflows)(\.({'|'.join(tools)}))?\b", line):
                    named.append(f"{path.relative_to(ROOT)}: {line.strip()}")
    assert not named
