"""Real documents: the help topics of Python, the sources of its library and of the installed packages."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from typing import Any

SMALLEST, LARGEST = 500, 12_000
SKIPPED = {"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "encodings", "__pycache__"}


def help_topics() -> list[dict[str, Any]]:
    """The pages of `help("topics")` as the documents of a call."""
    from pydoc_data.topics import topics

    return [{"name": f"topic {name}", "text": text} for name, text in topics.items()]


def sources(characters: int, most: int = 720) -> list[dict[str, Any]]:
    """Python modules of moderate size as the documents of a call.

    Parameters
    ----------
    characters
        Stop before the texts together are longer than this; a request to AWS Lambda holds 6 MB.
    most
        Stop at this many documents.
    """
    documents: list[dict[str, Any]] = []
    for root in (Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("purelib"))):
        for path in sorted(root.rglob("*.py")):
            place = path.relative_to(root)
            if SKIPPED.intersection(place.parts) or not SMALLEST < path.stat().st_size < LARGEST:
                continue
            try:
                text = path.read_text("utf-8")
            except UnicodeDecodeError:
                continue
            characters -= len(text)
            if characters < 0 or len(documents) == most:
                return documents
            documents.append({"name": place.as_posix(), "text": text})
    return documents
