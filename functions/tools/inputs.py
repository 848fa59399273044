"""How the document tools take their documents: as text, or by URI."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import BaseModel, Field

from taskrail import TaskContext, ToolError


class Document(BaseModel):
    """One document handed in as text."""

    name: str = Field(min_length=1, max_length=300, description="What the results call this document.")
    text: str = Field(description="The document itself.")


Documents = Annotated[tuple[Document, ...], Field(max_length=1000, description="Documents handed in as text.")]
Uris = Annotated[
    tuple[Annotated[str, Field(pattern=r"^s3://[^/]+/.+", max_length=1200)], ...],
    Field(max_length=1000, description="UTF-8 documents under the caller's own input prefix, as s3:// URIs."),
]


def require_some(documents: Documents, uris: Uris) -> None:
    """Refuse a call that hands in nothing.

    Raises
    ------
    ToolError
        There is neither a document nor a URI.
    """
    if not documents and not uris:
        raise ToolError("There is nothing to read: hand in documents, uris, or both.")


def read(task: TaskContext, documents: Documents, uris: Uris) -> Iterator[Document]:
    """Every document of a call, one at a time: those handed in as text, then those behind the URIs.

    Raises
    ------
    ToolError
        A URI lies outside the caller's own prefix, nothing is there, or it is no UTF-8 text.
    """
    yield from documents
    for number, uri in enumerate(uris, 1):
        with task.open_input(uri) as source:
            data = source.read()
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ToolError(f"uris[{number - 1}] is no UTF-8 text.") from error
        yield Document(name=uri.rpartition("/")[2], text=text)
