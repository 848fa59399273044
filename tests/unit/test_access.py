"""One owner per principal, from every authorizer and both event formats; never the anonymous one by accident."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskrail.access import ANONYMOUS, identifier, owner_key
from taskrail.caller import Caller
from taskrail.errors import Forbidden, InternalError
from taskrail.settings import Settings, SettingsError

ISSUER = "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_Abc"
CLAIMS = {"iss": ISSUER, "sub": "user-1", "scope": "reports:read reports:write", "org": "acme", "email": "a@acme.test"}
ROLE = "AROAEXAMPLEID"


def settings(auth: str, **more: Any) -> Settings:
    return Settings("table", "bucket", auth=auth, **more)


def tell(auth: str, context: dict[str, Any], **more: Any) -> Caller:
    return identifier(settings(auth, **more))({"requestContext": context})


def jwt_2(**changes: Any) -> dict[str, Any]:
    """An HTTP API's JWT authorizer, payload format 2.0."""
    return {"authorizer": {"jwt": {"claims": {**CLAIMS, **changes}, "scopes": ["reports:read"]}}}


def jwt_1(**changes: Any) -> dict[str, Any]:
    """The same in payload format 1.0."""
    return {"authorizer": {"claims": {**CLAIMS, **changes}, "scopes": None}, "identity": {"sourceIp": "192.0.2.1"}}


def cognito(**changes: Any) -> dict[str, Any]:
    """A REST API's Cognito authorizer."""
    return {"authorizer": {"claims": {**CLAIMS, **changes}}, "identity": {"apiKey": None, "userArn": None}}


def iam_http(caller: str = f"{ROLE}:session-1", **more: Any) -> dict[str, Any]:
    """IAM on an HTTP API."""
    name = caller.partition(":")[2]
    iam = {
        "accessKey": "ASIAEXAMPLE",
        "accountId": "123456789012",
        "callerId": caller,
        "cognitoIdentity": None,
        "principalOrgId": "aws:PrincipalOrgID",
        "userArn": f"arn:aws:sts::123456789012:assumed-role/agents/{name}",
        "userId": caller,
        **more,
    }
    return {"authorizer": {"iam": iam}}


def iam_rest(caller: str = f"{ROLE}:session-1", **more: Any) -> dict[str, Any]:
    """IAM on a REST API."""
    identity = {"accountId": "123456789012", "caller": caller, "user": caller, "cognitoIdentityId": None, **more}
    return {"identity": identity}


def lambda_http(**context: Any) -> dict[str, Any]:
    """A Lambda authorizer of an HTTP API."""
    return {"authorizer": {"lambda": context}}


def lambda_rest(**context: Any) -> dict[str, Any]:
    """A Lambda authorizer of a REST API."""
    return {"authorizer": {"principalId": "someone", "integrationLatency": 7, **context}}


def api_key(key_id: str = "key-id-1") -> dict[str, Any]:
    return {"identity": {"apiKey": "the-secret-key", "apiKeyId": key_id}}


@pytest.mark.parametrize("event", [jwt_2(), jwt_1(), cognito()])
def test_a_token_is_one_owner_in_every_format(event: dict[str, Any]) -> None:
    caller = tell("jwt", event)
    assert (caller.owner, caller.subject, caller.anonymous) == (
        owner_key("jwt", ISSUER, "user-1", None),
        "user-1",
        False,
    )
    assert caller.scopes >= {"reports:read", "reports:write"}


def test_scopes_that_come_as_a_list_in_brackets_are_told_apart() -> None:
    """API Gateway writes a claim that is a list as text in brackets."""
    assert tell("jwt", jwt_2(scope=None, scp="[a b]")).scopes == {"a", "b", "reports:read"}


def test_a_tenant_is_part_of_the_owner() -> None:
    acme, other = (tell("jwt", jwt_2(org=org), tenant_claim="org") for org in ("acme", "other"))
    assert acme.owner != other.owner != tell("jwt", jwt_2()).owner
    assert acme.tenant == "acme"


@pytest.mark.parametrize("org", [None, "", 5])
def test_a_token_without_a_tenant_is_refused(org: Any) -> None:
    with pytest.raises(Forbidden, match="tenant"):
        tell("jwt", jwt_2(org=org), tenant_claim="org")


def test_only_chosen_claims_are_told() -> None:
    assert tell("jwt", jwt_2()).claims == {}
    assert tell("jwt", jwt_2(), claims=("email", "absent")).claims == {"email": "a@acme.test"}


@pytest.mark.parametrize("event", [iam_http(), iam_rest()])
def test_iam_is_one_owner_on_both_apis(event: dict[str, Any]) -> None:
    assert tell("iam", event).owner == owner_key("iam", "role", "123456789012", ROLE)
    assert tell("iam", event, iam_owner="session").owner == owner_key(
        "iam", "session", "123456789012", ROLE, "session-1"
    )


@pytest.mark.parametrize("event", [iam_http, iam_rest])
def test_sessions_of_a_role_are_one_owner_or_several(event: Any) -> None:
    first, second = event(f"{ROLE}:a"), event(f"{ROLE}:b")
    assert tell("iam", first).owner == tell("iam", second).owner
    assert tell("iam", first, iam_owner="session").owner != tell("iam", second, iam_owner="session").owner


@pytest.mark.parametrize("owner", ["role", "session"])
def test_a_user_of_iam_has_no_session(owner: str) -> None:
    assert tell("iam", iam_http("AIDAUSER"), iam_owner=owner).owner == owner_key(
        "iam", "role", "123456789012", "AIDAUSER"
    )


def test_users_of_an_identity_pool_are_told_apart_although_they_share_a_role() -> None:
    one = iam_http(cognitoIdentity={"amr": ["x"], "identityId": "eu:1", "identityPoolId": "p"})
    other = iam_rest(cognitoIdentityId="eu:2")
    assert tell("iam", one).owner == owner_key("iam", "pool", "eu:1")
    assert tell("iam", other).owner == owner_key("iam", "pool", "eu:2")


@pytest.mark.parametrize("event", [lambda_http(user="u-1", scope="a b"), lambda_rest(user="u-1", scope="a b")])
def test_a_lambda_authorizers_context_is_one_owner_in_both_formats(event: dict[str, Any]) -> None:
    caller = tell("lambda", event, owner_key="user")
    assert (caller.owner, caller.scopes) == (owner_key("lambda", "u-1", None), {"a", "b"})


@pytest.mark.parametrize("make", [lambda_http, lambda_rest])
@pytest.mark.parametrize("context", [{}, {"user": ""}, {"user": None}, {"user": 5}, {"other": "u-1"}])
def test_an_authorizer_that_does_not_name_the_caller_is_an_error(make: Any, context: dict[str, Any]) -> None:
    with pytest.raises(InternalError):
        tell("lambda", make(**context), owner_key="user")


def test_an_api_key_is_its_id() -> None:
    assert tell("api_key", api_key()).owner == owner_key("api_key", "key-id-1")
    assert "the-secret-key" not in str(tell("api_key", api_key()))


NOBODY: list[Any] = [
    {},
    None,
    "text",
    {"authorizer": None, "identity": None},
    {"authorizer": {}, "identity": {}},
    {"authorizer": {"jwt": None, "lambda": None, "iam": None}},
    {"authorizer": {"jwt": {"claims": None}}},
    {"authorizer": {"jwt": {"claims": {"iss": ISSUER}}}},
    {"authorizer": {"jwt": {"claims": {"sub": "user-1"}}}},
    {"authorizer": {"iam": {"accountId": "123456789012"}}},
    {"identity": {"accountId": None, "caller": "x", "apiKey": "k"}},
]


@pytest.mark.parametrize("auth", ["jwt", "iam", "lambda", "api_key"])
@pytest.mark.parametrize("context", NOBODY)
def test_nobody_is_never_somebody(auth: str, context: Any) -> None:
    with pytest.raises((InternalError, Forbidden)):
        tell(auth, context, owner_key="user" if auth == "lambda" else None)


@pytest.mark.parametrize("event", [jwt_2(), jwt_1(), iam_http(), iam_rest(), lambda_http(user="u"), api_key()])
def test_without_a_setting_no_verdict_is_taken_for_anonymous(event: dict[str, Any]) -> None:
    with pytest.raises(InternalError):
        tell("none", event)


def test_an_event_cannot_choose_its_kind() -> None:
    """A Lambda authorizer's context may look like a token's claims; only the setting counts."""
    forged = {"authorizer": {"lambda": {"claims": CLAIMS, "user": "u-1"}, "jwt": {"claims": CLAIMS}}}
    assert tell("lambda", forged, owner_key="user").owner == owner_key("lambda", "u-1", None)
    with pytest.raises(InternalError):
        tell("api_key", forged)


def test_kinds_have_spaces_of_their_own() -> None:
    owners = [
        tell("jwt", jwt_2(sub="x", iss="x")).owner,
        tell("iam", iam_http("x", accountId="x")).owner,
        tell("iam", iam_http(cognitoIdentity={"identityId": "x"})).owner,
        tell("lambda", lambda_http(user="x"), owner_key="user").owner,
        tell("api_key", api_key("x")).owner,
        ANONYMOUS,
    ]
    assert all(one != other for one, other in combinations(owners, 2))


@given(st.lists(st.text(max_size=8), min_size=1, max_size=3), st.lists(st.text(max_size=8), min_size=1, max_size=3))
def test_no_two_principals_share_an_owner(one: list[str], other: list[str]) -> None:
    """Whatever separators their names hold."""
    assert (owner_key("jwt", *one) == owner_key("jwt", *other)) == (one == other)


@given(st.text(max_size=20))
def test_an_owner_is_fit_for_a_key_and_a_folder(subject: str) -> None:
    owner = owner_key("jwt", subject)
    assert len(owner) == 64 and set(owner) <= set("0123456789abcdef")


@pytest.mark.parametrize(
    ("more", "names"),
    [
        ({"auth": "basic"}, "TASKRAIL_AUTH"),
        ({"auth": "iam", "iam_owner": "user"}, "TASKRAIL_IAM_OWNER"),
        ({"auth": "lambda"}, "TASKRAIL_OWNER_KEY"),
    ],
)
def test_a_setting_that_cannot_work_is_refused(more: dict[str, Any], names: str) -> None:
    with pytest.raises(SettingsError, match=names):
        Settings("table", "bucket", **more)
