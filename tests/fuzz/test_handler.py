"""The handler over a table with live tasks: any event, and any message in it, nearly right or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.counts import count, sized
from tests.fuzz.bench import Bench, bench
from tests.fuzz.events import good_requests, http_event, meaning, rest_event
from tests.fuzz.mutations import mutated, swapped
from tests.fuzz.strategies import PATHS, mirrored, values

pytestmark = pytest.mark.timeout(sized(60, 600))

AT_ONCE = 12
"""Mutations of one drawn request: drawing costs more than sending."""


@pytest.fixture(scope="module")
def live() -> Iterator[Bench]:
    with bench() as made:
        yield made


def many(examples: int) -> Any:
    """Settings for that many examples; what an example did before tells nothing of the next."""
    return settings(max_examples=examples, suppress_health_check=list(HealthCheck))


def test_messages_that_are_nearly_right(live: Bench) -> None:
    words = live.words()
    messages = st.one_of(words.good_messages(), words.messages())

    @many(sized(200, 4_000))
    @given(st.data())
    def fuzz(data: st.DataObject) -> None:
        message = data.draw(messages)
        headers = data.draw(mirrored(message))
        body = json.dumps(message).encode()
        path = data.draw(st.sampled_from(PATHS))
        for event in (http_event, rest_event):
            live.send(event(body, headers, path), meaning(body), headers)
            count("fuzz inputs at the handler")

    fuzz()


def test_valid_requests_are_served_and_change_what_they_may(live: Bench) -> None:
    for body, headers in good_requests(live):
        answer = json.loads(live.send(http_event(body, headers), meaning(body), headers)["body"].split("data: ")[-1])
        assert "result" in answer, answer
        count("fuzz inputs at the handler")


def test_valid_messages_with_values_swapped(live: Bench) -> None:
    requests = good_requests(live)
    messages = [json.loads(body) for body, _ in requests]
    others = tuple(put for message in messages for put in (*message["params"].values(), message["method"]))

    @many(sized(40, 700))
    @given(st.sampled_from(range(len(requests))), st.integers(0, 2**32))
    def fuzz(chosen: int, seed: int) -> None:
        random = Random(seed)
        for _ in range(AT_ONCE):
            message = swapped(messages[chosen], random, others)
            headers = dict(requests[chosen][1])
            if isinstance(message, dict) and random.randrange(4):
                # Headers that go with what the message has become: it gets further than one that is refused for them.
                params = message.get("params")
                named = {"mcp-method": message.get("method"), "mcp-name": None}
                if isinstance(params, dict):
                    named["mcp-name"] = params.get("name", params.get("taskId"))
                headers |= {name: value for name, value in named.items() if isinstance(value, str)}
            if random.randrange(6) == 0:
                name = random.choice(("mcp-name", "mcp-method", "mcp-protocol-version"))
                headers[name] = random.choice(requests)[1].get(name, "")
            body = json.dumps(message).encode()
            live.send(http_event(body, headers), meaning(body), headers)
            count("fuzz inputs at the handler")

    fuzz()


def test_bytes_that_were_a_valid_request_once(live: Bench) -> None:
    requests = good_requests(live)
    others = tuple(body for body, _ in requests)

    @many(sized(60, 2_200))
    @given(st.sampled_from(range(len(requests))), st.integers(0, 2**32))
    def fuzz(chosen: int, seed: int) -> None:
        random = Random(seed)
        body, headers = requests[chosen]
        for _ in range(AT_ONCE):
            changed = mutated(body, random, others)
            live.send(http_event(changed, headers), meaning(changed), headers)
            count("fuzz inputs at the handler")

    fuzz()


def test_events_that_are_nearly_ones_of_a_gateway(live: Bench) -> None:
    requests = good_requests(live)
    parts = st.fixed_dictionaries(
        {},
        optional={
            "version": st.sampled_from(["1.0", "2.0"]) | values,
            "httpMethod": st.sampled_from(["GET", "post", "OPTIONS", "DELETE"]) | values,
            "requestContext": st.fixed_dictionaries({"http": values}) | values,
            "rawPath": values,
            "path": values,
            "headers": values | st.dictionaries(st.sampled_from(["origin", "mcp-method", "accept"]), values),
            "multiValueHeaders": values | st.dictionaries(st.sampled_from(["origin", "host", "mcp-name"]), values),
            "body": values,
            "isBase64Encoded": values,
        },
    )

    @many(sized(60, 3_000))
    @given(st.sampled_from(range(len(requests))), st.booleans(), parts, values)
    def fuzz(chosen: int, rest: bool, instead: dict[str, Any], junk: Any) -> None:
        body, headers = requests[chosen]
        event = (rest_event if rest else http_event)(body, headers)
        # A part of the event that is wrong may leave the request a valid one.
        valid = (meaning(body), headers) if "body" not in instead else (None, None)
        live.send({**event, **instead}, *valid)
        live.send(instead)
        live.send(junk)
        count("fuzz inputs at the handler", 3)

    fuzz()
