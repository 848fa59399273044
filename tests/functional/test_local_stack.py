"""From start to end: the local stack comes up or says why not, and whatever ends it, nothing stays behind."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

import pytest

from tests.local_help import Launched, Rpc, launch, launched, processes_of, wait_for

CATALOGUE = "tests.functional.local_tools"


def busy(stack: Launched, marker: str) -> Rpc:
    """Give the stack a job that ignores signals and has a child that does so too."""
    rpc = Rpc(stack.facts["url"])
    rpc.start("leave_a_child", marker=marker)
    wait_for(lambda: processes_of(f": {marker};"), what="the job's own child")
    return rpc


def assert_gone(stack: Launched, marker: str, port: int) -> None:
    wait_for(lambda: not stack.leftovers() and not processes_of(f": {marker};"), what="the end of everything")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", port))


@pytest.mark.parametrize(
    ("signum", "with_job"), [(signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGHUP, False)]
)
def test_a_signal_leaves_nothing_behind(tmp_path: Path, signum: signal.Signals, with_job: bool) -> None:
    with launched(tmp_path, CATALOGUE) as stack:
        port = int(stack.facts["url"].split(":")[2].split("/")[0])
        if with_job:
            busy(stack, tmp_path.name)
        output = stack.end(signum)
        assert stack.process.returncode == 0
        assert stack.leftovers() == []
        assert not stack.ready_file.exists()
        assert "Traceback" not in output
        assert_gone(stack, tmp_path.name, port)


def test_a_second_signal_leaves_nothing_behind_either(tmp_path: Path) -> None:
    with launched(tmp_path, CATALOGUE) as stack:
        busy(stack, tmp_path.name)
        stack.process.send_signal(signal.SIGINT)
        wait_for(lambda: not stack.ready_file.exists(), what="the beginning of the end")
        stack.end(signal.SIGINT)
        assert stack.process.returncode == 0
        assert stack.leftovers() == []


@pytest.mark.parametrize("also", [(), ("local.supervisor", "local.front", "local.events", "local.aws")])
def test_a_launcher_that_is_killed_leaves_nothing_behind(tmp_path: Path, also: tuple[str, ...]) -> None:
    with launched(tmp_path, CATALOGUE) as stack:
        port = int(stack.facts["url"].split(":")[2].split("/")[0])
        busy(stack, tmp_path.name)
        processes = stack.facts["processes"]
        stack.process.kill()
        for name in also:
            os.kill(processes[name], signal.SIGKILL)
        stack.process.communicate()
        wait_for(lambda: not processes_of(f": {tmp_path.name};"), what="the end of the job's own child")
        wait_for(lambda: not processes_of(str(tmp_path)), what="the end of every process")
        if not also:
            assert_gone(stack, tmp_path.name, port)


@pytest.mark.parametrize("delay", [0.05, 0.15, 0.3, 0.6])
def test_a_signal_during_start_up_leaves_nothing_behind(tmp_path: Path, delay: float) -> None:
    stack = launch(tmp_path, "--port", "0", "--catalogue", CATALOGUE)
    # No condition to wait for: the point is to hit whatever is going on at that moment.
    time.sleep(delay)
    output = stack.end(signal.SIGINT)
    assert stack.leftovers() == []
    # Before it runs a line of ours, Python answers a signal in its own way.
    assert stack.process.returncode != 0 or "Traceback" not in output


def test_a_signal_as_soon_as_the_first_process_lives_leaves_nothing_behind(tmp_path: Path) -> None:
    stack = launch(tmp_path, "--port", "0", "--catalogue", CATALOGUE)
    wait_for(lambda: processes_of(f"local.aws {tmp_path}"))
    stack.end(signal.SIGTERM)
    assert stack.process.returncode == 0
    assert stack.leftovers() == []


def test_a_port_in_use_is_one_clear_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        stack = launch(tmp_path, "--port", str(port), "--catalogue", CATALOGUE)
        output, _ = stack.process.communicate(timeout=20)
    assert stack.process.returncode == 1
    assert output == f"taskrail: port {port} is in use; choose another with --port, or 0 for a free one\n"
    assert stack.leftovers() == []


@pytest.mark.parametrize(
    ("catalogue", "says"), [("no_such_module", "there is no module 'no_such_module'"), ("json", "needs a TaskServer")]
)
def test_a_catalogue_without_a_server_is_told(tmp_path: Path, catalogue: str, says: str) -> None:
    stack = launch(tmp_path, "--port", "0", "--catalogue", catalogue)
    output, _ = stack.process.communicate(timeout=30)
    assert stack.process.returncode == 1
    assert says in output
    assert "Traceback" not in output
    assert stack.leftovers() == []


def test_the_start_up_text_is_enough_to_connect(tmp_path: Path) -> None:
    with launched(tmp_path, CATALOGUE) as stack:
        url = stack.facts["url"]
        output = stack.end()
    assert f"claude mcp add --transport http local-tests {url}" in output
    assert '"mcpServers"' in output
    for words in (("ping", "forbidden", "inside the request"), ("approve", "optional", "step_functions")):
        assert any(all(word in line for word in words) for line in output.splitlines())
    assert "ready" in output.splitlines()


def test_the_stack_ends_with_its_tasks(tmp_path: Path) -> None:
    with launched(tmp_path, CATALOGUE) as stack:
        os.kill(stack.facts["processes"]["local.aws"], signal.SIGKILL)
        output, _ = stack.process.communicate(timeout=20)
        assert stack.process.returncode == 1
        assert "the local AWS ended" in output
        assert stack.leftovers() == []


def test_credentials_and_profiles_of_the_machine_are_not_used(tmp_path: Path) -> None:
    environ = {
        "AWS_PROFILE": "does-not-exist",
        "AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:1",
        "HTTP_PROXY": "http://127.0.0.1:1",
        "http_proxy": "http://127.0.0.1:1",
    }
    with launched(tmp_path, CATALOGUE, environ) as stack:
        rpc = Rpc(stack.facts["url"])
        assert rpc.until(rpc.start("end", how="return"), "completed")
