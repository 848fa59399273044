"""Texts of results: what can be sent, and the error for what cannot."""

from __future__ import annotations

from taskrail.errors import TaskrailError


class ResultError(TaskrailError):
    """A result cannot be sent as it is; the message says why and what to return instead."""


def sendable(text: str, where: str) -> str:
    """The text, if UTF-8 can carry it.

    Parameters
    ----------
    text
        Any string.
    where
        What it is, for the message.

    Raises
    ------
    ResultError
        If it holds half of a surrogate pair, which no encoder accepts.
    """
    if not isinstance(text, str):
        raise ResultError(f"{where} must be a string, not {type(text).__name__}")
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise ResultError(
                f"{where} holds a lone surrogate, which UTF-8 cannot carry; clean the text first"
            ) from None
    return text
