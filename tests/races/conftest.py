"""One deployment for each round, on either DynamoDB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.counts import count, sized
from tests.races import stores
from tests.races.deployment import THREADS, Deployment

ROUNDS = sized(5, 100)


@pytest.fixture(
    scope="module", params=["moto", pytest.param("ministack", marks=[pytest.mark.ministack, pytest.mark.slow])]
)
def store(request: pytest.FixtureRequest) -> Iterator[tuple[str, Any]]:
    """The name of the DynamoDB, and a client of it."""
    with getattr(stores, request.param)() as client:
        yield request.param, client


@pytest.fixture(params=range(ROUNDS))
def it(store: tuple[str, Any]) -> Deployment:
    """One deployment for each round."""
    name, client = store
    count(f"rounds of races of {THREADS} threads on {name}")
    return Deployment(client)
