"""Random lives of tasks: clients, workers, engine, crashes and the clock in any order, and the rules throughout.

``TASKRAIL_LONG=1`` plays far more and longer lives.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test
from moto import mock_aws

from taskrail.engines import RunReport, RunState, parse_run_name, run_name
from taskrail.errors import InvalidParams, NotStarted, StoreUnavailable, TaskNotFound
from taskrail.rail import endings
from taskrail.rail.reports import RunLost
from taskrail.task import Progress, Status, Task
from taskrail.testing import BUCKET, TABLE
from taskrail.worker import run_attempt
from tests.property.outside import Died, Trouble
from tests.property.world import CLIENT, ENDINGS, KEYS, SETTINGS, STEPS, Ticket, World, not_found, question

LONG = bool(os.environ.get("TASKRAIL_LONG"))
EXAMPLES, STEPS_EACH = (int(os.environ.get("N", 500)), 50) if LONG else (25, 30)

OWNERS = ("anna", "bert")
RIGHT = {"action": "accept", "content": {"number": 1}}
WRONG = ({"action": "accept", "content": {"number": "1"}}, {"action": "accept"}, {"action": "perhaps"}, "yes", None)

picks = st.integers(0, 5)
planned = st.dictionaries(st.integers(0, 5), st.sampled_from(Trouble), min_size=1, max_size=2)
troubles = st.just({}) | st.just({}) | st.just({}) | planned
attempts = st.sampled_from([0, 0, 0, 1, 2, 3])
"""A number, or 0 for a run that waits for a worker, if there is one, with the attempt that may take it up."""
usable = st.sampled_from([RIGHT, {"action": "accept", "content": {"number": 2, "more": "x" * 5_000}}]) | st.sampled_from(
    [{"action": "decline"}, {"action": "cancel"}]
)
responses = st.dictionaries(
    st.sampled_from([*KEYS, "unknown"]), usable | usable | st.sampled_from(WRONG), min_size=1, max_size=3
)
lines = st.sampled_from(
    [f"step:{name}" for name in STEPS]
    + [f"ask:{keys}" for keys in ("a", "b", "a,b", "b,c")]
    + ["hold:a", "hold:c", "other:a", "progress:", "busy:1", "busy:3000"]
)
scripts = st.builds(lambda body, end: [*body, *end], st.lists(lines, max_size=5), st.sampled_from([[], *([e] for e in ENDINGS)]))
lives = st.tuples(
    st.sampled_from(OWNERS),
    st.sampled_from(["short", "kept"]),
    scripts,
    st.booleans(),
    st.sampled_from(["new", "working", "asking"]),
)
ends = st.sampled_from(
    [
        RunReport(RunState.SUCCEEDED),
        RunReport(RunState.FAILED),
        RunReport(RunState.FAILED, "exit code 3"),
        RunReport(RunState.TIMED_OUT),
        RunReport(RunState.STOPPED),
    ]
)


@dataclass
class Worker:
    """A process that holds a run, as it last saw it. It may be long superseded and not know it."""

    task: Task


class TaskMachine(RuleBasedStateMachine):
    """The deployment under random events."""

    dynamodb: Any = None
    s3: Any = None

    def __init__(self) -> None:
        super().__init__()
        self.world = World(self.dynamodb, self.s3, _look)
        self.tickets: list[Ticket] = []
        self.workers: list[Worker] = []

    @initialize(lives=st.lists(lives, min_size=1, max_size=2))
    def begin(self, lives: list[tuple[str, str, list[str], bool, str]]) -> None:
        """Some tasks are under way already, so that something is there to go wrong."""
        for owner, tool, script, sealed, stage in lives:
            self.create(owner, tool, script, False, sealed, False, {})
            name = run_name(self.tickets[-1].task_id, 1)
            if stage != "new":
                self.world.process("worker")
                task = self.world.reports.claim(self.tickets[-1].task_id, 1, f"run:{name}", 1)
                assert task is not None
                if stage == "asking":
                    task = self.world.reports.ask(task, {"a": question("a"), "b": question("b")}, 180_000, hold=False)
                self.workers.append(Worker(task))

    # --- clients

    @precondition(lambda self: len(self.tickets) < 4)
    @rule(
        owner=st.sampled_from(OWNERS),
        tool=st.sampled_from(["short", "short", "kept"]),
        script=scripts,
        large=st.booleans(),
        sealed=st.booleans(),
        lags=st.booleans(),
        trouble=troubles,
    )
    def create(
        self,
        owner: str,
        tool: str,
        script: list[str],
        large: bool,
        sealed: bool,
        lags: bool,
        trouble: Mapping[int, Trouble],
    ) -> None:
        """A client calls a tool; the call may go wrong anywhere."""
        world = self.world
        arguments = {"script": script, "pad": "x" * 5_000 if large else ""}
        until = world.clock.now() + 600_000 if sealed else None
        ticket = Ticket(world.rail.new_task_id() if sealed else "", arguments, until)
        world.creating, world.engine.lags = ticket, lags
        self._create(ticket, owner, tool, trouble)
        if ticket.task_id and (ticket.seen is not None or sealed):
            ticket.owner, ticket.tool = owner, tool
            world.tickets.setdefault(ticket.task_id, ticket)
            self.tickets.append(ticket)

    @precondition(lambda self: self._sealed())
    @rule(pick=picks, trouble=troubles, foreign=st.booleans())
    def replay(self, pick: int, trouble: Mapping[int, Trouble], foreign: bool) -> None:
        """A client sends a pre-flight answer again: the very same task, never two."""
        sealed = self._sealed()
        ticket = sealed[pick % len(sealed)]
        before = ticket.seen
        if foreign and before is not None:
            self.world.process("client")
            other = OWNERS[1 - OWNERS.index(ticket.owner)]
            assert not_found(lambda: self._call(ticket, other, ticket.tool)), "somebody else's ticket was handed out"
            assert ticket.seen == before
            return
        task = self._create(ticket, ticket.owner, ticket.tool, trouble)
        if task is not None and before is not None:
            assert task.created_at == before.created_at

    def _create(self, ticket: Ticket, owner: str, tool: str, trouble: Mapping[int, Trouble]) -> Task | None:
        world = self.world
        before = ticket.seen
        world.process("client", trouble)
        try:
            task = self._call(ticket, owner, tool)
        except NotStarted:
            assert world.outside.struck, "refused without a reason"
            assert not ticket.acknowledged, "a repeated call was refused though its ticket was handed out"
            return None
        except (StoreUnavailable, Died):
            assert world.outside.struck, "no clear answer though nothing happened"
            return None
        ticket.acknowledged = True
        assert ticket.seen is not None, "a ticket was handed out that does not hang"
        assert task.task_id == ticket.task_id
        assert before is None or not before.open or world.outside.struck or run_name(task.task_id, 1) in world.engine.runs
        return task

    def _call(self, ticket: Ticket, owner: str, tool: str) -> Task:
        declared = self.world.server.tools[tool]
        return self.world.rail.create(
            owner,
            declared,
            ticket.arguments,
            CLIENT,
            task_id=ticket.task_id or None,
            sealed_until=ticket.sealed_until,
            traceparent="00-1-1-01",
        )

    @precondition(lambda self: self.tickets)
    @rule(pick=picks, owner=st.sampled_from(OWNERS), trouble=troubles)
    def get(self, pick: int, owner: str, trouble: Mapping[int, Trouble]) -> None:
        """A client polls."""
        ticket = self._ticket(pick)
        if self._refuses_strangers(ticket, owner, lambda: self.world.rail.read(owner, ticket.task_id)):
            return
        self.world.process("client", trouble)
        try:
            task = self.world.rail.read(owner, ticket.task_id)
            detail = self.world.rail.detail(task)
        except (StoreUnavailable, Died):
            assert self.world.outside.struck, "a read failed though nothing happened"
            return
        assert self.world.outside.struck or task == ticket.seen, "a read told something else than what is stored"
        self._check_detail(task, detail)

    @precondition(lambda self: self.tickets)
    @rule(pick=picks, owner=st.sampled_from(OWNERS), sent=responses, trouble=troubles)
    def update(self, pick: int, owner: str, sent: dict[str, Any], trouble: Mapping[int, Trouble]) -> None:
        """A client answers: rightly, wrongly, partly, again, or what was never asked."""
        ticket = self._ticket(pick)
        if self._refuses_strangers(ticket, owner, lambda: self.world.rail.update(owner, ticket.task_id, sent)):
            return
        self._update(ticket, owner, sent, trouble)

    @precondition(lambda self: self._asking())
    @rule(pick=picks, answer=usable, partly=st.booleans(), trouble=troubles)
    def answer(self, pick: int, answer: Any, partly: bool, trouble: Mapping[int, Trouble]) -> None:
        """A client answers what is open, or the first of it."""
        asking = self._asking()
        ticket = asking[pick % len(asking)]
        assert ticket.seen is not None
        keys = list(ticket.seen.outstanding)
        self._update(ticket, ticket.owner, {key: answer for key in keys[: 1 if partly else None]}, trouble)

    def _update(self, ticket: Ticket, owner: str, sent: dict[str, Any], trouble: Mapping[int, Trouble]) -> None:
        world, before = self.world, ticket.seen
        assert before is not None
        for key, response in sent.items():
            if response not in WRONG:
                ticket.sent.setdefault(key, []).append(response)
        open_keys = set(before.outstanding)
        if before.answer_deadline is not None and world.clock.now() >= before.answer_deadline:
            open_keys = set()
        wrong = any(sent[key] in WRONG for key in open_keys & set(sent))
        world.process("client", trouble)
        try:
            world.rail.update(owner, ticket.task_id, sent)
        except InvalidParams as error:
            assert not isinstance(error, TaskNotFound), "a ticket that its owner holds was not found"
            assert wrong or world.outside.struck, "a usable answer was refused"
            assert any(repr(key) in error.message for key in sent), "the refusal names no key"
            assert ticket.seen is not None and ticket.seen.answers == before.answers, "a refused update was kept in part"
            return
        except (StoreUnavailable, Died):
            assert world.outside.struck, "an update failed though nothing happened"
            return
        after = ticket.seen
        assert after is not None
        assert not wrong or world.outside.struck, "a malformed answer was taken"
        if not world.outside.struck and not wrong:
            for key in open_keys & set(sent):
                assert key in after.answers and key not in after.outstanding, "an acknowledged answer was not kept"
            if open_keys and open_keys <= set(sent):
                assert after.status is Status.WORKING, "all is answered, and nothing goes on"
                assert run_name(after.task_id, after.run) in world.engine.runs, "the next run was not started"

    @precondition(lambda self: self.tickets)
    @rule(pick=picks, owner=st.sampled_from(OWNERS), trouble=troubles)
    def cancel(self, pick: int, owner: str, trouble: Mapping[int, Trouble]) -> None:
        """A client wants the end."""
        ticket, world = self._ticket(pick), self.world
        if self._refuses_strangers(ticket, owner, lambda: world.rail.cancel(owner, ticket.task_id)):
            return
        before = ticket.seen
        world.process("client", trouble)
        try:
            world.rail.cancel(owner, ticket.task_id)
        except (StoreUnavailable, Died):
            assert world.outside.struck, "a cancel failed though nothing happened"
            return
        after = ticket.seen
        assert before is not None and after is not None
        assert not after.open or after.cancel_requested_at is not None, "an acknowledged cancel was not kept"
        if before.open and before.run_open and not after.open and not world.outside.struck:
            assert not world.engine.lives(run_name(before.task_id, before.run)), "the work was not stopped"

    @rule(owner=st.sampled_from(OWNERS), task_id=st.sampled_from(["f" * 32, "F" * 32, "", "f" * 33, "\x00" * 32, None, 7]))
    def unknown(self, owner: str, task_id: Any) -> None:
        """Somebody names a task that there never was."""
        self.world.process("client")
        rail = self.world.rail
        assert not_found(lambda: rail.read(owner, task_id))
        assert not_found(lambda: rail.update(owner, task_id, {"a": RIGHT}))
        assert not_found(lambda: rail.cancel(owner, task_id))
        rail.run_ended(str(task_id), 1, RunReport(RunState.FAILED))

    # --- workers

    @precondition(lambda self: self.world.engine.runs)
    @rule(pick=picks, attempt=attempts, trouble=troubles)
    def claim(self, pick: int, attempt: int, trouble: Mapping[int, Trouble]) -> None:
        """A worker takes up a run, or finds that it is none of its business."""
        task_id, run, attempt = self._work(pick, attempt)
        ticket = self.world.tickets[task_id]
        before, expected = ticket.seen, self._claimable(ticket, run, attempt)
        self.world.process("worker", trouble)
        try:
            task = self.world.reports.claim(task_id, run, f"run:{run_name(task_id, run)}", attempt)
        except (StoreUnavailable, Died):
            assert self.world.outside.struck
            return
        if expected and not self.world.outside.struck:
            assert task is not None, "a worker was turned away from its run"
        if not expected:
            assert task is None, "a worker was let into a run that is not its own"
            assert ticket.seen == before
        if task is not None:
            assert task == ticket.seen
            self.workers.append(Worker(task))

    @precondition(lambda self: self.workers)
    @rule(
        pick=picks,
        what=st.sampled_from(["progress", "step", "step", "ask", "ask", "hold", "let go", "look"]),
        keys=st.sets(st.sampled_from(KEYS), min_size=1, max_size=2),
        name=st.sampled_from(STEPS),
        number=st.integers(0, 9),
        trouble=troubles,
    )
    def report(
        self, pick: int, what: str, keys: set[str], name: str, number: int, trouble: Mapping[int, Trouble]
    ) -> None:
        """A worker tells something, which counts only while the run is its own."""
        worker = self.workers[pick % len(self.workers)]
        reports, mine = self.world.reports, worker.task
        questions = {key: question(key) for key in sorted(keys)}

        def tell() -> Task:
            if what == "progress":
                return reports.progress(mine, Progress(number, 9), f"{number} of 9")
            if what == "step":
                return reports.step(mine, name, f'{{"value":{number}}}')
            if what == "let go":
                return reports.let_go(mine)
            if what == "look":
                return reports.look(mine)
            return reports.ask(mine, questions, 180_000, hold=what == "hold")

        task = self._tell(worker, tell, trouble)
        if task is None:
            return
        if what == "step":
            assert name in task.steps
            self.world.got_outcome(task.task_id, name, task.steps[name])
        if what in ("ask", "hold") and task.cancel_requested_at is None:
            assert set(questions) <= set(task.questions)

    @precondition(lambda self: self.workers)
    @rule(pick=picks, how=st.sampled_from(["completed", "failed", "cancelled", "broken"]), trouble=troubles)
    def finish(self, pick: int, how: str, trouble: Mapping[int, Trouble]) -> None:
        """A worker reports the end of its run; the first end counts."""
        worker = self.workers[pick % len(self.workers)]
        reports, now = self.world.reports, self.world.clock.now()
        moves = {
            "completed": lambda t: endings.completed(t, '{"content":[]}', "Completed.", now),
            "failed": lambda t: endings.failed(t, now, code=-1, message="Never.", data={"why": "so"}),
            "cancelled": lambda t: endings.cancelled(t, now),
            "broken": lambda t: endings.broken(t, "It broke.", now),
        }
        task = self._tell(worker, lambda: reports.finish(worker.task, moves[how]), trouble)
        if task is not None:
            assert task.status.value == ("completed" if how == "broken" else how)
            self.workers.remove(worker)

    @precondition(lambda self: self.workers)
    @rule(pick=picks)
    def vanish(self, pick: int) -> None:
        """A worker is gone without a word."""
        self.workers.pop(pick % len(self.workers))

    @precondition(lambda self: self.world.engine.runs)
    @rule(pick=picks, attempt=attempts, answered=st.booleans(), trouble=troubles)
    def run(self, pick: int, attempt: int, answered: bool, trouble: Mapping[int, Trouble]) -> None:
        """A worker does a whole run by its script: to its end, to its question, or to its own death."""
        world = self.world
        task_id, run, attempt = self._work(pick, attempt)
        ticket = world.tickets[task_id]
        expected = self._claimable(ticket, run, attempt)
        name = run_name(task_id, run)
        world.process("worker", trouble)
        world.clock.on_sleep = lambda: self._answer_meanwhile(ticket) if answered else None
        try:
            outcome = run_attempt(
                world.reports, world.server, task_id=task_id, run=run, run_id=f"run:{name}", attempt=attempt, ticker=False
            )
        except (StoreUnavailable, Died):
            assert world.outside.struck, "a run failed though nothing happened"
            return
        finally:
            world.clock.on_sleep = lambda: None
        assert expected or outcome == "nothing to do"
        if outcome in ("completed", "failed", "cancelled"):
            assert ticket.seen is not None and ticket.seen.status.value == outcome
        if world.engine.lives(name) and outcome != "nothing to do":
            world.engine.runs[name] = RunReport(RunState.SUCCEEDED)

    # --- the engine, and the clock

    @precondition(lambda self: self._living())
    @rule(pick=picks, report=ends, heard=st.booleans(), trouble=troubles)
    def end(self, pick: int, report: RunReport, heard: bool, trouble: Mapping[int, Trouble]) -> None:
        """A run is over; its event comes at once, or later, or never. Its worker may not know."""
        living = self._living()
        name = living[pick % len(living)]
        self.world.engine.runs[name] = report
        if heard:
            self._event(name, trouble)

    @precondition(lambda self: self.world.engine.runs)
    @rule(pick=picks, trouble=troubles)
    def event(self, pick: int, trouble: Mapping[int, Trouble]) -> None:
        """An event about a run: late, again, about an older one, or about one that goes on."""
        self._event(run_name(*self._run(pick)), trouble)

    @rule(milliseconds=st.sampled_from([1, 400, 3_000, 10_000, 15_000, 25_000, 60_000, 130_000, 400_000]))
    def wait(self, milliseconds: int) -> None:
        """Time passes."""
        self.world.clock.advance(milliseconds)

    @precondition(lambda self: self._moments())
    @rule(pick=picks, off=st.sampled_from([-1, 0, 1]))
    def wait_until(self, pick: int, off: int) -> None:
        """Time passes to just before, at or just after a moment that matters."""
        moments = self._moments()
        self.world.clock.advance(max(0, moments[pick % len(moments)] + off - self.world.clock.now()))

    # --- what holds throughout, and at last

    @invariant()
    def no_rule_is_broken(self) -> None:
        """What was noticed while the kit worked, in whatever depth of it."""
        assert not self.world.violations, self.world.violations

    def teardown(self) -> None:
        """After the faults have stopped: every task ends or asks; then it ends; then it is unknown."""
        try:
            if not self.world.violations:
                self._live_on()
                self.no_rule_is_broken()
        finally:
            self.world.clock.on_sleep = lambda: None

    def _live_on(self) -> None:
        world, clock = self.world, self.world.clock
        for _ in range(4):
            clock.advance(max(SETTINGS.probe_after_ms, SETTINGS.missing_grace_ms, SETTINGS.cancel_grace_ms))
            self._poll_all()
        for ticket in self._held():
            task = ticket.seen
            assert task is not None
            if task.status is Status.WORKING:
                name = run_name(task.task_id, task.run)
                assert world.engine.lives(name), "nobody works on it, and nobody will"
                assert task.cancel_requested_at is None, "it goes on though its end was wanted long ago"
        for what in ("run_deadline", "answer_deadline"):
            moments = [getattr(ticket.seen, what) for ticket in self._held()]
            clock.advance(max([0, *(moment - clock.now() for moment in moments if moment is not None)]))
            self._poll_all()
            for ticket in self._held():
                assert ticket.seen is not None
                assert ticket.seen.status is not Status.WORKING, "its time ran out, and it goes on"
        for ticket in self._held():
            assert ticket.seen is not None
            assert not ticket.seen.open, "nobody answered in time, and it waits on"
        self._outlive()

    def _poll_all(self) -> None:
        for ticket in self._held():
            self.world.process("client")
            self._check_detail(*(lambda task: (task, self.world.rail.detail(task)))(self.world.rail.read(ticket.owner, ticket.task_id)))

    def _outlive(self) -> None:
        """Every result lives as long as promised, and not a millisecond longer."""
        lives = sorted((ticket.seen.expires_at, ticket.task_id) for ticket in self._held() if ticket.seen and ticket.seen.expires_at)
        for expires_at, task_id in lives:
            ticket = self.world.tickets[task_id]
            self.world.process("client")
            self.world.clock.advance(expires_at - 1 - self.world.clock.now())
            assert self.world.rail.read(ticket.owner, task_id) == ticket.seen
            self.world.clock.advance(1)
            assert not_found(lambda ticket=ticket: self.world.rail.read(ticket.owner, ticket.task_id))

    # --- helpers

    def _ticket(self, pick: int) -> Ticket:
        return self.tickets[pick % len(self.tickets)]

    def _run(self, pick: int) -> tuple[str, int]:
        names = list(self.world.engine.runs)
        parsed = parse_run_name(names[-1 - pick % len(names)])
        assert parsed is not None
        return parsed

    def _work(self, pick: int, attempt: int) -> tuple[str, int, int]:
        if attempt == 0:
            for ticket in self.tickets[pick % 4 :] + self.tickets:
                task = ticket.seen
                if task is not None and self.world.engine.lives(run_name(task.task_id, task.run)):
                    if self._claimable(ticket, task.run, task.attempt + 1):
                        return task.task_id, task.run, task.attempt + 1
        return *self._run(pick), attempt or 1

    def _living(self) -> list[str]:
        return [name for name in self.world.engine.runs if self.world.engine.lives(name)]

    def _sealed(self) -> list[Ticket]:
        now = self.world.clock.now()
        return [ticket for ticket in self.tickets if ticket.sealed_until is not None and now < ticket.sealed_until]

    def _asking(self) -> list[Ticket]:
        now = self.world.clock.now()
        return [ticket for ticket in self.tickets if ticket.seen and ticket.seen.outstanding and ticket.resolves(now)]

    def _held(self) -> list[Ticket]:
        now = self.world.clock.now()
        return [ticket for ticket in self.tickets if ticket.acknowledged and ticket.resolves(now)]

    def _moments(self) -> list[int]:
        now, moments = self.world.clock.now(), []
        for ticket in self.tickets:
            if ticket.seen is not None:
                task = ticket.seen
                moments += [m for m in (task.run_deadline, task.answer_deadline, task.expires_at) if m is not None and m >= now]
        return moments

    def _claimable(self, ticket: Ticket, run: int, attempt: int) -> bool:
        task = ticket.seen
        if task is None or task.expired(self.world.clock.now()) or task.status is not Status.WORKING:
            return False
        return task.run == run and task.run_open and task.attempt < attempt

    def _refuses_strangers(self, ticket: Ticket, owner: str, act: Any) -> bool:
        """Whether this caller has no such ticket, and was told nothing else and changed nothing."""
        if owner == ticket.owner and ticket.resolves(self.world.clock.now()):
            return False
        before, runs = ticket.seen, dict(self.world.engine.runs)
        self.world.process("client")
        assert not_found(act), "a ticket was shown to somebody who has none"
        assert self.world.stored(ticket.task_id) == before and self.world.engine.runs == runs
        assert self.world.outside.calls == 1, "more was done for a stranger than looking"
        return True

    def _tell(self, worker: Worker, tell: Any, trouble: Mapping[int, Trouble]) -> Task | None:
        world, mine = self.world, worker.task
        ticket = world.tickets[mine.task_id]
        now, stored = world.clock.now(), ticket.seen
        own = stored is not None and stored.open and stored.run_open and stored.claim == mine.claim
        world.process("worker", trouble)
        try:
            worker.task = tell()
        except RunLost:
            assert not own or world.outside.struck or stored is None or stored.expired(now), "a worker lost its own run"
            return None
        except (StoreUnavailable, Died) as error:
            assert world.outside.struck
            if isinstance(error, Died):
                self.workers.remove(worker)
            return None
        assert own, "a worker reported for a run that is not its own"
        assert worker.task == ticket.seen
        return worker.task

    def _answer_meanwhile(self, ticket: Ticket) -> None:
        """A client answers while the worker holds the run open for it."""
        task = ticket.seen
        if task is not None and task.outstanding and ticket.resolves(self.world.clock.now()):
            outside, actor = self.world.outside, self.world.actor
            kept = vars(outside).copy()
            self._update(ticket, ticket.owner, dict.fromkeys(task.outstanding, RIGHT), {})
            vars(outside).update(kept)
            self.world.actor = actor

    def _event(self, name: str, trouble: Mapping[int, Trouble]) -> None:
        parsed = parse_run_name(name)
        assert parsed is not None
        ticket, report = self.world.tickets[parsed[0]], self.world.engine.runs[name]
        before = ticket.seen
        self.world.process("event", trouble)
        try:
            self.world.rail.run_ended(*parsed, report)
        except (StoreUnavailable, Died):
            assert self.world.outside.struck
            return
        after = ticket.seen
        if before is not None and (before.run != parsed[1] or not before.open or not before.run_open or not report.ended):
            assert after == before, "an event that is late, or about nothing, changed something"
        elif after is not None and not after.expired(self.world.clock.now()) and not self.world.outside.struck:
            assert not after.run_open, "the end of a run was told, and its task waits on"

    def _check_detail(self, task: Task, detail: Mapping[str, Any]) -> None:
        parts = {"inputRequests", "result", "error"} & set(detail)
        wanted = {"input_required": {"inputRequests"}, "completed": {"result"}, "failed": {"error"}}
        assert parts == wanted.get(task.status.value, set()), "a status without what belongs to it"
        assert detail["createdAt"] <= detail["lastUpdatedAt"]
        if parts == {"inputRequests"}:
            assert detail["inputRequests"] == {key: asked.request() for key, asked in task.outstanding.items()}
        if parts == {"result"}:
            assert isinstance(detail["result"]["content"], list)


def _look(key: str) -> Any:
    """The item as moto holds it: a look that costs nothing and that no process makes."""
    from moto.dynamodb.models import dynamodb_backends

    item = dynamodb_backends["123456789012"]["eu-central-1"].get_item(TABLE, {"pk": {"S": key}})
    return None if item is None else item.to_json()["Attributes"]


@pytest.fixture(scope="module")
def aws() -> Iterator[None]:
    logging.getLogger("taskrail").setLevel(logging.CRITICAL)
    with mock_aws():
        TaskMachine.dynamodb = boto3.client("dynamodb", region_name="eu-central-1")
        TaskMachine.s3 = boto3.client("s3", region_name="us-east-1")
        TaskMachine.s3.create_bucket(Bucket=BUCKET)
        TaskMachine.dynamodb.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        yield
    logging.getLogger("taskrail").setLevel(logging.NOTSET)


@pytest.mark.timeout(3_600 if LONG else 120)
def test_the_rules_hold_whatever_happens(aws: None) -> None:
    """Whatever clients, workers, the engine, crashes and the clock do, and in whatever order."""
    run_state_machine_as_test(
        TaskMachine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS_EACH,
            derandomize=not LONG or bool(os.environ.get("CI")),
            deadline=None,
            print_blob=True,
            phases=[Phase.explicit, Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )
