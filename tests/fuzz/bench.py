"""A deployment with live tasks, and what must hold for every input that it gets.

Whether an input may change a task is judged here a second time, by a plain reading of the wire's rules: the table
must be the same before and after, unless the input was a valid change, and then only that task may differ.
"""

from __future__ import annotations

import base64
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any, NoReturn

from handlers.mcp_api import bind
from taskrail import Header, ProtocolError, TaskContext, TaskServer, Toolset
from taskrail.errors import TASKS_EXTENSION
from taskrail.settings import Settings
from taskrail.testing import BUCKET, TABLE, Kit, harness
from taskrail.wire import protocol
from tests.functional import sample_tools
from tests.fuzz.strategies import VERSION, Vocabulary

FORBIDDEN = re.compile(
    r"Traceback|File \\?\"|\btaskrail\.|(?<!io\.)taskrail/|botocore|boto3|pydantic|jsonschema|[Dd]ynamo|amazonaws"
    r"|site-packages|object at 0x|[A-Z][a-z]+(?:Error|Exception)\b|s3:tasks|" + BUCKET
)
"""Stack traces and names of what is inside. Inputs hold none of them, so an answer that does got it from us."""

_SCAN_EVERY = 100
"""Inputs between two looks at the whole table; after each, what it has written is looked at."""

LARGEST = 6_000_000
"""Bytes of an answer that Lambda takes, the body escaped inside JSON."""

_CODES = {-32700, -32600, -32601, -32602, -32020, -32021, -32022}

more = Toolset()


@more.tool()
def measure(
    region: Annotated[str, Header("Region")] = "", count: Annotated[int, Header("Count")] = 0
) -> dict[str, Any]:
    """Measure."""
    return {"region": region, "count": count}


@more.tool(schema={"type": "object", "properties": {"shape": {"type": "array", "items": {"enum": [1, "two", None]}}}})
def by_hand(shape: list[Any] | None = None) -> int:
    """Count, described by a schema that a person wrote."""
    return len(shape or [])


@more.task(runs_on=sample_tools.WORK)
def fail_formally(task: TaskContext) -> str:
    """End with a JSON-RPC error."""
    raise ProtocolError(4711, "Closed.")


SERVER = TaskServer("fuzz", version="1", title="Fuzz", instructions="Use it.", tools=[sample_tools.tools, more])


class Errors(logging.Handler):
    """Keeps what the kit logs as its own failure."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.records.append(record)


class Bench:
    """The deployment, its tasks, and the checks.

    Parameters
    ----------
    kit
        A new deployment of `SERVER`.
    errors
        What the kit logs.
    """

    def __init__(self, kit: Kit, errors: Errors) -> None:
        self.kit = kit
        self.errors = errors
        handler = bind(kit.runtime)
        self.handle: Callable[[Any], dict[str, Any]] = lambda event: handler(event, None)
        self.states: list[str] = []
        self._make_tasks()
        # From here on nothing happens but what an input does: no run, and no time but what waiting takes.
        kit.clock.on_sleep = lambda: None
        self._written: set[str] = set()
        self._sent = 0
        kit.dynamodb.meta.events.register("provide-client-params.dynamodb", self._note)
        self._now = kit.clock.now()
        self._queue = (list(kit.engine.waiting), dict(kit.engine.states), list(kit.engine.starts))
        self.items = self.scan()
        self.open = {
            key: task for key, task in self._tasks().items() if task["status"] in ("working", "input_required")
        }

    def _make_tasks(self) -> None:
        kit = self.kit
        made = [kit.call("count", items=["a"]) for _ in range(2)]
        kit.runtime.rail.reports.claim(made[1].task_id, 1, "x", 1)
        kit.engine.waiting.clear()
        asking = [kit.call("publish", title="Q3").run(), kit.call("two_questions").run()]
        ended = [kit.call("count", items=["a"]).run(), kit.call("fail_formally").run(), kit.call("text_back", text="")]
        ended[2].cancel()
        large = kit.call("text_back", text="x" * 5_000, times=8).run()
        self.task_ids = [task.task_id for task in (*made, *asking, *ended, large)]
        sealed = [kit.call("big_order", pages=400), kit.call("ask_inline")]
        sealed.append(kit.call("publish", tasks=False, title="Q4"))
        self.states = [state for call in sealed if (state := call.state) is not None]

    def _tasks(self) -> dict[str, dict[str, Any]]:
        tasks = {}
        for key, item in self.items.items():
            asked = json.loads(item["questions"]["S"]) if "questions" in item else {}
            tasks[key] = {"status": item["status"]["S"], "asked": set(asked)}
        return tasks

    def _note(self, params: Any, model: Any, **more: Any) -> None:
        if model.name not in ("GetItem", "Scan"):
            self._written.add((params.get("Key") or params["Item"])["pk"]["S"])

    def words(self) -> Vocabulary:
        """What makes a message nearly right here."""
        return Vocabulary(
            tools=SERVER.tools,
            arguments=["items", "text", "times", "title", "pages", "name", "how", "region", "count", "shape", "size"],
            keys=["approval", "first", "last", "large", "who"],
            task_ids=[*self.task_ids, "f" * 32],
            answers=[
                {"action": "decline"},
                {"action": "accept", "content": {"name": "Ada"}},
                {"action": "accept", "content": {"publish": True}},
            ],
            states=self.states,
            good_arguments=[{}, {"title": "Q4"}, {"pages": 400}, {"items": ["a"]}, {"text": "t"}, {"how": "exit"}],
        )

    def scan(self) -> dict[str, dict[str, Any]]:
        """The table, by key."""
        return {item["pk"]["S"]: item for item in self.kit.scan()}

    def send(self, event: Any, message: Any = None, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Send one input and check all that must hold.

        Parameters
        ----------
        event
            For the handler.
        message, headers
            What the event carries, for the judgement of what may change; None when nothing may.
        """
        self._written.clear()
        answer = self.handle(event)
        errors, self.errors.records = self.errors.records, []
        assert not errors, errors[0].getMessage() + "\n" + str(errors[0].exc_info)
        bodies = well_formed(answer, modern=_is_modern(message, headers or {}))
        if self._written:
            self.unchanged_but_for(message, headers or {}, bodies)
        self._sent += 1
        if self._sent % _SCAN_EVERY == 0:
            assert self.scan() == self.items, "a task was changed that nobody is known to have written"
        self.kit.clock.advance(self._now - self.kit.clock.now())
        return answer

    def unchanged_but_for(self, message: Any, headers: Mapping[str, str], answers: list[dict[str, Any]]) -> None:
        """The table is as it was, but for what this input may change; then it is made so."""
        # Nobody batches by chance; what a batch of an earlier revision may do, each of its messages may.
        answer = answers[0] if len(answers) == 1 else None
        after = {key: item for key in self._written if (item := self._item(key)) is not None}
        changed = {key for key in self._written & self.items.keys() if after.get(key) != self.items[key]}
        new = after.keys() - self.items.keys()
        if changed or new:
            key, creates = self.rightful(message, {name.lower(): value for name, value in headers.items()})
            refused = answer is not None and ("error" in answer or answer.get("result", {}).get("isError") is True)
            assert len(new) <= int(creates), "a task was made by what is no valid call"
            assert changed <= {key}, "a task was changed by what is no valid change of it"
            assert not refused or not changed, "an answer that refuses changed a task"
            assert changed <= after.keys(), "a task is gone"
        self._restore(changed, new)

    def rightful(self, message: Any, headers: Mapping[str, str]) -> tuple[str | None, bool]:
        """The key of the task that a message may change, and whether it may make one (wire.md, sections 1 to 3)."""
        nothing = (None, False)
        params = message.get("params") if isinstance(message, dict) else None
        meta = params.get("_meta") if isinstance(params, dict) else None
        if message is None or not isinstance(params, dict) or message.get("jsonrpc") != "2.0":
            return nothing
        if type(message.get("id")) not in (str, int):
            return nothing
        ticket = self._by_ticket(params) if message.get("method") == "tools/call" else None
        if not _is_modern(message, headers):
            if message.get("method") != "tools/call":
                return nothing
            tool = SERVER.tools.get(params["name"]) if isinstance(params.get("name"), str) else None
            return ticket, tool is not None and tool.kind == "task" and tool.mode != "required"
        if not isinstance(meta, dict):
            return nothing
        method, capabilities = message.get("method"), meta.get(protocol.CAPABILITIES_KEY)
        if meta.get(protocol.VERSION_KEY) != VERSION or not isinstance(capabilities, dict):
            return nothing
        if headers.get("mcp-protocol-version", "").strip(" \t") != VERSION:
            return nothing
        if headers.get("mcp-method", "").strip(" \t") != method:
            return nothing
        extensions = capabilities.get("extensions")
        declared = isinstance(extensions, dict) and isinstance(extensions.get(TASKS_EXTENSION), dict)
        if method == "tools/call":
            tool = SERVER.tools.get(params["name"]) if isinstance(params.get("name"), str) else None
            if not declared and ticket is not None and _named(headers) == params["name"]:
                return ticket, False
            named = tool is not None and _named(headers) == tool.name
            return None, named and tool.kind == "task" and (declared or tool.mode != "required")
        if not declared or not isinstance(params.get("taskId"), str):
            return nothing
        key, said = f"task#{params['taskId']}", _named(headers)
        if key not in self.open or said not in (None, params["taskId"]):
            return nothing
        if method == "tasks/cancel":
            return key, False
        responses = params.get("inputResponses")
        answers = isinstance(responses, dict) and self.open[key]["asked"] & responses.keys()
        if method != "tasks/update" or not answers:
            return nothing
        return (key, False) if all(_answers(question, responses[question]) for question in answers) else nothing

    def _by_ticket(self, params: Mapping[str, Any]) -> str | None:
        """The key of the task that a call of one of the ticket tools may change."""
        arguments = params.get("arguments")
        if not isinstance(arguments, dict) or not isinstance(arguments.get("task_id"), str):
            return None
        key = f"task#{arguments['task_id']}"
        if params.get("name") == "task_cancel" and key in self.open:
            return key
        asked = self.open[key]["asked"] if key in self.open else ()
        return key if params.get("name") == "task_answer" and arguments.get("key") in asked else None

    def _item(self, key: str) -> dict[str, Any] | None:
        found = self.kit.dynamodb.get_item(TableName=TABLE, Key={"pk": {"S": key}}, ConsistentRead=True)
        item: dict[str, Any] | None = found.get("Item")
        return item

    def _restore(self, changed: set[str], new: set[str]) -> None:
        for key in new:
            self.kit.dynamodb.delete_item(TableName=TABLE, Key={"pk": {"S": key}})
        for key in changed:
            self.kit.dynamodb.put_item(TableName=TABLE, Item=self.items[key])
        waiting, states, starts = self._queue
        self.kit.engine.waiting, self.kit.engine.states = list(waiting), dict(states)
        self.kit.engine.starts = list(starts)

    def close(self) -> None:
        """At the end: the whole table is what it was at the beginning."""
        assert self.scan() == self.items


@contextmanager
def bench() -> Iterator[Bench]:
    """A deployment with live tasks, alive within the block; at its end the table must be what it was."""
    errors = Errors()
    logger = logging.getLogger("taskrail")
    logger.addHandler(errors)
    settings = Settings(table=TABLE, bucket=BUCKET, secret="a secret for tests only")
    try:
        with harness(SERVER, settings=replace(settings, wait_budget_ms=300)) as kit:
            made = Bench(kit, errors)
            yield made
            made.close()
    finally:
        logger.removeHandler(errors)


def _is_modern(message: Any, headers: Mapping[str, str]) -> bool:
    """Whether a message is of this revision, and not of an earlier one (wire.md, section 5)."""
    params = message.get("params") if isinstance(message, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and not protocol.MODERN_KEYS.isdisjoint(meta)


def well_formed(answer: Mapping[str, Any], *, modern: bool = False) -> list[dict[str, Any]]:
    """Check an answer of the handler; its JSON-RPC messages, none when it has no body."""
    assert set(answer) == {"statusCode", "headers", "body", "isBase64Encoded"}
    status, text = answer["statusCode"], answer["body"]
    assert len(json.dumps(answer)) <= LARGEST, "Lambda would turn it into an error"
    if status in (202, 204):
        assert text == ""
        return []
    if answer["headers"]["Content-Type"] == "text/event-stream":
        *events, end = text.split("\n\n")
        assert end == ""
        return [message_in(event.removeprefix("data: ")) for event in events][-1:]
    assert answer["headers"]["Content-Type"] == "application/json"
    if text.startswith("["):
        return [_checked(message_in(json.dumps(one)), status, modern) for one in json.loads(text)]
    return [_checked(message_in(text), status, modern)]


def _checked(message: dict[str, Any], status: int, modern: bool) -> dict[str, Any]:
    if "error" in message:
        error = message["error"]
        assert 400 <= status < 500 or (status == 200 and not modern), message
        assert error["code"] in _CODES
        assert error["message"]
    else:
        assert status == 200
        assert not modern or message["result"]["resultType"] in ("complete", "input_required", "task")
    return message


def message_in(text: str) -> dict[str, Any]:
    """The JSON-RPC message of a text that is strictly JSON and tells nothing of the inside."""
    text.encode("utf-8")
    found = FORBIDDEN.search(text)
    assert found is None, text[max(0, found.start() - 100) : found.end() + 100]
    message: dict[str, Any] = json.loads(text, parse_constant=_no_json)
    assert message["jsonrpc"] == "2.0"
    assert ("result" in message) + ("error" in message) + ("method" in message) == 1
    return message


def _answers(question: str, response: Any) -> bool:
    """Whether a response answers one of the questions that are open here."""
    if not isinstance(response, dict) or response.get("action") not in ("accept", "decline", "cancel"):
        return False
    if response["action"] != "accept":
        return True
    content = response.get("content")
    field, kind = ("publish", bool) if question == "approval" else ("name", str)
    return isinstance(content, dict) and isinstance(content.get(field), kind)


def _no_json(name: str) -> NoReturn:
    raise AssertionError(f"{name} is no JSON")


def _named(headers: Mapping[str, str]) -> str | None:
    """What Mcp-Name says, decoded."""
    value = headers.get("mcp-name")
    if value is None:
        return None
    value = value.strip(" \t")
    encoded = re.fullmatch(r"=\?base64\?(.*)\?=", value)
    return value if encoded is None else base64.b64decode(encoded[1]).decode("utf-8", "replace")
