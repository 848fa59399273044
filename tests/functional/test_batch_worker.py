"""A worker's process on Batch, `python -m taskrail.worker`, as Batch starts it, ends it and starts it again.

Some are real processes, against moto's server in the process of the tests; where only what becomes of the task
matters, the process of the tests is the worker's.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from botocore.stub import Stubber

from taskrail.call import ClientInfo
from taskrail.clock import SystemClock
from taskrail.engines import RunOrder, RunReport, RunState
from taskrail.errors import StoreUnavailable
from taskrail.runtime import Runtime, build, client
from taskrail.settings import Settings
from taskrail.task import Status, Task
from taskrail.testing import StandingClock
from taskrail.worker.__main__ import main
from tests.functional import batch_tools
from tests.functional.batch_tools import server
from tests.local_help import ROOT, wait_for

TABLE, BUCKET, OWNER = "tasks", "payloads", "anna"
JOB = "4c7599ae-0a82-49aa-ba5a-4727fcce14a8"


class Queue:
    """Batch as far as these tests go: it takes jobs, and says that they run."""

    records_ids = True
    stops_gently = True
    by_lease = False

    def start(self, order: RunOrder) -> str:
        """As `Engine.start`."""
        return JOB

    def stop(self, tool: str, name: str, run_id: str | None) -> bool:
        """As `Engine.stop`: the test sends the signal."""
        return False

    def describe(self, tool: str, name: str, run_id: str | None) -> RunReport:
        """As `Engine.describe`."""
        return RunReport(RunState.RUNNING, run_id=run_id)

    def resume(self, token: str, output: str) -> None:
        """As `Engine.resume`."""

    def log_tail(self, tool: str, log: str, lines: int) -> tuple[str, ...]:
        """As `Engine.log_tail`."""
        return ()


class Deployment:
    """Tasks, and the processes that Batch would start for them.

    Parameters
    ----------
    endpoint
        URL of moto's server.
    runtime
        The deployment, for what its callers do.
    directory
        Where jobs and tests leave each other word.
    """

    def __init__(self, endpoint: str, runtime: Runtime, directory: Path) -> None:
        self.endpoint, self.runtime, self.directory = endpoint, runtime, directory
        self._processes: list[subprocess.Popen[str]] = []

    def create(self, tool: str, **arguments: Any) -> str:
        """A task whose job has been submitted; its id."""
        declared = server.get(tool)
        assert declared is not None
        asks = ClientInfo(capabilities={"elicitation": {}})
        return self.runtime.rail.create(OWNER, declared, arguments, asks).task_id

    def variables(self, task_id: str, attempt: int = 1, job: str = JOB, endpoint: str | None = None) -> dict[str, str]:
        """The environment of a container."""
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(self.directory), str(ROOT / "functions"), str(ROOT))),
            "AWS_ENDPOINT_URL": endpoint or self.endpoint,
            "TASKRAIL_TABLE": TABLE,
            "TASKRAIL_BUCKET": BUCKET,
            "TASKRAIL_TASK_ID": task_id,
            "TASKRAIL_RUN": "1",
            "AWS_BATCH_JOB_ID": job,
            "AWS_BATCH_JOB_ATTEMPT": str(attempt),
        }

    def start(self, environ: Mapping[str, str]) -> subprocess.Popen[str]:
        """A worker's process."""
        process = subprocess.Popen(
            [sys.executable, "-m", "taskrail.worker"],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._processes.append(process)
        return process

    def run(self, environ: Mapping[str, str]) -> tuple[int, str]:
        """A worker's process to its end: its exit code, and what it printed."""
        process = self.start(environ)
        output, _ = process.communicate(timeout=30)
        return process.returncode, output

    def work(self, task_id: str, attempt: int = 1, job: str = JOB, then: Callable[[], object] | None = None) -> int:
        """Be the worker's process; its exit code. When the job waits for the test, do `then`, and end the process."""
        before = signal.getsignal(signal.SIGTERM)
        watcher = threading.Thread(target=self._end_this, args=(then,), daemon=True)
        if then is not None:
            watcher.start()
        try:
            return main(self.variables(task_id, attempt, job))
        finally:
            if then is not None:
                watcher.join()
            signal.signal(signal.SIGTERM, before)

    def _end_this(self, then: Callable[[], object]) -> None:
        wait_for(lambda: self.read("waiting"), what="the job")
        then()
        os.kill(os.getpid(), signal.SIGTERM)

    def begin(self, task_id: str) -> subprocess.Popen[str]:
        """A worker's process whose job waits for the test."""
        process = self.start(self.variables(task_id))
        wait_for(lambda: self.read("waiting") or process.poll() is not None, what="the job")
        assert process.poll() is None, process.communicate()[0]
        return process

    def end(self, process: subprocess.Popen[str]) -> tuple[int, str]:
        """What Batch does to end a container, and what comes of it."""
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=30)
        return process.returncode, output

    def read(self, name: str) -> list[str]:
        """The lines that jobs left in a file."""
        path = self.directory / name
        return path.read_text().splitlines() if path.exists() else []

    def task(self, task_id: str) -> Task:
        """The task as it is stored."""
        return self.runtime.rail.read(OWNER, task_id)

    def result(self, task_id: str) -> dict[str, Any]:
        """The result of a task that has one."""
        task = self.task(task_id)
        assert task.status is Status.COMPLETED, task.status_message
        result: dict[str, Any] = self.runtime.rail.detail(task)["result"]
        return result

    def close(self) -> None:
        """Nothing of it stays."""
        for process in self._processes:
            process.kill()
            process.communicate()


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    from moto.dynamodb.responses import DynamoHandler
    from moto.server import ThreadedMotoServer

    lock, original = threading.Lock(), DynamoHandler.call_action

    def one_at_a_time(self: Any) -> Any:
        with lock:
            return original(self)

    aws = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    with pytest.MonkeyPatch.context() as patch:
        # moto checks a condition and writes in two steps; DynamoDB does both at once.
        patch.setattr(DynamoHandler, "call_action", one_at_a_time)
        aws.start()
        host, port = aws.get_host_and_port()
        url = f"http://{host}:{port}"
        dynamodb = client("dynamodb", endpoint_url=url)
        dynamodb.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        where = {"LocationConstraint": "eu-central-1"}
        client("s3", endpoint_url=url).create_bucket(Bucket=BUCKET, CreateBucketConfiguration=where)
        yield url
        aws.stop()


@pytest.fixture
def deployment(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    (tmp_path / "catalogue.py").write_text("from tests.functional.batch_tools import server as server\n")
    runtime = build(
        server,
        Settings(TABLE, BUCKET),
        dynamodb=client("dynamodb", endpoint_url=endpoint),
        s3=lambda: client("s3", endpoint_url=endpoint),
        engines={"batch": Queue()},
    )
    monkeypatch.setitem(sys.modules, "catalogue", batch_tools)
    monkeypatch.setattr("taskrail.runtime.worker_from_environment", lambda server: runtime)
    made = Deployment(endpoint, runtime, tmp_path)
    yield made
    made.close()


@pytest.fixture
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker of this process leaves a job that does not look after a short while."""
    monkeypatch.setattr("taskrail.worker.attempt.HEAR_WITHIN_MS", 300)


def nothing() -> None:
    """The order to end comes alone."""


def test_a_job_is_done_and_its_process_ends_well(deployment: Deployment) -> None:
    task_id = deployment.create("greet", name="Anna")
    code, output = deployment.run(deployment.variables(task_id))
    assert code == 0, output
    assert deployment.result(task_id)["content"] == [{"type": "text", "text": "Hello Anna"}]
    assert (deployment.task(task_id).run_id, deployment.task(task_id).attempt) == (JOB, 1)
    assert f"task {task_id}: run 1, attempt 1: completed" in output


def test_a_job_that_fails_is_not_to_be_tried_again(deployment: Deployment) -> None:
    task_id = deployment.create("greet", name="")
    assert deployment.work(task_id) == 0
    assert deployment.result(task_id)["isError"]


def test_a_process_that_does_not_know_what_to_do_says_so_in_one_line(deployment: Deployment) -> None:
    environ = deployment.variables("0" * 32)
    del environ["AWS_BATCH_JOB_ID"]
    code, output = deployment.run(environ)
    assert code == 64
    assert output.startswith("taskrail.worker: The environment variable AWS_BATCH_JOB_ID is missing")
    assert output.count("\n") == 1


def test_a_rival_and_another_job_of_the_run_have_nothing_to_do(
    deployment: Deployment, caplog: pytest.LogCaptureFixture
) -> None:
    task_id = deployment.create("long_work", directory=str(deployment.directory))
    assert deployment.runtime.rail.reports.claim(task_id, 1, JOB, 1) is not None
    before = deployment.task(task_id)
    for number, job in ((1, JOB), (2, "submitted-twice")):
        with caplog.at_level("INFO", "taskrail"):
            assert deployment.work(task_id, number, job) == 0
        assert f"attempt {number}: nothing to do" in caplog.text
    assert not deployment.read("steps")
    assert deployment.task(task_id) == before


@pytest.mark.usefixtures("little_patience")
@pytest.mark.parametrize("tool", ["long_work", "long_work_in_a_loop"])
def test_a_cancelled_job_that_does_not_look_is_left_and_cleans_up(deployment: Deployment, tool: str) -> None:
    task_id = deployment.create(tool, directory=str(deployment.directory))
    before = SystemClock().now()
    assert deployment.work(task_id, then=lambda: deployment.runtime.rail.cancel(OWNER, task_id)) == 0
    assert deployment.task(task_id).status is Status.CANCELLED
    assert deployment.read("cleaned") == ["attempt 1"]
    assert (deployment.directory / "cleaned").stat().st_mtime_ns // 1_000_000 - before >= 300


def test_a_cancelled_job_that_looks_leaves_by_itself(deployment: Deployment) -> None:
    task_id = deployment.create("long_work", directory=str(deployment.directory), looks=True)
    process = deployment.begin(task_id)
    deployment.runtime.rail.cancel(OWNER, task_id)
    assert deployment.end(process)[0] == 0
    assert deployment.task(task_id).status is Status.CANCELLED
    assert deployment.read("left") == ["JobCancelled"]


def test_an_interrupted_attempt_is_followed_by_one_that_goes_on(deployment: Deployment) -> None:
    task_id = deployment.create("long_work", directory=str(deployment.directory))
    code, output = deployment.end(deployment.begin(task_id))
    assert code == 75, output
    assert deployment.read("left") == ["RunInterrupted"]
    task = deployment.task(task_id)
    assert (task.status, task.attempt, task.run_open) == (Status.WORKING, 1, True)
    (deployment.directory / "go").touch()
    assert deployment.work(task_id, attempt=2) == 0
    assert deployment.read("steps") == ["first in attempt 1", "second in attempt 2"]
    assert deployment.result(task_id)["content"] == [{"type": "text", "text": "second in attempt 2"}]


def test_a_superseded_attempt_is_left_without_a_word(deployment: Deployment) -> None:
    task_id = deployment.create("long_work", directory=str(deployment.directory))
    reports = deployment.runtime.rail.reports
    assert deployment.work(task_id, then=lambda: reports.claim(task_id, 1, JOB, 2)) == 0
    assert deployment.read("left") == ["RunSuperseded"]
    task = deployment.task(task_id)
    assert (task.status, task.attempt) == (Status.WORKING, 2)


def test_what_an_interrupted_jobs_clean_up_raises_does_not_end_the_task(deployment: Deployment) -> None:
    task_id = deployment.create("long_work", directory=str(deployment.directory), breaks=True)
    assert deployment.work(task_id, then=nothing) == 75
    assert deployment.task(task_id).status is Status.WORKING


def test_a_job_that_is_done_all_the_same_is_done(deployment: Deployment) -> None:
    task_id = deployment.create("will_not_leave", directory=str(deployment.directory))
    assert deployment.work(task_id, then=nothing) == 0
    assert deployment.result(task_id)["content"] == [{"type": "text", "text": "done all the same"}]


def test_a_process_that_has_to_end_does_not_hold_its_run_open_for_an_answer(deployment: Deployment) -> None:
    task_id = deployment.create("ask", directory=str(deployment.directory))
    asked = lambda: wait_for(lambda: deployment.task(task_id).outstanding, what="the question")  # noqa: E731
    assert deployment.work(task_id, then=asked) == 0
    task = deployment.task(task_id)
    assert (task.status, task.run_open) == (Status.INPUT_REQUIRED, False)
    assert deployment.read("cleaned") == ["attempt 1"]
    assert deployment.work(task_id, attempt=2) == 0
    assert deployment.task(task_id) == task


def test_a_process_that_is_told_to_end_before_it_has_a_task_ends_at_once(deployment: Deployment) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(20)
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        process = deployment.start(deployment.variables("0" * 32, endpoint=endpoint))
        connection, _ = silent.accept()
        with connection:
            code, output = deployment.end(process)
    assert code == 75, output


def test_a_task_that_cannot_be_reached_is_tried_again(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    dynamodb = client("dynamodb")
    with Stubber(dynamodb) as stubber:
        for _ in range(8):
            stubber.add_client_error("update_item", "InternalServerError", http_status_code=500)
        unreachable = build(
            server,
            Settings(TABLE, BUCKET),
            dynamodb=dynamodb,
            s3=lambda: client("s3"),
            engines={},
            clock=StandingClock(),
        )
        monkeypatch.setattr("taskrail.runtime.worker_from_environment", lambda server: unreachable)
        assert deployment.work("0" * 32) == 75
        stubber.assert_no_pending_responses()


def test_an_attempt_has_its_tools_time_from_its_beginning_and_is_then_left(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = deployment.create("long_work", directory=str(deployment.directory))
    an_hour_ago = SystemClock().now() - 3_600_000
    monkeypatch.setattr("taskrail.worker.__main__.SystemClock", lambda: StandingClock(an_hour_ago))
    assert deployment.work(task_id) == 0
    assert "ran out of time" in deployment.result(task_id)["content"][0]["text"]
    assert deployment.read("left") == ["RunSuperseded"]
    assert deployment.read("cleaned") == ["attempt 1"]


@pytest.mark.usefixtures("little_patience")
def test_an_order_to_end_while_the_task_is_out_of_reach_interrupts_after_the_grace(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []

    def out_of_reach(task: Task) -> Task:
        looks.append(task.task_id)
        raise StoreUnavailable("The test has cut the line.")

    task_id = deployment.create("long_work", directory=str(deployment.directory))
    monkeypatch.setattr(deployment.runtime.rail.reports, "look", out_of_reach)
    assert deployment.work(task_id, then=nothing) == 75
    assert len(looks) > 1
    assert deployment.task(task_id).status is Status.WORKING
