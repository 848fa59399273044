"""Values of monstrous size, depth and kind, in every place that a request has."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from taskrail.wire import protocol
from tests.counts import LONG, count, sized
from tests.fuzz.bench import Bench, bench
from tests.fuzz.events import good_requests, http_event, meaning
from tests.fuzz.mutations import places

pytestmark = pytest.mark.timeout(sized(60, 600))

MOST_BODY = 6_000_000
"""Bytes of a body that the default settings read."""

MONSTERS: dict[str, str] = {
    "a long text": '"' + "x" * 400_000 + '"',
    "a text that doubles when it is escaped": '"' + '\\"\\n' * 100_000 + '"',
    "a text that grows sixfold when it is escaped": '"' + "\\u0001\\u001f" * 50_000 + '"',
    "a text outside of ASCII": '"' + "\u00e4\U0001f600" * 50_000 + '"',
    "lone surrogates": '"' + "\\ud800x\\udfff" * 10_000 + '"',
    "a number of 4,300 digits": "9" * 4_300,
    "a number of 5,000 digits": "9" * 5_000,
    "a number beyond floats": "1e400",
    "the largest float": "1.7976931348623157e308",
    "a very small number": "1e-400",
    "minus zero": "-0",
    "a whole number with a fraction": "1.0",
    "NaN": "NaN",
    "infinity": "Infinity",
    "64 levels": "[" * 56 + "]" * 56,
    "100,000 levels": "[" * 100_000 + "]" * 100_000,
    "objects in 5,000 levels": '{"a":' * 5_000 + "1" + "}" * 5_000,
    "a level too many that never ends": "[" * 1_000,
    "a list of 100,000": "[" + ",".join(["0"] * 100_000) + "]",
    "an object of 20,000 keys": "{" + ",".join(f'"k{number}":{number}' for number in range(20_000)) + "}",
    "an object of one long key": '{"' + "k" * 200_000 + '":1}',
    "an object of one key 10,000 times": "{" + ",".join(['"k":1'] * 10_000) + "}",
    "an empty key": '{"":{"":{"":""}}}',
    "the keys of a prototype": '{"__proto__":{"a":1},"constructor":{"prototype":{}},"__class__":"x"}',
    "null": "null",
    "true": "true",
    "zero": "0",
    "an empty list": "[]",
    "an empty text": '""',
    "a text with zeros": '"\\u0000\\u0000"',
    "line breaks": '"\\r\\nSet-Cookie: a=b\\r\\n\\r\\n"',
}
"""JSON texts, some of them broken."""

HUGE: dict[str, str] = {
    "a text that fills the body": '"' + "x" * 5_900_000 + '"',
    "quotes that fill the body": '"' + '\\"' * 2_900_000 + '"',
    "emoji that fill the body": '"' + "\U0001f600" * 1_400_000 + '"',
    "a key that fills the body": '{"' + "k" * 5_900_000 + '":1}',
    "a list that fills the body": "[" + "0," * 2_900_000 + "0]",
    "more than the body may hold": '"' + "x" * 6_100_000 + '"',
}
"""As large as a body may be, and larger."""

_MARK = "\u27e8here\u27e9"


@pytest.fixture(scope="module")
def live() -> Iterator[Bench]:
    with bench() as made:
        yield made


def templates(live: Bench) -> list[tuple[str, dict[str, str]]]:
    """Valid requests with one value marked, for every value that there is; or with one more key, in every object."""
    found: dict[str, tuple[str, dict[str, str]]] = {}
    for body, headers in good_requests(live):
        message = json.loads(body)
        for put in places(message):
            text = json.dumps(put(_MARK), ensure_ascii=False)
            kind = f"{headers['mcp-method']} {headers.get('mcp-name', '')[:9]} {text.partition(_MARK)[0][-60:]}"
            found.setdefault(kind, (text, headers))
    return list(found.values())


@pytest.mark.parametrize("monster", MONSTERS)
def test_a_monster_in_every_place(live: Bench, monster: str) -> None:
    chosen = templates(live)
    for text, headers in chosen if LONG else chosen[hash_of(monster) % 11 :: 11]:
        send(live, text, MONSTERS[monster], headers)


@pytest.mark.slow
@pytest.mark.parametrize("monster", HUGE)
def test_a_body_full_of_one_value(live: Bench, monster: str) -> None:
    for text, headers in templates(live)[:: 6 if LONG else 40]:
        send(live, text, HUGE[monster], headers)


@pytest.mark.parametrize(
    "key", ["id", "method", protocol.VERSION_KEY, protocol.CAPABILITIES_KEY, "taskId", "arguments"]
)
def test_keys_said_twice_are_read_once(live: Bench, key: str) -> None:
    for body, headers in good_requests(live)[:: 1 if LONG else 7]:
        text = body.decode()
        for value in ('"tasks/cancel"', "1", "null", "{}", f'"{live.task_ids[0]}"', '"2026-07-28"'):
            for doubled in (
                text.replace(f'"{key}":', f'"{key}": {value}, "{key}":', 1),
                text.replace(f'"{key}":', f'"{key}":', 1).replace("}", f', "{key}": {value}}}', 1),
            ):
                live.send(http_event(doubled.encode(), headers), meaning(doubled.encode()), headers)
                count("fuzz inputs at the handler")


def test_what_a_client_is_told_again_is_told_short(live: Bench) -> None:
    """Escaped twice, two megabytes of quotes would be an answer that Lambda does not take."""
    quotes = '"' * 2_000_000
    for message in (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": quotes}},
        {"jsonrpc": "2.0", "id": quotes, "method": "ping", "params": {}},
        {"jsonrpc": "2.0", "id": 1, "method": quotes, "params": {}},
    ):
        answer = live.send(http_event(json.dumps(message).encode(), {}), message, {})
        assert len(answer["body"]) < 2_000
        count("fuzz inputs at the handler")


@pytest.mark.parametrize(("count_of", "status"), [(249_000, 200), (260_000, 413)])
def test_more_values_than_are_read_are_refused_and_fewer_explained(live: Bench, count_of: int, status: int) -> None:
    """Each of them is wrong, and a fault told of each would take more memory than a function has."""
    meta = {protocol.VERSION_KEY: "2026-07-28", protocol.CAPABILITIES_KEY: {}}
    params = {"name": "count", "arguments": {"items": [0] * count_of}, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "count"}
    answer = live.send(http_event(json.dumps(message).encode(), headers), message, headers)
    assert answer["statusCode"] == status
    assert "too many to be named" in answer["body"] or "more than the 250000 values" in answer["body"]
    count("fuzz inputs at the handler")


def test_commas_of_a_text_are_no_values(live: Bench) -> None:
    meta = {protocol.VERSION_KEY: "2026-07-28", protocol.CAPABILITIES_KEY: {}}
    params = {"name": "greet", "arguments": {"name": "," * 300_000}, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "greet"}
    assert live.send(http_event(json.dumps(message).encode(), headers), message, headers)["statusCode"] == 200
    count("fuzz inputs at the handler")


def send(live: Bench, text: str, monster: str, headers: dict[str, str]) -> None:
    body = text.replace(json.dumps(_MARK, ensure_ascii=False), monster).encode()
    answer = live.send(http_event(body, headers), meaning(body), headers)
    count("fuzz inputs at the handler")
    if len(body) > MOST_BODY:
        assert answer["statusCode"] == 413


def hash_of(text: str) -> int:
    """A number that is the same in every process."""
    return sum(text.encode())
