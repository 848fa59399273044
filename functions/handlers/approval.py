"""An approver: a person answers a job's question by a link, without the client that asked for the job.

An example to take as it is or to change: `notify` takes "Taskrail Question Open" events from EventBridge and
publishes a message with a link to an SNS topic, whose subscribers may be people or a chat; `handler` is the page
behind the link, for ``GET`` and ``POST /approve``. The answer goes the way of every other: checked against the
form, kept once, passed on. docs/approvals.md says how to deploy it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from taskrail.approval_page import HEADERS, note, question_page, response_of, token_of
from taskrail.errors import InvalidParams, StoreUnavailable
from taskrail.loading import made_late
from taskrail.questions import ELICITATION
from taskrail.wire.http import HttpRequest, HttpResponse

if TYPE_CHECKING:
    from taskrail.runtime import Runtime

Handler = Callable[[dict[str, Any], Any], Any]

LIFE_MS = 3 * 86_400_000
"""How long a link works, in milliseconds; never longer than its question is open."""

_OVER = "There is nothing to answer here: the link is too old, or the question was answered or is over."


def bind(runtime: Runtime) -> Handler:
    """The page's handler over a given runtime.

    Parameters
    ----------
    runtime
        Whose questions are answered.
    """

    def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
        request = HttpRequest.from_event(event)
        if request.method == "GET":
            token = token_of(_query(event))
            question = runtime.approvals.question(token)
            if token is None or question is None or question.method != ELICITATION:
                return _page(404, note(_OVER))
            return _page(200, question_page(question, token))
        if request.method == "POST":
            return _answer(runtime, (request.body or b"").decode("utf-8", "replace"))
        return _page(405, note("This page is opened, and its form is sent."), {"Allow": "GET, POST"})

    return handle


def notifier(runtime: Runtime, publish: Callable[[str, str], object], page_url: str) -> Handler:
    """The handler that tells of open questions.

    Parameters
    ----------
    runtime
        Whose questions they are.
    publish
        Sends a message: its subject and its text.
    page_url
        Where the page is, ``https://…/approve``.
    """

    def handle(event: dict[str, Any], context: Any) -> None:
        detail = event.get("detail", {})
        question = detail.get("question", {})
        if event.get("detail-type") != "Taskrail Question Open" or question.get("method") != ELICITATION:
            return
        token = runtime.approvals.token(detail["taskId"], question["key"], runtime.clock.now() + LIFE_MS)
        message = question["params"]["message"]
        publish(
            f"{detail['tool']}: a question waits"[:100],
            f"{message}\n\nAnswer here: {page_url}?token={token}\n\nTask {detail['taskId']}, tool {detail['tool']}.",
        )

    return handle


def _answer(runtime: Runtime, body: str) -> dict[str, Any]:
    token = token_of(body)
    question = runtime.approvals.question(token)
    if token is None or question is None or question.method != ELICITATION:
        return _page(404, note(_OVER))
    try:
        taken = runtime.approvals.answer(token, response_of(body, question))
    except InvalidParams as error:
        return _page(422, question_page(question, token, error.message))
    except StoreUnavailable:
        return _page(503, question_page(question, token, "The answer may not have been kept. Please send it again."))
    return _page(200, note("Thank you. Your answer was passed on.")) if taken else _page(404, note(_OVER))


def _query(event: Mapping[str, Any]) -> str:
    if isinstance(event.get("rawQueryString"), str):
        return str(event["rawQueryString"])
    token = (event.get("queryStringParameters") or {}).get("token")
    return f"token={token}" if isinstance(token, str) else ""


def _page(status: int, body: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    return HttpResponse(status, {**HEADERS, **(headers or {})}, body).to_event()


def _runtime() -> Runtime:
    from catalogue import server
    from taskrail.runtime import from_environment

    return from_environment(server)


def _notify() -> Handler:
    from taskrail.clients import client
    from taskrail.settings import required

    topic, sns = required("TASKRAIL_APPROVAL_TOPIC"), client("sns")
    return notifier(
        _runtime(),
        lambda subject, text: sns.publish(TopicArn=topic, Subject=subject, Message=text),
        required("TASKRAIL_APPROVAL_URL"),
    )


__getattr__ = made_late(__name__, handler=lambda: bind(_runtime()), notify=_notify)
