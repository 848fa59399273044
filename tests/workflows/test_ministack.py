"""The same state machines in MiniStack, an interpreter that shares nothing with moto's (`make test-races`).

What MiniStack does in another way than Step Functions: every error of a function is named Runtime.HandlerError, a
state that is retried keeps its task token, a Parallel state in JSONata ignores Assign and Output (so the documented one
is executed in `test_moto` only), and time-outs of whole machines are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from taskrail import TaskServer, Toolset, seconds
from tests.local_help import wait_for
from tests.workflows import snippets
from tests.workflows.catalogue import Nothing
from tests.workflows.ministack import Deployment, emulator
from tools import migrations

pytestmark = pytest.mark.ministack

YES = {"action": "accept", "content": {"go": True}}
COUNTS = {"before": [{"table": "a", "rows": 3}, {"table": "b", "rows": 4}], "after": [{"table": "a", "rows": 3}]}

tools = Toolset()
for name in ("both", "around", "snippets_jsonpath", "snippets_jsonata"):
    tools.workflow(
        name,
        description="Ask.",
        input=Nothing,
        definition=f"workflows/{name}.asl.json",
        poll_interval=seconds(1),
    )
server = TaskServer("workflows", version="1.0.0", tools=[tools, migrations.tools])


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    written = tmp_path_factory.mktemp("documented")
    snippets.write(written)
    with pytest.MonkeyPatch.context() as patch, emulator() as endpoint:
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_REGION", "us-east-1")
        for entry in (written, snippets.ROOT / "tests" / "workflows"):
            patch.syspath_prepend(str(entry))
        made = Deployment(server, endpoint)
        yield made
        made.close()


def text(task: dict[str, Any]) -> str:
    return str(task["result"]["content"][0]["text"])


def test_a_migration_asks_applies_and_verifies(deployed: Deployment) -> None:
    task_id = deployed.start("run_migration", table="orders", rows=1000, batch_size=300)
    (question,) = deployed.asked(task_id, "approve").values()
    assert question["params"]["message"] == "Migrate 1,000 rows of orders in 4 batches?"
    deployed.answer(task_id, approve=YES)
    task = deployed.ended(task_id)
    assert task["result"]["structuredContent"] == {"table": "orders", "rows": 1000, "batches": 4, "total": "498405.00"}
    assert task["_meta"]["io.taskrail/progress"] == {"done": 4, "total": 4}


@pytest.mark.parametrize("no", [{"action": "decline"}, {"action": "accept", "content": {"go": False}}])
def test_a_migration_that_is_not_approved_changes_nothing(deployed: Deployment, no: dict[str, Any]) -> None:
    task_id = deployed.start("run_migration", table="orders", rows=10)
    deployed.asked(task_id, "approve")
    deployed.answer(task_id, approve=no)
    assert text(deployed.ended(task_id)) == "The migration was not approved; nothing was changed."


def test_counts_are_compared_in_jsonata(deployed: Deployment) -> None:
    task_id = deployed.start("compare_counts", **COUNTS)
    (question,) = deployed.asked(task_id, "expected").values()
    assert question["params"]["message"] == "These tables have other counts: b. Was that to be expected?"
    deployed.answer(task_id, expected={"action": "accept", "content": {"expected": True}})
    assert deployed.ended(task_id)["result"]["structuredContent"] == {
        "tables": 2,
        "differences": [{"table": "b", "before": 4, "after": 0}],
    }


def test_two_questions_are_open_at_the_same_time(deployed: Deployment) -> None:
    task_id = deployed.start("both")
    deployed.asked(task_id, "name", "color")
    deployed.answer(task_id, color={"action": "accept", "content": {}})
    deployed.asked(task_id, "name")
    deployed.answer(task_id, name={"action": "accept", "content": {"name": "Ada"}})
    assert json.loads(text(deployed.ended(task_id))) == {
        "name": {"action": "accept", "content": {"name": "Ada"}},
        "color": "accept",
    }


def test_a_question_that_is_asked_again_is_answered_under_its_new_token(deployed: Deployment) -> None:
    """Its state is entered anew: to one that is retried MiniStack gives the old token (`test_moto` has that case)."""
    task_id = deployed.start("around")
    deployed.asked(task_id, "go")
    first = deployed.item(task_id)["tokens"]
    wait_for(lambda: deployed.item(task_id)["tokens"] != first, what="the new token")
    deployed.asked(task_id, "go")
    deployed.answer(task_id, go={"action": "accept", "content": {}})
    assert json.loads(text(deployed.ended(task_id))) == {"action": "accept"}


@pytest.mark.parametrize("language", ["jsonpath", "jsonata"])
@pytest.mark.parametrize("go", [True, False])
def test_the_states_of_the_readme_work_as_they_stand_there(deployed: Deployment, language: str, go: bool) -> None:
    task_id = deployed.start(f"snippets_{language}", note="kept")
    deployed.asked(task_id, "approve")
    deployed.answer(task_id, approve={"action": "accept", "content": {"go": go}})
    task = deployed.ended(task_id)
    assert task["result"]["isError"] is not go
    assert text(task) == ('{"note":"kept"}' if go else "Not approved.")


def test_a_workflow_that_waits_is_stopped_when_its_task_is_cancelled(deployed: Deployment) -> None:
    task_id = deployed.start("run_migration", table="orders", rows=10)
    deployed.asked(task_id, "approve")
    deployed.request("tasks/cancel", task_id, taskId=task_id)
    assert deployed.ended(task_id)["status"] == "cancelled"
    assert deployed.execution("run_migration", task_id)["status"] == "ABORTED"


def test_the_end_of_an_execution_is_told_by_an_event_without_a_read(deployed: Deployment) -> None:
    task_id = deployed.start("compare_counts", before=COUNTS["before"], after=COUNTS["before"])
    wait_for(lambda: deployed.item(task_id)["status"]["S"] == "completed", what="the event's effect")
