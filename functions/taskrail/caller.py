"""Whoever calls, as tools may know them: never a token, and only the claims that the deployment chose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Caller:
    """Whoever makes the request.

    Parameters
    ----------
    owner
        Opaque key of the principal; tasks belong to it.
    anonymous
        Whether nobody vouches for it, so that everybody is this one.
    subject
        What its authorizer calls it; None for the anonymous one.
    tenant
        Its tenant, where the deployment names a claim for that.
    scopes
        What its token allows.
    claims
        The claims that the deployment chose to tell tools of.
    """

    owner: str
    anonymous: bool = False
    subject: str | None = None
    tenant: str | None = None
    scopes: frozenset[str] = frozenset()
    claims: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """What a task keeps of its caller for its job; nothing of the anonymous one."""
        told: dict[str, Any] = {}
        if self.subject is not None:
            told["subject"] = self.subject
        if self.tenant is not None:
            told["tenant"] = self.tenant
        if self.scopes:
            told["scopes"] = sorted(self.scopes)
        if self.claims:
            told["claims"] = dict(self.claims)
        return told

    @classmethod
    def from_json(cls, owner: str, told: Mapping[str, Any], *, anonymous: bool = False) -> Caller:
        """The caller that `to_json` told of."""
        return cls(
            owner=owner,
            anonymous=anonymous,
            subject=told.get("subject"),
            tenant=told.get("tenant"),
            scopes=frozenset(told.get("scopes", ())),
            claims=dict(told.get("claims", {})),
        )
