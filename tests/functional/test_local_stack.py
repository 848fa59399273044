"""From start to end: the local stack comes up or says why not, and whatever ends it, nothing stays behind."""

from __future__ import annotations

import os
import signal
import socket
import time

import pytest

from tests.local_help import Launched, Rpc, launched, processes_of, wait_for

FREE_PORT = ("--port", "0")
CATALOGUE = ("--catalogue", "tests.functional.local_tools")


def children_of_the_job(stack: Launched) -> list[int]:
    """What the job of `busy` started."""
    return processes_of(f": {stack.directory.parent.name};")


def busy(stack: Launched) -> None:
    """Give the stack a job that ignores signals and has children that do so too."""
    Rpc(stack.facts["url"]).start("leave_a_child", marker=stack.directory.parent.name)
    wait_for(lambda: len(children_of_the_job(stack)) >= 2, what="the job's own children")


def port_of(stack: Launched) -> int:
    return int(stack.facts["url"].split(":")[2].split("/")[0])


def assert_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))


@pytest.mark.parametrize(
    ("signum", "with_job"), [(signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGHUP, False)]
)
def test_a_signal_leaves_nothing_behind(signum: signal.Signals, with_job: bool) -> None:
    with launched(*FREE_PORT, *CATALOGUE) as stack:
        port = port_of(stack)
        if with_job:
            busy(stack)
        output = stack.end(signum)
        assert stack.process.returncode == 0, output
        assert stack.leftovers() == []
        assert children_of_the_job(stack) == []
        assert not stack.ready_file.exists()
        assert "Traceback" not in output
        assert_free(port)


def test_a_second_signal_leaves_nothing_behind_either() -> None:
    with launched(*FREE_PORT, *CATALOGUE) as stack:
        busy(stack)
        stack.process.send_signal(signal.SIGINT)
        wait_for(lambda: not stack.ready_file.exists(), what="the beginning of the end")
        output = stack.end(signal.SIGINT)
        assert stack.process.returncode == 0, output
        assert stack.leftovers() == []
        assert children_of_the_job(stack) == []


def test_a_launcher_that_is_killed_leaves_nothing_behind() -> None:
    with launched(*FREE_PORT, *CATALOGUE) as stack:
        port = port_of(stack)
        busy(stack)
        stack.process.kill()
        stack.process.communicate()
        wait_for(lambda: not stack.leftovers() and not children_of_the_job(stack), what="the end of everything")
        assert_free(port)


def test_jobs_outlive_neither_their_launcher_nor_their_supervisor() -> None:
    """All others are killed at once: nobody is left to end the job but itself."""
    with launched(*FREE_PORT, *CATALOGUE) as stack:
        busy(stack)
        processes = stack.facts["processes"].values()
        for pid in (*processes, stack.process.pid):
            os.kill(pid, signal.SIGSTOP)
        for pid in (*processes, stack.process.pid):
            os.kill(pid, signal.SIGKILL)
        stack.process.communicate()
        wait_for(
            lambda: not processes_of(str(stack.directory)) and not children_of_the_job(stack), what="the job's end"
        )
        wait_for(lambda: not stack.leftovers(), what="the job's last act")


@pytest.mark.parametrize("delay", [0.05, 0.15, 0.3, 0.6])
def test_a_signal_during_start_up_leaves_nothing_behind(delay: float) -> None:
    with launched(*FREE_PORT, *CATALOGUE, ready=False) as stack:
        # No condition to wait for: the point is to hit whatever is going on at that moment.
        time.sleep(delay)
        output = stack.end(signal.SIGINT)
        assert stack.leftovers() == []
        # Before it runs a line of ours, Python answers a signal in its own way.
        assert stack.process.returncode != 0 or "Traceback" not in output


def test_a_signal_as_soon_as_the_first_process_lives_leaves_nothing_behind() -> None:
    with launched(*FREE_PORT, *CATALOGUE, ready=False) as stack:
        wait_for(lambda: processes_of(f"local.aws {stack.directory}"), what="the first process")
        output = stack.end(signal.SIGTERM)
        assert stack.process.returncode == 0, output
        assert stack.leftovers() == []


def test_a_port_in_use_is_one_clear_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with launched("--port", str(port), *CATALOGUE, ready=False) as stack:
            output, _ = stack.process.communicate(timeout=20)
            assert stack.process.returncode == 1
            assert output == f"taskrail: port {port} is in use; choose another with --port, or 0 for a free one\n"
            assert stack.leftovers() == []


@pytest.mark.parametrize(
    ("catalogue", "says"), [("no_such_module", "there is no module 'no_such_module'"), ("json", "needs a TaskServer")]
)
def test_a_catalogue_without_a_server_is_told(catalogue: str, says: str) -> None:
    with launched(*FREE_PORT, "--catalogue", catalogue, ready=False) as stack:
        output, _ = stack.process.communicate(timeout=30)
        assert stack.process.returncode == 1
        assert says in output
        assert "Traceback" not in output
        assert stack.leftovers() == []


def test_the_start_up_text_is_enough_to_connect() -> None:
    with launched(*FREE_PORT, *CATALOGUE) as stack:
        url = stack.facts["url"]
        output = stack.end()
    assert f"claude mcp add --transport http local-tests {url}" in output
    assert '"mcpServers"' in output
    for words in (("ping", "forbidden", "inside the request"), ("approve", "optional", "step_functions")):
        assert any(all(word in line for word in words) for line in output.splitlines())
    assert "ready" in output.splitlines()


def test_the_stack_ends_with_its_tasks() -> None:
    with launched(*FREE_PORT, *CATALOGUE) as stack:
        os.kill(stack.facts["processes"]["local.aws"], signal.SIGKILL)
        output, _ = stack.process.communicate(timeout=20)
        assert stack.process.returncode == 1
        assert "the local AWS ended" in output
        assert stack.leftovers() == []


def test_credentials_and_proxies_of_the_machine_are_not_used() -> None:
    environ = {
        "AWS_PROFILE": "does-not-exist",
        "AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:1",
        "HTTP_PROXY": "http://127.0.0.1:1",
        "http_proxy": "http://127.0.0.1:1",
    }
    with launched(*FREE_PORT, *CATALOGUE, environ=environ) as stack:
        rpc = Rpc(stack.facts["url"])
        assert rpc.until(rpc.start("end", how="return"), "completed")
