"""The server: its tools under their names. What declares them is in `toolset`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType

from taskrail.caller import Caller
from taskrail.clock import hours, minutes
from taskrail.errors import DeclarationError
from taskrail.tools import Mode, Tool
from taskrail.toolset import DeclaredTask, DeclaredTool, Toolset

__all__ = ["DeclaredTask", "DeclaredTool", "Mode", "TaskServer", "Tool", "Toolset"]

Rule = Callable[[Caller, str], bool]

_log = logging.getLogger("taskrail")

TICKET_TOOLS = ("task_status", "task_answer", "task_cancel")
"""Tools that the kit brings for clients that know no tasks."""

_UPLOAD_LIFE = minutes(15)

# The URL is signed with the function's temporary credentials and does not outlive them.
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/using-presigned-url.html
_UPLOAD_LIVES = (minutes(1), hours(12))


class TaskServer:
    """A server: its name and its tools. The catalogue holds one.

    Parameters
    ----------
    name
        Name of the server.
    version
        Version of the server, not of the protocol.
    tools
        The toolsets, in the order in which their tools are listed.
    instructions
        What an agent should know before it uses the tools.
    title
        Name for people.
    tickets
        Whether clients that know no tasks get tools to follow, answer and cancel a task with: ``task_status``,
        ``task_answer``, ``task_cancel``.
    uploads
        Whether there is a tool ``request_upload`` that gives callers URLs to upload their files to, under
        their own input prefix; a duration says how long such a URL works, 15 minutes unless said.

    Raises
    ------
    DeclarationError
        If two tools share a name, or something that is no toolset is among the tools.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str,
        tools: Sequence[Toolset],
        instructions: str | None = None,
        title: str | None = None,
        tickets: bool = True,
        uploads: bool | timedelta = False,
    ) -> None:
        for what, text in (("name", name), ("version", version)):
            if not isinstance(text, str) or not text.strip():
                raise DeclarationError(str(name), f"the server's {what} is a text that is not empty")
        for what, optional in (("instructions", instructions), ("title", title)):
            if optional is not None and not isinstance(optional, str):
                raise DeclarationError(name, f"the server's {what} is a text")
        self.name = name
        self.version = version
        self.instructions = instructions
        self.title = title
        toolsets = tuple(tools) if isinstance(tools, list | tuple) else (tools,)
        for toolset in toolsets:
            if not isinstance(toolset, Toolset):
                raise DeclarationError(
                    name, f"tools=[...] takes Toolset objects, not {type(toolset).__name__}; write reports.tools"
                )
        self._rule: Rule | None = None
        self.uploads = _upload_life(name, uploads)
        self._tools = _named(toolsets, uploads=self.uploads is not None)
        self.tickets = bool(tickets) and any(tool.policy is not None for tool in self._tools.values())
        for taken in TICKET_TOOLS if self.tickets else ():
            if taken in self._tools:
                raise DeclarationError(
                    taken, "this is the name of a tool that the kit brings; give yours name='...', or tickets=False"
                )

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by name, in the order in which they were declared."""
        return self._tools

    def authorize(self, rule: Rule) -> Rule:
        """Let a function decide who sees and may call which tool, beside the tools' own scopes.

        It is asked on every list and call, inside the request, before anything is stored or started; an exception
        in it is a no.

        Parameters
        ----------
        rule
            Takes the `Caller` and the name of a tool; it is returned as it is.

        Raises
        ------
        DeclarationError
            If there is a rule already.
        """
        if self._rule is not None:
            raise DeclarationError(self.name, "the server has an authorize rule already; decide everything in one")
        if not callable(rule):
            raise DeclarationError(self.name, "authorize takes a function of caller and tool name")
        self._rule = rule
        return rule

    @property
    def guarded(self) -> bool:
        """Whether what there is depends on who asks."""
        return self._rule is not None or any(tool.scopes for tool in self._tools.values())

    def admits(self, caller: Caller, tool: Tool) -> bool:
        """Whether the server's rule lets a caller know of a tool; scopes are another matter."""
        if self._rule is None:
            return True
        try:
            return self._rule(caller, tool.name) is True
        except Exception:
            _log.exception("the authorize rule failed on tool %s: the answer is no", tool.name)
            return False

    def get(self, name: str) -> Tool | None:
        """The tool of that name; None if there is none."""
        return self.tools.get(name)


def _upload_life(name: str, uploads: object) -> timedelta | None:
    """How long a URL for an upload works; None where there are none."""
    if isinstance(uploads, bool):
        return _UPLOAD_LIFE if uploads else None
    lowest, highest = _UPLOAD_LIVES
    if not isinstance(uploads, timedelta) or not lowest <= uploads <= highest:
        raise DeclarationError(name, "uploads is True, False or how long a URL works, 1 minute to 12 hours")
    return uploads


def _named(toolsets: Sequence[Toolset], *, uploads: bool) -> Mapping[str, Tool]:
    """The tools of all sets by name; the sets are closed then, since a server never looks again."""
    named: dict[str, Tool] = {}
    for toolset in toolsets:
        for tool in toolset.tools:
            if tool.name in named:
                raise DeclarationError(tool.name, "two tools have this name; give one of them name='...'")
            named[tool.name] = tool
    if uploads:
        from taskrail.uploads import upload_tool

        built_in = upload_tool()
        if built_in.name in named:
            raise DeclarationError(built_in.name, "uploads=... brings a tool of this name; give yours name='...'")
        named[built_in.name] = built_in
    for toolset in toolsets:
        toolset.close()
    return MappingProxyType(named)
