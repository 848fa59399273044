"""The one way in which the story goes wrong."""

from __future__ import annotations


class StoryBroken(Exception):
    """Something that the demo tells does not hold; the message says what."""


def expect(holds: object, otherwise: str) -> None:
    """Go on only if it holds.

    Raises
    ------
    StoryBroken
        It does not.
    """
    if not holds:
        raise StoryBroken(otherwise)
