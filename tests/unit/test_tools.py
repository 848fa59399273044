"""A job whose body lives in a package of its own: the declaration stays empty, the two must agree."""

from __future__ import annotations

import sys
import types
from typing import Annotated, Any

import pytest
from pydantic import Field

from taskrail import StepFunctions, TaskContext, Toolset
from taskrail.errors import DeclarationError
from taskrail.server import Tool


def only(tools: Toolset) -> Tool:
    return tools.tools[0]


@pytest.fixture
def job_module(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("jobs_of_a_test")
    monkeypatch.setitem(sys.modules, "jobs_of_a_test", module)
    return module


def heavy(job: str = "jobs_of_a_test") -> Tool:
    tools = Toolset()

    @tools.task(runs_on=StepFunctions(), job=job)
    def crunch(task: TaskContext, number: int) -> list[int]:
        """Crunch.

        Parameters
        ----------
        number
            How much.
        """
        raise NotImplementedError

    return only(tools)


def test_a_body_in_place_is_its_own() -> None:
    tools = Toolset()

    @tools.tool()
    def double(number: int) -> int:
        """Work."""
        return number * 2

    assert only(tools).load()(2) == 4


def test_a_body_elsewhere_is_loaded_when_it_runs(job_module: types.ModuleType) -> None:
    def crunch(task: TaskContext, number: int) -> list[int]:
        return [number]

    async def run(task: TaskContext, number: int) -> list[int]:
        return [number]

    job_module.crunch, job_module.run = crunch, run  # type: ignore[attr-defined]
    assert heavy().load() is crunch
    assert heavy("jobs_of_a_test:run").load() is run


def other_parameters(task: TaskContext, number: str) -> list[int]:
    return []


def more_parameters(task: TaskContext, number: int, more: int = 1) -> list[int]:
    return []


def other_context(ticket: TaskContext, number: int) -> list[int]:
    return []


def other_name(task: TaskContext, count: Annotated[int, Field(alias="number")]) -> list[int]:
    return []


def no_context(number: int) -> list[int]:
    return []


def other_result(task: TaskContext, number: int) -> int:
    return 1


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (other_parameters, "takes other parameters"),
        (more_parameters, "takes other parameters"),
        (other_name, "takes other parameters"),
        (other_context, "TaskContext by the same name"),
        (no_context, "TaskContext by the same name"),
        (other_result, "returns another type"),
        (None, "needs a function 'crunch' in jobs_of_a_test"),
        (5, "needs a function 'crunch'"),
    ],
)
def test_a_body_elsewhere_that_does_not_fit(job_module: types.ModuleType, function: Any, text: str) -> None:
    if function is not None:
        job_module.crunch = function  # type: ignore[attr-defined]
    with pytest.raises(DeclarationError, match=f"tool 'crunch': .*{text}"):
        heavy().load()


def passes() -> None:
    """Work."""
    pass  # noqa: PIE790


def dots() -> None:
    """Work."""
    ...  # noqa: PIE790


def nothing() -> None:
    """Work."""


def raises() -> None:
    """Work."""
    raise NotImplementedError("see jobs/")


async def later() -> None:
    """Work."""


async def later_raises() -> None:
    """Work."""
    raise NotImplementedError


@pytest.mark.parametrize("function", [passes, dots, nothing, raises, later, later_raises])
def test_empty_bodies(function: Any) -> None:
    tools = Toolset()
    tools.task(runs_on=StepFunctions(), job="jobs.work")(function)
    assert only(tools).job == "jobs.work"


def returns() -> int:
    """Work."""
    return 5


def returns_argument(a: int) -> int:
    """Work."""
    return a


def calls() -> None:
    """Work."""
    print("a")


def assigns() -> None:
    """Work."""
    a = 1  # noqa: F841


def raises_another() -> None:
    """Work."""
    raise ValueError


def works_and_raises() -> None:
    """Work."""
    print("a")
    raise NotImplementedError


async def awaits() -> None:
    """Work."""
    await later()


@pytest.mark.parametrize(
    "function", [returns, returns_argument, calls, assigns, raises_another, works_and_raises, awaits]
)
def test_a_body_in_place_and_a_job_elsewhere_are_one_too_many(function: Any) -> None:
    with pytest.raises(DeclarationError, match=f"tool '{function.__name__}': it has a body here and job='jobs.work'"):
        Toolset().task(runs_on=StepFunctions(), job="jobs.work")(function)
