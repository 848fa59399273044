"""`cdk deploy` for real, to MiniStack: the zip, the state machines, the authorizer; then diff and destroy."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from demo import smoke
from infra.emulator import Emulator, running
from infra.local_deploy import ANONYMOUS, Deployment
from tests.infra.rpc import Client, send

pytestmark = [pytest.mark.ministack, pytest.mark.slow, pytest.mark.timeout(600)]

DOCUMENTS = [{"name": "a", "text": "write to a@b.example"}, {"name": "b", "text": "hello there"}]
AUDIENCE, SCOPE = "https://tasks.example.com/mcp", "tasks/use"
WELL_KNOWN = ".well-known/oauth-protected-resource"


class Issuer:
    """Signs tokens, and tells its keys to whoever asks on loopback."""

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self._key.public_key()))
        keys = json.dumps({"keys": [{**public, "kid": "1", "alg": "RS256", "use": "sig"}]}).encode()

        class Keys(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                known = self.path == "/.well-known/jwks.json"
                self.send_response(200 if known else 404)
                self.end_headers()
                self.wfile.write(keys if known else b"{}")

            def log_message(self, format: str, *args: Any) -> None:
                """Keep quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Keys)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def token(self, subject: str, **claims: Any) -> dict[str, str]:
        """The header with a token that is good for ten minutes, unless told otherwise."""
        body = {
            "iss": self.url,
            "sub": subject,
            "aud": AUDIENCE,
            "scope": SCOPE,
            "exp": int(time.time()) + 600,
            **claims,
        }
        return {"authorization": f"Bearer {jwt.encode(body, self._key, algorithm='RS256', headers={'kid': '1'})}"}


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    """One MiniStack for all deployments of this file."""
    with running() as started:
        yield started


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    """Whoever signs tokens."""
    made = Issuer()
    threading.Thread(target=made.server.serve_forever, daemon=True).start()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.mark.parametrize("api", ["http", "rest"])
def test_what_is_deployed_works_is_what_was_asked_for_and_goes_away_whole(
    emulator: Emulator, tmp_path: Path, api: str
) -> None:
    deployment = Deployment(emulator, {**ANONYMOUS, "api": api, "name": f"whole-{api}"}, tmp_path)
    url = emulator.local_url(deployment.deploy()["Endpoint"])
    client = Client(url)

    measured = client.call("measure_text", text="hello world")
    assert measured["structuredContent"]["words"] == 2

    task = client.call("count_words", documents=DOCUMENTS)["taskId"]
    assert client.until(task, "completed")["result"]["structuredContent"]["documents"] == 2
    functions = deployment.client("lambda")
    (counts,) = (each for each in functions.list_functions()["Functions"] if each["Description"] == "Runs count_words")
    settings = functions.get_function_event_invoke_config(FunctionName=counts["FunctionName"], Qualifier="$LATEST")
    assert (settings["MaximumRetryAttempts"], settings["MaximumEventAgeInSeconds"]) == (1, 3_600)
    assert ":function:" in settings["DestinationConfig"]["OnFailure"]["Destination"]

    task = client.call("redact_documents", documents=DOCUMENTS)["taskId"]
    assert list(client.until(task, "input_required")["inputRequests"]) == ["approval"]
    client.answer(task, approval={"redact": True, "kinds": ["email"]})
    done = client.until(task, "completed")["result"]
    assert done["structuredContent"]["emails"] == 1
    (link,) = (item["uri"] for item in done["content"] if item["type"] == "resource_link")
    assert send("GET", link).status == 200

    task = client.call("redact_documents", documents=DOCUMENTS)["taskId"]
    client.until(task, "input_required")
    client.result("tasks/cancel", task, taskId=task)
    assert client.get(task)["status"] == "cancelled"

    task = client.call("redact_documents", documents=DOCUMENTS)["taskId"]
    client.until(task, "input_required")
    client.answer(task, approval={"redact": False})
    assert client.until(task, "completed")["result"]["isError"] is True

    task = client.call("run_migration", table="orders", rows=3000)["taskId"]
    assert list(client.until(task, "input_required")["inputRequests"]) == ["approve"]
    client.answer(task, approve={"go": True})
    assert client.until(task, "completed")["result"]["structuredContent"]["batches"] == 3

    assert send("GET", url).status == 405
    assert smoke.main([url]) == 0, "the official client found fault"

    deployment.diff()
    deployment.destroy()
    assert deployment.left() == []


def test_an_http_api_lets_in_whose_token_is_good_and_keeps_callers_apart(
    emulator: Emulator, issuer: Issuer, tmp_path: Path
) -> None:
    given = {"issuer": issuer.url, "audience": AUDIENCE, "scopes": SCOPE}
    context = {"name": "tokens", "auth": "jwt", **given, "snap_start": "true"}
    deployment = Deployment(emulator, context, tmp_path)
    outputs = deployment.deploy()
    url = emulator.local_url(outputs["Endpoint"])
    alice, bob = Client(url, issuer.token("alice")), Client(url, issuer.token("bob"))

    discover = "server/discover"
    assert Client(url).post(discover).status == 401
    assert Client(url, {"authorization": "Bearer of.bad.news"}).post(discover).status == 401
    assert Client(url, issuer.token("alice", aud="https://other.example.com")).post(discover).status == 401
    assert Client(url, issuer.token("alice", exp=int(time.time()) - 60)).post(discover).status == 401
    assert Client(url, issuer.token("alice", scope="else")).post(discover).status == 403
    assert alice.result(discover)["supportedVersions"]

    task = alice.call("count_words", documents=DOCUMENTS)["taskId"]
    unknown = bob.post("tasks/get", task, taskId=task)
    assert (unknown.status, unknown.body) == (400, bob.post("tasks/get", "0" * 32, taskId="0" * 32).body)
    assert alice.until(task, "completed")["result"]["structuredContent"]["documents"] == 2

    for path in (WELL_KNOWN, f"{WELL_KNOWN}/mcp"):
        document = send("GET", url.removesuffix("mcp") + path).json
        assert document["authorization_servers"] == [issuer.url]
        assert document["resource"] == outputs["Endpoint"]
    deployment.destroy()


def test_a_rest_api_refuses_with_the_way_to_a_token(emulator: Emulator, tmp_path: Path) -> None:
    context = {
        "name": "refusals",
        "api": "rest",
        "auth": "jwt",
        "issuer": "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_Example",
        "audience": "client",
        "scopes": SCOPE,
    }
    deployment = Deployment(emulator, context, tmp_path)
    outputs = deployment.deploy()
    url = emulator.local_url(outputs["Endpoint"])
    refused = Client(url).post("server/discover")
    assert refused.status == 401
    metadata = outputs["Endpoint"].removesuffix("mcp") + WELL_KNOWN
    assert refused.headers["www-authenticate"] == f'Bearer resource_metadata="{metadata}/mcp", scope="{SCOPE}"'
    for path in (WELL_KNOWN, f"{WELL_KNOWN}/mcp"):
        document = send("GET", url.removesuffix("mcp") + path).json
        assert document["resource"] == outputs["Endpoint"]
    deployment.destroy()
