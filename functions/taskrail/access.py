"""Who is calling: the API's authorizer decides, this turns its verdict into one owner.

An owner is a hash of a canonical form that begins with the kind of authorizer, so that no two kinds share a
space, and none shares one with the anonymous owner. Which kind a deployment has is a setting: nothing in an
event can choose it. A verdict that lacks what it must have is an error, never the anonymous owner.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from taskrail.caller import Caller
from taskrail.errors import Forbidden, InternalError
from taskrail.settings import Settings

ANONYMOUS = "anonymous"

_IDENTITY_KEYS = ("accessKey", "accountId", "apiKey", "caller", "cognitoIdentityId", "user", "userArn")
"""Fields that API Gateway fills for callers that IAM or an API key vouches for (REST APIs)."""

_LONGEST = 512
"""Characters of a name or a claim that is told to tools."""

_log = logging.getLogger("taskrail")


def identify(event: Any) -> Caller:
    """The caller of an event where no authorizer vouches for anybody.

    Parameters
    ----------
    event
        Payload format 1.0 or 2.0.

    Raises
    ------
    InternalError
        The event says who is calling all the same: refused, since everybody would see everybody's tickets.
    """
    context = _mapping(_mapping(event).get("requestContext"))
    identity = _mapping(context.get("identity"))
    if context.get("authorizer") or (identity and any(identity.get(key) for key in _IDENTITY_KEYS)):
        _log.error("the API has an authorizer, but TASKRAIL_AUTH does not name it: the request is refused")
        raise InternalError
    return Caller(ANONYMOUS, anonymous=True)


def identifier(settings: Settings) -> Callable[[Any], Caller]:
    """What tells the caller of an event, for the kind of authorizer that a deployment has.

    Parameters
    ----------
    settings
        With `auth` and what belongs to it.
    """
    if settings.auth == "none":
        return identify
    kinds: Mapping[str, Callable[[Settings, Mapping[str, Any]], Caller]] = {
        "jwt": _by_token,
        "iam": _by_iam,
        "lambda": _by_lambda,
        "api_key": _by_api_key,
    }
    kind = kinds[settings.auth]

    def tell(event: Any) -> Caller:
        return kind(settings, _mapping(_mapping(event).get("requestContext")))

    return tell


@lru_cache(maxsize=1024)
def owner_key(kind: str, *parts: str | None) -> str:
    """The owner of a principal: a hash of its canonical form.

    Parameters
    ----------
    kind
        Of the authorizer.
    parts
        What names the principal within it.
    """
    canonical = json.dumps([kind, *parts], separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def _by_token(settings: Settings, context: Mapping[str, Any]) -> Caller:
    """A JWT authorizer of an HTTP API, in both payload formats, or a Cognito one of a REST API.

    https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
    """
    authorizer = _mapping(context.get("authorizer"))
    verdict = _mapping(authorizer.get("jwt")) or authorizer
    claims = _mapping(verdict.get("claims"))
    issuer, subject = _text(claims.get("iss")), _text(claims.get("sub"))
    if issuer is None or subject is None:
        raise _unknown("its token names no issuer or no subject")
    tenant = None
    if settings.tenant_claim is not None:
        tenant = _text(claims.get(settings.tenant_claim))
        if tenant is None:
            _log.warning("a token without the claim %s was refused", settings.tenant_claim)
            raise Forbidden("Your token names no tenant, and this server serves tenants.")
    return Caller(
        owner_key("jwt", issuer, subject, tenant),
        subject=subject,
        tenant=tenant,
        scopes=_scopes(verdict.get("scopes"), claims.get("scope"), claims.get("scp")),
        claims=_chosen(settings, claims),
    )


def _by_iam(settings: Settings, context: Mapping[str, Any]) -> Caller:
    """IAM on an HTTP API (``authorizer.iam``) or a REST API (``identity``); the principal's unique id counts."""
    verdict = _mapping(_mapping(context.get("authorizer")).get("iam"))
    identity = _mapping(context.get("identity"))
    pool = _text(_mapping(verdict.get("cognitoIdentity")).get("identityId")) or _text(identity.get("cognitoIdentityId"))
    account = _text(verdict.get("accountId")) or _text(identity.get("accountId"))
    principal = (
        _text(verdict.get("callerId"))
        or _text(verdict.get("userId"))
        or _text(identity.get("caller"))
        or _text(identity.get("user"))
    )
    if pool is not None:
        # All users of an identity pool come with one role: the role would make them one owner.
        return Caller(owner_key("iam", "pool", pool), subject=pool)
    if account is None or principal is None:
        raise _unknown("IAM names no account or no principal")
    role, _, session = principal.partition(":")
    if settings.iam_owner == "role" or not session:
        return Caller(owner_key("iam", "role", account, role), subject=role, tenant=account)
    return Caller(owner_key("iam", "session", account, role, session), subject=principal, tenant=account)


def _by_lambda(settings: Settings, context: Mapping[str, Any]) -> Caller:
    """A Lambda authorizer: on an HTTP API its context is ``authorizer.lambda``, else ``authorizer`` itself."""
    authorizer = _mapping(context.get("authorizer"))
    verdict = _mapping(authorizer["lambda"]) if "lambda" in authorizer else authorizer
    key = settings.owner_key or ""
    owner = _text(verdict.get(key))
    if owner is None:
        raise _unknown(f"the authorizer's context has no text under {key!r}")
    tenant = None if settings.tenant_claim is None else _text(verdict.get(settings.tenant_claim))
    if settings.tenant_claim is not None and tenant is None:
        raise _unknown(f"the authorizer's context has no text under {settings.tenant_claim!r}")
    return Caller(
        owner_key("lambda", owner, tenant),
        subject=owner,
        tenant=tenant,
        scopes=_scopes(None, verdict.get("scope"), None),
        claims=_chosen(settings, verdict),
    )


def _by_api_key(settings: Settings, context: Mapping[str, Any]) -> Caller:
    """An API key of a REST API; its id outlives a change of its name, and is no secret."""
    key = _text(_mapping(context.get("identity")).get("apiKeyId"))
    if key is None:
        raise _unknown("the event names no API key")
    return Caller(owner_key("api_key", key), subject=key)


def _unknown(why: str) -> InternalError:
    _log.error("the API's authorizer let a request pass that names no caller (%s): it is refused", why)
    return InternalError()


def _scopes(listed: Any, *texts: Any) -> frozenset[str]:
    """The scopes of a verdict: a list of API Gateway's, or texts separated by spaces, in brackets perhaps."""
    found = {scope for scope in listed if isinstance(scope, str)} if isinstance(listed, list) else set()
    for text in texts:
        if isinstance(text, str):
            found |= set(text.strip("[]").replace(",", " ").split())
    return frozenset(found)


def _chosen(settings: Settings, claims: Mapping[str, Any]) -> dict[str, str]:
    told = {name: claims[name] for name in settings.claims if isinstance(claims.get(name), str | int | float)}
    return {name: str(value)[:_LONGEST] for name, value in told.items()}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value != "" else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, (dict, Mapping)) else {}
