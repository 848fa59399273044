"""The docstring of a tool: its description, and what it says about each parameter."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_GOOGLE = re.compile(r"(Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters)\s*:\s*")
_NUMPY = re.compile(r"(Parameters|Other Parameters|Keyword Parameters)\s*")
_RULE = re.compile(r"\s*-{3,}\s*")
_NUMPY_ENTRY = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")
_GOOGLE_ENTRY = re.compile(r"(\*{0,2}\w+)\s*(?:\([^)]*\))?\s*:(?:\s+(.*))?")


@dataclass(frozen=True)
class Docstring:
    """A docstring taken apart.

    Parameters
    ----------
    text
        The docstring without its section about parameters.
    parameters
        What it says about parameters, by name.
    """

    text: str
    parameters: dict[str, str]


def docstring_of(function: Callable[..., Any]) -> Docstring:
    """The docstring of a function, taken apart.

    Parameters
    ----------
    function
        Any function; the docstring is read in numpy or Google style.
    """
    return parse_docstring(function.__doc__ or "")


def parse_docstring(docstring: str) -> Docstring:
    """Split a docstring in numpy or Google style; never fails, whatever it is given.

    Parameters
    ----------
    docstring
        As it stands in the source, indented.
    """
    lines = inspect.cleandoc(docstring).splitlines()
    kept: list[str] = []
    parameters: dict[str, str] = {}
    index = 0
    while index < len(lines):
        line = lines[index]
        if _NUMPY.fullmatch(line) and index + 1 < len(lines) and _RULE.fullmatch(lines[index + 1]):
            index = _numpy_section(lines, index + 2, parameters)
        elif _GOOGLE.fullmatch(line) and index + 1 < len(lines) and lines[index + 1].startswith((" ", "\t")):
            index = _google_section(lines, index + 1, parameters)
        else:
            kept.append(line)
            index += 1
    return Docstring(_paragraphs(kept), parameters)


def _numpy_section(lines: list[str], start: int, parameters: dict[str, str]) -> int:
    """Read entries until the next section's underlined heading; returns where that starts."""
    index = start
    names: list[str] = []
    words: list[str] = []
    while index < len(lines):
        line = lines[index]
        underlined = index + 1 < len(lines) and bool(_RULE.fullmatch(lines[index + 1]))
        if line.strip() and not line[0].isspace():
            entry = _NUMPY_ENTRY.fullmatch(line)
            if underlined or entry is None:
                break
            _note(names, words, parameters)
            names, words = [name.strip(" *") for name in entry[1].split(",")], []
        else:
            words.append(line)
        index += 1
    _note(names, words, parameters)
    return index


def _google_section(lines: list[str], start: int, parameters: dict[str, str]) -> int:
    """Read indented entries until the indentation ends; returns where that is."""
    index = start
    indent = len(lines[start]) - len(lines[start].lstrip())
    names: list[str] = []
    words: list[str] = []
    while index < len(lines):
        line = lines[index]
        if line.strip() and not line[0].isspace():
            break
        depth = len(line) - len(line.lstrip())
        entry = _GOOGLE_ENTRY.fullmatch(line.strip()) if line.strip() and depth <= indent else None
        if entry is not None:
            _note(names, words, parameters)
            names, words = [entry[1].strip("*")], [entry[2] or ""]
        else:
            words.append(line)
        index += 1
    _note(names, words, parameters)
    return index


def _note(names: list[str], words: list[str], parameters: dict[str, str]) -> None:
    """Keep what was said about the parameters of one entry."""
    text = " ".join(" ".join(words).split())
    for name in names:
        if text:
            parameters.setdefault(name, text)


def _paragraphs(lines: list[str]) -> str:
    """The lines without the blank ones that a section left behind."""
    text = "\n".join(line.rstrip() for line in lines).strip()
    return re.sub(r"\n{3,}", "\n\n", text)
