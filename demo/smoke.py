"""`python -m demo.smoke URL`: a task, a question, a cancellation and an error through a deployment that is up.

It drives the example tools with the official client. Give what the deployment's authorizer wants: ``--token``,
``--api-key``, or ``--sigv4`` for the AWS credentials of the environment.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

import anyio
from mcp import Client, MCPError
from mcp.client import ClientRequestContext
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult

from demo.errors import StoryBroken, expect
from demo.tasks import Handle, RemoteTask, State, Tasks, start
from taskrail_client.auth import API_KEY_VARIABLE, TOKEN_VARIABLE, ApiKeyAuth, AuthError, BearerAuth, SigV4Auth
from taskrail_client.transport import steady_transport

DOCUMENTS = [{"name": "a", "text": "write to ada@example.org"}, {"name": "b", "text": "hello there"}]
LONGEST_SECONDS = 120.0
"""How long a step may take; on a cold deployment the first job loads its code."""


class Smoke:
    """Four steps, each checked.

    Parameters
    ----------
    url
        The MCP endpoint.
    auth
        Credentials; None where nobody asks for them.
    """

    def __init__(self, url: str, auth: Any = None) -> None:
        self._url = url
        self._auth = auth

    async def run(self) -> None:
        """Take the steps.

        Raises
        ------
        StoryBroken
            One of them does not do what it should.
        """
        transport = steady_transport(self._url, auth=self._auth)
        async with Client(transport, extensions=[Tasks()], elicitation_callback=_approve) as client:
            listed = {tool.name for tool in (await client.list_tools()).tools}
            missing = sorted({"measure_text", "count_words", "redact_documents"} - listed)
            expect(not missing, f"it has no {', '.join(missing)}: the smoke test drives the kit's example tools")
            result = await client.call_tool("measure_text", {"text": "hello world"})
            expect(_structure(result).get("words") == 2, "a quick tool did not count two words")
            _say("a quick tool answers at once")
            ended = await self._task(client, "count_words")
            expect(_structure(ended.result).get("documents") == 2, "the task did not count two documents")
            _say("a task ends with its result")
            ended = await self._task(client, "redact_documents")
            expect(_structure(ended.result).get("emails") == 1, "the task did not black out one address")
            _say("a question is asked, answered, and the task goes on")
            await self._cancelled(client)
            _say("a task is cancelled")
            await self._errors(client)
            _say("errors come as errors")

    async def _begin(self, client: Client, tool: str, documents: Any = None) -> RemoteTask:
        given = DOCUMENTS if documents is None else documents
        handle = await start(client, tool, {"documents": given})
        expect(isinstance(handle, Handle), f"{tool} did not become a task: {handle}")
        assert isinstance(handle, Handle)
        return RemoteTask(client, handle.task_id)

    async def _task(self, client: Client, tool: str) -> State:
        """A task brought to its end, its questions answered."""
        task = await self._begin(client, tool)
        with anyio.move_on_after(LONGEST_SECONDS):
            while True:
                async for state in task.watch():
                    last = state
                if last.status != "input_required":
                    expect(last.status == "completed", f"{tool} is {last.status}: {last.status_message}")
                    return last
                await task.answer(last.input_requests or {})
        raise StoryBroken(f"{tool} has not ended within {LONGEST_SECONDS:.0f} s (task {task.task_id})")

    async def _cancelled(self, client: Client) -> None:
        task = await self._begin(client, "redact_documents")
        async for state in task.watch():
            last = state
        expect(last.status == "input_required", f"redact_documents is {last.status}, and should wait for an answer")
        await task.cancel()
        expect((await task.get()).status == "cancelled", "the task was not cancelled")

    async def _errors(self, client: Client) -> None:
        refused = await start(client, "count_words", {"documents": "none"})
        expect(isinstance(refused, CallToolResult) and refused.is_error, "arguments that do not fit were taken")
        try:
            await RemoteTask(client, "f" * 32).get()
        except MCPError as error:
            expect(error.error.code == -32602, f"an unknown task is {error.error.code}")
        else:
            raise StoryBroken("a task that does not exist was found")


async def _approve(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    return ElicitResult(action="accept", content={"redact": True, "kinds": ["email"]})


def _structure(result: CallToolResult | None) -> dict[str, Any]:
    return dict(result.structured_content or {}) if result is not None else {}


def _say(text: str) -> None:
    print(f" ✓ {text}", flush=True)


def _auth(options: argparse.Namespace) -> Any:
    if options.sigv4:
        return SigV4Auth(region=options.region)
    if key := options.api_key or os.environ.get(API_KEY_VARIABLE):
        return ApiKeyAuth(key)
    if token := options.token or os.environ.get(TOKEN_VARIABLE):
        return BearerAuth(token)
    return None


def main(argv: Sequence[str]) -> int:
    """Run the smoke test; the exit code.

    Parameters
    ----------
    argv
        The command line.
    """
    parser = argparse.ArgumentParser(prog="make smoke", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("url", help="the MCP endpoint, https://…/mcp")
    parser.add_argument("--token", help=f"a bearer token (or {TOKEN_VARIABLE})")
    parser.add_argument("--api-key", help=f"an API key (or {API_KEY_VARIABLE})")
    parser.add_argument("--sigv4", action="store_true", help="sign with the AWS credentials of the environment")
    parser.add_argument("--region", help="region that is signed for; that of the URL by default")
    options = parser.parse_args(argv)
    problem = ""
    try:
        anyio.run(Smoke(options.url, _auth(options)).run)
    except* (StoryBroken, AuthError, MCPError) as problems:
        problem = str(_first(problems))
    if problem:
        print(f" ✗ {problem}", file=sys.stderr)
        return 1
    print("It works.")
    return 0


def _first(problems: BaseExceptionGroup[Exception]) -> BaseException:
    """The first exception in a group of groups: the client's connection wraps what happens within it."""
    found: BaseException = problems
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
