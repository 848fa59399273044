"""Workflows and containers → the rail: progress, questions, results, for the task of their token only.

A state of a workflow invokes this function with its token among the rest of the payload::

    {"reportToken": "…", "do": "progress", "done": 3, "total": 10}

A container sends the same to ``POST /report``, its token in ``Authorization: Bearer …``. A state whose report
cannot be taken fails with the error's name (`ReportRefused`, `QuestionError`, `TaskCancelled`), which a
definition can catch; a container is answered with 400 and the reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from taskrail.errors import ParseError, QuestionError, RpcError, StoreUnavailable
from taskrail.loading import made_late
from taskrail.rail.remote import ReportRefused, TaskCancelled, TokenRefused
from taskrail.wire.http import JSON, HttpRequest, HttpResponse
from taskrail.wire.jsonrpc import loads

if TYPE_CHECKING:
    from taskrail.runtime import Runtime

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]

_BEARER = "bearer "


def bind(runtime: Runtime) -> Handler:
    """The handler over a given runtime.

    Parameters
    ----------
    runtime
        Whose tasks are reported to.
    """

    def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
        if not isinstance(event, Mapping):
            # A definition may hand over whatever its states have.
            raise ReportRefused("A report is a JSON object.")
        if "requestContext" in event:
            return _over_http(runtime, event).to_event()
        return runtime.remote.take(event.get("reportToken"), event)

    return handle


def _over_http(runtime: Runtime, event: dict[str, Any]) -> HttpResponse:
    request = HttpRequest.from_event(event)
    if request.method != "POST":
        return _answer(405, {"error": "Reports are POSTed."}, {"Allow": "POST"})
    settings = runtime.settings
    try:
        report = loads(
            request.body,
            max_bytes=settings.max_body_bytes,
            max_depth=settings.max_depth,
            max_values=settings.max_values,
        )
        if not isinstance(report, Mapping):
            raise ParseError("A report is a JSON object.")
        return _answer(200, runtime.remote.take(_token(request, report), report))
    except TokenRefused as error:
        return _answer(401, {"error": str(error)}, {"WWW-Authenticate": "Bearer"})
    except TaskCancelled as error:
        return _answer(200, {"cancel": True, "error": str(error)})
    except (ReportRefused, QuestionError, RpcError) as error:
        return _answer(400, {"error": str(error)})
    except StoreUnavailable:
        return _answer(503, {"error": "The report may not have been taken: report again."}, {"Retry-After": "1"})


def _token(request: HttpRequest, report: Mapping[str, Any]) -> Any:
    header = request.headers.get("authorization", "")
    return header[len(_BEARER) :].strip() if header.lower().startswith(_BEARER) else report.get("reportToken")


def _answer(status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> HttpResponse:
    return HttpResponse(status, {"Content-Type": JSON, **(headers or {})}, json.dumps(body))


def _handler() -> Handler:
    from catalogue import server
    from taskrail.runtime import from_environment

    return bind(from_environment(server))


__getattr__ = made_late(__name__, handler=_handler)
