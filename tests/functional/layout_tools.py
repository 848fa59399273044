"""The tools whose tasks stand in `items/`: a deployment of today must finish what one of an earlier layout began.

These declarations belong to the frozen items; change neither.
"""

from __future__ import annotations

import warnings
from typing import Any

from pydantic import BaseModel

from taskrail import Call, ProtocolError, StepFunctions, TaskContext, TaskServer, Toolset, hours, minutes, seconds

WORK = StepFunctions(timeout=minutes(5))


class Approval(BaseModel):
    publish: bool
    note: str = ""


def declared() -> Toolset:
    """A new set of the tools."""
    tools = Toolset()

    @tools.task(runs_on=WORK, keep_result=hours(2), answer_within=hours(3), poll_interval=seconds(2))
    def report(task: TaskContext, title: str, body: str = "", fail: bool = False) -> dict[str, Any]:
        """Render a report and publish it once somebody agrees."""
        pages = task.step("render", lambda: {"pages": 12, "text": body})
        task.attach("report.txt", f"{title}: {pages['pages']} pages")
        if fail:
            raise ProtocolError(4711, "The archive is closed.", {"until": "Monday"})
        answers = task.ask_all({"approval": (f"Publish {title}?", Approval), "review": ("Reviewed?", None)})
        return {"title": title, "pages": pages["pages"], "published": answers["approval"].content.publish}

    @report.before
    def confirm(call: Call, title: str) -> None:
        if title == "ask first":
            call.ask("sure", "Sure?")

    with warnings.catch_warnings():
        # A result that is kept for ever warns where it is declared.
        warnings.simplefilter("ignore")

        @tools.task(runs_on=WORK, keep_result=None)
        def archive(task: TaskContext, title: str) -> str:
            """Archive, for ever."""
            return f"{title} archived"

    return tools


server = TaskServer("layout", version="1", tools=[declared()])
