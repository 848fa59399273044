"""The command, against the local stack."""

from __future__ import annotations

import json
import logging
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from taskrail_client import Store
from taskrail_client.__main__ import main
from taskrail_client.records import server_name
from tests.local_help import wait_for
from tests.stack import ROOT
from tests.taskrail_client.proxy import FAULTS, proxied

Run = Callable[..., tuple[int, str, str]]

# Ctrl-C reaches only who has the terminal for his own.
IN_A_TERMINAL = """
import fcntl, runpy, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
runpy.run_module("taskrail_client", run_name="__main__")
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The store of the command, and nothing else that could change what it does."""
    monkeypatch.setenv("TASKRAIL_STORE", str(tmp_path / "tasks.sqlite3"))
    monkeypatch.delenv("TASKRAIL_TOKEN", raising=False)
    monkeypatch.delenv("TASKRAIL_API_KEY", raising=False)
    yield tmp_path / "tasks.sqlite3"
    logging.disable(logging.NOTSET)


@pytest.fixture
def run(url: str, store: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command; its exit code and what it printed."""

    def go(*argv: str, url: str = url) -> tuple[int, str, str]:
        try:
            code = main([url, *argv])
        except SystemExit as exit:
            code = int(str(exit.code))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return go


def test_calls_tools_of_both_kinds(run: Run, tmp_path: Path) -> None:
    """Results on standard output, and nothing else there; off a terminal nothing moves."""
    assert run("call", "add", "a=2", "b=3") == (0, '{"result":5}\n', "")
    assert run("call", "plain", "word=yes") == (0, "yes\n", "")
    code, out, err = run("--json", "call", "plain", "word=yes")
    told = json.loads(out)
    assert (code, err, told["status"], told["result"]["content"][0]["text"]) == (0, "", "completed", "yes")
    assert re.fullmatch("[0-9a-f]{32}", told["taskId"])


def test_an_error_of_the_tool_is_exit_code_1(run: Run) -> None:
    """With the tool's words."""
    assert run("call", "break_down") == (1, "", "The machine is out of paper.\n")
    assert run("call", "add", "a=1")[0] == 1


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["call", "add", "a=2", "b=x"], "add: b: 'x' is not a whole number."),
        (["call", "add", "a=2", "c=3"], "there is no 'c'; there are: a, b"),
        (["call", "nope"], "no tool 'nope'; it has: add, break_down"),
        (["call", "add", "--answer", "x"], "KEY="),
        (["call"], "required"),
        (["--token", "two words", "list"], "bearer token"),
    ],
)
def test_usage_is_exit_code_2(run: Run, argv: list[str], words: str) -> None:
    """What is wrong, and what could be said."""
    code, out, err = run(*argv)
    assert (code, out) == (2, "")
    assert words in err


def test_questions_without_a_terminal(run: Run) -> None:
    """It says how to answer, and leaves the task; each answer is given once."""
    code, out, err = run("call", "publish", "title=Rails")
    assert (code, out) == (3, "")
    found = re.search(r"answer ([0-9a-f]{32}) approval publish=… copies=…", err)
    assert found, err
    task_id = found.group(1)
    assert f"resume {task_id}" in err
    told = json.loads(run("resume", task_id, "--json")[1])
    assert (told["exitCode"], [question["key"] for question in told["questions"]]) == (3, ["approval"])
    assert told["questions"][0]["schema"]["required"] == ["publish"]
    code, _, err = run("answer", task_id, "approval", "publish=perhaps")
    assert (code, "yes or no" in err) == (2, True)
    code, _, err = run("answer", task_id, "approval", "publish=yes", "copies=99")
    assert (code, "maximum" in err) == (2, True)
    assert run("answer", task_id, "nonsense", "a=b")[0] == 2
    given = ("answer", task_id, "approval", "publish=yes", "copies=2", "paper=thick", "colours=red")
    assert run(*given) == (0, "approval: answered\n", "")
    assert run("answer", task_id, "approval", "--decline")[1] == (
        "approval: had been answered before; the first answer counts\n"
    )
    assert run("resume", task_id)[0] == 3
    assert run("resume", task_id, "--answer", 'sure={"go": true}') == (0, "Rails × 2 on thick: True\n", "")
    assert run("resume", task_id) == (0, "Rails × 2 on thick: True\n", "")


def test_questions_before_the_task(run: Run) -> None:
    """Nothing was started, and it says what to add."""
    code, _, err = run("call", "guarded", "title=Rails")
    assert code == 2
    assert "--answer 'start={…}'" in err
    assert run("call", "guarded", "title=Rails", "--answer", 'start={"go": true}')[:2] == (0, "Rails was started.\n")
    assert run("call", "guarded", "title=Rails", "--answer", "start=null")[0] == 1


def test_leaves_lists_and_cancels(run: Run) -> None:
    """`--no-wait`, `list`, `cancel`; an id that is nobody's."""
    code, out, _ = run("call", "wait_long", "--no-wait")
    task_id = out.strip()
    assert code == 3
    _, out, _ = run("list")
    assert re.search(rf"{task_id}  \S+ \S+  working +wait_long", out), out
    assert run("cancel", task_id) == (0, "cancelled\n", "")
    listed = json.loads(run("list", "--json")[1])
    assert [(row["taskId"], row["status"]) for row in listed] == [(task_id, "cancelled")]
    code, _, err = run("resume", task_id)
    assert (code, "was cancelled" in err) == (1, True)
    told = json.loads(run("--json", "resume", "f" * 32)[1])
    assert (told["exitCode"], told["taskId"], "has no task" in told["error"]) == (1, "f" * 32, True)


def test_a_key_finds_the_task_again(run: Run, tmp_path: Path) -> None:
    """Twice the command, once the work."""
    lines = tmp_path / "lines"
    command = ("call", "tally", f"file={lines}", "name=a", "--key", "night")
    assert run(*command)[:2] == (0, "a is counted.\n")
    assert run(*command)[:2] == (0, "a is counted.\n")
    assert lines.read_text() == "a\n"
    assert "other arguments" in run("call", "tally", f"file={lines}", "name=b", "--key", "night")[2]


def test_gets_through_a_bad_line(run: Run, url: str, tmp_path: Path) -> None:
    """Each kind of fault, on polls, updates and cancels, over a real connection."""

    def plan(method: str, count: int) -> str | None:
        return FAULTS[count // 2 % len(FAULTS)] if method.startswith("tasks/") and count % 2 == 0 else None

    with proxied(url, plan) as proxy:
        given = ("--answer", 'approval={"publish": true}', "--answer", 'sure={"go": true}')
        assert run("call", "publish", "title=Rails", *given, url=proxy.url) == (0, "Rails × 1 on thin: True\n", "")
        assert not [method for method, _ in proxy.sent if method == "tasks/cancel"]
        task_id = run("call", "wait_long", "--no-wait", url=proxy.url)[1].strip()
        assert run("cancel", task_id, url=proxy.url) == (0, "cancelled\n", "")
        assert {fault for _, fault in proxy.sent} >= {"429", "502", "cut", None}


def test_a_server_that_is_not_there(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so, and how sure it is."""
    monkeypatch.setattr("taskrail_client.calling.PATIENCE_MS", 0)
    code, _, err = run("call", "add", "a=1", "b=2", url="http://127.0.0.1:9/mcp")
    assert (code, err) == (3, "The server cannot be reached.\n")


def test_ctrl_c_leaves_the_task(url: str, store: Path, run: Run) -> None:
    """Exit code 130, the way to go on, and nothing cancelled."""
    process = subprocess.Popen(
        [sys.executable, "-m", "taskrail_client", url, "call", "wait_long"],
        cwd=ROOT,
        env={**os.environ, "TASKRAIL_TOKEN": "s3cr3t"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    record: Any = wait_for(lambda: _first(store, url), what="the ticket in the file")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, "")
    assert f"resume {record.task_id}" in err
    assert "Traceback" not in err
    assert "s3cr3t" not in err
    refreshed = json.loads(run("list", "--refresh", "--json")[1])
    assert [row["status"] for row in refreshed] == ["working"]
    assert run("cancel", record.task_id)[:2] == (0, "cancelled\n")


def test_a_form_on_a_real_terminal(url: str, store: Path) -> None:
    """It is filled in there, and Ctrl-C at the second one leaves the task."""
    terminal, inside = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", IN_A_TERMINAL, url, "call", "publish", "title=Rails"],
        cwd=ROOT,
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
    )
    os.close(inside)
    shown = b""
    typed = [(b"publish (", b"yes\n"), (b"copies (", b"2\n"), (b"paper (", b"thick\n"), (b"colours (", b"1,2\n")]
    typed += [(b"note (", b"\n"), (b"go (", b"\x03")]
    while True:
        try:
            shown += os.read(terminal, 4096)
        except OSError:
            break
        if typed and typed[0][0] in shown:
            os.write(terminal, typed.pop(0)[1])
    os.close(terminal)
    assert (process.wait(), typed) == (130, [])
    record = _first(store, url)
    assert f"resume {record.task_id}".encode() in shown
    assert b"\rpublish  " in shown
    assert b"Traceback" not in shown


def test_secrets_of_the_url_are_not_shown(run: Run, url: str) -> None:
    """A query may hold a key."""
    _, _, err = run("call", "publish", "title=Rails", url=f"{url}?key=hunter2")
    assert "answer" in err
    assert "hunter2" not in err


def _first(path: Path, url: str) -> Any:
    if not path.exists():
        return None
    store = Store(path)
    try:
        return next(iter(store.list(server_name(url))), None)
    finally:
        store.close()
