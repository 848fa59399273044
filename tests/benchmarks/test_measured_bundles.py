"""A short run of the benchmarks over real bundles: everybody answers what is asked, and what is told has its shape."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import bundles, cold, warm
from benchmarks.bundles import Made
from benchmarks.rivals import FLOOR, SDK, TASKRAIL

PARTICIPANTS = (TASKRAIL, SDK, FLOOR)


@pytest.fixture(scope="module")
def made() -> Iterator[tuple[dict[str, Made], Made]]:
    """The bundles of those who take part, and boto3."""
    with bundles.alone():
        yield {rival.name: bundles.bundle(rival) for rival in PARTICIPANTS}, bundles.aws()


def test_two_runs_do_not_measure_each_other(made: tuple[dict[str, Made], Made]) -> None:
    with pytest.raises(bundles.Busy, match="Another run uses build/bench"), bundles.alone():
        pass


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_cold_starts_are_measured_with_the_bundle_and_nothing_else(made: tuple[dict[str, Made], Made]) -> None:
    told = cold.measure(*made, 1, lambda text: None, PARTICIPANTS)
    processes = {(each["rival"], each["what"]): each for each in told["processes"]}
    assert {rival for rival, _ in processes} == {cold.BARE, "taskrail", "sdk", "floor"}
    assert {what for rival, what in processes if rival == "sdk"} == {cold.LOAD, *cold.FIRST}
    for each in processes.values():
        assert 0 <= each["cpu_s"]["median"] <= each["wall_s"]["median"] * 2
    # Neither the SDK nor anything of the environment that measures comes along with the kit.
    assert processes["taskrail", "tasks/get"]["modules"] < processes["sdk", "tasks/get"]["modules"] * 0.75
    assert processes["taskrail", "load"]["to"]["floor"]["median"] > 0.3


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_warm_requests_are_cheaper_without_botocore(made: tuple[dict[str, Made], Made], tmp_path: Path) -> None:
    told = warm.measure(*made, 1, 20, lambda text: None, tmp_path / "log")
    cpu = {(each["rival"], each["operation"], each["outside_botocore"]): each for each in told["requests"]}
    assert {(rival, operation) for rival, operation, _ in cpu} == {
        (rival, operation) for rival in ("taskrail", "sdk") for operation in warm.OPERATIONS
    }
    for (rival, operation, outside), each in cpu.items():
        if outside:
            assert each["cpu_ms"]["median"] < cpu[rival, operation, False]["cpu_ms"]["median"]
    assert '"method":"tasks/get"' in (tmp_path / "log").read_text()
