"""What runs and is no Python function: the specs say what cannot work, and a definition is held to its declaration."""

from __future__ import annotations

from typing import Any

import pytest

from taskrail import ExistingJob, ExistingStateMachine, minutes
from taskrail.work import Container, Workflow, definition_problems, references

ARN = "arn:aws:states:eu-central-1:123456789012:stateMachine:reports"


@pytest.mark.parametrize("arn", [ARN, ARN.replace("arn:aws:", "arn:aws-cn:")])
def test_a_state_machine_by_arn(arn: str) -> None:
    assert ExistingStateMachine(arn=arn).arn == arn
    assert not ExistingStateMachine(arn=arn).envelope


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({}, "one of them"),
        ({"arn": ARN, "tag": ("a", "b")}, "one of them"),
        ({"arn": f"{ARN}:1"}, "without version or alias"),
        ({"arn": "arn:aws:lambda:eu-central-1:123456789012:function:a"}, "ARN of a state machine"),
        ({"arn": 5}, "ARN of a state machine"),
        ({"tag": "team"}, "pair of key and value"),
        ({"tag": ("team",)}, "pair of key and value"),
        ({"tag": ("", "reports")}, "pair of key and value"),
        ({"tag": ("team", 1)}, "pair of key and value"),
    ],
)
def test_a_state_machine_that_cannot_be_found(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        ExistingStateMachine(**wrong)


def test_a_queue_and_a_definition_each_by_name_or_by_tag() -> None:
    assert ExistingJob(queue="reports", definition_tag=("team", "reports")).definition is None
    assert ExistingJob(queue_tag=("team", "reports"), definition="render:7").definition == "render:7"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({}, "takes queue="),
        ({"queue": "a"}, "takes definition="),
        ({"queue": "a", "queue_tag": ("a", "b"), "definition": "c"}, "takes queue="),
        ({"queue": " ", "definition": "c"}, "queue=.* ARN or a name"),
        ({"queue": "a", "definition": 1}, "definition=.* ARN or a name"),
        ({"queue": "a", "definition_tag": ["a", "b"]}, "definition_tag=.*pair"),
    ],
)
def test_a_job_that_cannot_be_found(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        ExistingJob(**wrong)


def test_a_workflow_keeps_its_own_copy_of_its_functions() -> None:
    functions = {"plan": "workflows.move.plan"}
    work = Workflow("workflows/move.asl.json", functions)
    functions["apply"] = "workflows.move.apply"
    assert dict(work.functions) == {"plan": "workflows.move.plan"}
    assert (work.engine, work.attempts, work.queue_ms, work.envelope) == ("step_functions", 1, 60_000, True)
    with pytest.raises(TypeError):
        work.functions["plan"] = "x"  # type: ignore[index]


def test_an_adopted_machine_gets_the_plain_arguments_unless_told() -> None:
    assert not Workflow(existing=ExistingStateMachine(arn=ARN)).envelope
    assert Workflow(existing=ExistingStateMachine(arn=ARN, envelope=True)).envelope


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({}, "one of them"),
        ({"definition": "workflows/a.json", "existing": ExistingStateMachine(arn=ARN)}, "one of them"),
        ({"definition": "a.asl.json"}, "below functions/workflows/"),
        ({"definition": "workflows/../a.json"}, "below functions/workflows/"),
        ({"definition": "/workflows/a.json"}, "below functions/workflows/"),
        ({"definition": "workflows/a.yaml"}, "below functions/workflows/"),
        ({"definition": 5}, "below functions/workflows/"),
        ({"existing": ARN}, "existing is an ExistingStateMachine"),
        ({"existing": ExistingStateMachine(arn=ARN), "functions": {"a": "b.c"}}, "has its own"),
        ({"definition": "workflows/a.json", "functions": ["a"]}, "functions is a dict"),
        ({"definition": "workflows/a.json", "functions": {"report": "b.c"}}, "the kit's own"),
        ({"definition": "workflows/a.json", "functions": {"a-b": "b.c"}}, "no name for a substitution"),
        ({"definition": "workflows/a.json", "functions": {"a": "plan"}}, "names a function below functions/"),
        ({"definition": "workflows/a.json", "timeout": 5}, "timeout is a duration"),
    ],
)
def test_a_workflow_that_cannot_work(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Workflow(**wrong)


def test_placeholders_of_a_command_are_parameters() -> None:
    command = ["sh", "-c", "convert Ref::source Ref::target-size", "Ref::source"]
    assert references(command) == ("source", "target-size", "source")
    work = Container(image="image", command=tuple(command), parameters=("more",))
    assert work.parameters == ("more", "source", "target-size")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({}, "one of them"),
        ({"image": "a", "existing": ExistingJob("a", "b")}, "one of them"),
        ({"image": "two words"}, "URI of a container image"),
        ({"existing": "a"}, "existing is an ExistingJob"),
        ({"image": "a", "command": "echo"}, "command is a list of texts"),
        ({"image": "a", "command": ("echo", 1)}, "command is a list of texts"),
        ({"image": "a", "parameters": "source"}, "parameters is a list of texts"),
        ({"image": "a", "parameters": ("",)}, "parameters is a list of texts"),
        ({"image": "a", "environment": [("A", "b")]}, "environment is a dict"),
        ({"image": "a", "environment": {"TASKRAIL_X": "b"}}, "are taken"),
        ({"image": "a", "environment": {"AWS_BATCH_X": "b"}}, "are taken"),
        ({"image": "a", "environment": {"A-B": "b"}}, "cannot be used"),
        ({"image": "a", "environment": {"A": 1}}, r"environment\['A'\] is a text"),
        ({"image": "a", "log_lines": True}, "whole number"),
        ({"image": "a", "log_lines": 201}, "0 to 200"),
        ({"image": "a", "log_lines": -1}, "0 to 200"),
    ],
)
def test_a_container_that_cannot_work(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Container(**wrong)


DEFINITION = {
    "StartAt": "Plan",
    "States": {
        "Plan": {"Type": "Task", "Resource": "${plan}", "Next": "Both"},
        "Both": {
            "Type": "Parallel",
            "Branches": [{"StartAt": "A", "States": {"A": {"Type": "Task", "Resource": "${report}", "End": True}}}],
            "End": True,
        },
    },
}


def test_a_definition_that_fits_its_declaration() -> None:
    assert definition_problems(DEFINITION, {"plan": "workflows.a.plan"}) == ()
    assert definition_problems({**DEFINITION, "TimeoutSeconds": 5}, {"plan": "workflows.a.plan"}) == ()


@pytest.mark.parametrize(
    ("definition", "functions", "told"),
    [
        (DEFINITION, {}, "${plan} is used, but functions={...} has no 'plan'"),
        (DEFINITION, {"plan": "a.b", "more": "a.b"}, "functions={...} has 'more', but no state uses ${more}"),
        ({"StartAt": "A"}, {}, "it has no States"),
        ({"StartAt": "A", "States": {}}, {}, "it has no States"),
        ({"States": {"A": {}}}, {}, "it has no StartAt"),
        ({"StartAt": "B", "States": {"A": {}}}, {}, "StartAt names 'B', which is none of its States"),
        (
            {"StartAt": "A", "States": {"A": {"Parameters": {"${key}": 1}}}},
            {},
            "${key} is used, but functions={...} has no 'key'",
        ),
    ],
)
def test_a_definition_that_does_not(definition: dict[str, Any], functions: dict[str, str], told: str) -> None:
    assert definition_problems(definition, functions) == (told,)


def test_what_is_no_substitution_is_left_alone() -> None:
    definition = {"StartAt": "A", "States": {"A": {"Output": "{% $sum(x.${ 'a': b }) & '${1}' %}"}}}
    assert definition_problems(definition, {}) == ()


def test_a_workflow_has_an_hour_unless_told() -> None:
    assert Workflow("workflows/a.json").timeout == minutes(60)
