"""Fixtures of the tests of the client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.stack import local_stack
from tests.taskrail_client.world import deployment, world

__all__ = ["deployment", "url", "world"]


@pytest.fixture(scope="package")
def url() -> Iterator[str]:
    """One local stack for all tests that need real processes and a real port."""
    with local_stack("tests.taskrail_client.catalogue") as address:
        yield address
