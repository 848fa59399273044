"""Taskrail: batch jobs on AWS as MCP tools.

Everything that tools are written with is imported from here. Names are looked up when they are
first used, so that a module pays only for what it names.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taskrail.call import Call
    from taskrail.caller import Caller
    from taskrail.clock import days, hours, minutes, seconds
    from taskrail.compute import Batch, Lambda, StepFunctions
    from taskrail.content import Audio, Image, Link, Resource, Text, ToolResult
    from taskrail.context import TaskContext
    from taskrail.errors import ProtocolError, ToolError
    from taskrail.inputs import InputFile
    from taskrail.questions import Answer
    from taskrail.schema_headers import Header
    from taskrail.server import TaskServer
    from taskrail.toolset import Toolset
    from taskrail.work import ExistingJob, ExistingStateMachine

__all__ = [
    "Answer",
    "Audio",
    "Batch",
    "Call",
    "Caller",
    "ExistingJob",
    "ExistingStateMachine",
    "Header",
    "Image",
    "InputFile",
    "Lambda",
    "Link",
    "ProtocolError",
    "Resource",
    "StepFunctions",
    "TaskContext",
    "TaskServer",
    "Text",
    "ToolError",
    "ToolResult",
    "Toolset",
    "days",
    "hours",
    "minutes",
    "seconds",
]

_HOMES = {
    "Answer": "questions",
    "Audio": "content",
    "Batch": "compute",
    "Call": "call",
    "Caller": "caller",
    "ExistingJob": "work",
    "ExistingStateMachine": "work",
    "Header": "schema_headers",
    "Image": "content",
    "InputFile": "inputs",
    "Lambda": "compute",
    "Link": "content",
    "ProtocolError": "errors",
    "Resource": "content",
    "StepFunctions": "compute",
    "TaskContext": "context",
    "TaskServer": "server",
    "Text": "content",
    "ToolError": "errors",
    "ToolResult": "content",
    "Toolset": "toolset",
    "days": "clock",
    "hours": "clock",
    "minutes": "clock",
    "seconds": "clock",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
