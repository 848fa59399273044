"""Credentials: on every request, nowhere else."""

from __future__ import annotations

import asyncio
import builtins
import hashlib
import hmac
import logging
from pathlib import Path
from typing import Any

import httpx2
import pytest

from taskrail_client import ApiKeyAuth, AuthError, BearerAuth, Refused, SigV4Auth, TaskrailClient
from taskrail_client.auth import check_url
from taskrail_client.options import AllAuth
from tests.taskrail_client.world import World

SECRET = "s3cr3t-t0ken"
API = "https://abc123.execute-api.eu-west-2.amazonaws.com/mcp"


def signed(auth: httpx2.Auth, url: str = API) -> httpx2.Request:
    """A request with its credentials."""
    return next(auth.auth_flow(httpx2.Request("POST", url, json={"a": 1})))


def test_each_kind_has_its_header() -> None:
    """And several may stand on one request."""
    assert signed(BearerAuth(SECRET)).headers["authorization"] == f"Bearer {SECRET}"
    assert signed(ApiKeyAuth(SECRET)).headers["x-api-key"] == SECRET
    both = signed(AllAuth([BearerAuth("a"), ApiKeyAuth("b")])).headers
    assert (both["authorization"], both["x-api-key"]) == ("Bearer a", "b")


def test_a_token_may_be_a_new_one_each_time() -> None:
    """A function is asked at every request."""
    tokens = iter("ab")
    auth = BearerAuth(lambda: next(tokens))
    assert [signed(auth).headers["authorization"] for _ in range(2)] == ["Bearer a", "Bearer b"]


def test_a_signature_is_as_aws_reckons_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS Signature Version 4, over the body as it is sent; the region is read from the URL."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "testing")
    request = signed(SigV4Auth())
    headers = {"content-type": "application/json", "host": httpx2.URL(API).host}
    headers |= {name: request.headers[name] for name in ("x-amz-date", "x-amz-security-token")}
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    body = hashlib.sha256(request.content).hexdigest()
    canonical = f"POST\n/mcp\n\n{lines}\n{';'.join(headers)}\n{body}"
    scope = f"{headers['x-amz-date'][:8]}/eu-west-2/execute-api/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    key = b"AWS4testing"
    for part in (*scope.split("/"), f"AWS4-HMAC-SHA256\n{headers['x-amz-date']}\n{scope}\n{digest}"):
        key = hmac.digest(key, part.encode(), "sha256")
    assert request.headers["authorization"].endswith(f"Signature={key.hex()}")
    assert "/eu-west-2/execute-api/" in request.headers["authorization"]
    assert request.headers["x-amz-security-token"] == "testing"
    assert "/us-west-1/lambda/" in signed(SigV4Auth("lambda", "us-west-1")).headers["authorization"]
    assert "/eu-central-1/" in signed(SigV4Auth(), "https://api.example.com/mcp").headers["authorization"]


def test_signing_needs_botocore(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is not installed with this client, and the error says so."""
    real = builtins.__import__

    def without(name: str, *more: Any) -> Any:
        if name.startswith("botocore"):
            raise ImportError(name)
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(AuthError, match="pip install botocore"):
        SigV4Auth()


@pytest.mark.parametrize("value", ["", "two words", "line\nbreak", "nön-ascii"])
def test_what_no_header_can_carry_is_refused_without_repeating_it(value: str) -> None:
    """Before anything is sent."""
    for make in (BearerAuth, ApiKeyAuth, lambda text: signed(BearerAuth(lambda: text))):
        with pytest.raises(AuthError) as caught:
            make(value)  # type: ignore[operator]
        assert not value or value not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://api.example.com/mcp", "plain http"),
        ("ftp://api.example.com", "https://"),
        ("api.example.com/mcp", "https://"),
        ("https://", "host"),
        ("https://[", "https://"),
        ("https://user:pass@api.example.com/mcp", "must not carry credentials"),
    ],
)
def test_where_credentials_may_not_go(url: str, words: str) -> None:
    """Plain http to another machine, and what is no URL."""
    with pytest.raises(AuthError, match=words):
        check_url(url, carries_credentials=True)


def test_where_they_may() -> None:
    """https, and this machine."""
    for url in (API, "http://localhost:8321/mcp", "http://127.0.0.1/mcp", "http://[::1]:1/mcp"):
        assert check_url(url, carries_credentials=True) == url
    assert check_url("http://api.example.com/mcp", carries_credentials=False)


def test_a_token_is_on_every_request_and_nowhere_else(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in the store, not in a log, not in an error."""
    caplog.set_level(logging.DEBUG)
    world.wire.plan = lambda method, count: "garbage" if count == 0 and method != "tools/call" else None

    async def story() -> None:
        async with world.client(auth=BearerAuth(SECRET)) as client:
            await client.call("tally", {"file": str(world.file), "name": "argument-of-mine"})
            world.wire.answers["tasks/get"] = lambda message: httpx2.Response(401, text=SECRET)
            with pytest.raises(Refused) as caught:
                await client.resume(client.list()[0].task_id)
            assert SECRET not in repr(caught.value)

    asyncio.run(story())
    assert {request.headers["authorization"] for request in world.wire.requests} == {f"Bearer {SECRET}"}
    assert SECRET not in caplog.text
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("tasks.sqlite3*"))
    assert b"tally" in kept
    assert SECRET.encode() not in kept
    assert b"argument-of-mine" not in kept
    assert b"is counted" not in kept


def test_a_redirect_to_another_machine_gets_no_credentials(world: World) -> None:
    """It is not followed."""
    asked: list[str] = []

    def handle(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.host)
        return httpx2.Response(307, headers={"location": "https://elsewhere.example.com/mcp"})

    async def story() -> None:
        client = TaskrailClient(API, auth=BearerAuth(SECRET), store=world.path, transport=httpx2.MockTransport(handle))
        async with client:
            with pytest.raises(Refused, match="redirects"):
                await client.tools()

    asyncio.run(story())
    assert set(asked) == {httpx2.URL(API).host}
