"""Who is calling. For now everybody is the one anonymous owner, and nothing else is believed.

An event that carries an authorizer's verdict comes from an API that knows its callers. To serve it as
anonymous would show every caller the tickets of all others, so such an event is refused.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taskrail.errors import InternalError

ANONYMOUS = "anonymous"

_IDENTITY_KEYS = ("accessKey", "accountId", "apiKey", "caller", "cognitoIdentityId", "user", "userArn")
"""Fields that API Gateway fills for callers that IAM or an API key vouches for (REST APIs)."""

_log = logging.getLogger("taskrail")


@dataclass(frozen=True)
class Caller:
    """Whoever makes the request.

    Parameters
    ----------
    owner
        Opaque key of the principal; tasks belong to it.
    anonymous
        Whether nobody vouches for it, so that everybody is this one.
    """

    owner: str
    anonymous: bool = False


def identify(event: Any) -> Caller:
    """The caller of an API Gateway event.

    Parameters
    ----------
    event
        Payload format 1.0 or 2.0.

    Raises
    ------
    InternalError
        The event says who is calling, which this kit cannot judge yet: refused, never anonymous.
    """
    context = event.get("requestContext") if isinstance(event, Mapping) else None
    if not isinstance(context, Mapping):
        return Caller(ANONYMOUS, anonymous=True)
    identity = context.get("identity")
    vouched = isinstance(identity, Mapping) and any(identity.get(key) for key in _IDENTITY_KEYS)
    if context.get("authorizer") or vouched:
        _log.error("the API has an authorizer, but callers are not told apart yet: the request is refused")
        raise InternalError
    return Caller(ANONYMOUS, anonymous=True)
