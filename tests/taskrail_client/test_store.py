"""The file: several processes, a kill at any moment, no secrets."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from taskrail_client import Store, StoreError
from taskrail_client.database import VERSION
from taskrail_client.records import default_path, digest_of, server_name
from taskrail_client.store import KEEP_MS
from tests.local_help import wait_for
from tests.stack import ROOT

SERVER = "https://api.example.com/mcp"
SEEN: dict[str, Any] = {"status_message": None, "created_at": "x", "ttl_ms": 60_000, "poll_interval_ms": 1_000}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a store will be."""
    return tmp_path / "deep" / "down" / "tasks.sqlite3"


def test_only_this_user_reads_it(path: Path) -> None:
    """The file, what SQLite puts beside it, and the folders made for it."""
    store = Store(path)
    store.begin(SERVER, "t")
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    store.close()


def test_remembers_over_a_restart(path: Path) -> None:
    """Everything that was said of a task, and what is owed."""
    now = [1_000]
    store = Store(path, now=lambda: now[0])
    store.begin(SERVER, "t", tool="render", call_key="k", call_digest="d")
    now[0] = 2_000
    store.saw(SERVER, "t", status="input_required", **SEEN)
    store.answer(SERVER, "t", "q", {"action": "accept"})
    store.cancel(SERVER, "t", acknowledged=False)
    store.close()
    store = Store(path, now=lambda: now[0])
    record = store.find(SERVER, "t")
    assert record is not None
    assert (record.tool, record.call_key, record.began_ms, record.seen_ms) == ("render", "k", 1_000, 2_000)
    assert (record.shown, record.cancel_owed, record.ttl_ms, record.poll_interval_ms) == (
        "cancelling",
        True,
        60_000,
        1_000,
    )
    assert store.answers(SERVER, "t") == {"q": {"action": "accept"}}
    assert store.find("https://other.example.com/mcp", "t") is None
    store.cancel(SERVER, "t", acknowledged=True)
    record = store.find(SERVER, "t")
    assert record is not None
    assert (record.cancel_owed, record.cancelling) == (False, True)
    assert not record.expired(61_000)
    assert record.expired(61_001)
    store.close()


def test_an_end_stays_and_takes_the_answers_along(path: Path) -> None:
    """What a person typed is not kept longer than it is needed; that it was answered is."""
    store = Store(path)
    store.begin(SERVER, "t")
    store.answer(SERVER, "t", "q", {"action": "accept", "content": {"iban": "DE02"}})
    store.saw(SERVER, "t", status="completed", **SEEN)
    assert store.saw(SERVER, "t", status="working", **SEEN).status == "completed"
    assert store.answers(SERVER, "t") == {}
    store.close()
    db = sqlite3.connect(path)
    assert db.execute("SELECT key, response FROM answers").fetchall() == [("q", None)]
    db.close()


def test_the_first_answer_counts(path: Path) -> None:
    """And one that was acknowledged cannot be taken back."""
    store = Store(path)
    store.begin(SERVER, "t")
    assert store.answer(SERVER, "t", "q", {"action": "accept"}) == {"action": "accept"}
    assert store.answer(SERVER, "t", "q", {"action": "decline"}) == {"action": "accept"}
    store.delivered(SERVER, "t", "q")
    store.take_back(SERVER, "t", "q")
    assert store.answers(SERVER, "t") == {"q": {"action": "accept"}}
    store.close()


def test_old_tasks_leave_the_list(path: Path) -> None:
    """Ended, expired and unknown ones after a week; open ones without an end of their life never."""
    now = [0]
    store = Store(path, now=lambda: now[0])
    for name, status, ttl in (("a", "completed", None), ("b", "working", 10), ("c", "working", None)):
        store.begin(SERVER, name)
        store.saw(SERVER, name, **{**SEEN, "status": status, "ttl_ms": ttl})
    store.begin(SERVER, "d")
    store.gone(SERVER, "d")
    assert [record.task_id for record in store.list(SERVER)] == ["a", "b", "c"], "a mere id that is unknown is dropped"
    now[0] = KEEP_MS + 11
    assert [record.task_id for record in store.list(SERVER)] == ["c"]
    store.close()


def test_a_task_that_was_unknown_can_come_back(path: Path) -> None:
    """Asked with other credentials, the server may know it."""
    store = Store(path)
    store.begin(SERVER, "t")
    store.saw(SERVER, "t", status="working", **SEEN)
    store.gone(SERVER, "t")
    assert store.list(SERVER)[0].status == "gone"
    assert store.saw(SERVER, "t", status="working", **SEEN).status == "working"
    store.close()


def test_refuses_a_newer_file_and_what_is_none(path: Path, tmp_path: Path) -> None:
    """With words, and without touching it."""
    Store(path).close()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
    db.close()
    with pytest.raises(StoreError, match="newer"):
        Store(path)
    text = tmp_path / "letter.txt"
    text.write_text("Dear Anna, " * 200)
    with pytest.raises(StoreError, match=r"letter\.txt"):
        Store(text)
    assert text.read_text().startswith("Dear Anna")
    with pytest.raises(StoreError):
        Store(tmp_path)


WRITERS = """
import os, sys
from taskrail_client import Store
path, count, rounds = sys.argv[1], *map(int, sys.argv[2:])
seen = dict(status_message=None, created_at="x", ttl_ms=None, poll_interval_ms=1000)
def write(who):
    store = Store(path)
    with open(f"{path}.told.{who}", "w") as told:
        for number in range(rounds):
            store.begin("s", f"{who}-{number}", tool=who)
            store.begin("s", f"shared-{number}", tool="shared")
            store.saw("s", f"shared-{number}", status="working", **seen)
            answer = store.answer("s", f"shared-{number}", "q", {"by": who})
            print(number, answer["by"], file=told, flush=True)
pids = []
for who in range(count):
    pids.append(os.fork())
    if not pids[-1]:
        write(str(who))
        os._exit(0)
print(*pids, flush=True)
print(*[os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids], flush=True)
"""


def writers(path: Path, count: int, rounds: int) -> subprocess.Popen[str]:
    """Processes that write into one store, begun together: they make it, too. It prints their ids, then their ends."""
    path.parent.mkdir(parents=True)
    command = [sys.executable, "-c", WRITERS, str(path), str(count), str(rounds)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def told(path: Path, who: int) -> list[str]:
    """What a writer was told, a line per round."""
    file = path.with_name(f"{path.name}.told.{who}")
    return file.read_text().splitlines() if file.exists() else []


def test_several_processes_share_one_file(path: Path) -> None:
    """No write is lost, none fails because the file is busy, and all agree on whose answer counts."""
    assert writers(path, 3, 20).communicate()[0].splitlines()[1] == "0 0 0"
    assert told(path, 0) == told(path, 1) == told(path, 2)
    assert len(told(path, 0)) == 20
    store = Store(path)
    assert len(store.list("s")) == 4 * 20
    store.close()


def test_survives_a_kill_in_the_middle_of_writing(path: Path) -> None:
    """What was told is there, and the file is whole."""
    process = writers(path, 1, 100_000)
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    wait_for(lambda: len(told(path, 0)) > 10, what="some writing")
    os.kill(pid, signal.SIGKILL)
    assert process.communicate()[0].split() == [str(-signal.SIGKILL)]
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()
    store = Store(path)
    rounds = len(told(path, 0))
    assert len(store.list("s")) in (2 * rounds, 2 * rounds + 1, 2 * rounds + 2)
    assert all(store.answers("s", f"shared-{number}") for number in range(rounds))
    store.close()


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://API.example.com:443/mcp", "https://api.example.com/mcp"),
        ("http://localhost:8321", "http://localhost:8321/"),
        ("http://[::1]:80/mcp", "http://[::1]/mcp"),
        ("https://user:hunter2@api.example.com/mcp#x", "https://api.example.com/mcp"),
    ],
)
def test_names_of_servers(url: str, name: str) -> None:
    """One server has one name, and no credential is part of it."""
    assert server_name(url) == name


def test_a_query_is_part_of_the_name_but_cannot_be_read_from_it() -> None:
    """It may hold a key."""
    first, second = (server_name(f"https://api.example.com/mcp?key={key}") for key in ("hunter2", "hunter3"))
    assert first != second
    assert "hunter2" not in first


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As told, or in the user's folder for state."""
    monkeypatch.setenv("TASKRAIL_STORE", str(tmp_path / "mine"))
    assert default_path() == tmp_path / "mine"
    monkeypatch.delenv("TASKRAIL_STORE")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_path() == tmp_path / "taskrail" / "tasks.sqlite3"


def test_digests_tell_arguments_apart() -> None:
    """Whatever their order, and without repeating them."""
    assert digest_of({"a": 1, "b": "x"}) == digest_of({"b": "x", "a": 1}) != digest_of({"a": 1, "b": "y"})
