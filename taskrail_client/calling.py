"""`tools/call`, with the questions before a task, and with a repetition only where that cannot do harm."""

from __future__ import annotations

from typing import Any

from mcp import Client
from mcp_types import HEADER_MISMATCH, CallToolResult, InputRequiredResult, PaginatedRequestParams, Tool

from taskrail_client.errors import (
    CallUnanswered,
    InvalidArguments,
    NoAnswer,
    Refused,
    TaskrailError,
    UnknownTool,
)
from taskrail_client.messages import IDEMPOTENCY_KEY, Handle
from taskrail_client.progress import Ask
from taskrail_client.questions import AnswersNeeded, question_of
from taskrail_client.records import GONE, digest_of
from taskrail_client.tasks import PATIENCE_MS, REQUEST_SECONDS, Tasks
from taskrail_client.trouble import Trouble

RETRY_MS = 500
"""First pause of a call that is repeated, in milliseconds."""

MOST_ROUNDS = 10
"""Rounds of questions before a task."""

MOST_PAGES = 100
LONGEST_KEY = 256


class Caller:
    """Calls tools.

    Parameters
    ----------
    client
        The connection.
    tasks
        The tasks of its server.
    """

    def __init__(self, client: Client, tasks: Tasks) -> None:
        self._client = client
        self._tasks = tasks
        self._tools: dict[str, Tool] = {}

    async def tools(self) -> list[Tool]:
        """Every tool of the server, as it is now."""
        tools: list[Tool] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            params = PaginatedRequestParams(cursor=cursor)
            page = await self._tasks.steady.ask(
                lambda params=params: self._client.session.list_tools(params=params),  # type: ignore[misc]
                interval_ms=RETRY_MS,
                patience_ms=PATIENCE_MS,
            )
            tools += page.tools
            cursor = page.next_cursor
            if cursor is None:
                break
        self._tools = {tool.name: tool for tool in tools}
        return tools

    async def call(self, tool: str, arguments: dict[str, Any], ask: Ask, call_key: str | None) -> CallToolResult | str:
        """Call a tool; its result, or the id of its task, which is remembered already.

        Parameters
        ----------
        tool, arguments
            What to call, and with what.
        ask
            Answers questions that come before there is a task.
        call_key
            The idempotency key, if the call has one.

        Raises
        ------
        TaskrailError
            As for `TaskrailClient.start`.
        """
        digest = digest_of(arguments)
        if call_key is not None and (task_id := self._earlier(tool, call_key, digest)) is not None:
            return task_id
        # The listing tells which arguments travel in headers as well.
        if tool not in self._tools and tool not in {known.name for known in await self.tools()}:
            names = ", ".join(sorted(self._tools)) or "none"
            raise UnknownTool(f"The server has no tool {tool!r}; it has: {names}.")
        responses: dict[str, Any] | None = None
        state: str | None = None
        for _ in range(MOST_ROUNDS):
            result = await self._send_listed(tool, arguments, responses, state, call_key)
            if isinstance(result, CallToolResult):
                return result
            if isinstance(result, Handle):
                self._tasks.took(result, tool, call_key=call_key, call_digest=digest if call_key else None)
                return result.task_id
            responses, state = await self._answered(result, ask), result.request_state
        raise TaskrailError(f"{tool} asked {MOST_ROUNDS} times and did not start.")

    def _earlier(self, tool: str, call_key: str, digest: str) -> str | None:
        """The task that this call has already, if it can still be of use."""
        if not 0 < len(call_key) <= LONGEST_KEY:
            raise InvalidArguments(f"An idempotency key has 1 to {LONGEST_KEY} characters.")
        store = self._tasks.store
        record = store.find_call(self._tasks.server, tool, call_key)
        # A task that ended badly gives its place to the next call, here as on the server.
        if record is None or record.is_error or record.status in ("failed", "cancelled", GONE):
            return None
        if record.expired(store.now()):
            return None
        if record.call_digest != digest:
            raise InvalidArguments("The idempotency key was used with other arguments: give this call another key.")
        return record.task_id

    async def _answered(self, asked: InputRequiredResult, ask: Ask) -> dict[str, Any]:
        responses, left = {}, []
        for key, request in (asked.input_requests or {}).items():
            response = await ask(key, request)
            if response is None:
                left.append(question_of(key, request))
            else:
                responses[key] = response
        if left:
            raise AnswersNeeded(None, left)
        return responses

    async def _send_listed(
        self, tool: str, arguments: dict[str, Any], responses: dict[str, Any] | None, state: str | None, key: str | None
    ) -> CallToolResult | InputRequiredResult | Handle:
        try:
            return await self._send(tool, arguments, responses, state, key)
        except Refused as error:
            if error.code != HEADER_MISMATCH:
                raise
        # The tool's schema has changed since it was listed.
        await self.tools()
        return await self._send(tool, arguments, responses, state, key)

    async def _send(
        self, tool: str, arguments: dict[str, Any], responses: dict[str, Any] | None, state: str | None, key: str | None
    ) -> CallToolResult | InputRequiredResult | Handle:
        meta: Any = None if key is None else {IDEMPOTENCY_KEY: key}

        async def send() -> CallToolResult | InputRequiredResult | Handle:
            try:
                result = await self._client.session.call_tool(
                    tool,
                    arguments,
                    read_timeout_seconds=REQUEST_SECONDS,
                    input_responses=responses,
                    request_state=state,
                    meta=meta,
                    allow_input_required=True,
                    allow_claimed=True,
                )
            except RuntimeError as error:
                # The official client found a result that breaks the tool's own output schema.
                raise TaskrailError(str(error)) from error
            assert isinstance(result, CallToolResult | InputRequiredResult | Handle)
            return result

        def repeatable(trouble: Trouble) -> bool:
            return key is not None or trouble.never_arrived

        try:
            return await self._tasks.steady.ask(
                send,
                interval_ms=RETRY_MS,
                patience_ms=PATIENCE_MS,
                sure=lambda: True,
                repeatable=repeatable,
            )
        except NoAnswer as error:
            again = (
                "The same call with the same key finds out."
                if key is not None
                else "A call with an idempotency key could be repeated without harm."
            )
            raise CallUnanswered(f"{error} Whether the server took the call is unknown. {again}") from None
