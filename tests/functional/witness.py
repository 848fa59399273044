"""Sees everything that a deployment stores, tells its engine, logs and answers, from the first moment to the last."""

from __future__ import annotations

import base64
import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from handlers.report import bind
from taskrail.engines import RunOrder
from taskrail.testing import BUCKET, START, TABLE, VERSION, Kit, QueueEngine

OPEN = ("working", "input_required")


class Witness(logging.Handler):
    """Keeps texts by the place where they were seen.

    Places: ``item`` (of a task that is open), ``ended item``, ``reservation`` (of a call that is made once),
    ``bucket``, ``engine`` (what it is told about a run), ``state`` (what a state that waits is handed), ``log``,
    ``answer`` (to the client), ``reply`` (to a report); and ``bucket at the end``, which `look_back` fills.

    Parameters
    ----------
    kit
        The deployment.
    """

    def __init__(self, kit: Kit) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s"))
        self.kit = kit
        self.seen: dict[str, list[str]] = {}
        self._looking = False
        self._known: set[str] = set()
        self._count = 0

    def saw(self, place: str, text: str) -> None:
        """Keep a text."""
        self.seen.setdefault(place, []).append(text)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep all of a log record: what it says, with its trace, and whatever it carries along."""
        self.saw("log", self.format(record))
        self.saw("log", repr({name: value for name, value in vars(record).items() if name != "exc_info"}))

    def look(self, **_: Any) -> None:
        """Look at the table and at what is new in the bucket."""
        if self._looking:
            return
        self._looking = True
        try:
            for item in self.kit.scan():
                self.saw(_place(item), json.dumps(item, ensure_ascii=False))
            for key, body in self._objects():
                if key not in self._known:
                    self._known.add(key)
                    self.saw("bucket", f"{key} {body}")
        finally:
            self._looking = False

    def look_back(self) -> None:
        """What is left in the bucket."""
        for key, body in self._objects():
            self.saw("bucket at the end", f"{key} {body}")

    def _objects(self) -> Iterator[tuple[str, str]]:
        for found in self.kit.s3.list_objects_v2(Bucket=BUCKET).get("Contents", []):
            body = self.kit.s3.get_object(Bucket=BUCKET, Key=found["Key"])["Body"].read()
            yield found["Key"], body.decode("utf-8", "replace")

    def post(self, body: str, headers: Mapping[str, str]) -> dict[str, Any]:
        """Send a raw body; its answer is kept, and what a request state in it says."""
        answer = self.kit.post(body, headers)
        self.look()
        text = json.dumps(answer, ensure_ascii=False)
        self.saw("answer", text)
        for part in re.findall(r"[A-Za-z0-9_-]{40,}", text):
            self.saw("answer", base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode("utf-8", "replace"))
        return answer

    def send(
        self, method: str, params: Mapping[str, Any], meta: Mapping[str, Any], headers: Mapping[str, str]
    ) -> dict[str, Any]:
        """Send a request whose metadata and headers hold more than is needed; the JSON-RPC answer."""
        self._count += 1
        message = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": {**params, "_meta": meta}}
        mirrored = {"mcp-protocol-version": VERSION, "mcp-method": method}
        if name := params.get("name", params.get("taskId")):
            mirrored["mcp-name"] = name
        answer: dict[str, Any] = json.loads(self.post(json.dumps(message), {**headers, **mirrored})["body"])
        return answer

    def report(self, token: object, report: Mapping[str, Any]) -> dict[str, Any]:
        """A container's report, over HTTP; the reply."""
        event = {
            "version": "2.0",
            "rawPath": "/report",
            "headers": {"authorization": f"Bearer {token}"},
            "requestContext": {"http": {"method": "POST", "path": "/report"}},
            "body": json.dumps(report),
        }
        answer = bind(self.kit.runtime)(event, None)
        self.look()
        self.saw("reply", json.dumps(answer, ensure_ascii=False))
        reply: dict[str, Any] = json.loads(answer["body"])
        return reply

    def run(self) -> None:
        """Let the runs happen."""
        self.kit.run()
        self.look()

    def places(self, text: str) -> set[str]:
        """Where a text was seen."""
        return {place for place, texts in self.seen.items() if any(text in seen for seen in texts)}


@contextmanager
def witness(kit: Kit) -> Iterator[Witness]:
    """A witness of a deployment, within the block.

    All loggers tell everything, but those of the AWS SDK, whose DEBUG is bodies by design, only from INFO.
    """
    made = Witness(kit)
    engines = (kit.engine, kit.jobs)
    for engine in engines:
        _overhear(engine, made)
    events = kit.dynamodb.meta.events
    writes = [f"after-call.dynamodb.{operation}" for operation in ("PutItem", "UpdateItem", "DeleteItem")]
    for write in writes:
        events.register(write, made.look)
    root, levels = logging.getLogger(), {}
    for name in ("", "botocore", "boto3", "s3transfer", "urllib3", "moto", "responses"):
        logger = logging.getLogger(name)
        levels[logger] = logger.level
        logger.setLevel(logging.INFO if name else logging.DEBUG)
    root.addHandler(made)
    try:
        yield made
        made.look()
        made.look_back()
    finally:
        for engine in engines:
            del vars(engine)["start"], vars(engine)["resume"]
        for write in writes:
            events.unregister(write, made.look)
        root.removeHandler(made)
        for logger, level in levels.items():
            logger.setLevel(level)


def _overhear(engine: QueueEngine, made: Witness) -> None:
    start, resume = engine.start, engine.resume

    def started(order: RunOrder) -> str:
        made.saw("engine", json.dumps([order.tool, order.name, order.input, order.environment, order.parameters]))
        return start(order)

    def resumed(token: str, output: str) -> None:
        made.saw("state", json.dumps([token, output]))
        resume(token, output)

    engine.start, engine.resume = started, resumed  # type: ignore[method-assign]


def _place(item: Mapping[str, Any]) -> str:
    if "status" not in item:
        return "reservation"
    return "item" if item["status"]["S"] in OPEN else "ended item"


def emptied(kit: Kit) -> None:
    """Make a deployment as if it were new: no task, no object, no run, the first moment, the first caller."""
    for item in kit.scan():
        kit.dynamodb.delete_item(TableName=TABLE, Key={"pk": item["pk"]})
    for found in kit.s3.list_objects_v2(Bucket=BUCKET).get("Contents", []):
        kit.s3.delete_object(Bucket=BUCKET, Key=found["Key"])
    kit.engine.refuse = False
    for engine in (kit.engine, kit.jobs):
        for kept in (engine.waiting, engine.starts):
            kept.clear()
        for known in (engine.states, engine.orders, engine.ids, engine.resumed, engine.logs):
            known.clear()
    kit.clock.advance(START - kit.clock.now())
    kit.owner = "anonymous"
