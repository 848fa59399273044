"""The guards of the table, each with the race that it closes. A test breaks when its guard is taken away."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ConnectionClosedError
from hypothesis import HealthCheck, given, settings
from moto import mock_aws

from taskrail.errors import StoreUnavailable
from taskrail.questions import form_question
from taskrail.store import Conflict, Store, from_item, to_item
from taskrail.task import SCHEMA, Status, Task
from tests.sample_tasks import START, TASK_ID, made, tasks

QUESTION = form_question("a", "First?")


class Table:
    """A table, a store over it, and a client beside the store for what others do meanwhile."""

    def __init__(self) -> None:
        self.client = _client()
        self.beside = _client()
        self.client.create_table(
            TableName="tasks",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        self.store = Store(self.client, "tasks")
        self.others = Store(self.beside, "tasks")
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self._losing = 0
        self._meanwhile: Callable[[], object] = lambda: None
        self.client.meta.events.register("provide-client-params.dynamodb.*", self._note)
        # moto answers under the same name and was there first: the request has taken effect by then.
        self.client.meta.events.register_last("before-send", self._lose)

    def _note(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        self.requests.append((model.name, params))

    def _lose(self, request: Any, **_: Any) -> None:
        if self._losing > 0:
            self._losing -= 1
            self._meanwhile()
            raise ConnectionClosedError(endpoint_url=request.url)

    def lose_answers(self, count: int = 1, *, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Let the next tries take effect without an answer; botocore repeats each, as in the field."""
        self._losing, self._meanwhile = count, meanwhile

    def empty(self) -> None:
        """As if nothing had been."""
        self.lose_answers(0)
        self.beside.delete_item(TableName="tasks", Key={"pk": {"S": f"task#{TASK_ID}"}})
        self.requests.clear()

    def item(self) -> dict[str, Any]:
        """The item as it stands."""
        answer = self.beside.get_item(TableName="tasks", Key={"pk": {"S": f"task#{TASK_ID}"}})
        item: dict[str, Any] = answer.get("Item", {})
        return item

    def task(self) -> Task:
        """The task as it stands."""
        return from_item(self.item())

    def put(self, **changes: object) -> Task:
        """A task that stands in the table."""
        task = made(**changes)
        self.beside.put_item(TableName="tasks", Item=to_item(task))
        return task


def _client() -> Any:
    return boto3.client("dynamodb", region_name="eu-central-1")


@pytest.fixture(scope="module")
def one_table() -> Iterator[Table]:
    """Making it takes longer than a test."""
    with mock_aws():
        yield Table()


@pytest.fixture
def table(one_table: Table) -> Table:
    one_table.empty()
    return one_table


def claim(store: Store, **changes: Any) -> Task:
    """The first attempt at the first run, unless the test says otherwise."""
    how: dict[str, Any] = {"run": 1, "run_id": "run:1", "attempt": 1, "now": START, "nonce": "c1"}
    return store.claim(TASK_ID, **{**how, **changes})


def told(task: Task, message: str = "half") -> Task:
    """A change that a worker might make."""
    return task.reported(None, message, START + 1)


class TestAbsent:
    """Two creations under one id: one of them wins."""

    def test_absent(self, table: Table) -> None:
        first, second = made(), made(arguments='{"other":1}', nonce="n1")
        table.store.create(first)
        with pytest.raises(Conflict) as refused:
            table.store.create(second)
        assert refused.value.current == first
        assert table.task() == first

    def test_the_id_of_another_owner_is_taken_too(self, table: Table) -> None:
        first = table.put()
        with pytest.raises(Conflict) as refused:
            table.store.create(made(owner="eve", nonce="n1"))
        assert refused.value.current == first


class TestSameRevision:
    """A change is written only onto the revision that it was computed from."""

    def test_same_revision(self, table: Table) -> None:
        seen = table.put()
        cancelled = table.others.write(seen, seen.cancelling(START + 1), START + 1, "w1")
        with pytest.raises(Conflict) as refused:
            table.store.write(seen, told(seen), START + 1, "w2")
        assert refused.value.current == cancelled
        assert table.task() == cancelled

    def test_a_claim_is_a_revision_as_well(self, table: Table) -> None:
        seen = table.put()
        claimed = claim(table.others)
        with pytest.raises(Conflict):
            table.store.write(seen, seen.cancelling(START + 1), START + 1, "w1")
        assert table.task() == claimed

    def test_every_write_is_the_next_revision(self, table: Table) -> None:
        table.put()
        task = claim(table.store)
        for number in range(3):
            after = table.store.write(task, told(task, str(number)), START, f"w{number}")
            assert (after.rev, after.nonce) == (task.rev + 1, f"w{number}")
            assert table.task() == after
            task = after


class TestSameOwner:
    """No write reaches another caller's task, whatever the code before it did."""

    def test_same_owner(self, table: Table) -> None:
        task = table.put()
        theirs = replace(task, owner="eve")
        with pytest.raises(Conflict):
            table.store.write(theirs, theirs.cancelling(START + 1), START + 1, "w1")
        assert table.task() == task


class TestUnexpired:
    """The table deletes late; an expired item must not be revived, answered or worked on."""

    @pytest.mark.parametrize("ttl_ms", [720_000, 720_001, 720_500, 720_999])
    def test_unexpired_write(self, table: Table, ttl_ms: int) -> None:
        task = table.put(ttl_ms=ttl_ms)
        with pytest.raises(Conflict):
            table.store.write(task, told(task), START + ttl_ms, "w1")
        assert table.task() == task
        table.store.write(task, told(task), START + ttl_ms - 1, "w1")

    def test_unexpired_write_of_a_stale_revision(self, table: Table) -> None:
        task = table.put()
        shortened = table.others.write(task, replace(task, ttl_ms=60_000), START, "w1")
        with pytest.raises(Conflict) as refused:
            table.store.write(task, told(task), START + 60_000, "w2")
        assert refused.value.current == shortened

    def test_unexpired_claim(self, table: Table) -> None:
        task = table.put()
        with pytest.raises(Conflict):
            claim(table.store, now=START + 720_000)
        assert table.task() == task
        assert claim(table.store, now=START + 719_999).attempt == 1

    def test_a_ticket_without_an_end_never_expires(self, table: Table) -> None:
        task = table.put(ttl_ms=None, keep_ms=None)
        late = START + 10**12
        after = table.store.write(task, told(task), late, "w1")
        assert after.expires_at is None
        assert claim(table.store, now=late).claimed


class TestClaimable:
    """A worker takes up the current run, open and unclaimed by an attempt as high as its own."""

    def test_claimable(self, table: Table) -> None:
        task = table.put(missing_since=START)
        claimed = claim(table.store, run_id="exec-1", attempt=2, nonce="c1")
        expected = replace(task, attempt=2, run_id="exec-1", claim="c1", nonce="c1", rev=2, missing_since=None)
        assert claimed == expected == table.task()

    def test_a_higher_attempt_takes_over(self, table: Table) -> None:
        table.put()
        claim(table.store, attempt=1, nonce="c1")
        assert claim(table.store, attempt=2, nonce="c2").claim == "c2"

    @pytest.mark.parametrize("attempt", [1, 2])
    def test_claimable_by_no_attempt_that_is_equal_or_lower(self, table: Table, attempt: int) -> None:
        table.put()
        first = claim(table.store, attempt=2, nonce="c1")
        with pytest.raises(Conflict) as refused:
            claim(table.store, attempt=attempt, nonce="c2")
        assert refused.value.current == first == table.task()

    @pytest.mark.parametrize("run", [1, 3])
    def test_claimable_is_the_current_run_only(self, table: Table, run: int) -> None:
        task = table.put(run=2)
        with pytest.raises(Conflict):
            claim(table.store, run=run, attempt=9)
        assert table.task() == task

    def test_claimable_is_an_open_run_only(self, table: Table) -> None:
        task = table.put(run_open=False)
        with pytest.raises(Conflict):
            claim(table.store)
        assert table.task() == task

    @pytest.mark.parametrize("status", [status for status in Status if status is not Status.WORKING])
    def test_claimable_is_work_only(self, table: Table, status: Status) -> None:
        task = table.put(status=status, questions={"a": QUESTION})
        with pytest.raises(Conflict):
            claim(table.store)
        assert table.task() == task

    def test_claimable_is_a_layout_that_the_worker_knows(self, table: Table) -> None:
        table.put(schema=SCHEMA + 1)
        before = table.item()
        with pytest.raises(StoreUnavailable):
            claim(table.store)
        assert table.item() == before

    def test_what_is_not_there_is_not_claimed_into_being(self, table: Table) -> None:
        with pytest.raises(Conflict) as refused:
            claim(table.store)
        assert refused.value.current is None
        assert table.item() == {}


class TestOwnNonce:
    """A write that took effect without an answer recognises itself when it is repeated."""

    def test_own_nonce_of_a_creation(self, table: Table) -> None:
        table.lose_answers()
        table.store.create(made())
        assert table.task() == made()
        assert [name for name, _ in table.requests] == ["PutItem"]

    def test_own_nonce_of_a_change(self, table: Table) -> None:
        task = table.put()
        table.lose_answers()
        after = table.store.write(task, told(task), START, "w1")
        assert (after.rev, after.status_message) == (2, "half")
        assert table.task() == after

    def test_own_nonce_of_a_claim(self, table: Table) -> None:
        table.put()
        table.lose_answers()
        claimed = claim(table.store)
        assert (claimed.rev, claimed.attempt) == (2, 1)
        assert table.task() == claimed

    def test_own_nonce_of_a_repetition_by_the_caller(self, table: Table) -> None:
        """The answer was lost for good; whoever repeats the write names it by the same nonce."""
        task = table.put()
        table.lose_answers(100)
        with pytest.raises(StoreUnavailable):
            table.store.write(task, told(task), START, "w1")
        after = table.others.write(task, told(task), START, "w1")
        assert after.rev == 2
        assert table.task() == after

    def test_the_change_of_somebody_else_is_a_rival(self, table: Table) -> None:
        task = table.put()
        table.others.write(task, told(task), START, "w1")
        with pytest.raises(Conflict):
            table.store.write(task, told(task), START, "w2")

    def test_a_taking_back_that_is_repeated(self, table: Table) -> None:
        task = table.put()
        table.lose_answers()
        assert table.store.delete(task)
        assert table.item() == {}

    def test_a_claims_nonce_outlives_a_later_write(self, table: Table) -> None:
        table.put()

        def cancel() -> None:
            current = table.task()
            table.others.write(current, current.cancelling(START + 1), START + 1, "w1")

        table.lose_answers(meanwhile=cancel)
        claimed = claim(table.store)
        assert claimed.claim == "c1"
        assert claimed.cancel_requested_at == START + 1
        assert table.task() == claimed

    def test_a_claim_that_another_took_over_is_lost(self, table: Table) -> None:
        table.put()
        table.lose_answers(meanwhile=lambda: claim(table.others, attempt=2, nonce="c2"))
        with pytest.raises(Conflict):
            claim(table.store)
        assert table.task().claim == "c2"


class TestUntouched:
    """A creation is taken back only if nobody has touched it."""

    def test_delete_if_untouched(self, table: Table) -> None:
        task = table.put()
        assert table.store.delete(task)
        assert table.item() == {}

    def test_delete_not_once_claimed(self, table: Table) -> None:
        task = table.put()
        claimed = claim(table.others)
        assert not table.store.delete(task)
        assert table.task() == claimed

    def test_delete_not_once_a_repeated_call_has_found_it(self, table: Table) -> None:
        task = table.put()
        found = table.others.write(task, task.probed(START + 1, missing=False), START + 1, "w1")
        assert not table.store.delete(task)
        assert table.task() == found

    def test_delete_not_the_one_that_came_after(self, table: Table) -> None:
        task = made()
        newer = table.put(nonce="n9")
        assert not table.store.delete(task)
        assert table.task() == newer


class TestUnclear:
    """No clear answer is an error of its own, without a detail of AWS's."""

    def test_names_the_code_only(self, table: Table) -> None:
        with pytest.raises(StoreUnavailable) as unclear:
            Store(table.client, "elsewhere").read(TASK_ID)
        assert str(unclear.value) == "ResourceNotFoundException"

    @pytest.mark.parametrize("write", ["create", "write", "claim", "delete"])
    def test_every_write_may_have_an_unknown_outcome(self, table: Table, write: str) -> None:
        task = made() if write == "create" else table.put()
        table.lose_answers(100)
        calls: dict[str, Callable[[], object]] = {
            "create": lambda: table.store.create(task),
            "write": lambda: table.store.write(task, told(task), START, "w1"),
            "claim": lambda: claim(table.store),
            "delete": lambda: table.store.delete(task),
        }
        with pytest.raises(StoreUnavailable):
            calls[write]()


class TestRead:
    """Reads are strongly consistent, and never guess at what they do not know."""

    def test_strongly_consistent(self, table: Table) -> None:
        table.put()
        assert table.store.read(TASK_ID) == made()
        assert table.requests == [("GetItem", {**table.requests[0][1], "ConsistentRead": True})]

    def test_nothing_is_none(self, table: Table) -> None:
        assert table.store.read(TASK_ID) is None

    def test_a_newer_layout_is_refused(self, table: Table) -> None:
        table.put(schema=SCHEMA + 1)
        with pytest.raises(StoreUnavailable, match="newer"):
            table.store.read(TASK_ID)

    def test_a_newer_layout_in_the_way_is_refused(self, table: Table) -> None:
        table.put(schema=SCHEMA + 1)
        with pytest.raises(StoreUnavailable, match="newer"):
            table.store.create(made(nonce="n1"))


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(old=tasks(), new=tasks())
def test_any_change_round_trips_through_the_table(table: Table, old: Task, new: Task) -> None:
    """Whatever appears, changes or goes is in the write, under names that may be reserved words."""
    old = replace(old, ttl_ms=None)
    new = replace(new, owner=old.owner, ttl_ms=None)
    table.beside.put_item(TableName="tasks", Item=to_item(old))
    after = table.store.write(old, new, START, "w1")
    assert table.task() == after == replace(new, rev=old.rev + 1, nonce="w1")


def test_ttl_attribute_is_absent_for_unlimited(table: Table) -> None:
    """An attribute of another type or of zero would be a mistake of ours waiting for the sweeper."""
    assert "expiresAt" not in to_item(made(ttl_ms=None, keep_ms=None))
    task = table.put()
    table.store.write(task, replace(task, ttl_ms=None, keep_ms=None), START, "w1")
    assert "expiresAt" not in table.item()


def test_what_has_no_utf8_form_does_not_stop_a_task(table: Table) -> None:
    """JSON may carry half a surrogate pair; the table takes UTF-8 only."""
    odd = "\ud83d half"
    task = made(
        status_message=odd,
        client={"elicitation": {odd: odd}},
        questions={"a": form_question("a", odd)},
        answers={"a": json.dumps(odd)},
    )
    for value in to_item(task).values():
        for text in value.values():
            str(text).encode()
    table.store.create(task)
    stored = table.store.read(TASK_ID)
    assert stored is not None
    assert stored.status_message == "\ufffd half"
    assert replace(stored, status_message=odd) == task


def test_no_attribute_stands_in_an_expression_by_its_name(table: Table) -> None:
    """Names such as `status` or `error` may be reserved words of DynamoDB's, now or later."""
    table.store.create(made())
    task = claim(table.store)
    full = task.asked({"a": QUESTION}, START, answer_within_ms=1, budget_ms=1, hold=False)
    table.store.write(task, full.ended(Status.FAILED, START, message="Over.", error="{}"), START, "w1")
    table.store.delete(task)
    for _, params in table.requests:
        for text in (params.get("ConditionExpression", ""), params.get("UpdateExpression", "")):
            bare = re.findall(r"(?<![#:\w])[A-Za-z]\w*", text)
            assert set(bare) <= {"SET", "REMOVE", "AND", "OR", "attribute_exists", "attribute_not_exists", "pk"}, text
