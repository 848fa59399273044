"""A rail in a dictionary, a clock that stands still, a catalogue, and requests as API Gateway sends them."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, cast

from pydantic import BaseModel

from taskrail.call import Call, ClientInfo
from taskrail.clock import seconds
from taskrail.compute import StepFunctions
from taskrail.content import Image
from taskrail.context import TaskContext
from taskrail.errors import (
    TASKS_EXTENSION,
    InvalidParams,
    NotStarted,
    ProtocolError,
    StoreUnavailable,
    TaskNotFound,
    ToolError,
)
from taskrail.questions import Question, check_response
from taskrail.schema_headers import Header
from taskrail.server import TaskServer, Tool, Toolset
from taskrail.settings import Settings
from taskrail.task import Status, Task
from taskrail.telemetry import Telemetry
from taskrail.wire.app import App

NOW = 1_780_000_000_000
VERSION = "2026-07-28"
TASKS: dict[str, Any] = {"extensions": {TASKS_EXTENSION: {}}}
FORMS: dict[str, Any] = {"elicitation": {}}


class Clock:
    """Stands still; sleeping moves it and lets `meanwhile` happen."""

    def __init__(self) -> None:
        self.moment = NOW
        self.slept: list[int] = []
        self.meanwhile: Callable[[], None] = lambda: None

    def now(self) -> int:
        return self.moment

    def sleep(self, milliseconds: int) -> None:
        self.slept.append(milliseconds)
        self.moment += milliseconds
        self.meanwhile()


@dataclass
class StubRail:
    """The rail's interface over a dictionary."""

    clock: Clock
    tasks: dict[str, Task] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)
    created: list[dict[str, Any]] = field(default_factory=list)
    created_for: list[ClientInfo] = field(default_factory=list)
    refuse: bool = False
    broken: int = 0
    ids: int = 0
    looks: list[tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)
    repair_ms: int = 0

    def new_task_id(self) -> str:
        self.ids += 1
        return f"{self.ids:032x}"

    def create(
        self,
        owner: str,
        tool: Tool,
        arguments: Mapping[str, Any],
        client: ClientInfo,
        *,
        caller: Mapping[str, Any] | None = None,
        task_id: str | None = None,
        sealed_until: int | None = None,
        traceparent: str | None = None,
        idempotency_key: str | None = None,
    ) -> Task:
        if self.refuse:
            raise NotStarted
        task_id = task_id or self.new_task_id()
        if task_id in self.tasks:
            return self.tasks[task_id]
        self.created_for.append(client)
        self.created.append(
            {"tool": tool.name, "arguments": dict(arguments), "until": sealed_until, "traceparent": traceparent}
        )
        now = self.clock.now()
        self.tasks[task_id] = Task(
            task_id, owner, tool.name, "stub", now, now, 60_000, 60_000, 1_000, now, now + 60_000
        )
        return self.tasks[task_id]

    def read(self, owner: str, task_id: object) -> Task:
        if self.broken:
            self.broken -= 1
            raise StoreUnavailable("the table is away")
        task = self.tasks.get(cast("str", task_id))
        if task is None or task.owner != owner:
            raise TaskNotFound
        return task

    def read_many(self, owner: str, task_ids: Iterable[str], *, repair: Container[str] = ()) -> dict[str, Task]:
        repaired = []
        for task_id in task_ids:
            if task_id in repair:
                repaired.append(task_id)
                self.clock.moment += self.repair_ms
        self.looks.append((tuple(task_ids), tuple(repaired)))
        if self.broken:
            self.broken -= 1
            raise StoreUnavailable("the table is away")
        visible = {key for key, task in self.tasks.items() if task.owner == owner}
        return {key: self.tasks[key] for key in task_ids if key in visible}

    def owned(
        self, owner: str, most: int, after: tuple[int, str] | None = None
    ) -> tuple[list[Task], tuple[int, str] | None]:
        tasks = sorted((task.created_at, task.task_id) for task in self.tasks.values() if task.owner == owner)
        rows = [row for row in reversed(tasks) if after is None or row < after]
        page = [self.tasks[task_id] for _, task_id in rows[:most]]
        return page, rows[most - 1] if len(rows) > most else None

    def detail(self, task: Task) -> dict[str, Any]:
        view = task.view(self.clock.now())
        if task.status is Status.INPUT_REQUIRED:
            view["inputRequests"] = {key: question.request() for key, question in task.outstanding.items()}
        elif task.status is Status.COMPLETED:
            view["result"] = self.results[task.task_id]
        elif task.status is Status.FAILED:
            view["error"] = self.results[task.task_id]
        return view

    def update(self, owner: str, task_id: object, responses: Mapping[str, Any]) -> None:
        task = self.read(owner, task_id)
        for key, question in task.outstanding.items():
            problem = check_response(question, responses[key]) if key in responses else None
            if problem is not None:
                raise InvalidParams(f"inputResponses[{key!r}]: {problem}")
        answers = {key: json.dumps(responses[key]) for key in task.outstanding if key in responses}
        self.tasks[task.task_id] = task.answered(answers, self.clock.now(), budget_ms=1_000)

    def cancel(self, owner: str, task_id: object) -> None:
        task = self.read(owner, task_id)
        self.tasks[task.task_id] = task.cancelling(self.clock.now())

    # What a worker would do.

    def only(self) -> Task:
        (task,) = self.tasks.values()
        return task

    def end(self, status: Status, outcome: Any = None) -> None:
        task = self.only()
        self.results[task.task_id] = outcome
        self.tasks[task.task_id] = task.ended(status, self.clock.now(), message="Done.")

    def ask(self, *questions: Question) -> None:
        task = self.only()
        asked = {question.key: question for question in questions}
        self.tasks[task.task_id] = task.asked(asked, self.clock.now(), answer_within_ms=9, budget_ms=9, hold=False)


class Name(BaseModel):
    """A form with one field."""

    name: str


class Confirm(BaseModel):
    """A form with one tick."""

    go_on: bool


class Summary(BaseModel):
    """A structured result."""

    pages: int


tools = Toolset()
HOOKS: list[str] = []


@tools.tool()
def greet(name: str) -> str:
    """Greet."""
    return f"Hello, {name}!"


@tools.tool()
async def greet_later(name: str) -> str:
    """Greet, in time."""
    return f"Hello, {name}!"


@tools.tool()
def picture() -> Image:
    """Show."""
    return Image(b"\x89PNG", "image/png")


@tools.tool()
def measure(
    region: Annotated[str, Header("Region")] = "", count: Annotated[int, Header("Count")] = 0
) -> dict[str, Any]:
    """Measure."""
    return {"region": region, "count": count}


@tools.tool()
def switch(on: Annotated[bool, Header("On")]) -> bool:
    """Switch."""
    return on


@tools.tool()
def refuse_politely() -> str:
    """Say no."""
    raise ToolError("Not today.", structured={"try": "tomorrow"})


@tools.tool()
def refuse_formally(code: int) -> str:
    """Say no in JSON-RPC."""
    raise ProtocolError(code, "No.", {"why": "because"})


@tools.tool()
def explode(secret: str) -> str:
    """Fail by mistake."""
    raise KeyError(secret)


@tools.tool()
def leave() -> str:
    """Exit the process."""
    raise SystemExit(3)


@tools.tool()
def unbounded() -> Any:
    """Return what JSON cannot carry."""
    return {"number": float("inf")}


@tools.tool()
def long_text(length: int) -> str:
    """Return much, all of it in need of escaping."""
    return '"' * length


@tools.tool()
def ask_name(call: Call) -> str:
    """Ask once."""
    answer = call.ask("user_name", "What is your name?", Name)
    return f"Hello, {answer.content.name if answer.accepted else 'stranger'}!"


@tools.tool()
async def ask_twice(call: Call) -> str:
    """Ask for one thing, then for another."""
    first = call.ask("step1", "First?", Name)
    second = call.ask("step2", "Second?", Name)
    return f"{first.raw['content']['name']} {second.raw['content']['name']}"


@tools.tool()
def sample(call: Call) -> str:
    """Ask the client's model."""
    return str(call.sample("thought", "What?", 10).raw["content"]["text"])


@tools.task(runs_on=StepFunctions(), poll_interval=seconds(1))
def slow(task: TaskContext, label: str = "") -> str:
    """Take long."""
    return label


@tools.task(runs_on=StepFunctions())
def summarise(task: TaskContext) -> Summary:
    """Take long and return structure."""
    return Summary(pages=1)


@tools.task(runs_on=StepFunctions(), mode="required")
def only_as_task(task: TaskContext) -> str:
    """Never inline."""
    return ""


@tools.task(runs_on=StepFunctions())
def guarded(task: TaskContext, pages: int, owner: str = "") -> str:
    """Ask before it starts."""
    return ""


@guarded.before
def confirm(call: Call, pages: int, owner: str) -> dict[str, Any] | None:
    HOOKS.append("ran")
    if pages < 0:
        raise ToolError("Not started.")
    if pages > 300 and not call.ask("large", "That is a lot. Go on?", Confirm).accepted:
        raise ToolError("Not started.")
    if owner == "whoever asks":
        return {"owner": call.owner}
    return {"nonsense": 1} if owner == "break" else None


SERVER = TaskServer("stub", version="1.2.3", title="Stub", instructions="Use it.", tools=[tools])
SETTINGS = Settings(table="t", bucket="b", secret="0123456789abcdef")


@dataclass
class Runtime:
    """As `taskrail.runtime.Runtime`."""

    server: TaskServer
    rail: StubRail
    settings: Settings
    clock: Clock
    telemetry: Telemetry = field(default_factory=Telemetry)

    def secret(self) -> str:
        """As the settings have it."""
        return self.settings.secret


class Kit:
    """An app over the stub."""

    def __init__(self, server: TaskServer = SERVER, **settings: Any) -> None:
        self.remaining_ms: Callable[[], int] | None = None
        self.clock = Clock()
        self.rail = StubRail(self.clock)
        runtime = Runtime(server, self.rail, replace(SETTINGS, **settings), self.clock)
        self.app = App(cast("Any", runtime))

    def post(self, body: Any, headers: Mapping[str, str] | None = None, **more: Any) -> Answer:
        """Send a body, JSON or raw."""
        text = body if isinstance(body, str) else json.dumps(body)
        return Answer(self.app.handle(event(text, headers or {}, **more), self.remaining_ms))

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        capabilities: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
        request_id: str | int = 7,
        meta: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Send one well-formed request; headers that are None are left out."""
        params = {**(params or {}), "_meta": {**_meta(capabilities or {}), **(meta or {})}}
        all_headers: dict[str, str | None] = {"mcp-protocol-version": VERSION, "mcp-method": method}
        if method == "tools/call" and isinstance(params.get("name"), str):
            all_headers["mcp-name"] = params["name"]
        all_headers.update(headers or {})
        sent = {name: value for name, value in all_headers.items() if value is not None}
        return self.post({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}, sent)

    def call(
        self,
        tool: str,
        arguments: Any = None,
        *,
        capabilities: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
        more: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Call a tool."""
        params = {"name": tool, "arguments": {} if arguments is None else arguments, **(more or {})}
        return self.request("tools/call", params, capabilities=capabilities, headers=headers, meta=meta)


class Answer:
    """An answer, looked at from outside; every one must be a well-formed one."""

    def __init__(self, response: dict[str, Any]) -> None:
        assert set(response) == {"statusCode", "headers", "body", "isBase64Encoded"}
        assert all(isinstance(value, str) for value in response["headers"].values())
        self.status: int = response["statusCode"]
        self.headers: dict[str, str] = response["headers"]
        self.text: str = response["body"]
        self.text.encode("utf-8")
        json.dumps(response, allow_nan=False)

    @property
    def body(self) -> dict[str, Any]:
        assert self.headers["Content-Type"] == "application/json"
        value = json.loads(self.text)
        assert value["jsonrpc"] == "2.0"
        return cast("dict[str, Any]", value)

    @property
    def result(self) -> dict[str, Any]:
        assert self.status == 200, self.text
        result: dict[str, Any] = self.body["result"]
        assert result["resultType"] in ("complete", "input_required", "task")
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"] == {
            "name": "stub",
            "version": "1.2.3",
            "title": "Stub",
        }
        return result

    @property
    def error(self) -> dict[str, Any]:
        return cast("dict[str, Any]", self.body["error"])

    @property
    def code(self) -> int:
        return cast("int", self.error["code"])

    @property
    def said(self) -> str:
        """The first text of a call's result."""
        return cast("str", self.result["content"][0]["text"])


def event(body: str, headers: Mapping[str, str], *, method: str = "POST", path: str = "/mcp") -> dict[str, Any]:
    """An HTTP API event, payload format 2.0."""
    return {
        "version": "2.0",
        "routeKey": f"{method} {path}",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"host": "api.example.com", "content-type": "application/json", **headers},
        "requestContext": {"http": {"method": method, "path": path}, "stage": "$default"},
        "body": body,
        "isBase64Encoded": False,
    }


def rest_event(body: str, headers: Mapping[str, str]) -> dict[str, Any]:
    """A REST API event, payload format 1.0, behind a stage."""
    return {
        "resource": "/mcp",
        "path": "/mcp",
        "httpMethod": "POST",
        "headers": dict(headers),
        "multiValueHeaders": {name: [value] for name, value in headers.items()},
        "requestContext": {
            "stage": "prod",
            "path": "/prod/mcp",
            "identity": {"sourceIp": "192.0.2.1", "accountId": None, "apiKey": None, "userArn": None},
        },
        "body": body,
        "isBase64Encoded": False,
    }


def _meta(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": dict(capabilities),
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    }
