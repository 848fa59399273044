"""A person answers by a link: told of by an event, opened without effect, answered once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from handlers import approval, task_events
from taskrail.clock import days, hours, minutes
from taskrail.testing import Called, Kit, harness
from tests.functional import work_tools

FORM = {
    "type": "object",
    "properties": {
        "really": {"type": "boolean", "title": "Really?"},
        "count": {"type": "integer", "minimum": 1},
        "why": {"type": "string", "description": "For the <record>", "maxLength": 20},
        "where": {"type": "string", "enum": ["north", "south"]},
        "who": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
    },
    "required": ["count", "why"],
}
URL = "https://approve.example.com/approve"


@pytest.fixture(scope="module")
def deployment() -> Iterator[Kit]:
    with harness(work_tools.server) as made:
        yield made


@pytest.fixture
def kit(deployment: Kit) -> Kit:
    deployment.clear()
    return deployment


@pytest.fixture
def task(kit: Kit) -> Called:
    made = kit.call("migrate", table="orders")
    made.report("ask", key="go", message="Apply <it> & go?", schema=FORM, taskToken="token-1")
    return made


@pytest.fixture
def link(kit: Kit, task: Called) -> str:
    """The token in the message that was sent about the question."""
    return re.search(r"token=(\S+)", sent(kit, task)[0][1])[1]  # type: ignore[index]


def sent(kit: Kit, task: Called, **more: Any) -> list[tuple[str, str]]:
    """The messages that the events of a task lead to."""
    messages: list[tuple[str, str]] = []
    notify = approval.notifier(kit.runtime, lambda subject, text: messages.append((subject, text)), URL)
    for entry in told(kit, task):
        detail = json.loads(entry["Detail"])
        notify({"source": entry["Source"], "detail-type": entry["DetailType"], "detail": {**detail, **more}}, None)
    return messages


def item(kit: Kit, task: Called) -> dict[str, Any]:
    return next(item for item in kit.scan() if task.task_id in item["pk"]["S"])


def told(kit: Kit, task: Called) -> list[dict[str, Any]]:
    """The entries for an item that is new."""
    return task_events.entries_of({"eventName": "INSERT", "dynamodb": {"NewImage": item(kit, task)}})


def page(kit: Kit, method: str, text: str = "", *, format_1: bool = False) -> dict[str, Any]:
    """The page's answer to a request."""
    event: dict[str, Any] = {"headers": {}, "body": text if method == "POST" else None}
    if format_1:
        event |= {"httpMethod": method, "path": "/approve", "requestContext": {}}
        event["queryStringParameters"] = {"token": text.removeprefix("token=")} if text else None
    else:
        event |= {"version": "2.0", "rawPath": "/approve", "requestContext": {"http": {"method": method}}}
        event["rawQueryString"] = text if method == "GET" else ""
    return approval.bind(kit.runtime)(event, None)


def answer(kit: Kit, token: str, **fields: Any) -> dict[str, Any]:
    """Send the form."""
    named = [(name if name == "action" else f"field.{name}", value) for name, value in fields.items()]
    return page(kit, "POST", urlencode([("token", token), *named]))


def test_a_message_names_the_question_and_carries_a_link(kit: Kit, task: Called) -> None:
    [(subject, text)] = sent(kit, task)
    assert subject == "migrate: a question waits"
    assert "Apply <it> & go?" in text and f"{URL}?token={task.task_id}.go." in text


@pytest.mark.parametrize("format_1", [False, True])
def test_opening_the_link_shows_the_question_and_answers_nothing(
    kit: Kit, task: Called, link: str, format_1: bool
) -> None:
    """Mail scanners and chat previews open links."""
    for _ in range(3):
        shown = page(kit, "GET", f"token={link}", format_1=format_1)
    assert shown["statusCode"] == 200
    body = shown["body"]
    assert "Apply &lt;it&gt; &amp; go?" in body and "For the &lt;record&gt;" in body and "<it>" not in body
    for control in ('type="checkbox"', 'min="1"', 'maxlength="20"', '<option value="north"', "multiple"):
        assert control in body
    assert shown["headers"]["Referrer-Policy"] == "no-referrer" and shown["headers"]["Cache-Control"] == "no-store"
    assert "frame-ancestors 'none'" in shown["headers"]["Content-Security-Policy"]
    assert task.status == "input_required"


def test_the_answer_goes_the_way_of_every_answer(kit: Kit, task: Called, link: str) -> None:
    done = answer(kit, link, action="accept", really="true", count="3", why="it is time", who="b")
    assert done["statusCode"] == 200
    assert json.loads(kit.engine.resumed["token-1"]) == {
        "action": "accept",
        "content": {"really": True, "count": 3, "why": "it is time", "who": ["b"]},
    }
    assert task.status == "working"


def test_declining_needs_no_form(kit: Kit, task: Called, link: str) -> None:
    assert answer(kit, link, action="decline")["statusCode"] == 200
    assert json.loads(kit.engine.resumed["token-1"]) == {"action": "decline"}


@pytest.mark.parametrize(
    "fields",
    [
        {"action": "accept", "count": "0", "why": "x"},
        {"action": "accept", "count": "many", "why": "x"},
        {"action": "accept", "why": "x"},
        {"action": "accept", "count": "1", "why": "x" * 21},
        {"action": "accept", "count": "1", "why": "x", "where": "west"},
        {"action": "dance"},
        {},
    ],
)
def test_what_does_not_fit_is_said_and_the_question_stays(
    kit: Kit, task: Called, link: str, fields: dict[str, str]
) -> None:
    wrong = answer(kit, link, **fields)
    assert wrong["statusCode"] == 422 and "role=alert" in wrong["body"]
    assert task.status == "input_required"


def test_a_link_answers_once(kit: Kit, task: Called, link: str) -> None:
    answer(kit, link, action="decline")
    assert answer(kit, link, action="accept", count="1", why="x")["statusCode"] == 404
    assert page(kit, "GET", f"token={link}")["statusCode"] == 404
    assert json.loads(kit.engine.resumed["token-1"]) == {"action": "decline"}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda token: token[:-1],
        lambda token: token.replace(".go.", ".og."),
        lambda token: "f" * 32 + token[32:],
        lambda token: "",
        lambda token: "<script>",
    ],
)
def test_any_other_token_finds_nothing(kit: Kit, task: Called, link: str, spoil: Callable[[str], str]) -> None:
    assert page(kit, "GET", urlencode({"token": spoil(link)}))["statusCode"] == 404
    assert answer(kit, spoil(link), action="decline")["statusCode"] == 404
    assert task.status == "input_required"


def test_a_report_token_answers_nothing(kit: Kit, task: Called) -> None:
    assert answer(kit, str(task.order.input["reportToken"]), action="decline")["statusCode"] == 404


def test_a_link_is_good_for_three_days_at_most(kit: Kit, link: str) -> None:
    kit.advance(hours(1))
    assert page(kit, "GET", f"token={link}")["statusCode"] == 200
    kit.advance(days(3))
    assert page(kit, "GET", f"token={link}")["statusCode"] == 404


def test_only_opening_and_sending(kit: Kit, link: str) -> None:
    assert page(kit, "PUT")["statusCode"] == 405


def test_events_tell_what_happened_and_nothing_that_is_not_theirs(kit: Kit) -> None:
    task = kit.call("migrate", table="secret-argument")
    images = [item(kit, task)]
    task.report("progress", message="half")
    images.append(item(kit, task))
    task.report("ask", key="go", message="Go?", taskToken="secret-token")
    images.append(item(kit, task))
    kit.advance(minutes(1))
    task.answer_with({"go": {"action": "accept", "content": {"note": "secret-answer"}}})
    images.append(item(kit, task))
    task.end({"rows": 5})
    images.append(item(kit, task))
    entries = []
    for old, new in zip([None, *images], [*images, None], strict=True):
        pictures = {name: image for name, image in (("OldImage", old), ("NewImage", new)) if image is not None}
        entries += task_events.entries_of({"dynamodb": pictures})
    kinds = [entry["DetailType"].removeprefix("Taskrail ") for entry in entries]
    assert kinds == ["Task Created", "Question Open", "Question Answered", "Task Ended"]
    details = [json.loads(entry["Detail"]) for entry in entries]
    assert {detail["taskId"] for detail in details} == {task.task_id}
    assert details[1]["question"]["params"]["message"] == "Go?" and "answerBy" in details[1]["question"]
    assert details[3]["status"] == "completed"
    assert not re.search(r"secret|anonymous|rows", json.dumps(entries))


def test_events_are_sent_in_order_and_again_when_they_were_not_taken(kit: Kit, task: Called) -> None:
    taken: list[str] = []

    def publish(entries: list[dict[str, Any]]) -> int:
        assert all(entry["EventBusName"] == "bus" for entry in entries)
        if len(taken) == 1:
            taken.append("refused")
            return 1
        taken.extend(entry["DetailType"] for entry in entries[:1])
        return 0

    records = [
        {"eventName": "INSERT", "dynamodb": {"NewImage": item(kit, task), "SequenceNumber": number}}
        for number in ("1", "2", "3")
    ]
    handle = task_events.bind(publish, "bus")
    assert handle({"Records": records}, None) == {"batchItemFailures": [{"itemIdentifier": "2"}]}
    assert len(taken) == 2, "what comes after a failure waits for its turn"
    assert handle({"Records": records[1:]}, None) == {"batchItemFailures": []}


def test_the_documented_button_answers(kit: Kit, task: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parents[2] / "docs" / "approvals.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.setattr("taskrail.runtime.from_environment", lambda server: kit.runtime)
    names: dict[str, Any] = {}
    exec(code, names)
    [event] = [json.loads(entry["Detail"]) for entry in told(kit, task) if "Question" in entry["DetailType"]]
    value = names["announce"]({"detail": event}, None)["value"]
    assert names["pressed"]({"value": value, "yes": False}, None) == {"taken": True}
    assert names["pressed"]({"value": value, "yes": False}, None) == {"taken": False}
    assert json.loads(kit.engine.resumed["token-1"]) == {"action": "decline"}
