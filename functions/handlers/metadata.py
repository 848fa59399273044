"""API Gateway → the document that says who signs this server's tokens (RFC 9728).

An HTTP API cannot answer by itself. The text is made at the deployment, so that nothing is worked out here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taskrail.loading import made_late
from taskrail.settings import required

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]


def bind(document: str) -> Handler:
    """A handler that answers with a document.

    Parameters
    ----------
    document
        The metadata as JSON text.
    """

    def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
        headers = {
            "Content-Type": "application/json",
            "Cache-Control": "public, max-age=3600",
            # Any page may learn where its user has to sign in.
            "Access-Control-Allow-Origin": "*",
        }
        return {"statusCode": 200, "headers": headers, "body": document, "isBase64Encoded": False}

    return handle


__getattr__ = made_late(__name__, handler=lambda: bind(required("TASKRAIL_RESOURCE_METADATA")))
