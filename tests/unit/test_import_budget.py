"""What the API function may load: every import is a part of every cold start (design.md, "Numbers to hold").

Each question is asked in a process of its own, started as Lambda starts the function: the handler is looked up,
then answers, while the network is a constant.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from taskrail.store.items import to_item
from taskrail.task import Status, Task

ROOT = Path(__file__).resolve().parents[2]

MOST_MODULES = 450
"""The most modules that a loaded API function has, Python's and the SDK's included."""

MOST_OF_OURS = 65
"""The most of the kit's own. Who adds one says here that every cold start is to pay for it."""

PACKAGES = frozenset(
    {
        "annotated_types",
        "botocore",
        "certifi",
        "dateutil",
        "jmespath",
        "pydantic",
        "pydantic_core",
        "six",
        "typing_extensions",
        "typing_inspection",
        "urllib3",
    }
)
"""What else may be loaded besides Python's own: pydantic and the SDK, with what they bring along."""

NEVER = {
    "asyncio": "an event loop that nothing here runs on",
    "boto3": "what botocore does alone (`taskrail.clients`)",
    "jsonschema": "schemas by hand, which only catalogues with such schemas need",
    "moto": "the tests' AWS",
    "multiprocessing": "comes with boto3's transfers",
    "referencing": "comes with jsonschema",
    "s3transfer": "comes with boto3",
    "taskrail.engines.adopted": "finds engines by tag, when they are first used",
    "taskrail.engines.batch": "an engine, when it first starts a run",
    "taskrail.engines.lambda_functions": "an engine, when it first starts a run",
    "taskrail.engines.step_functions": "an engine, when it first starts a run",
    "taskrail.rail.approvals": "the approval functions' part",
    "taskrail.rail.cleanup": "the expired function's part",
    "taskrail.rail.remote": "the report function's part",
    "taskrail.testing": "the harness",
    "taskrail.content": "content blocks, for catalogues that return them",
    "taskrail.wire.calls": "tools/call, when it is first asked for",
    "taskrail.wire.listen": "subscriptions/listen, when it is first asked for",
    "taskrail.wire.experimental": "the tasks of an earlier revision, which few switch on",
    "taskrail.worker": "what runs jobs",
    "taskrail.approval_page": "a page of the approval functions",
}
"""What a loaded API function must not have, and why it might."""

PROGRAM = """
import json, sys
begin = set(sys.modules)
sys.path[:0] = json.loads(sys.argv[1])
import handlers.mcp_api
handler = handlers.mcp_api.handler
loaded = sorted(set(sys.modules) - begin)

import botocore.httpsession
from botocore.awsrequest import AWSResponse

calls = []

class Raw:
    def __init__(self, body): self.body = body
    def stream(self, *_): yield self.body

def send(self, request):
    calls.append(request.headers.get("X-Amz-Target", b"").decode() or request.url)
    return AWSResponse(request.url, 200, {"x-amz-request-id": "1"}, Raw(sys.argv[2].encode()))

botocore.httpsession.URLLib3Session.send = send
answers = [handler(event, None) for event in json.loads(sys.argv[3])]
later = sorted(set(sys.modules) - begin - set(loaded))
print(json.dumps({"loaded": loaded, "later": later, "answers": answers, "calls": calls}))
"""

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "budget", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
}
TASK = Task(
    task_id="0" * 32,
    owner="anonymous",
    tool="render",
    engine="step_functions",
    created_at=0,
    updated_at=0,
    ttl_ms=None,
    keep_ms=None,
    poll_ms=1_000,
    run_started_at=0,
    run_deadline=1 << 42,
    status=Status.COMPLETED,
    result='{"content":[]}',
)


@dataclass(frozen=True)
class Started:
    """What a function loaded when it was started, and later for its answers."""

    loaded: frozenset[str]
    later: frozenset[str]
    answers: list[dict[str, Any]]
    calls: list[str]

    @property
    def ours(self) -> list[str]:
        """The kit's own modules; the catalogue is its user's."""
        return sorted(name for name in self.loaded if name.partition(".")[0] in ("taskrail", "handlers"))


def request(method: str, name: str | None = None, **params: Any) -> dict[str, Any]:
    """An API Gateway event, payload format 2.0."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    headers = {
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        **({} if name is None else {"mcp-name": name}),
    }
    http = {"method": "POST", "path": "/mcp", "sourceIp": "192.0.2.1"}
    return {
        "version": "2.0",
        "rawPath": "/mcp",
        "headers": headers,
        "requestContext": {"http": http},
        "body": json.dumps(body),
    }


@cache
def started(*events: str) -> Started:
    """Start the function and have it answer events (as JSON)."""
    paths = [str(ROOT / "functions")]
    environment = {
        "TASKRAIL_TABLE": "tasks",
        "TASKRAIL_BUCKET": "payloads",
        "TASKRAIL_SECRET_ARN": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:s",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
    }
    arguments = [json.dumps(paths), json.dumps({"Item": to_item(TASK)}), f"[{','.join(events)}]"]
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout.splitlines()[-1])
    return Started(frozenset(told["loaded"]), frozenset(told["later"]), told["answers"], told["calls"])


def test_the_number_of_modules() -> None:
    assert len(started().loaded) <= MOST_MODULES


def test_the_number_of_our_own_modules() -> None:
    assert len(started().ours) <= MOST_OF_OURS, "\n".join(started().ours)


def test_the_packages() -> None:
    tops = {name.partition(".")[0] for name in started().loaded}
    tops -= {name for name in tops if name.startswith("_sysconfigdata")}
    assert not tops - sys.stdlib_module_names - PACKAGES - {"taskrail", "handlers", "catalogue", "tools"}


@pytest.mark.parametrize("name", NEVER)
def test_it_does_not_load(name: str) -> None:
    """Every name of the list exists, or the list would forbid nothing."""
    assert importlib.util.find_spec(name) is not None
    assert not {module for module in started().loaded if f"{module}.".startswith(f"{name}.")}, NEVER[name]


def test_a_poll_loads_nothing_of_ours_and_calls_once() -> None:
    poll = started(json.dumps(request("tasks/get", TASK.task_id, taskId=TASK.task_id)))
    assert poll.answers[0]["statusCode"] == 200, poll.answers
    assert poll.calls == ["DynamoDB_20120810.GetItem"]
    assert not {name for name in poll.later if name.startswith(("taskrail", "pydantic", "boto3", "jsonschema"))}


def test_discovery_and_the_list_of_tools_need_no_answer_of_aws() -> None:
    """Whatever is wrong with the table, the secret or the engines: a client learns what is here."""
    told = started(json.dumps(request("server/discover")), json.dumps(request("tools/list")))
    assert [answer["statusCode"] for answer in told.answers] == [200, 200], told.answers
    assert told.calls == []
