"""Docstrings: what an agent reads of them, in numpy and in Google style."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from taskrail.docstrings import parse_docstring


def test_numpy() -> None:
    parsed = parse_docstring(
        """Render a report.

        It takes a while.

        Parameters
        ----------
        report : str, optional
            Which report;
            by name.

            It must exist.
        pages, size
            How much of it.
        *rest
            More.
        unsaid

        Returns
        -------
        str
            Where it is.
        """
    )
    assert parsed.parameters == {
        "report": "Which report; by name. It must exist.",
        "pages": "How much of it.",
        "size": "How much of it.",
        "rest": "More.",
    }
    assert parsed.text == "Render a report.\n\nIt takes a while.\n\nReturns\n-------\nstr\n    Where it is."


def test_google() -> None:
    parsed = parse_docstring(
        """Render a report.

        Args:
            report (str, optional): Which report:
                by name.
            pages: How many: at most 500.
            **rest: More.

            unsaid:
        Returns:
            Where it is.
        """
    )
    assert parsed.parameters == {
        "report": "Which report: by name.",
        "pages": "How many: at most 500.",
        "rest": "More.",
    }
    assert parsed.text == "Render a report.\n\nReturns:\n    Where it is."


def test_two_sections() -> None:
    parsed = parse_docstring(
        "A.\n\nParameters\n----------\na\n    One.\n\nOther Parameters\n----------------\nb\n    Two."
    )
    assert parsed.parameters == {"a": "One.", "b": "Two."}
    assert parsed.text == "A."


def test_text_that_only_looks_like_a_section() -> None:
    for text in (
        "Parameters",
        "Args:",
        "Args:\nnothing below",
        "Parameters\nare listed elsewhere.",
        "Use Args: a lot.",
    ):
        assert parse_docstring(text).text == text
        assert parse_docstring(text).parameters == {}


def test_a_section_alone_leaves_no_text() -> None:
    assert parse_docstring("\n    Args:\n        a: One.\n    ").text == ""


def test_nothing() -> None:
    assert parse_docstring("").text == ""


LINES = st.lists(
    st.sampled_from(
        [
            "Parameters",
            "----------",
            "Args:",
            "    a: b",
            "a : int",
            "    text",
            "",
            "Returns",
            "-------",
            "Returns:",
            "*x",
            ":",
        ]
    )
    | st.text(max_size=12),
    max_size=14,
)


@given(LINES)
def test_any_text_is_read_without_inventing_words(lines: list[str]) -> None:
    source = "\n".join(lines)
    parsed = parse_docstring(source)
    for name, words in parsed.parameters.items():
        assert name in source
        assert words
        for word in words.split():
            assert word in source
    for line in parsed.text.splitlines():
        assert line.strip() in source.expandtabs()


NAMES = st.lists(st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True), min_size=1, max_size=4, unique=True)
WORDS = st.lists(st.from_regex(r"[A-Za-z][a-z]{0,6}[.,]?", fullmatch=True), min_size=1, max_size=12)


@given(NAMES, st.data(), st.booleans())
def test_both_styles_say_the_same(names: list[str], data: st.DataObject, wrapped: bool) -> None:
    said = {name: data.draw(WORDS) for name in names}
    gap = "\n        " if wrapped else " "
    numpy = "".join(f"{name} : str\n    {gap.join(words)}\n" for name, words in said.items())
    google = "".join(f"    {name} (str): {gap.join(words)}\n" for name, words in said.items())
    expected = {name: " ".join(words) for name, words in said.items()}
    for text in (f"Do it.\n\nParameters\n----------\n{numpy}", f"Do it.\n\nArgs:\n{google}"):
        parsed = parse_docstring(text)
        assert parsed.parameters == expected
        assert parsed.text == "Do it."
