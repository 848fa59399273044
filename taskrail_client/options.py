"""The command line: what may be said, and the credentials in it."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Generator, Sequence
from typing import Any

import httpx2

from taskrail_client.auth import API_KEY_VARIABLE, TOKEN_VARIABLE, ApiKeyAuth, BearerAuth, SigV4Auth
from taskrail_client.records import STORE_VARIABLE

EPILOG = """\
exit codes: 0 completed; 1 the tool reported an error, or the task failed or was cancelled; 2 the command, an argument
or an answer is wrong; 3 the task goes on, or waits for an answer, or the server gave none; 130 interrupted (the task
goes on)."""


class AllAuth(httpx2.Auth):
    """Several credentials on one request: an API key beside a token, say.

    Parameters
    ----------
    parts
        Each adds its headers.
    """

    requires_request_body = True

    def __init__(self, parts: Sequence[httpx2.Auth]) -> None:
        self._parts = parts

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Add the headers."""
        for part in self._parts:
            request = next(part.auth_flow(request))
        yield request


def parser() -> argparse.ArgumentParser:
    """The parser of the command."""
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument("--token", help=f"bearer token; better in the environment variable {TOKEN_VARIABLE}")
    common.add_argument("--api-key", help=f"sent as x-api-key; better in {API_KEY_VARIABLE}")
    common.add_argument("--sigv4", action="store_true", help="sign with the AWS credentials of the environment")
    common.add_argument("--service", help="service that is signed for (default: execute-api)")
    common.add_argument("--region", help="region that is signed for (default: that of the URL or the environment)")
    common.add_argument("--store", help=f"file that remembers the tasks (or {STORE_VARIABLE})")
    common.add_argument("--json", action="store_true", help="print JSON, and no progress")
    common.add_argument("--no-input", action="store_true", help="never ask, as without a terminal")
    common.add_argument("--no-listen", action="store_true", help="poll only, even when the server offers a stream")

    whole = argparse.ArgumentParser(
        prog="python -m taskrail_client",
        description="Call tools of a Taskrail server, and follow their tasks through whatever happens.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[common],
    )
    whole.add_argument("url", metavar="URL", help="MCP endpoint")
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")

    call = commands.add_parser("call", parents=[common], help="call a tool and follow its task")
    call.add_argument("tool")
    call.add_argument("arguments", nargs="*", metavar="key=value", help="or key:=json; repeat a key to make a list")
    call.add_argument("--key", help="idempotency key: the same call with the same key finds its task again")
    call.add_argument("--no-wait", action="store_true", help="print the task's id and leave it")
    call.add_argument("--answer", action="append", default=[], type=_given, metavar="KEY=JSON", help=_ANSWER_HELP)

    commands.add_parser("tools", parents=[common], help="list the tools")
    listing = commands.add_parser("list", parents=[common], help="list the tasks that are remembered here")
    listing.add_argument("--refresh", action="store_true", help="ask the server how each open one stands")

    resume = commands.add_parser("resume", parents=[common], help="follow a task that was started before")
    resume.add_argument("task_id", metavar="ID")
    resume.add_argument("--answer", action="append", default=[], type=_given, metavar="KEY=JSON", help=_ANSWER_HELP)

    answer = commands.add_parser("answer", parents=[common], help="answer a question of a task")
    answer.add_argument("task_id", metavar="ID")
    answer.add_argument("key", metavar="KEY")
    answer.add_argument("fields", nargs="*", metavar="field=value", help="or field:=json")
    answer.add_argument("--decline", action="store_true", help="answer with no")

    cancel = commands.add_parser("cancel", parents=[common], help="cancel a task, and wait until it has stopped")
    cancel.add_argument("task_id", metavar="ID")
    cancel.add_argument("--no-wait", action="store_true", help="leave it while it stops")
    return whole


_ANSWER_HELP = "answer to a question that will come: the form's fields as a JSON object, or null to decline"


def auth_of(options: argparse.Namespace) -> httpx2.Auth | None:
    """The credentials of a command; what it says itself wins over the environment.

    Raises
    ------
    AuthError
        They cannot be used.
    """
    parts: list[httpx2.Auth] = []
    sigv4 = getattr(options, "sigv4", False)
    token = getattr(options, "token", None) or (None if sigv4 else os.environ.get(TOKEN_VARIABLE))
    if token:
        parts.append(BearerAuth(token))
    if key := getattr(options, "api_key", None) or os.environ.get(API_KEY_VARIABLE):
        parts.append(ApiKeyAuth(key))
    if sigv4:
        parts.append(SigV4Auth(getattr(options, "service", "execute-api"), getattr(options, "region", None)))
    return AllAuth(parts) if len(parts) > 1 else parts[0] if parts else None


def _given(text: str) -> tuple[str, dict[str, Any] | None]:
    key, _, value = text.partition("=")
    try:
        content = json.loads(value)
    except ValueError:
        content = 0
    if not key or not (content is None or isinstance(content, dict)):
        raise argparse.ArgumentTypeError('an answer is KEY={"field": value, …}, or KEY=null to decline')
    return key, content
