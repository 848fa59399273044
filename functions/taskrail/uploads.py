"""The built-in tool that gives a caller a URL to upload a file to."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from taskrail.docstrings import docstring_of
from taskrail.results import returns_from
from taskrail.signature import signature_of
from taskrail.tools import Tool

NAME = "request_upload"

# https://docs.aws.amazon.com/AmazonS3/latest/userguide/PresignedUrlUploadObject.html
MOST_BYTES = 5 * 1024**3

# No folders, no control characters, and not dots alone.
_FILENAME = r"^[^/\\\x00-\x1f]*[^./\\\x00-\x1f][^/\\\x00-\x1f]*$"

# RFC 6838, section 4.2, with parameters as RFC 9110, section 8.3.1, has them; nothing that ends a header.
_MEDIA_TYPE = r"^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+( ?; ?[\x21-\x7e]+)*$"


class Upload(BaseModel):
    """Where a caller may put one file."""

    uri: str = Field(description="What to hand in as an argument once the file is there.")
    url: str = Field(description="Where to send the file; a secret until it expires.")
    method: str = Field(default="PUT", description="HTTP method of the upload.")
    headers: dict[str, str] = Field(default_factory=dict, description="Headers that the upload must have.")
    expiresAt: str = Field(description="When the URL stops working, ISO 8601.")


def _request_upload(
    filename: Annotated[str, Field(min_length=1, max_length=255, pattern=_FILENAME)],
    content_type: Annotated[str | None, Field(max_length=100, pattern=_MEDIA_TYPE)] = None,
    size_bytes: Annotated[int | None, Field(ge=0, le=MOST_BYTES)] = None,
) -> Upload:
    """Get a URL to upload one file to, so that its s3:// URI can be handed to other tools.

    Send the file's bytes to the returned url with the returned method and headers, then use the returned uri
    as an argument.

    Parameters
    ----------
    filename
        Name of the file, without folders.
    content_type
        Its media type, such as text/csv; the upload must say the same.
    size_bytes
        Its exact length, at most 5 GB; the upload must have it.
    """
    raise NotImplementedError("the kit's front answers this tool itself")


def upload_tool() -> Tool:
    """The tool ``request_upload``; the wire does its work, since that needs the payloads' bucket."""
    function: Any = _request_upload
    return Tool(
        name=NAME,
        description=docstring_of(function).text,
        kind="inline",
        signature=signature_of(NAME, function),
        returns=returns_from(NAME, Upload),
        mode="forbidden",
        function=function,
        title="Request an upload",
        annotations={"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False},
        builtin="upload",
    )
