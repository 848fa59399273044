"""A local stack with the workflows and containers of `tests.workflows.catalogue`, one for each module of tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local_help import Launched, Rpc, launched
from tests.workflows import snippets


@pytest.fixture(scope="session")
def definitions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which the catalogue's definitions are found: those of the tests, and of the documents."""
    written = tmp_path_factory.mktemp("documented")
    snippets.write(written)
    return {"PYTHONPATH": os.pathsep.join((str(Path(__file__).parent), str(written)))}


@pytest.fixture(scope="module")
def stack(definitions: dict[str, str]) -> Iterator[Launched]:
    patience = {"TASKRAIL_CANCEL_GRACE_MS": "1000", "TASKRAIL_PROBE_AFTER_MS": "1000"}
    environ = {**definitions, **patience, "PATH": snippets.PATH}
    with launched("--port", "0", "--catalogue", "tests.workflows.catalogue", environ=environ) as made:
        yield made


@pytest.fixture
def rpc(stack: Launched) -> Rpc:
    return Rpc(stack.facts["url"])
