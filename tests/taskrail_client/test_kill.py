"""The client's process is killed at many moments after the call was answered; another one gets the result.

`TASKRAIL_LONG=1` tries more moments.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from taskrail_client import Store, TaskrailClient
from taskrail_client.records import server_name
from tests.counts import LONG, sized
from tests.local_help import wait_for
from tests.stack import ROOT
from tests.taskrail_client.proxy import FAULTS, proxied

MOMENTS = [0.0, 0.003, 0.01, 0.05, 0.5]
"""Seconds after the answer was on its way."""

# A process that has imported everything, and bears one client for each command line; an empty one asks how the
# oldest client ended.
NURSERY = """
import json, os, sys
from taskrail_client.__main__ import main
print("ready", flush=True)
born = []
for line in sys.stdin:
    argv = json.loads(line)
    if not argv:
        print(os.waitstatus_to_exitcode(os.waitpid(born.pop(0), 0)[1]), flush=True)
        continue
    born.append(os.fork())
    if born[-1] == 0:
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        os._exit(main(argv))
    print(born[-1], flush=True)
"""


class Nursery:
    """Bears client processes fast."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", NURSERY], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._line() == "ready"

    def start(self, *argv: str) -> int:
        """A client with that command line; its process id."""
        return self._say(argv)

    def wait(self) -> int:
        """How the oldest client ended."""
        return self._say(())

    def _say(self, argv: tuple[str, ...]) -> int:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(argv) + "\n")
        self._process.stdin.flush()
        return int(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        """End it."""
        self._process.communicate()


@pytest.fixture(scope="module")
def clients() -> Iterator[Nursery]:
    """Where client processes come from."""
    made = Nursery()
    yield made
    made.close()


def arguments(folder: Path, name: str) -> dict[str, Any]:
    """Work that takes a little while, and leaves a line per run."""
    return {"file": str(folder / "lines"), "name": name, "steps": 3, "seconds": 0.05}


def typed(values: dict[str, Any]) -> list[str]:
    """The same on a command line."""
    return [f"{name}={value}" for name, value in values.items()]


def test_killed_at_any_moment_after_the_answer(url: str, clients: Nursery, tmp_path: Path) -> None:
    """The same call with the same key gets the task that the dead process started; the work is done once."""
    dice = random.Random(5)
    moments = MOMENTS + [dice.uniform(0, 1) ** 3 for _ in range(sized(0, 100))]
    store = tmp_path / "tasks.sqlite3"
    names = [f"work-{number}" for number in range(len(moments))]
    with proxied(url) as proxy:
        for name, moment in zip(names, moments, strict=True):
            proxy.answered.clear()
            words = typed(arguments(tmp_path, name))
            pid = clients.start(proxy.url, "--store", str(store), "call", "tally", *words, "--key", name)
            assert proxy.answered.wait(30)
            time.sleep(moment)
            os.kill(pid, signal.SIGKILL)
            assert clients.wait() in (0, -signal.SIGKILL)

        async def recover() -> list[Any]:
            async with TaskrailClient(proxy.url, store=store) as client:
                calls = (client.call("tally", arguments(tmp_path, name), idempotency_key=name) for name in names)
                return await asyncio.gather(*calls)

        results = asyncio.run(recover())
    assert [result.content[0].text for result in results] == [f"{name} is counted." for name in names]
    assert sorted((tmp_path / "lines").read_text().split()) == sorted(names)


def test_killed_once_the_ticket_is_in_the_file_it_is_resumed_by_id(url: str, clients: Nursery, tmp_path: Path) -> None:
    """No key, no arguments: the id alone brings the result."""
    store = tmp_path / "tasks.sqlite3"
    moments = [0.0, 0.3] + [n / 50 for n in range(sized(0, 50))]
    for number, moment in enumerate(moments):
        words = typed(arguments(tmp_path, f"work-{number}"))
        pid = clients.start(url, "--store", str(store), "call", "tally", *words)
        wait_for(lambda count=number: _count(store, url) > count, what="the ticket in the file")  # type: ignore[misc]
        time.sleep(moment)
        os.kill(pid, signal.SIGKILL)
        clients.wait()

    async def resume() -> list[Any]:
        async with TaskrailClient(url, store=store) as client:
            return await asyncio.gather(*(client.resume(record.task_id) for record in client.list()))

    texts = {result.content[0].text for result in asyncio.run(resume())}
    assert texts == {f"work-{number} is counted." for number in range(len(moments))}
    assert len((tmp_path / "lines").read_text().split()) == len(moments)


def test_killed_again_and_again_on_a_bad_line(url: str, clients: Nursery, tmp_path: Path) -> None:
    """Every second request is spoiled, and the process is killed after each second of following."""
    store = tmp_path / "tasks.sqlite3"
    task = arguments(tmp_path, "work") | {"steps": 10, "seconds": 0.2}

    def plan(method: str, count: int) -> str | None:
        return FAULTS[count // 2 % len(FAULTS)] if method == "tasks/get" and count % 2 else None

    with proxied(url, plan) as proxy:
        lives = 0
        command = ["call", "tally", *typed(task)]
        while True:
            pid = clients.start(proxy.url, "--store", str(store), *command)
            wait_for(lambda: _count(store, proxy.url), what="the ticket in the file")
            lives += 1
            if lives > 2:
                assert clients.wait() == 0
                break
            time.sleep(0.5)
            os.kill(pid, signal.SIGKILL)
            assert clients.wait() == -signal.SIGKILL
            with_store = Store(store)
            command = ["resume", with_store.list(server_name(proxy.url))[0].task_id]
            with_store.close()
        assert {method for method, _ in proxy.sent} >= {"tools/call", "tasks/get"}
        assert not [method for method, _ in proxy.sent if method == "tasks/cancel"]
    assert (tmp_path / "lines").read_text() == "work\n"


def test_two_processes_follow_one_task(url: str, clients: Nursery, tmp_path: Path) -> None:
    """On one store; both get the result."""
    store = tmp_path / "tasks.sqlite3"

    async def start() -> str:
        async with TaskrailClient(url, store=store) as client:
            return str((await client.start("tally", arguments(tmp_path, "work"))).task_id)

    task_id = asyncio.run(start())
    for _ in range(2):
        clients.start(url, "--store", str(store), "resume", task_id)
    assert [clients.wait(), clients.wait()] == [0, 0]


def _count(path: Path, url: str) -> int:
    if not path.exists():
        return 0
    store = Store(path)
    try:
        return len(store.list(server_name(url)))
    finally:
        store.close()


pytestmark = pytest.mark.timeout(600 if LONG else 60)
