"""`python -m taskrail_client URL COMMAND …`."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from taskrail_client.auth import AuthError
from taskrail_client.client import TaskrailClient
from taskrail_client.command import ERROR, INTERRUPTED, LEFT, USAGE, Command
from taskrail_client.errors import (
    CallUnanswered,
    InvalidAnswer,
    InvalidArguments,
    NoAnswer,
    Refused,
    StoreError,
    TaskEnded,
    TaskrailError,
    UnknownTool,
)
from taskrail_client.options import auth_of, parser
from taskrail_client.prompt import Interrupted, Prompt
from taskrail_client.questions import AnswersNeeded, Question
from taskrail_client.screen import Screen, plain

_USAGE = (AuthError, StoreError, InvalidAnswer, InvalidArguments, UnknownTool)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    options = parser().parse_args(argv)
    # The official client's log repeats bodies that it could not read.
    logging.disable(logging.CRITICAL)
    quiet = getattr(options, "json", False)
    screen = Screen(sys.stderr, live=sys.stderr.isatty() and not quiet)
    person = sys.stdin is not None and sys.stdin.isatty() and not getattr(options, "no_input", False)
    under_way: list[Command] = []

    async def run() -> int:
        auth = auth_of(options)
        client = TaskrailClient(
            options.url,
            auth=auth,
            store=getattr(options, "store", None),
            listen=not getattr(options, "no_listen", False),
        )
        async with client:
            command = Command(client, options, screen, Prompt() if person else None)
            under_way.append(command)
            try:
                return await command.run()
            except TaskrailError as error:
                # Leaving the connection's task groups with it would wrap it.
                return _told(error, options, command.task_id, screen)

    try:
        return asyncio.run(run())
    except KeyboardInterrupt:
        task_id = under_way[0].task_id if under_way else None
        return _told(Interrupted("Interrupted."), options, task_id, screen)
    except TaskrailError as error:
        return _told(error, options, None, screen)


def _told(error: TaskrailError, options: argparse.Namespace, task_id: str | None, screen: Screen) -> int:
    """Say what went wrong and what can be done; the exit code."""
    screen.clear()
    code, hints = _meaning(error, options, task_id)
    if getattr(options, "json", False):
        told: dict[str, Any] = {"taskId": task_id, "exitCode": code, "error": str(error), "hints": hints}
        if isinstance(error, AnswersNeeded):
            told["questions"] = [
                {"key": question.key, "message": question.message, "schema": question.schema, "url": question.url}
                for question in error.questions
            ]
        print(json.dumps(told))
    else:
        print("\n".join(plain(line) for line in [str(error), *hints]), file=sys.stderr)
    return code


def _meaning(error: TaskrailError, options: argparse.Namespace, task_id: str | None) -> tuple[int, list[str]]:
    command = f"python -m taskrail_client {_shown(options.url)}"
    go_on = [f"The task goes on. Follow it with: {command} resume {task_id}"] if task_id else []
    match error:
        case Interrupted():
            unknown = ["Whether the server took the call is unknown."] if options.command == "call" else []
            return INTERRUPTED, go_on or unknown
        case AnswersNeeded(task_id=None):
            asked = [line for question in error.questions for line in _asked(question)]
            keys = " ".join(f"--answer '{question.key}={{…}}'" for question in error.questions)
            return USAGE, [*asked, f"Nothing was started. Call it from a terminal, or add: {keys}"]
        case AnswersNeeded():
            asked = [line for question in error.questions for line in _asked(question)]
            answers = [
                f"Answer with: {command} answer {error.task_id} {question.key} {_fields(question)}".rstrip()
                for question in error.questions
            ]
            return LEFT, [*asked, *answers, *go_on]
        case TaskEnded():
            return ERROR, []
        case NoAnswer() | CallUnanswered():
            return LEFT, go_on
        case Refused():
            return (LEFT, go_on) if task_id else (ERROR, [])
        case _:
            return (USAGE if isinstance(error, _USAGE) else ERROR), []


def _asked(question: Question) -> list[str]:
    return [f"{question.key}: {question.message}", *([f"  {question.url}"] if question.url else [])]


def _fields(question: Question) -> str:
    return " ".join(f"{name}=…" for name in question.schema.get("properties", {}))


def _shown(url: str) -> str:
    """The URL without its query, which may be secret."""
    return urlsplit(url)._replace(query="…").geturl() if urlsplit(url).query else url


if __name__ == "__main__":
    sys.exit(main())
