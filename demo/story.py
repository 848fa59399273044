"""The story: one client, five tools, six tasks."""

from __future__ import annotations

import csv
import io
import re
import secrets
import shutil
import time
import urllib.request
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, MCPError
from mcp.client import ClientRequestContext
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, ResourceLink

from demo.errors import StoryBroken, expect
from demo.samples import help_topics, sources
from demo.screen import Meter, Screen, progress_of
from demo.tasks import EXTENSION, Handle, RemoteTask, State, Tasks, start

COUNTED = 4_500_000
REDACTED = 1_200_000
EMAIL = re.compile(r"\w@\w+\.(?:com|org|net)\b")


class Story:
    """Tells the story and checks every sentence of it.

    Parameters
    ----------
    url
        The MCP endpoint.
    folder
        Where the client keeps its task id.
    screen
        Where the story is told.
    """

    def __init__(self, url: str, folder: Path, screen: Screen) -> None:
        self._url = url
        self._ticket = folder / "task-id"
        self._screen = screen

    async def tell(self) -> None:
        """The whole story.

        Raises
        ------
        StoryBroken
            Something in it does not hold.
        """
        documents = [*help_topics(), *sources(COUNTED)]
        async with self._connect() as client:
            await self._meet(client)
            await self._quick(client)
            await self._begin(client, documents)
        self._screen.say("The client hangs up for a second; the job goes on.")
        await anyio.sleep(1)
        async with self._connect() as client:
            await self._resume(client, documents)
            await self._ask(client)
            await self._workflow(client)
            await self._container(client)
            await self._cancel(client, documents)
            await self._unknown(client)

    def _connect(self) -> Client:
        return Client(self._url, extensions=[Tasks()], elicitation_callback=self._approve, read_timeout_seconds=30)

    async def _meet(self, client: Client) -> None:
        self._screen.chapter("Who is there, and what can it do?", "server/discover, tools/list")
        server = client.server_info
        expect(server is not None, "the server did not say who it is")
        assert server is not None
        expect(EXTENSION in (client.server_capabilities.extensions or {}), "the server does not offer tasks")
        self._screen.ok(f"{server.name} {server.version}, MCP {client.protocol_version}, with tasks")
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        for name in ("measure_text", "count_words", "redact_documents", "run_migration", "line_statistics"):
            expect(name in tools, f"the tool {name} is not listed")
            self._screen.say(f"{name:17}{(tools[name].description or '').splitlines()[0]}")

    async def _quick(self, client: Client) -> None:
        self._screen.chapter("A quick tool answers at once", "tools/call measure_text")
        result = await start(client, "measure_text", {"text": "Größe, naïveté, 東京"})
        expect(isinstance(result, CallToolResult), "a quick tool answered with a task")
        assert isinstance(result, CallToolResult)
        expect(result.structured_content["words"] == 3, "measure_text miscounted three words")
        self._screen.ok(f"{result.structured_content}")

    async def _begin(self, client: Client, documents: list[dict[str, Any]]) -> None:
        characters = sum(len(document["text"]) for document in documents)
        self._screen.chapter("A long tool hands out a ticket", "tools/call count_words")
        self._screen.say(f"{len(documents)} documents, {characters:,} characters: Python's help topics and sources")
        task = await self._start(client, "count_words", {"documents": documents})
        self._ticket.write_text(task.task_id)
        self._screen.say(f"The client writes the task id to the file {self._ticket.name} and watches.")
        with self._screen.meter() as meter:
            states = await self._follow(task, meter, until=lambda state: progress_of(state) is not None)
        expect(states[-1].status == "working", f"the task was {states[-1].status} before the client could hang up")

    async def _resume(self, client: Client, documents: list[dict[str, Any]]) -> None:
        self._screen.chapter("A new client takes the ticket up", "tasks/get")
        task = RemoteTask(client, self._ticket.read_text())
        self._screen.ok(f"task {task.task_id}, read back from the file")
        with self._screen.meter() as meter:
            states = await self._follow(task, meter)
        result = await self._result(task, states[-1], "count_words")
        told = result.structured_content
        expect(told["documents"] == len(documents), "the summary counts another number of documents")
        frequent = ", ".join(f"{each['word']} {each['count']:,}" for each in told["most_frequent"][:5])
        self._screen.ok(f"{told['words']:,} words, {told['distinct_words']:,} of them distinct")
        self._screen.say(f"Most frequent: {frequent}")
        pair = told["closest"]
        self._screen.say(f"Most alike: {pair['first']} and {pair['second']} ({pair['similarity']})")

        data = await self._attachment(result, "words.csv")
        rows = list(csv.DictReader(io.StringIO(data.decode())))
        expect([row["document"] for row in rows] == [each["name"] for each in documents], "words.csv has other rows")
        expect(sum(int(row["words"]) for row in rows) == told["words"], "words.csv adds up to another sum")
        expect(
            [int(row["characters"]) for row in rows] == [len(each["text"]) for each in documents],
            "words.csv has other lengths than the documents",
        )
        self._screen.ok(f"words.csv: {len(rows)} rows, {len(data):,} bytes; its sums match the summary")

    async def _ask(self, client: Client) -> None:
        self._screen.chapter("A job asks in the middle", "tools/call redact_documents, tasks/update")
        documents = sources(REDACTED)
        task = await self._start(client, "redact_documents", {"documents": documents})
        with self._screen.meter() as meter:
            states = await self._follow(task, meter)
        waiting = states[-1]
        asked_at = datetime.now(UTC)
        expect(waiting.status == "input_required", f"the job did not ask but is {waiting.status}")
        await task.answer(waiting.input_requests or {})
        after = await task.get()
        expect(not after.input_requests, "the question is still there after the answer was acknowledged")
        with self._screen.meter() as meter:
            states = await self._follow(task, meter)
        result = await self._result(task, states[-1], "redact_documents")
        told = result.structured_content
        self._screen.ok(
            f"{told['emails']} e-mail and {told['ip_addresses']} IPv4 addresses in {told['documents']} documents"
        )
        scanned_at = datetime.fromisoformat(told["scanned_at"])
        expect(scanned_at < asked_at, "the documents were scanned a second time after the answer")
        self._screen.ok("The run after the answer had the scan of the run before the question: it was paid once")
        data = await self._attachment(result, "redacted.zip")
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            texts = [archive.read(name).decode() for name in sorted(archive.namelist())]
        expect([len(text) for text in texts] == [len(each["text"]) for each in documents], "documents changed length")
        before = sum(len(EMAIL.findall(each["text"])) for each in documents)
        left = sum(len(EMAIL.findall(text)) for text in texts)
        expect(before > left == 0, f"{left} of {before} addresses are still there")
        self._screen.ok(f"redacted.zip: {len(texts)} documents, {len(data):,} bytes; no e-mail address is left")

    async def _workflow(self, client: Client) -> None:
        self._screen.chapter("A state machine waits for approval", "tools/call run_migration, tasks/update")
        arguments = {"table": "orders", "rows": 12_000, "batch_size": 500}
        task = await self._start(client, "run_migration", arguments)
        with self._screen.meter() as meter:
            states = await self._follow(task, meter)
        expect(states[-1].status == "input_required", f"the workflow did not ask but is {states[-1].status}")
        await task.answer(states[-1].input_requests or {})
        with self._screen.meter() as meter:
            states = await self._follow(task, meter)
        told = (await self._result(task, states[-1], "run_migration")).structured_content
        expect(told["rows"] == 12_000 and told["batches"] == 24, "the workflow migrated something else")
        self._screen.ok(
            f"{told['rows']:,} rows in {told['batches']} batches, verified: {told['total']} before and after"
        )

    async def _container(self, client: Client) -> None:
        self._screen.chapter("A container in another language", "tools/call line_statistics")
        self._screen.say("A shell script in an image of Debian's; on this machine its command runs as a process.")
        if shutil.which("curl") is None:
            self._screen.say("It reports with curl, which this machine does not have: left out.")
            return
        text = "Two households, both alike in dignity,\nIn fair Verona, where we lay our scene,"
        task = await self._start(client, "line_statistics", {"text": text})
        with self._screen.meter() as meter:
            states = await self._follow(task, meter)
        told = (await self._result(task, states[-1], "line_statistics")).structured_content
        expect(told == {"lines": 2, "words": 14, "longest_line": 39}, f"the container counted {told}")
        self._screen.ok(f"{told}")

    async def _cancel(self, client: Client, documents: list[dict[str, Any]]) -> None:
        self._screen.chapter("A task is cancelled", "tasks/cancel")
        task = await self._start(client, "count_words", {"documents": documents})
        with self._screen.meter() as meter:
            await self._follow(task, meter, until=lambda state: progress_of(state) is not None)
        asked = time.monotonic()
        await task.cancel()
        with self._screen.meter() as meter:
            states = await self._follow(task, meter)
        expect(states[-1].status == "cancelled", f"the cancelled task is {states[-1].status}")
        expect(states[-1].result is None, "a cancelled task has a result")
        self._screen.ok(f"the work stopped, {time.monotonic() - asked:.1f} s after it was asked to")

    async def _unknown(self, client: Client) -> None:
        self._screen.chapter("A ticket that was never given out", "tasks/get")
        refusals = set()
        for task_id in (secrets.token_hex(16), "no-such-task"):
            try:
                await RemoteTask(client, task_id).get()
            except MCPError as error:
                refusals.add((error.code, error.message))
            else:
                raise StoryBroken("a task id that was never given out was answered")
        expect(len(refusals) == 1, "two unknown ids were refused in different ways")
        code, message = refusals.pop()
        expect(code == -32602, f"an unknown task id was refused with {code}")
        self._screen.ok(f"{code}: {message}")

    async def _start(self, client: Client, tool: str, arguments: dict[str, Any]) -> RemoteTask:
        began = time.monotonic()
        handle = await start(client, tool, arguments)
        expect(isinstance(handle, Handle), f"{tool} did not answer with a task: {handle.model_dump_json()}")
        assert isinstance(handle, Handle)
        expect(handle.status == "working", f"a new task is {handle.status}")
        self._screen.ok(f"task {handle.task_id} is {handle.status}, after {time.monotonic() - began:.2f} s")
        return RemoteTask(client, handle.task_id)

    async def _follow(
        self, task: RemoteTask, meter: Meter, until: Callable[[State], bool] = lambda state: False
    ) -> list[State]:
        states = []
        async for state in task.watch():
            meter.show(state)
            states.append(state)
            if until(state):
                break
        return states

    async def _result(self, task: RemoteTask, state: State, tool: str) -> CallToolResult:
        why = state.error or (state.result and state.result.content) or state.status_message
        expect(state.status == "completed" and state.result, f"{tool} is {state.status}: {why}")
        assert state.result is not None
        expect(not state.result.is_error, f"{tool} answered with an error: {why}")
        # The official client's own check of structuredContent against the tool's outputSchema.
        await task.client.session.validate_tool_result(tool, state.result)
        return state.result

    async def _attachment(self, result: CallToolResult, name: str) -> bytes:
        links = [block for block in result.content if isinstance(block, ResourceLink) and block.name == name]
        expect(len(links) == 1, f"the result has {len(links)} links to {name}")
        return await anyio.to_thread.run_sync(_download, links[0].uri)

    async def _approve(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        self._screen.say(f"It asks: {params.message}")
        if "Migrate" in params.message:
            self._screen.say("The client answers: yes.")
            return ElicitResult(action="accept", content={"go": True})
        self._screen.say("The client answers: yes, but leave the card numbers.")
        return ElicitResult(action="accept", content={"redact": True, "kinds": ["email", "ip"]})


def _download(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=30) as answer:
        data: bytes = answer.read()
    return data
