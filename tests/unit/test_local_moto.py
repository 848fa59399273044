"""The patches of moto's interpreter that its own pace would rarely show to be missing."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from local import moto_patches, moto_workflows


class Backend:
    """Looks for a name, and some time later adds it."""

    def __init__(self) -> None:
        self.started: list[str] = []

    def start_execution(self, name: str) -> None:
        if name not in self.started:
            time.sleep(0.01)
            self.started.append(name)


def test_starts_are_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moto_workflows, "_module", lambda name: SimpleNamespace(StepFunctionsParserBackend=Backend))
    monkeypatch.setattr(Backend, "start_execution", Backend.start_execution)
    moto_workflows._one_start_at_a_time()
    backend, together = Backend(), threading.Barrier(5)

    def start(_: int) -> None:
        together.wait()
        backend.start_execution("a")

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(start, range(5)))
    assert backend.started == ["a"]


def test_the_stand_in_for_batch_is_gone_after_the_import(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("moto.batch", "moto.batch.utils"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with moto_workflows._without_compute():
        from moto.batch.utils import JobStatus

        assert {status.name for status in JobStatus} == {"SUCCEEDED", "FAILED"}
    assert "moto.batch" not in sys.modules


def test_a_batch_that_is_there_already_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = ModuleType("moto.batch")
    monkeypatch.setitem(sys.modules, "moto.batch", mine)
    with moto_workflows._without_compute():
        assert sys.modules["moto.batch"] is mine
    assert sys.modules["moto.batch"] is mine


@pytest.mark.parametrize("path", ["$.a[0].b", "$[1].b", "$.a[0][1].b.c"])
def test_a_path_behind_an_index_finds_one_thing(path: str) -> None:
    assert moto_workflows._BEHIND_AN_INDEX.fullmatch(path)


@pytest.mark.parametrize("path", ["$.a[*].b", "$.a[0:2].b", "$..a[0].b", "$.a[?(@.b)].c", "$.a[0]", "$.a.b", "$"])
def test_other_paths_are_motos(path: str) -> None:
    assert not moto_workflows._BEHIND_AN_INDEX.fullmatch(path)


def test_another_version_of_moto_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: Any) -> Any:
        raise AssertionError("nothing is invoked, nobody is told")

    monkeypatch.setattr(moto_patches, "version", lambda name: "5.2.6")
    with pytest.raises(moto_patches.WrongMoto, match=r"needs moto 5\.2\.5 and found 5\.2\.6"):
        moto_workflows.apply(nothing, nothing)
