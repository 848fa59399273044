"""A deployment of the sample tools, as if it were new for every test: making one costs more than most tests do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from taskrail.testing import Kit, harness
from tests.functional import sample_tools


@pytest.fixture(scope="module")
def sample_deployment() -> Iterator[Kit]:
    with harness(sample_tools.server) as made:
        yield made


@pytest.fixture
def kit(sample_deployment: Kit) -> Kit:
    sample_tools.done.clear()
    sample_deployment.clear()
    return sample_deployment
