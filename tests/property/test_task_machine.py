"""Random lives of tasks: clients, workers, engine, crashes and the clock in any order, and the rules throughout.

``TASKRAIL_LONG=1`` plays far more and longer lives.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import boto3
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule, run_state_machine_as_test
from moto import mock_aws

from taskrail.engines import RunReport, RunState, parse_run_name, run_name
from taskrail.errors import StoreUnavailable
from taskrail.task import Status
from taskrail.testing import BUCKET, TABLE
from tests.counts import LONG, SAME_EVERY_TIME, count, sized
from tests.property.functions import FunctionRules
from tests.property.machine import Machine, Worker
from tests.property.outside import Died, Plan, Trouble
from tests.property.strategies import RIGHT, ends, lives, picks, plans, waits
from tests.property.world import REMOTE, SETTINGS, Ticket, question


class TaskMachine(FunctionRules):
    """Clients, workers, the engine and the clock, and what must be true of it all."""

    @initialize(begun=st.lists(lives, min_size=1, max_size=2))
    def begin(self, begun: list[tuple[str, str, list[str], bool, bool, str]]) -> None:
        """Some tasks are under way already, so that something is there to go wrong."""
        for owner, tool, script, sealed, lags, stage in begun:
            if stage == "unstarted":
                self.create(owner, tool, script, False, True, lags, False, {1: Trouble.DIES_BEFORE})
                continue
            # Batch and Lambda know no token that would make a start safe to repeat: half of these runs are two.
            submits = {"long": 1, "box": 2, "brief": 1}.get(tool)
            plan: Plan = {submits: Trouble.REPEATED} if submits is not None and lags else {}
            self.create(owner, tool, script, False, sealed, lags, False, plan)
            if tool in REMOTE:
                self._hand_over(self.tickets[-1], stage)
            elif stage != "new":
                self._take_up(self.tickets[-1], stage)

    def _hand_over(self, ticket: Ticket, stage: str) -> None:
        """Work that is none of the kit's has got as far as that."""
        asked = stage in ("asking", "held", "orphaned", "answered")
        for key in "ab" if asked else ():
            jobs = self.world.jobs.of(run_name(ticket.task_id, 1))
            for job in jobs or (None,):
                self._report(ticket, self.report_of(ticket, "ask", key, job), job, {})
        if stage == "answered":
            self.send_answers(ticket, dict.fromkeys("ab", RIGHT), {})
        elif stage == "cancelling":
            self.world.outside.new_process("client")
            self.world.rail.cancel(ticket.owner, ticket.task_id)

    def _take_up(self, ticket: Ticket, stage: str) -> None:
        reports = self.world.reports
        self.world.outside.new_process("worker")
        name, run_id = run_name(ticket.task_id, 1), self.engine_id(ticket.task_id, 1)
        self._begin(run_id)
        task = self.take_up(ticket.task_id, 1, run_id, 1)
        assert task is not None
        for event in self.world.functions.of(name)[1:]:
            # Of two events of a run, the one that came too late dies.
            self.hear_of(event, {})
        if stage in ("asking", "held", "orphaned", "answered"):
            task = reports.ask(task, {key: question(key) for key in "ab"}, 180_000, hold=stage in ("held", "orphaned"))
        if stage == "orphaned" and run_id in self.world.jobs.all:
            job = self.world.jobs.all[run_id]
            job.report = self.world.jobs.account(job, RunState.FAILED, "exit code 3")
        elif stage == "orphaned" and run_id in self.world.functions.all:
            self.world.functions.all[run_id].record()
        elif stage == "orphaned":
            self.world.engine.runs[name] = RunReport(RunState.FAILED, "exit code 3")
        else:
            self.workers.append(Worker(task))
        if stage == "answered":
            self.send_answers(ticket, dict.fromkeys("ab", RIGHT), {})
        elif stage == "cancelling":
            self.world.outside.new_process("client")
            self.world.rail.cancel(ticket.owner, ticket.task_id)

    @precondition(lambda self: self.living())
    @rule(pick=picks, report=ends, heard=st.booleans(), plan=plans)
    def end(self, pick: int, report: RunReport, heard: bool, plan: Plan) -> None:
        """A run is over; its event comes at once, or later, or never. Its worker may not know."""
        living = self.living()
        name = living[pick % len(living)]
        self.world.engine.runs[name] = report
        if heard:
            self._hear_of(name, plan)

    @precondition(lambda self: self.world.engine.runs)
    @rule(pick=picks, plan=plans)
    def event(self, pick: int, plan: Plan) -> None:
        """An event about a run: late, again, about an older one, or about one that goes on."""
        self._hear_of(run_name(*self.execution_of(pick)), plan)

    def _hear_of(self, name: str, plan: Plan) -> None:
        parsed = parse_run_name(name)
        assert parsed is not None
        ticket, report, outside = self.world.tickets[parsed[0]], self.world.engine.runs[name], self.world.outside
        before = ticket.seen
        outside.new_process("event", plan)
        try:
            self.world.rail.run_heard(*parsed, report)
        except (StoreUnavailable, Died):
            assert outside.struck, "an event failed though nothing happened"
            return
        after = ticket.seen
        if before is None or after is None or outside.struck:
            return
        if before.run != parsed[1] or not before.open or not before.run_open or not report.ended:
            assert after == before, "an event that is late, or about nothing, changed something"
        elif not after.expired(self.now):
            assert not after.run_open, "the end of a run was told, and its task waits on"

    @rule(milliseconds=waits)
    def wait(self, milliseconds: int) -> None:
        """Time passes: a little, or to just before, at or just after a moment that matters."""
        moments = self.moments()
        if milliseconds < 0 and moments:
            which, off = divmod(-1 - milliseconds, 3)
            milliseconds = moments[which % len(moments)] + off - 1 - self.now
        self.world.clock.advance(max(0, milliseconds))

    @invariant()
    def no_rule_is_broken(self) -> None:
        """What was noticed while the kit worked, in whatever depth of it."""
        assert not self.world.violations, self.world.violations

    def teardown(self) -> None:
        """After the faults have stopped: every task ends or asks; then it ends; then it is unknown."""
        count("lives of tasks", len(self.tickets))
        if not self.world.violations:
            self._live_on()
            self._outlive()
            self._leave_nothing()
            self.no_rule_is_broken()

    def _live_on(self) -> None:
        clock = self.world.clock
        for _ in range(4):
            clock.advance(max(SETTINGS.probe_after_ms, SETTINGS.missing_grace_ms, SETTINGS.cancel_grace_ms))
            self._poll_all()
        for ticket in self.held():
            task = ticket.seen
            assert task is not None
            if task.open and task.run_open:
                assert self.world.lives(task), "nobody works on it, and nobody will"
                assert task.cancel_requested_at is None, "it goes on though its end was wanted long ago"
        for what in ("run_deadline", "answer_deadline"):
            moments = [getattr(ticket.seen, what) for ticket in self.held() if ticket.seen and ticket.seen.open]
            clock.advance(max([0, *(moment - self.now for moment in moments if moment is not None)]))
            self._poll_all()
            for ticket in self.held():
                assert ticket.seen is not None
                assert ticket.seen.status is not Status.WORKING, "its time ran out, and it goes on"
        for ticket in self.held():
            assert ticket.seen is not None and not ticket.seen.open, "nobody answered in time, and it waits on"

    def _poll_all(self) -> None:
        for ticket in self.held():
            if ticket.seen is None or not ticket.seen.open:
                continue
            self.world.outside.new_process("client")
            task = self.world.rail.read(ticket.owner, ticket.task_id)
            self.check_detail(task, self.world.rail.detail(task))

    def _outlive(self) -> None:
        """Every result lives as long as promised, and not a millisecond longer."""
        ends = [(ticket.seen.expires_at, ticket.task_id) for ticket in self.held() if ticket.seen]
        for expires_at, task_id in sorted((moment, task_id) for moment, task_id in ends if moment is not None):
            ticket, rail = self.world.tickets[task_id], self.world.rail
            self.world.outside.new_process("client")
            self.world.clock.advance(expires_at - 1 - self.now)
            assert rail.read(ticket.owner, task_id) == ticket.seen, "a result was gone too early"
            self.world.clock.advance(1)
            assert self.refuses_strangers(ticket, ticket.owner, lambda: rail.read(ticket.owner, ticket.task_id))  # noqa: B023

    def _leave_nothing(self) -> None:
        """What the table deletes is cleaned up after, once it is told without faults."""
        while self.expired() or self.removed:
            self.expire(0, True, {})


@pytest.fixture
def aws() -> Iterator[None]:
    logging.getLogger("taskrail").setLevel(logging.CRITICAL)
    with mock_aws():
        Machine.dynamodb = boto3.client("dynamodb", region_name="eu-central-1")
        Machine.s3 = boto3.client("s3", region_name="us-east-1")
        Machine.s3.create_bucket(Bucket=BUCKET)
        Machine.dynamodb.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        yield
    logging.getLogger("taskrail").setLevel(logging.NOTSET)


@pytest.mark.timeout(3_600 if LONG else 180)
def test_the_rules_hold_whatever_happens(aws: None) -> None:
    """Whatever clients, workers, the engine, crashes and the clock do, and in whatever order."""
    run_state_machine_as_test(
        TaskMachine,
        settings=settings(
            max_examples=sized(45, 300),
            stateful_step_count=sized(25, 50),
            derandomize=SAME_EVERY_TIME or not LONG,
            deadline=None,
            # The short form tells at once what it found; the long form looks for the shortest way there.
            phases=[Phase.generate, Phase.shrink] if LONG else [Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
