"""The command: each subcommand as one function from its options to an exit code."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from mcp_types import CallToolResult

from taskrail_client.client import TaskrailClient
from taskrail_client.errors import InvalidAnswer, InvalidArguments, TaskCancelled, UnknownTool
from taskrail_client.prompt import Prompt
from taskrail_client.questions import Answer, Question, Reply
from taskrail_client.records import Record
from taskrail_client.screen import Screen, json_of, plain, text_of
from taskrail_client.values import BadValue, pairs

DONE, ERROR, USAGE, LEFT, INTERRUPTED = 0, 1, 2, 3, 130


class Command:
    """One command under way.

    Parameters
    ----------
    client
        The client, ready.
    options
        What was said.
    screen
        Where progress is shown.
    prompt
        Asks a person; None when there is none.
    """

    def __init__(
        self, client: TaskrailClient, options: argparse.Namespace, screen: Screen, prompt: Prompt | None
    ) -> None:
        self._client = client
        self._options = options
        self._screen = screen
        self._prompt = prompt
        self._json = getattr(options, "json", False)
        self._given = dict(getattr(options, "answer", ()))
        self.task_id: str | None = getattr(options, "task_id", None)
        """The task that it is about, as soon as there is one."""

    async def run(self) -> int:
        """Do it; the exit code."""
        names = {name: getattr(self, name) for name in ("call", "tools", "list", "resume", "answer", "cancel")}
        code: int = await names[self._options.command]()
        return code

    async def call(self) -> int:
        """Call a tool, and follow its task."""
        tools = {tool.name: tool for tool in await self._client.tools()}
        if (tool := tools.get(self._options.tool)) is None:
            raise UnknownTool(
                f"The server has no tool {self._options.tool!r}; it has: {', '.join(sorted(tools)) or 'none'}."
            )
        try:
            arguments = pairs(self._options.arguments, tool.input_schema)
        except BadValue as error:
            raise InvalidArguments(f"{tool.name}: {error}.") from None
        ticket = await self._client.start(
            tool.name, arguments, on_question=self._on_question, idempotency_key=self._options.key
        )
        self.task_id = ticket.task_id
        if ticket.task_id is not None and self._options.no_wait:
            self._print({"taskId": ticket.task_id, "status": "working"}, ticket.task_id)
            return LEFT
        result = await ticket.finish(on_progress=self._screen.show, on_question=self._on_question)
        return self._finished(result)

    async def resume(self) -> int:
        """Follow a task."""
        result = await self._client.resume(
            self._options.task_id, on_progress=self._screen.show, on_question=self._on_question
        )
        return self._finished(result)

    async def cancel(self) -> int:
        """Cancel a task."""
        progress = await self._client.cancel(self._options.task_id)
        if progress.status == "cancelling" and self._options.no_wait:
            self._print({"taskId": progress.task_id, "status": progress.status}, "cancelling")
            return LEFT
        self._screen.show(progress)
        try:
            result = await self._client.resume(self._options.task_id, on_progress=self._screen.show)
        except TaskCancelled as error:
            self._screen.clear()
            self._print({"taskId": error.task_id, "status": "cancelled"}, "cancelled")
            return DONE
        return self._finished(result)

    async def answer(self) -> int:
        """Answer a question."""
        task_id, key = self._options.task_id, self._options.key
        question = next((one for one in await self._client.questions(task_id) if one.key == key), None)
        if self._options.decline:
            reply = Answer("decline")
        elif question is None or self._options.fields or self._prompt is None:
            try:
                fields = pairs(self._options.fields, {} if question is None else question.schema)
            except BadValue as error:
                raise InvalidAnswer(f"{key}: {error}.") from None
            reply = Answer("accept", fields)
        else:
            asked = self._prompt.ask(question)
            if asked is None:
                return LEFT
            reply = asked
        counts = await self._client.answer(task_id, key, reply)
        words = "answered" if counts else "had been answered before; the first answer counts"
        self._print({"taskId": task_id, "key": key, "counts": counts}, f"{key}: {words}")
        return DONE

    async def tools(self) -> int:
        """List the tools."""
        tools = await self._client.tools()
        lines = []
        for tool in tools:
            fields = ", ".join(tool.input_schema.get("properties", {}))
            lines.append(plain(f"{tool.name}({fields})  {(tool.description or '').partition(chr(10))[0]}"))
        self._print(
            [{"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema} for tool in tools],
            "\n".join(lines),
        )
        return DONE

    async def list(self) -> int:
        """List the tasks that are remembered."""
        if self._options.refresh:
            for record in self._client.list():
                if not record.ended:
                    await self._client.try_look(record.task_id)
        records = self._client.list()
        self._print([_row(record) for record in records], "\n".join(_line(record) for record in records))
        return DONE

    def _on_question(self, question: Question) -> Reply:
        if question.key in self._given:
            content = self._given[question.key]
            return Answer("decline") if content is None else Answer("accept", content)
        if self._prompt is None:
            return None
        self._screen.clear()
        return self._prompt.ask(question)

    def _finished(self, result: CallToolResult) -> int:
        self._screen.clear()
        if self._json:
            print(json.dumps({"taskId": self.task_id, "status": "completed", "result": json_of(result)}))
        else:
            print(text_of(result), file=sys.stderr if result.is_error else sys.stdout)
        return ERROR if result.is_error else DONE

    def _print(self, data: Any, text: str) -> None:
        if self._json:
            print(json.dumps(data))
        elif text:
            print(text)


def _row(record: Record) -> Mapping[str, Any]:
    return {
        "taskId": record.task_id,
        "tool": record.tool,
        "status": record.shown,
        "message": record.status_message,
        "key": record.call_key,
        "createdAt": record.created_at,
        "ttlMs": record.ttl_ms,
    }


def _line(record: Record) -> str:
    began = datetime.fromtimestamp(record.began_ms / 1000).strftime("%Y-%m-%d %H:%M:%S")
    return plain(f"{record.task_id}  {began}  {record.shown:<14}  {record.tool or '-'}  {record.status_message or ''}")
