"""A deployment with live workflows and containers, and what must hold for every report that comes in.

A report may change the task of its token and no other: the table and the bucket must be the same before and
after, but for that task, whatever else the report says.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel

from handlers.report import bind
from taskrail import Batch, ExistingJob, ExistingStateMachine, TaskServer, Toolset, minutes
from taskrail.errors import QuestionError
from taskrail.rail.remote import ReportRefused, TaskCancelled, TokenRefused
from taskrail.testing import BUCKET, TABLE, Kit, harness
from tests.fuzz.bench import FORBIDDEN, Errors

NAMED = (TokenRefused, ReportRefused, QuestionError, TaskCancelled)
"""What a state's report may fail with; a definition can catch it by name."""

_STATUSES = (200, 400, 401, 405)
_SCAN_EVERY = 100
_ON = Batch(timeout=minutes(1), queue_within=minutes(10))

tools = Toolset()


class Given(BaseModel):
    """Work that is none of the kit's."""

    text: str = "t"


tools.container("box", input=Given, existing=ExistingJob(queue="jobs", definition="box"), runs_on=_ON)
for _name, _envelope in (("flow", True), ("plain", False)):
    tools.workflow(
        _name,
        input=Given,
        existing=ExistingStateMachine(
            arn=f"arn:aws:states:eu-central-1:123456789012:stateMachine:{_name}", envelope=_envelope
        ),
    )

SERVER = TaskServer("reports", version="1", tools=[tools])


class ReportBench:
    """The deployment, its work, and the checks.

    Parameters
    ----------
    kit
        A new deployment of `SERVER`.
    errors
        What the kit logs.
    """

    def __init__(self, kit: Kit, errors: Errors) -> None:
        self.kit = kit
        self._errors = errors
        self._handle = bind(kit.runtime)
        self.tokens: dict[str, str] = {}
        """Report tokens that are good, each with the key of its task's item."""
        self._make_tasks()
        self._written: set[str] = set()
        self._put: set[str] = set()
        self._sent = 0
        self.taken = 0
        """How many reports were taken."""
        kit.dynamodb.meta.events.register("provide-client-params.dynamodb", self._note)
        kit.s3.meta.events.register("provide-client-params.s3", self._note_object)
        self._resumed = dict(kit.engine.resumed)
        self.items = self.scan()

    def _make_tasks(self) -> None:
        kit, form = self.kit, {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        made = [kit.call("flow") for _ in range(3)] + [kit.call("box", text="x" * 10) for _ in range(3)]
        made[1].report("ask", key="go", message="Go on?", taskToken="token-1")
        made[1].report("ask", key="who", message="Who?", schema=form, taskToken="token-2")
        made[1].answer(go={})
        made[4].report("ask", key="who", message="Who?", schema=form)
        made[4].answer(who={"name": "Ada"})
        made[4].report("ask", key="more", message="More?")
        for over in (made[2], made[5]):
            over.cancel()
        for called in made:
            order = called.order
            token = order.environment.get("TASKRAIL_REPORT_TOKEN", order.input.get("reportToken"))
            self.tokens[str(token)] = f"task#{called.task_id}"
        self.jobs = {f"task#{called.task_id}": f"job-{called.task_id}-1" for called in made[3:]}

    def _note(self, params: Any, model: Any, **more: Any) -> None:
        if model.name not in ("GetItem", "Scan"):
            self._written.add((params.get("Key") or params["Item"])["pk"]["S"])

    def _note_object(self, params: Any, model: Any, **more: Any) -> None:
        if model.name == "PutObject":
            self._put.add(params["Key"])

    def scan(self) -> dict[str, dict[str, Any]]:
        """The table, by key."""
        return {item["pk"]["S"]: item for item in self.kit.scan()}

    def good_reports(self) -> list[tuple[str, dict[str, Any]]]:
        """Reports of every kind, each with its token; most of them are taken."""
        form = {"type": "object", "properties": {"size": {"type": "integer"}}}
        bodies: list[dict[str, Any]] = [
            {"do": "progress", "done": 3, "total": 10, "message": "Three."},
            {"do": "progress", "done": 10, "total": 10},
            {"do": "ask", "key": "new", "message": "New?", "schema": form},
            {"do": "ask", "key": "go", "message": "Go on?", "taskToken": "token-3"},
            {"do": "ask", "key": "other", "message": "Other?", "taskToken": "token-4"},
            {"do": "answers", "keys": ["go", "who"]},
            {"do": "answers"},
            {"do": "arguments"},
            {"do": "result", "result": {"rows": [1, 2.5, None, "x"]}},
            {"do": "result", "upload": True},
        ]
        made = []
        for token, key in self.tokens.items():
            job = {"job": self.jobs[key], "attempt": "1"} if key in self.jobs else {}
            made += [(token, {**body, **job}) for body in bodies]
        return made

    def state(self, event: Any) -> None:
        """A state invokes the function with that payload."""
        try:
            answer = self._handle(event, None)
        except NAMED as error:
            _tells_nothing(str(error))
        else:
            assert isinstance(answer, dict) and isinstance(answer["cancel"], bool), answer
            _tells_nothing(json.dumps(answer, allow_nan=False))
            self.taken += 1
        self._unchanged_but_for(event.get("reportToken") if isinstance(event, dict) else None)

    def container(self, event: Any, *may_be: object) -> None:
        """A request comes in over HTTP; `may_be` are the tokens that it may have."""
        answer = self._handle(event, None)
        assert set(answer) == {"statusCode", "headers", "body", "isBase64Encoded"}
        assert answer["statusCode"] in _STATUSES, answer
        assert isinstance(json.loads(answer["body"], parse_constant=_no_json), dict)
        _tells_nothing(answer["body"])
        self.taken += answer["statusCode"] == 200
        self._unchanged_but_for(*may_be)

    def _unchanged_but_for(self, *tokens: object) -> None:
        """Nothing but the tasks of these tokens is changed; then they are as they were."""
        errors, self._errors.records = self._errors.records, []
        assert not errors, errors[0].getMessage()
        rightful = {self.tokens[token] for token in tokens if isinstance(token, str) and token in self.tokens}
        for key in self._written:
            item = self.kit.dynamodb.get_item(TableName=TABLE, Key={"pk": {"S": key}}, ConsistentRead=True).get("Item")
            if item != self.items.get(key):
                assert key in rightful, "a task was changed without its token"
                assert item is not None, "a task is gone"
                open_before = self.items[key]["status"]["S"] in ("working", "input_required")
                assert open_before, "a task that was over was changed"
                assert item["status"]["S"] in ("working", "input_required"), "a report ended a task"
                self.kit.dynamodb.put_item(TableName=TABLE, Item=self.items[key])
        for stored in self._put:
            assert stored.startswith(tuple(f"tasks/{key.removeprefix('task#')}/" for key in rightful)), stored
        for token, output in self.kit.engine.resumed.items():
            assert self._resumed.get(token) == output or (rightful and json.loads(output)["action"] == "accept")
        self.kit.engine.resumed = dict(self._resumed)
        self._written.clear()
        self._put.clear()
        self._sent += 1
        if self._sent % _SCAN_EVERY == 0:
            self.close()

    def close(self) -> None:
        """The whole table is what it was at the beginning."""
        assert self.scan() == self.items


@contextmanager
def report_bench() -> Iterator[ReportBench]:
    """A deployment with live work, alive within the block; at its end the table must be what it was."""
    import logging

    errors = Errors()
    logger = logging.getLogger("taskrail")
    logger.addHandler(errors)
    try:
        with harness(SERVER) as kit:
            made = ReportBench(kit, errors)
            yield made
            made.close()
    finally:
        logger.removeHandler(errors)


def posted(body: bytes, headers: Mapping[str, Any]) -> dict[str, Any]:
    """``POST /report``, as an HTTP API hands it over."""
    return {
        "version": "2.0",
        "rawPath": "/report",
        "headers": dict(headers),
        "requestContext": {"http": {"method": "POST", "path": "/report"}, "stage": "$default"},
        "body": base64.b64encode(body).decode("ascii"),
        "isBase64Encoded": True,
    }


def _tells_nothing(text: str) -> None:
    """Nothing of the inside is told. Presigned URLs name their bucket, and the kit's own texts their errors."""
    text.encode("utf-8")
    found = FORBIDDEN.search(text.replace(BUCKET, "").replace("amazonaws", ""))
    assert found is None, text[max(0, found.start() - 100) : found.end() + 100]


def _no_json(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")
