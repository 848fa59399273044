"""A catalogue's tools as work that has a price."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.cost_calls import Engine
from benchmarks.cost_model import Work
from taskrail.compute import Batch, Lambda, StepFunctions
from taskrail.tools import Tool

FUNCTIONS = Path(__file__).resolve().parents[1] / "functions"

INLINE_S = 0.05
"""What an inline tool takes, where nothing else is said: it has to fit into a request."""


class UnknownEngine(Exception):
    """A tool runs on something that has no price here; the message says which."""


def work_of(tool: Tool, runtime_s: float) -> Work:
    """A tool as work.

    Parameters
    ----------
    tool
        One of a catalogue's.
    runtime_s
        How long one task of it works, in seconds. An adopted machine's size is not known: it counts as the default.

    Raises
    ------
    UnknownEngine
        Nothing here knows what it runs on.
    """
    if tool.policy is None or tool.runs_on is None:
        return Work(tool.name, "inline", runtime_s)
    policy, runs_on = tool.policy, tool.runs_on
    common: dict[str, Any] = {
        "name": tool.name,
        "runtime_s": runtime_s,
        "poll_interval_ms": policy.poll_interval_ms,
        "keep_s": None if policy.keep_result_ms is None else policy.keep_result_ms / 1_000,
    }
    if tool.kind == "workflow":
        definition = getattr(tool.work, "definition", None)
        return Work(engine="workflow", states=1 if definition is None else states_in(definition), **common)
    if isinstance(runs_on, Batch):
        engine: Engine = "container" if tool.kind == "container" else "batch"
        return Work(
            engine=engine,
            memory_mb=runs_on.memory_mb,
            vcpu=runs_on.vcpu,
            architecture=runs_on.architecture,
            spot=runs_on.spot,
            storage_gb=runs_on.storage_gb,
            **common,
        )
    if isinstance(runs_on, StepFunctions):
        return Work(engine="step_functions", memory_mb=runs_on.memory_mb, **common)
    if isinstance(runs_on, Lambda):
        return Work(engine="lambda", memory_mb=runs_on.memory_mb, **common)
    raise UnknownEngine(f"{tool.name}: there is no price for what it runs on, {runs_on!r}")


def states_in(definition: str) -> int:
    """How many states a definition below ``functions/`` has, those of branches and of iterations included."""
    return _states(json.loads((FUNCTIONS / definition).read_text(encoding="utf-8")))


def _states(machine: Mapping[str, Any]) -> int:
    count = 0
    for state in machine["States"].values():
        inner = [*state.get("Branches", ()), *(state[name] for name in ("Iterator", "ItemProcessor") if name in state)]
        count += 1 + sum(map(_states, inner))
    return count
