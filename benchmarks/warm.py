"""Warm requests: CPU time of one answer in a process that has answered before, everybody in turns."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks import children, fixtures
from benchmarks.bundles import Made
from benchmarks.numbers import Measure, ratio
from benchmarks.rivals import RIVALS, SDK, SDK_USUAL, Rival

OPERATIONS = ("tools/call", "tasks/get", "tasks/update")
_WANTED = {"tools/call": "taskId", "tasks/get": "status", "tasks/update": "resultType"}


def measure(
    bundles: Mapping[str, Made], aws: Made, rounds: int, count: int, tell: Callable[[str], None], log: Path
) -> dict[str, Any]:
    """Answer every operation `count` times a round, with botocore and without.

    Parameters
    ----------
    bundles, aws
        By the rival's name; and boto3's.
    rounds, count
        How many rounds, and answers of each kind in each.
    tell
        Told of the progress.
    log
        File for what the handlers log.
    """
    rivals = [rival for rival in RIVALS if rival.serves and rival.name in bundles]
    cases = [(operation, outside) for operation in OPERATIONS for outside in (False, True)]
    samples: dict[tuple[str, str, bool], list[float]] = {}
    with ExitStack() as stack, open(log, "w", encoding="utf-8") as errors:
        workers: dict[str, children.Worker] = {}
        for rival in rivals:
            tell(f"warm requests: {rival.title} gets ready")
            order = _order(rival, bundles[rival.name], aws)
            workers[rival.name] = stack.enter_context(children.worker(order, errors))
            for operation, outside in cases:
                told = workers[rival.name].repeat(operation, count, outside=outside)
                _check(rival, operation, told["answer"])
        for number in range(rounds):
            tell(f"warm requests, round {number + 1} of {rounds}")
            for operation, outside in cases:
                for rival in rivals:
                    told = workers[rival.name].repeat(operation, count, outside=outside)
                    samples.setdefault((rival.name, operation, outside), []).append(told["cpu"] * 1_000)
    return {"rounds": rounds, "answers": count, "requests": [_told(key, samples) for key in samples]}


def _order(rival: Rival, made: Made, aws: Made) -> dict[str, Any]:
    known = fixtures.recorded(rival, made, aws)
    return {
        **fixtures.order(rival, made, aws),
        "events": {operation: known[operation]["event"] for operation in OPERATIONS},
        "answers": {operation: known[operation]["answers"] for operation in OPERATIONS},
    }


def _check(rival: Rival, operation: str, answer: Mapping[str, Any]) -> None:
    result = json.loads(answer["body"]).get("result")
    if answer["statusCode"] != 200 or result is None or _WANTED[operation] not in result:
        raise children.ProbeError(f"{rival.name} did not answer {operation}: {answer}")


def _told(key: tuple[str, str, bool], samples: Mapping[tuple[str, str, bool], list[float]]) -> dict[str, Any]:
    rival, operation, outside = key
    others = {name: samples.get((name, operation, outside)) for name in (SDK.name, SDK_USUAL.name)}
    return {
        "rival": rival,
        "operation": operation,
        "outside_botocore": outside,
        "cpu_ms": Measure.of(samples[key]).as_json(),
        "to": {name: ratio(samples[key], values).as_json() for name, values in others.items() if values},
    }
