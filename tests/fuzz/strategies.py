"""Messages that are nearly right, and the junk that makes them wrong; for the wire's own tests and for the fuzz."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from taskrail.errors import TASKS_EXTENSION
from taskrail.wire import protocol

VERSION = protocol.SUPPORTED_VERSIONS[0]
TASKS: dict[str, Any] = {"extensions": {TASKS_EXTENSION: {}}}

surrogates = st.text(st.characters(codec=None), max_size=8)
numbers = st.integers() | st.floats() | st.sampled_from([0, -1, 2**31, 2**53 + 1, 2**63, 2**64, 10**400, 1e308, -0.0])
scalars = st.none() | st.booleans() | numbers | surrogates
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(surrogates, inner, max_size=4), max_leaves=12
)
objects = st.dictionaries(surrogates, values, max_size=4)
header_values = st.text(st.characters(codec="latin-1"), max_size=12)

PATHS = ("/mcp", "/mcp", "/mcp", "/prod/mcp", "/mcp/", "//mcp", "/", "/mcp/x", "/a/b/mcp", "/MCP", "", "/mcp%00")
HEADERS = (
    "accept",
    "content-type",
    "content-length",
    "host",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-param-region",
    "mcp-protocol-version",
    "mcp-session-id",
    "origin",
)


def or_junk(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly what belongs there."""
    return st.one_of(strategy, strategy, strategy, values)


@dataclass(frozen=True)
class Vocabulary:
    """The words that make a message nearly right for one deployment.

    Parameters
    ----------
    tools, arguments, keys
        Names of tools, of arguments, and of questions.
    task_ids
        Ids of tasks that exist, and of one that does not.
    answers
        Responses that some question takes.
    states
        Request states that the deployment gave.
    good_arguments
        Arguments that some tool takes.
    """

    tools: Iterable[str]
    arguments: Iterable[str]
    keys: Iterable[str]
    task_ids: Iterable[str] = (f"{1:032x}", "f" * 32)
    answers: Iterable[Mapping[str, Any]] = ({"action": "decline"},)
    states: Iterable[str] = ()
    good_arguments: Iterable[Mapping[str, Any]] = ({},)

    def messages(self) -> st.SearchStrategy[dict[str, Any]]:
        """Requests and notifications."""
        return st.fixed_dictionaries(
            {
                "jsonrpc": or_junk(st.just("2.0")),
                "method": or_junk(st.sampled_from([*sorted(protocol.METHODS), "initialize", "ping"])),
                "params": or_junk(self._params()),
            },
            optional={"id": or_junk(st.integers())},
        )

    def good_messages(self) -> st.SearchStrategy[dict[str, Any]]:
        """Requests whose every part may be right; together they may still be wrong."""
        return st.fixed_dictionaries(
            {
                "jsonrpc": st.just("2.0"),
                "id": st.integers() | st.text(max_size=8),
                "method": st.sampled_from(sorted(protocol.METHODS)),
                "params": self._params(good=True),
            }
        )

    def _params(self, *, good: bool = False) -> st.SearchStrategy[dict[str, Any]]:
        sometimes = (lambda strategy: strategy) if good else or_junk
        meta = st.fixed_dictionaries(
            {
                protocol.VERSION_KEY: sometimes(st.just(VERSION)),
                protocol.CAPABILITIES_KEY: sometimes(
                    st.sampled_from([{}, TASKS, {"elicitation": {}}, {**TASKS, "elicitation": {}, "sampling": {}}])
                ),
            },
            optional={
                "traceparent": values,
                "tracestate": values,
                protocol.CLIENT_KEY: values,
                "progressToken": values,
            },
        )
        named = st.dictionaries(st.sampled_from(sorted(self.arguments)), values, max_size=4)
        responses = st.dictionaries(
            st.sampled_from(sorted(self.keys)), st.sampled_from(list(self.answers)) | values, max_size=3
        )
        forged = surrogates | st.from_regex(r"[A-Za-z0-9_-]{1,20}\.[A-Za-z0-9_-]{43}", fullmatch=True)
        states = list(self.states)
        return st.fixed_dictionaries(
            {"_meta": sometimes(meta)},
            optional={
                "name": sometimes(st.sampled_from(sorted(self.tools))),
                "arguments": sometimes(st.sampled_from(list(self.good_arguments)) | named),
                "inputResponses": sometimes(responses),
                "requestState": st.sampled_from(states) | forged if states else forged,
                "taskId": sometimes(st.sampled_from(list(self.task_ids))),
                "cursor": values,
                "notifications": sometimes(
                    st.fixed_dictionaries({}, optional={"taskIds": values, "toolsListChanged": values})
                ),
            },
        )


@st.composite
def mirrored(draw: st.DrawFn, message: Any) -> dict[str, str]:
    """The headers of a message: mostly those that mirror it."""
    headers: dict[str, str] = {}
    if draw(st.integers(0, 9)):
        params = message.get("params") if isinstance(message, dict) else None
        method = message.get("method") if isinstance(message, dict) else None
        name = params.get("name") if isinstance(params, dict) else None
        headers["MCP-Protocol-Version"] = VERSION
        headers["Mcp-Method"] = method if isinstance(method, str) else draw(header_values)
        if isinstance(name, str):
            headers["Mcp-Name"] = name
    if not draw(st.integers(0, 2)):
        headers.update(draw(st.dictionaries(st.sampled_from(HEADERS), header_values, max_size=2)))
    return headers
