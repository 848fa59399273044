"""Whichever process dies, and whenever: every ticket still resolves, and every task ends."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from tests.chaos.clients import Client, Ended
from tests.chaos.killer import EVENTS, FRONT, JOB, KINDS, SUPERVISOR, Killer
from tests.counts import LONG, count, sized
from tests.local_help import Launched, launched, processes_of, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600 if LONG else 120)]

CLIENTS = sized(3, 4)
TASKS_EACH = sized(3, 12)
SEEDS = range(1, sized(1, 3) + 1)
PAUSE = (0.15, 0.6)
DISTURBED = 0.1
PARTS = 6

# Repair is tried within the test's time, not within the minutes that people have.
IMPATIENT = {
    "TASKRAIL_PROBE_AFTER_MS": "500",
    "TASKRAIL_MISSING_GRACE_MS": "500",
    "TASKRAIL_CANCEL_GRACE_MS": "1000",
}

NAMES = {FRONT: "the API", SUPERVISOR: "the supervisor", EVENTS: "the events process", JOB: "a job"}


@pytest.fixture
def stack() -> Iterator[Launched]:
    with launched("--port", "0", "--catalogue", "tests.chaos.dying_tools", environ=IMPATIENT) as made:
        yield made


@pytest.fixture
def output(stack: Launched) -> Iterator[list[str]]:
    """What the stack prints. It is read all the time: a full pipe would hold up the launcher."""
    lines: list[str] = []

    def read() -> None:
        assert stack.process.stdout is not None
        with stack.process.stdout as output:
            lines.extend(output)

    reader = threading.Thread(target=read, name="output", daemon=True)
    reader.start()
    yield lines
    if stack.process.poll() is None:
        stack.process.send_signal(signal.SIGINT)
        stack.process.wait(20)
    reader.join()
    print(*lines)


def live(stack: Launched, killer: Killer, journal: Path, seed: int) -> list[Ended]:
    """What one client does: tasks of every kind, one after the other."""
    random = Random(seed)

    def disturb() -> None:
        """Now and then, the process that answers dies in the middle of it."""
        if random.random() < DISTURBED:
            threading.Timer(random.uniform(0, 0.05), killer.kill, [random.choice((FRONT, SUPERVISOR))]).start()

    client = Client(stack.facts["url"], disturb)
    kinds = ["assemble", "confirm", "wander"] * TASKS_EACH
    tools = kinds[:TASKS_EACH]
    random.shuffle(tools)
    ends = []
    for tool in tools:
        arguments = {"parts": PARTS} if tool == "assemble" else {}
        task_id = client.start(tool, journal=str(journal), **arguments)
        cancel_after = random.uniform(0, 3) if tool == "wander" else None
        ends.append(client.to_the_end(tool, task_id, cancel_after))
    count("requests repeated under kills", client.retries)
    return ends


def assert_kept_is_never_done_again(lines: Sequence[str]) -> None:
    """What a step recorded, no later run or attempt repeats."""
    kept: set[str] = set()
    for line in lines:
        word, _, step = line.partition(" ")
        if word == "kept":
            kept.add(step)
        assert word != "did" or step not in kept, lines


def assert_ended_as_promised(end: Ended, lines: Sequence[str], *, job_killed: bool) -> None:
    """A job that was left alone did all of its work; of one that was killed, the task says so."""
    assert_kept_is_never_done_again(lines)
    done = {line.removeprefix("did ") for line in lines if line.startswith("did ")}
    expected = {
        "assemble": ("completed", f"{PARTS} parts", {f"part-{part}" for part in range(PARTS)}),
        "confirm": ("completed", "go=True", {"before", "after"}),
        "wander": ("cancelled", "", set()),
    }[end.tool]
    if (end.status, end.text, done) == expected and not end.is_error:
        return
    assert job_killed, (end, lines)
    # Nobody saw the end of a job whose supervisor died with it: its task has failed.
    assert end.status == "failed" or end.is_error, (end, lines)
    if end.is_error:
        assert "signal SIGKILL" in end.text, end


@pytest.mark.parametrize("seed", SEEDS)
def test_every_task_ends_whichever_process_dies(stack: Launched, output: list[str], tmp_path: Path, seed: int) -> None:
    killer = Killer(stack.process.pid, stack.facts["directory"], seed, PAUSE)
    killer.start()
    with ThreadPoolExecutor(CLIENTS) as pool:
        lives = [pool.submit(live, stack, killer, tmp_path, seed * 100 + number) for number in range(CLIENTS)]
        ends = [end for life in lives for end in life.result()]
    killer.stop()
    assert set(killer.kills) == set(KINDS), killer.kills
    assert len(ends) == CLIENTS * TASKS_EACH

    client = Client(stack.facts["url"])
    for end in ends:
        again = client.to_the_end(end.tool, end.task_id)
        assert again == end, "a task that has ended never changes"
        path = tmp_path / end.task_id
        lines = path.read_text().splitlines() if path.exists() else []
        assert_ended_as_promised(end, lines, job_killed=killer.killed(end.task_id))
        wait_for(lambda end=end: not processes_of(end.task_id), what=f"the end of the job of {end}")

    stack.process.send_signal(signal.SIGINT)
    assert stack.process.wait(20) == 0, output[-20:]
    assert stack.leftovers() == []
    for kind, number in killer.kills.items():
        count(f"kills of {NAMES[kind]}", number)
    count("tasks ended under kills", len(ends))
