"""Files beside a result: many of them, large ones in little memory, and links that are new at every read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from botocore import auth

from taskrail import ProtocolError, TaskContext
from taskrail.testing import BUCKET, Kit, harness
from tests.counts import LONG
from tests.functional import payload_tools

ROOT = Path(__file__).resolve().parents[2]
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def kit() -> Iterator[Kit]:
    with harness(payload_tools.server) as made:
        yield made


def links(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [block for block in result["content"] if block["type"] == "resource_link"]


def test_two_hundred_files_are_two_hundred_links_in_their_order(kit: Kit) -> None:
    task = kit.call("attach_many", count=200, text="done").run()
    found = links(task.result)
    assert [link["name"] for link in found] == [f"file-{number}.txt" for number in range(200)]
    assert task.result["content"][0]["text"] == "done"
    for number in (0, 99, 199):
        assert found[number]["description"] == f"File number {number}"
        assert found[number]["size"] == len(f"content {number}")
        assert requests.get(found[number]["uri"], timeout=5).text == f"content {number}"
    assert len({link["uri"].partition("?")[0] for link in found}) == 200


def test_beside_many_files_the_item_stays_small(kit: Kit) -> None:
    task = kit.call("attach_many", count=300, text="done").run()
    item = next(item for item in kit.scan() if item["pk"]["S"].endswith(task.task_id))
    assert len(json.dumps(item)) < 3_000


def test_more_files_than_an_answer_can_link_are_an_error_that_says_so(kit: Kit) -> None:
    task = kit.call("attach_many", count=501).run()
    assert task.is_error
    assert "500 attached files" in task.text
    assert len(links(task.result)) == 500


def test_of_two_files_with_one_name_the_last_counts(kit: Kit) -> None:
    task = kit.call("attach_twice").run()
    (link,) = links(task.result)
    assert requests.get(link["uri"], timeout=5).text == "second"


@pytest.mark.parametrize(
    "name",
    ["report.pdf", "..", ".", ".env", "a/b/../c.txt", "\u00fcber uns.txt", 'a"b\r\nc.txt', "x" * 255, "//[", "nul\0"],
)
def test_whatever_a_file_is_called_its_link_works(kit: Kit, name: str) -> None:
    payload_tools.given[0] = name
    task = kit.call("attach_named").run()
    (link,) = links(task.result)
    assert link["name"] == name
    response = requests.get(link["uri"], timeout=5)
    assert response.text == "content"
    path = urlsplit(link["uri"]).path
    assert not {"", ".", ".."} & set(path.strip("/").split("/"))
    assert len(link["uri"]) < 4_000
    disposition = response.headers["content-disposition"]
    assert disposition.startswith('attachment; filename="')
    assert disposition.count('"') == 2


@pytest.mark.parametrize("name", ["", "x" * 256])
def test_a_name_that_is_none_or_too_long_is_an_error_that_says_so(kit: Kit, name: str) -> None:
    payload_tools.given[0] = name
    task = kit.call("attach_named").run()
    assert task.is_error
    assert "name" in task.text
    assert "Its log" not in task.text


def test_a_link_is_new_at_every_read_and_lives_its_full_life_from_then(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = kit.call("attach_many", count=1).run()
    before = kit.scan()
    ends = []
    for hours in (0, 1, 30):
        moved = datetime.now(UTC) + timedelta(hours=hours)
        monkeypatch.setattr(auth, "get_current_datetime", lambda remove_tzinfo=True, moved=moved: moved)
        kit.advance(timedelta(hours=hours / 2))
        ends.append(expiry(links(task.result)[0]["uri"]) - moved)
    assert all(timedelta(minutes=59) < life <= timedelta(hours=1) for life in ends)
    assert kit.scan() == before, "a link is made, never stored"


def expiry(url: str) -> datetime:
    query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
    signed = datetime.strptime(query["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    return signed + timedelta(seconds=int(query["X-Amz-Expires"]))


@pytest.mark.parametrize("end", ["error", "protocol_error", "exception"])
def test_files_of_a_job_that_failed_come_along_where_there_is_a_result(kit: Kit, end: str) -> None:
    def work(task: TaskContext) -> None:
        task.attach("log.txt", "what happened")
        if end == "protocol_error":
            raise ProtocolError(4711, "Refused.")
        raise RuntimeError("no")

    payload_tools.given[0] = work
    task = kit.call("anything").run()
    if end == "protocol_error":
        assert task.status == "failed"
    else:
        assert task.is_error
        assert [link["name"] for link in links(task.result)] == ["log.txt"]


@pytest.mark.parametrize(
    "uri",
    [
        f"s3://{BUCKET}/inputs/someone-else/secret.txt",
        "s3:inputs/someone-else/secret.txt",
        "s3:tasks/00000000000000000000000000000001/1-1/n5/result.json",
        "s3:tasks/",
        "s3:",
        "https://example.com/",
    ],
)
def test_a_link_that_a_tool_returns_is_never_taken_for_a_pointer(kit: Kit, uri: str) -> None:
    """A caller may have made it up: signed, it would open what belongs to others."""
    from taskrail import Link

    payload_tools.given[0] = Link(uri, "a link")
    task = kit.call("give_any").run()
    assert links(task.result)[0]["uri"] == uri


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("source", ["path", "stream"])
@pytest.mark.parametrize("megabytes", [20, 200] if LONG else [20])
def test_a_large_file_passes_through_little_memory(tmp_path: Path, source: str, megabytes: int) -> None:
    """In a process of its own, since moto, here the bucket, keeps what it gets in memory."""
    from moto.server import ThreadedMotoServer

    name, file = f"{source}-{megabytes}", tmp_path / "large.bin"
    with file.open("wb") as out:
        for number in range(megabytes):
            out.write(bytes([number % 256]) * MEGABYTE)
    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        environ = {**os.environ, "PYTHONPATH": f"{ROOT / 'functions'}{os.pathsep}{ROOT}"}
        command = [sys.executable, "-m", "tests.functional.streaming", f"http://{host}:{port}", name, source, str(file)]
        done = subprocess.run(command, env=environ, cwd=ROOT, capture_output=True, text=True, check=False)
    finally:
        server.stop()
    assert done.returncode == 0, done.stderr[-2_000:]
    seen = json.loads(done.stdout)
    assert (seen["status"], seen["stored"]) == ("completed", megabytes * MEGABYTE)
    assert seen["same"]
    assert seen["peak"] < 18 * MEGABYTE, "a few parts at a time, however large the file"
