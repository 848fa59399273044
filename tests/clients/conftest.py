"""One local stack for all tests with clients: its two minutes are three seconds, and requests wait for less time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.stack import local_stack


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """The MCP endpoint."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLIENTS_TWO_MINUTES", "3")
        patch.setenv("TASKRAIL_WAIT_BUDGET_MS", "1500")
        with local_stack("tests.clients.catalogue") as address:
            yield address
