"""The harness as a pytest fixture, for the catalogue in ``functions/catalogue.py``.

Put ``pytest_plugins = ["taskrail.pytest_plugin"]`` into your ``conftest.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from taskrail.testing import Kit, harness


@pytest.fixture
def taskrail_kit() -> Iterator[Kit]:
    """A deployment of your catalogue, new for every test."""
    from catalogue import server

    with harness(server) as kit:
        yield kit
