"""Whatever a job gives is made to fit: the item into DynamoDB, the answer into Lambda, the rest into the bucket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from taskrail.rail.links import escaped_size
from taskrail.testing import TABLE, Called, Kit, harness
from tests.functional import payload_tools

LARGEST_ITEM = 400 * 1024
"""Bytes of an item (DynamoDB, "Service quotas"); moto does not look at updates."""
LARGEST_ANSWER = 5_000_000
"""Bytes of an answer, escaped in Lambda's own JSON (wire)."""


@pytest.fixture(scope="module")
def kit() -> Iterator[Kit]:
    with harness(payload_tools.server) as made:
        watch(made)
        yield made


def watch(kit: Kit) -> None:
    """From now on every item after every request fits, and every answer."""
    post = kit.post

    def posted(body: str, headers: Any) -> dict[str, Any]:
        answer = post(body, headers)
        assert answer["statusCode"] < 500, answer["body"][:200]
        assert escaped_size(answer["body"]) <= LARGEST_ANSWER
        task_id = json.loads(answer["body"]).get("result", {}).get("taskId")
        assert task_id is None or stored_size(kit, task_id) <= LARGEST_ITEM
        return answer

    kit.post = posted  # type: ignore[method-assign]


def stored_size(kit: Kit, task_id: str) -> int:
    """Bytes of a task's item: names and values, as DynamoDB counts them (numbers at their most)."""
    item = kit.dynamodb.get_item(TableName=TABLE, Key={"pk": {"S": f"task#{task_id}"}})["Item"]
    return sum(len(name) + max(21, len(str(next(iter(value.values()))).encode())) for name, value in item.items())


def conforms(kit: Kit, task: Called, tool: str) -> None:
    """The structured content is what the tool's listed output schema says."""
    listed = {entry["name"]: entry for entry in kit.request("tools/list")["tools"]}
    schema = listed[tool]["outputSchema"]
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(task.structured)


@pytest.mark.parametrize(
    ("tool", "count", "width", "offloaded"),
    [
        ("rows", 3, 10, False),
        ("rows", 100, 10_000, False),
        ("rows", 1_000, 2_600, True),
        ("plain_list", 100, 5_000, True),
        ("by_hand", 1_000, 3_000, True),
    ],
)
def test_structured_content_conforms_to_its_schema_when_parts_were_put_elsewhere(
    kit: Kit, tool: str, count: int, width: int, offloaded: bool
) -> None:
    task = kit.call(tool, count=count, width=width).run()
    assert not task.is_error
    conforms(kit, task, tool)
    (block,) = task.result["content"]
    assert (block["type"] == "resource_link") is offloaded
    repeated = task.attachment(block["name"]).decode() if offloaded else block["text"]
    assert json.loads(repeated) == task.structured


@pytest.mark.parametrize(("tool", "count", "width"), [("rows", 1_000, 6_000), ("by_hand", 1_000, 6_000)])
def test_structured_content_that_cannot_conform_is_an_error_without_any(
    kit: Kit, tool: str, count: int, width: int
) -> None:
    task = kit.call(tool, count=count, width=width).run()
    assert task.is_error
    assert "structuredContent" not in task.result
    linked = task.result["content"][1]
    whole = json.loads(task.attachment(linked["name"]))
    listed = {entry["name"]: entry for entry in kit.request("tools/list")["tools"]}
    jsonschema.validate(whole["structuredContent"], listed[tool]["outputSchema"])


@pytest.mark.parametrize(
    ("files", "length"),
    [
        *((0, length) for length in range(4_898_800, 4_900_201, 200)),
        *((0, length) for length in range(4_999_000, 5_000_201, 200)),
        (200, 4_030_000),
        (400, 4_815_000),
    ],
)
def test_a_result_at_the_limit_is_never_an_answer_beyond_it(kit: Kit, files: int, length: int) -> None:
    """The task's own fields, the envelope, and the links once they are made are part of the answer."""
    task = kit.call("attach_many", count=files, text="x" * length).run()
    assert task.status == "completed"
    assert len(task.result["content"]) == files + 1


def test_five_hundred_files_and_more_structure_than_fits_are_all_linked(kit: Kit) -> None:
    def work(task: Any) -> Any:
        for number in range(500):
            task.attach(f"{number}.txt", "x")
        return {"text": "y" * 6_000_000}

    payload_tools.given[0] = work
    task = kit.call("anything").run()
    assert task.is_error
    names = [block["name"] for block in task.result["content"] if block["type"] == "resource_link"]
    assert names == ["result.json", *(f"{number}.txt" for number in range(500))]
    assert "s3:" not in task.attachment("result.json").decode()


def test_of_many_blocks_the_largest_are_linked_first(kit: Kit) -> None:
    task = kit.call("put_together", count=4, width=1_500_000).run()
    kinds = [block["type"] for block in task.result["content"]]
    assert kinds.count("resource_link") in (1, 2)
    assert task.structured == {"count": 4}


def test_very_many_small_blocks_are_linked_as_one(kit: Kit) -> None:
    task = kit.call("put_together", count=3_000, width=2_000).run()
    assert task.is_error
    (_, link) = task.result["content"]
    assert len(json.loads(task.attachment(link["name"]))["content"]) == 3_001


@pytest.mark.parametrize(("message", "data"), [(10, 100), (10, 50_000), (50_000, 10), (600_000, 600_000)])
def test_a_jobs_protocol_error_of_any_size_is_told_whole(kit: Kit, message: int, data: int) -> None:
    task = kit.call("refuse_at_length", message=message, data=data).run()
    assert task.status == "failed"
    assert task.error == {"code": 4711, "message": "m" * message, "data": {"why": "d" * data}}
    assert len(task.poll()["statusMessage"]) <= 500


def test_a_jobs_protocol_error_that_no_answer_could_carry_keeps_its_code(kit: Kit) -> None:
    task = kit.call("refuse_at_length", message=10, data=6_000_000).run()
    assert task.status == "failed"
    assert (task.error["code"], "too large" in task.error["message"]) == (4711, True)


@pytest.mark.parametrize(("count", "size"), [(300, 10), (60, 2_000), (20, 4_000), (3, 5_000)])
def test_many_steps_fit_into_the_item(kit: Kit, count: int, size: int) -> None:
    task = kit.call("many_steps", count=count, size=size)
    sizes: list[int] = []
    step = kit.runtime.rail.reports.step

    def stepped(*arguments: Any) -> Any:
        after = step(*arguments)
        sizes.append(stored_size(kit, task.task_id))
        return after

    kit.runtime.rail.reports.step = stepped  # type: ignore[method-assign]
    try:
        assert task.run().text == "done"
    finally:
        kit.runtime.rail.reports.step = step  # type: ignore[method-assign]
    assert len(sizes) == count
    assert max(sizes) <= LARGEST_ITEM


def test_more_steps_than_an_item_takes_are_an_error_that_says_so(kit: Kit) -> None:
    def work(task: Any) -> Any:
        task.step("x" * 200_000, lambda: 1)

    payload_tools.given[0] = work
    task = kit.call("anything").run()
    assert task.is_error
    assert "do more in each" in task.text


@pytest.mark.parametrize(("count", "text"), [(100, 4_000), (200, 100), (30, 5_000)])
def test_many_answers_fit_into_the_item(kit: Kit, count: int, text: int) -> None:
    task = kit.call("many_questions", count=count).run()
    answers = {f"q{number}": {"text": "a" * text} for number in range(count)}
    half = dict(list(answers.items())[: count // 2])
    assert task.answer(**half).status == "input_required"
    assert task.answer(**answers).run().text == str(count * text)


def test_questions_that_no_item_takes_are_an_error_that_says_so(kit: Kit) -> None:
    task = kit.call("many_questions", count=5, words=50_000).run()
    assert task.is_error
    assert "too long to be stored" in task.text


@pytest.mark.parametrize("name", ["elicitation", "sampling", "roots", "extensions", "anything"])
def test_what_a_client_declares_besides_stays_out_of_the_item(kit: Kit, name: str) -> None:
    """However large: a task keeps only what says whether its client can be asked."""
    bulk = {"text": "c" * 450_000, "more": {"deep": [1, 2, 3]}}
    task = kit.call("many_questions", count=1, capabilities={"elicitation": {}, name: bulk}).run()
    assert task.status == "input_required"
    assert "ccc" not in json.dumps(kit.scan())
