"""A deployment of the sample tools, new for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from taskrail.testing import Kit, harness
from tests.functional import sample_tools


@pytest.fixture
def kit() -> Iterator[Kit]:
    sample_tools.done.clear()
    with harness(sample_tools.server) as made:
        yield made
