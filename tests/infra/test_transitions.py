"""What a task on Step Functions pays of the dearest line of its bill."""

from __future__ import annotations

import json

from benchmarks.cost_calls import TRANSITIONS_OF_A_JOB
from tests.infra.synthesis import Template, shown


def test_a_job_takes_two_transitions_at_most(templates: dict[str, Template]) -> None:
    """Into its one state, and out of it to the end; nothing in it repeats, branches or waits."""
    machines = templates["jobs"].all("AWS::StepFunctions::StateMachine").values()
    assert machines
    for machine in machines:
        definition = json.loads(shown(machine["DefinitionString"]))
        ((name, state),) = definition["States"].items()
        assert (definition["StartAt"], state["Type"], state["End"]) == (name, "Task", True)
        assert not {"Next", "Catch"} & state.keys()
        assert len(definition["States"]) + 1 == TRANSITIONS_OF_A_JOB == 2


def test_a_job_on_lambda_takes_none(templates: dict[str, Template]) -> None:
    assert not templates["functions"].all("AWS::StepFunctions::StateMachine")
