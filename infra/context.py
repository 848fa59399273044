"""Values of the CDK context, read one by one; a wrong one is named together with what is allowed."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any


class ConfigurationError(Exception):
    """A value of the context cannot be used; the message names the key and what is allowed.

    Parameters
    ----------
    key
        The key, as it is written after ``-c``.
    problem
        What is wrong, and what to write.
    """

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"{key}: {problem}")
        self.key = key


class Context:
    """The context with a reader for each kind of value.

    Parameters
    ----------
    values
        The context: texts where it comes from ``-c``, any JSON where it comes from cdk.json.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def text(self, key: str, *, pattern: str | None = None, example: str = "") -> str | None:
        """A text, or None when it is absent or empty.

        Parameters
        ----------
        pattern, example
            What the whole of it must match, and one that does.
        """
        value = self._values.get(key)
        if value is None or value == "":
            return None
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise ConfigurationError(key, f"is a text{_such_as(example)}")
        text = str(value).strip()
        if pattern is not None and not re.fullmatch(pattern, text):
            raise ConfigurationError(key, f"{text!r} is not of the right form; write one{_such_as(example)}")
        return text

    def choice(self, key: str, allowed: Iterable[str], default: str) -> str:
        """One of several words."""
        known = tuple(allowed)
        value = self.text(key) or default
        if value not in known:
            raise ConfigurationError(key, f"{value!r} is none of {', '.join(known)}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self._values.get(key)
        if value is None or value == "":
            return default
        if isinstance(value, bool):
            return value
        if value not in ("true", "false"):
            raise ConfigurationError(key, f"{value!r} is neither true nor false")
        return bool(value == "true")

    def number(self, key: str, lowest: int, highest: int, default: int | None) -> int | None:
        """A whole number within bounds."""
        text = self.text(key)
        if text is None:
            return default
        if not re.fullmatch(r"[0-9]{1,9}", text) or not lowest <= int(text) <= highest:
            raise ConfigurationError(key, f"{text!r} is no whole number from {lowest} to {highest}")
        return int(text)

    def listed(self, key: str, *, pattern: str, example: str) -> tuple[str, ...]:
        """A list of texts: JSON in cdk.json, separated by commas after ``-c``."""
        value = self._values.get(key)
        if value is None or value == "":
            return ()
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
            raise ConfigurationError(key, f"is a list of texts{_such_as(example)}")
        texts = tuple(part.strip() for part in parts if part.strip())
        for text in texts:
            if not re.fullmatch(pattern, text):
                raise ConfigurationError(key, f"{text!r} is not of the right form; write{_such_as(example)}")
        return texts

    def mapping(self, key: str, *, example: str) -> dict[str, str]:
        """An object of texts: JSON in cdk.json, JSON text after ``-c``."""
        value = self._object(key)
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
            raise ConfigurationError(key, f"is an object of texts{_such_as(example)}")
        return value

    def counts(self, key: str, *, example: str) -> dict[str, int]:
        """An object of whole numbers above zero: JSON in cdk.json, JSON text after ``-c``."""
        value = self._object(key)
        if value is None:
            return {}
        whole = isinstance(value, dict) and all(type(item) is int and item > 0 for item in value.values())
        if not whole:
            raise ConfigurationError(key, f"is an object of whole numbers above zero{_such_as(example)}")
        return dict(value)

    def _object(self, key: str) -> Any:
        value = self._values.get(key)
        if value is None or value == "":
            return None
        if isinstance(value, str):
            try:
                return json.loads(value)
            except ValueError:
                return False
        return value

    def refuse_unknown(self, known: Iterable[str]) -> None:
        """Refuse keys that nobody reads: a misspelt one would be ignored in silence.

        Keys of CDK's own have a colon, a slash or an at sign in them, and pass.
        """
        names = sorted(known)
        for key in self._values:
            if key in names or re.search(r"[:/@]", key):
                continue
            near = difflib.get_close_matches(key, names, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
            raise ConfigurationError(key, f"is no key of this kit; {hint}")


def _such_as(example: str) -> str:
    return f" such as {example}" if example else ""
