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

LARGEST_ANSWER = 5_000_000
"""Bytes of an answer after escaping. Lambda takes 6 MB, with the answer as a JSON string inside JSON."""

Put = Callable[[bytes, str, str], str]
"""Puts bytes of a media type under a label and returns the pointer."""


def fresh(result: dict[str, Any], payloads: Payloads, seconds: int) -> dict[str, Any]:
    """The result with a new presigned URL in place of every pointer.

    Parameters
    ----------
    result
        A stored CallToolResult.
    payloads
        The bucket.
    seconds
        Life of the URLs.
    """
    content = []
    for block in result.get("content", ()):
        uri = block.get("uri") if block.get("type") == "resource_link" else None
        if isinstance(uri, str) and uri.startswith(POINTER):
            block = {**block, "uri": payloads.link(uri, seconds=seconds, filename=block["name"])}
        content.append(block)
    return {**result, "content": content}


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
    if escaped_size(dump(result)) <= LARGEST_ANSWER:
        return result
    content = list(result["content"])
    sizes = sorted(((escaped_size(dump(block)), index) for index, block in enumerate(content)), reverse=True)
    for _, index in sizes:
        link = _offloaded(content[index], index, put)
        if link is None:
            continue
        content[index] = link
        if escaped_size(dump({**result, "content": content})) <= LARGEST_ANSWER:
            return {**result, "content": content}
    whole = _link(put(dump(result).encode(), "application/json", "result.json"), "result.json", "application/json")
    kept = [block for block in content if block["type"] == "resource_link"]
    notice = error_result("The job finished, but its structured result is too large to be sent. It is linked here.")
    small = {**notice, "content": [*notice["content"], whole, *kept]}
    return small if escaped_size(dump(small)) <= LARGEST_ANSWER else {**notice, "content": [*notice["content"], whole]}


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
