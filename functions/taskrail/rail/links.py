"""Links in results: stored as pointers, handed out as presigned URLs that are fresh at every read.

A part too large to travel goes to the bucket, and a link takes its place: nothing is cut, and
nothing turns into an error of the gateway.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from taskrail.payloads import POINTER, Payloads, dump
from taskrail.results import error_result

LARGEST_RESULT = 4_900_000
"""Bytes of a result after escaping. Lambda takes 6 MB, with the answer as a JSON string inside JSON; the wire sends
5 MB of them, the task's own fields and the envelope included."""

LINK_BYTES = 4_000
"""What a presigned URL adds to a link: a key, a file name, a signature, and the session token of a role."""

Put = Callable[[bytes, str, str], str]
"""Puts bytes of a media type under a label and returns the pointer."""


def fresh(task_id: str, result: dict[str, Any], payloads: Payloads, seconds: int) -> dict[str, Any]:
    """The result with a new presigned URL in place of every pointer.

    Parameters
    ----------
    task_id
        Whose result it is. A link that only looks like a pointer, because a tool returned one that its caller
        made up, leads to nothing of another task's or another caller's.
    result
        A stored CallToolResult.
    payloads
        The bucket.
    seconds
        Life of the URLs.
    """
    content = []
    for block in result.get("content", ()):
        if _is_pointer(block, task_id):
            block = {**block, "uri": payloads.link(block["uri"], seconds=seconds, filename=block["name"])}
        content.append(block)
    return {**result, "content": content}


def _is_pointer(block: dict[str, Any], task_id: str = "") -> bool:
    return block.get("type") == "resource_link" and str(block.get("uri")).startswith(f"{POINTER}tasks/{task_id}")


def escaped_size(text: str) -> int:
    """Bytes of a JSON text once it stands as a string inside another, all non-ASCII escaped: the worst case."""
    return len(json.dumps(text))


def fitted(result: dict[str, Any], put: Put) -> dict[str, Any]:
    """The result, its largest blocks replaced by links until the answer fits.

    Structured content stays, so that it still conforms to the tool's schema; when it alone is too
    large, the result says so as an error and links to the whole.

    Parameters
    ----------
    result
        A CallToolResult, links as pointers.
    put
        Stores what does not fit.
    """
    if _size(result) <= LARGEST_RESULT:
        return result
    content = list(result["content"])
    sizes = sorted(((escaped_size(dump(block)), index) for index, block in enumerate(content)), reverse=True)
    for size, index in sizes:
        link = _offloaded(content[index], index, put) if size > LINK_BYTES else None
        if link is None:
            continue
        content[index] = link
        if _size({**result, "content": content}) <= LARGEST_RESULT:
            return {**result, "content": content}
    # Files that are linked already stay links; all the rest is linked as one.
    files = [block for block in result["content"] if _is_pointer(block)]
    rest = {**result, "content": [block for block in result["content"] if not _is_pointer(block)]}
    whole = _link(put(dump(rest).encode(), "application/json", "result.json"), "result.json", "application/json")
    notice = error_result("The job finished, but its result is too large to be sent. It is linked here.")
    return {**notice, "content": [*notice["content"], whole, *files]}


def _size(result: dict[str, Any]) -> int:
    """Bytes of a result in an answer, its links made."""
    return escaped_size(dump(result)) + LINK_BYTES * sum(map(_is_pointer, result["content"]))


def _offloaded(block: dict[str, Any], index: int, put: Put) -> dict[str, Any] | None:
    kind = block["type"]
    if kind == "text":
        name, mime_type, data = (
            f"text-{index + 1}.txt",
            "text/plain; charset=utf-8",
            block["text"].encode("utf-8", "replace"),
        )
    elif kind in ("image", "audio"):
        mime_type = block["mimeType"]
        name, data = f"{kind}-{index + 1}", base64.b64decode(block["data"])
    elif kind == "resource":
        resource = block["resource"]
        mime_type = resource.get("mimeType", "application/octet-stream")
        name = f"resource-{index + 1}"
        data = base64.b64decode(resource["blob"]) if "blob" in resource else resource["text"].encode("utf-8", "replace")
    else:
        return None
    return _link(put(data, mime_type, name), name, mime_type, len(data))


def _link(pointer: str, name: str, mime_type: str, size: int | None = None) -> dict[str, Any]:
    link: dict[str, Any] = {"type": "resource_link", "uri": pointer, "name": name, "mimeType": mime_type}
    if size is not None:
        link["size"] = size
    return link
