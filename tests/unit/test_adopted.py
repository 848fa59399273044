"""Things of the account found by a tag: exactly one, looked up once. moto's tagging API knows none of these kinds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from botocore.stub import Stubber

from taskrail.clients import client
from taskrail.engines.adopted import Adopted
from taskrail.errors import EngineUnavailable, StartRefused

HERE = "us-east-1:123456789012"
MACHINE = f"arn:aws:states:{HERE}:stateMachine:reports"
QUEUE = f"arn:aws:batch:{HERE}:job-queue/reports"
DEFINITION = f"arn:aws:batch:{HERE}:job-definition/reports"


@pytest.fixture
def tagging() -> Iterator[Stubber]:
    with Stubber(client("resourcegroupstaggingapi")) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


def expect(tagging: Stubber, kind: str, *pages: list[str], key: str = "team", value: str = "reports") -> None:
    """Answers of GetResources, page by page, to the one question that is right."""
    token = ""
    for number, arns in enumerate(pages, start=1):
        asked: dict[str, object] = {"TagFilters": [{"Key": key, "Values": [value]}], "ResourceTypeFilters": [kind]}
        if token:
            asked["PaginationToken"] = token
        token = f"page-{number}" if number < len(pages) else ""
        found = [{"ResourceARN": arn, "Tags": []} for arn in arns]
        tagging.add_response("get_resources", {"PaginationToken": token, "ResourceTagMappingList": found}, asked)


def test_an_arn_or_a_name_stays_as_it_is_and_needs_no_client() -> None:
    def never() -> Any:
        raise AssertionError("a client was made")

    adopted = Adopted(never)
    assert adopted.state_machine(MACHINE) == MACHINE
    assert adopted.queue("reports") == "reports"
    assert adopted.definition(f"{DEFINITION}:3") == f"{DEFINITION}:3"


def test_each_kind_is_looked_up_among_its_own_and_once(tagging: Stubber) -> None:
    adopted = Adopted(lambda: tagging.client)
    expect(tagging, "states:stateMachine", [MACHINE])
    expect(tagging, "batch:job-queue", [QUEUE])
    expect(tagging, "batch:job-definition", [f"{DEFINITION}:1"])
    for _ in range(2):
        assert adopted.state_machine("tag:team=reports") == MACHINE
        assert adopted.queue("tag:team=reports") == QUEUE
        assert adopted.definition("tag:team=reports") == f"{DEFINITION}:1"


def test_a_value_may_have_an_equals_sign(tagging: Stubber) -> None:
    expect(tagging, "batch:job-queue", [QUEUE], key="aws:cost", value="a=b")
    assert Adopted(lambda: tagging.client).queue("tag:aws:cost=a=b") == QUEUE


def test_the_only_one_may_stand_on_a_later_page(tagging: Stubber) -> None:
    expect(tagging, "batch:job-queue", [], [QUEUE])
    assert Adopted(lambda: tagging.client).queue("tag:team=reports") == QUEUE


def test_several_on_several_pages_are_several(tagging: Stubber) -> None:
    expect(tagging, "batch:job-queue", [QUEUE], [QUEUE + "2"])
    with pytest.raises(StartRefused, match=r"one job queue .* 'team' = 'reports'; 2 of them have it"):
        Adopted(lambda: tagging.client).queue("tag:team=reports")


def test_none_is_refused_and_looked_for_again(tagging: Stubber) -> None:
    adopted = Adopted(lambda: tagging.client)
    expect(tagging, "states:stateMachine", [])
    with pytest.raises(StartRefused, match=r"state machine .* none has it"):
        adopted.state_machine("tag:team=reports")
    expect(tagging, "states:stateMachine", [MACHINE])
    assert adopted.state_machine("tag:team=reports") == MACHINE


def test_revisions_of_one_definition_are_one_and_the_newest_counts_as_a_number(tagging: Stubber) -> None:
    expect(tagging, "batch:job-definition", [f"{DEFINITION}:9", f"{DEFINITION}:10"], [f"{DEFINITION}:2"])
    assert Adopted(lambda: tagging.client).definition("tag:team=reports") == f"{DEFINITION}:10"


def test_definitions_of_two_names_are_two(tagging: Stubber) -> None:
    expect(tagging, "batch:job-definition", [f"{DEFINITION}:9", f"{DEFINITION}-2:10"])
    with pytest.raises(StartRefused, match="2 of them"):
        Adopted(lambda: tagging.client).definition("tag:team=reports")


@pytest.mark.parametrize("code", ["ThrottledException", "AccessDeniedException", "InternalServiceException"])
def test_no_answer_is_no_answer_and_is_not_kept(code: str, tagging: Stubber) -> None:
    adopted = Adopted(lambda: tagging.client)
    tagging.add_client_error("get_resources", code, "secret detail", http_status_code=400)
    with pytest.raises(EngineUnavailable, match=f"^{code}$"):
        adopted.queue("tag:team=reports")
    expect(tagging, "batch:job-queue", [QUEUE])
    assert adopted.queue("tag:team=reports") == QUEUE


def test_no_connection_is_no_answer() -> None:
    def unreachable() -> Any:
        raise EndpointConnectionError(endpoint_url="https://tagging.example")

    with pytest.raises(EngineUnavailable, match="EndpointConnectionError"):
        Adopted(unreachable).queue("tag:team=reports")
