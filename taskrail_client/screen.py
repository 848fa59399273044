"""What a person sees: a line that is drawn again while a task goes on, and the result. Nothing moves off a terminal."""

from __future__ import annotations

import json
import shutil
from typing import Any, TextIO

from mcp_types import CallToolResult

from taskrail_client.progress import Progress

BAR = 20


def plain(text: str) -> str:
    """A text of the server without what would steer the terminal; line breaks and tabs stay."""
    return "".join(character for character in text if character.isprintable() or character in "\n\t")


class Screen:
    """Shows progress.

    Parameters
    ----------
    stream
        Where to.
    live
        Whether it is a terminal; otherwise nothing is shown.
    """

    def __init__(self, stream: TextIO, *, live: bool) -> None:
        self._stream = stream
        self._live = live
        self._shown = 0

    def show(self, progress: Progress) -> None:
        """Draw the line again."""
        if not self._live:
            return
        width = max(20, shutil.get_terminal_size().columns - 1)
        line = line_of(progress)[:width]
        self._stream.write("\r" + line + " " * (self._shown - len(line)))
        self._stream.flush()
        self._shown = len(line)

    def clear(self) -> None:
        """Take the line away, so that something else can be said."""
        if self._shown:
            self._stream.write("\r" + " " * self._shown + "\r")
            self._stream.flush()
            self._shown = 0


def line_of(progress: Progress) -> str:
    """How a task stands, in one line."""
    parts = [progress.tool or progress.task_id, progress.status]
    if progress.total and progress.done is not None:
        share = min(max(progress.done / progress.total, 0.0), 1.0)
        full = round(share * BAR)
        parts.append(f"[{'#' * full}{'-' * (BAR - full)}] {share:.0%}")
    elif progress.done is not None:
        parts.append(f"{progress.done:g}")
    if progress.message:
        parts.append(progress.message)
    if progress.note:
        parts.append(f"({progress.note})")
    return plain("  ".join(parts)).replace("\n", " ").replace("\t", " ")


def text_of(result: CallToolResult) -> str:
    """A result for a person: its texts, and a line for each other part."""
    lines = []
    for block in result.content:
        match block.type:
            case "text":
                lines.append(plain(block.text))
            case "resource_link":
                lines.append(plain(f"{block.name}: {block.uri}"))
            case "image" | "audio":
                lines.append(f"({block.type}, {plain(block.mime_type)}, {len(block.data) * 3 // 4} bytes)")
            case _:
                lines.append("(a document; --json shows it)")
    if not lines and result.structured_content is not None:
        lines.append(json.dumps(result.structured_content, ensure_ascii=False, indent=2))
    return "\n".join(lines)


def json_of(result: CallToolResult) -> dict[str, Any]:
    """A result for a program, as it came over the wire."""
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)
