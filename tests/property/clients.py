"""What clients do: create, replay, poll, answer, cancel, and ask for what is not theirs."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from taskrail.engines import RunReport, RunState, run_name
from taskrail.errors import InvalidParams, NotStarted, StoreUnavailable, TaskNotFound
from taskrail.task import Status, Task
from tests.property.machine import Machine
from tests.property.outside import Died, Plan, Trouble
from tests.property.strategies import (
    RIGHT,
    UNKNOWN_IDS,
    WRONG,
    own,
    owners,
    picks,
    plans,
    responses,
    scripts,
    tools,
    usable,
)
from tests.property.world import Ticket, not_found


class ClientRules(Machine):
    """Clients of two owners."""

    @precondition(lambda self: len(self.tickets) < 4)
    @rule(
        owner=owners,
        tool=tools,
        script=scripts,
        large=st.booleans(),
        sealed=st.booleans(),
        lags=st.booleans(),
        again=st.booleans(),
        plan=plans,
    )
    def create(
        self, owner: str, tool: str, script: list[str], large: bool, sealed: bool, lags: bool, again: bool, plan: Plan
    ) -> None:
        """A client calls a tool; the call may go wrong anywhere, and may come again at once."""
        world = self.world
        arguments = {"script": script, "pad": "x" * 5_000 if large else ""}
        until = self.now + 600_000 if sealed else None
        ticket = Ticket(world.rail.new_task_id() if sealed else "", owner, tool, arguments, until)
        world.creating, world.engine.lags, world.jobs.lags = ticket, lags, lags
        if sealed:
            world.tickets[ticket.task_id] = ticket
        self._create(ticket, plan)
        if ticket.task_id:
            self.tickets.append(ticket)
        if sealed and again:
            self._create(ticket, {})

    @precondition(lambda self: self.sealed())
    @rule(pick=picks, plan=plans, own=own)
    def replay(self, pick: int, plan: Plan, own: bool) -> None:
        """A client sends a pre-flight answer again: the very same task, never two."""
        sealed = self.sealed()
        ticket = sealed[pick % len(sealed)]
        before = ticket.seen
        if not own and before is not None:
            self.world.outside.new_process("client")
            assert not_found(lambda: self.call(ticket, self.owner_of(ticket, own=False))), (
                "somebody else's ticket was handed out"
            )
            assert ticket.seen == before
            return
        task = self._create(ticket, plan)
        if task is not None and before is not None:
            assert task.created_at == before.created_at

    def _create(self, ticket: Ticket, plan: Plan) -> Task | None:
        world, before = self.world, ticket.seen
        world.outside.new_process("client", plan)
        try:
            task = self.call(ticket, ticket.owner)
        except NotStarted:
            assert world.outside.struck, "refused without a reason"
            assert not ticket.acknowledged, "a repeated call was refused though its ticket was handed out"
            if list(plan.values()) == [Trouble.REFUSED]:
                assert ticket.seen is None, "the start was refused, and the task is still there"
            return None
        except (StoreUnavailable, Died):
            assert world.outside.struck, "no clear answer though nothing happened"
            return None
        ticket.acknowledged = True
        assert ticket.seen is not None, "a ticket was handed out that does not hang"
        assert task.task_id == ticket.task_id
        if not world.outside.struck and (before is None or before.open):
            assert world.started(run_name(task.task_id, 1)), "a ticket was handed out whose work did not start"
        return task

    @precondition(lambda self: self.tickets)
    @rule(pick=picks, own=own, plan=plans)
    def get(self, pick: int, own: bool, plan: Plan) -> None:
        """A client polls."""
        ticket, rail, outside = self.ticket(pick), self.world.rail, self.world.outside
        owner = self.owner_of(ticket, own)
        if self.refuses_strangers(ticket, owner, lambda: rail.read(owner, ticket.task_id)):
            return
        outside.new_process("client", plan)
        try:
            task = rail.read(owner, ticket.task_id)
            detail = rail.detail(task)
        except (StoreUnavailable, Died):
            assert outside.struck, "a read failed though nothing happened"
            return
        assert outside.struck or task == ticket.seen, "a read told something else than what is stored"
        self.check_detail(task, detail)

    @precondition(lambda self: self.tickets)
    @rule(pick=picks, own=own, sent=responses, plan=plans)
    def update(self, pick: int, own: bool, sent: dict[str, Any], plan: Plan) -> None:
        """A client answers: rightly, wrongly, partly, again, or what was never asked."""
        ticket = self.ticket(pick)
        owner = self.owner_of(ticket, own)
        if not self.refuses_strangers(ticket, owner, lambda: self.world.rail.update(owner, ticket.task_id, sent)):
            self.send_answers(ticket, sent, plan)

    @precondition(lambda self: self.asking())
    @rule(pick=picks, answer=usable, partly=st.booleans(), plan=plans)
    def answer(self, pick: int, answer: Any, partly: bool, plan: Plan) -> None:
        """A client answers what is open, or the first of it."""
        asking = self.asking()
        ticket = asking[pick % len(asking)]
        assert ticket.seen is not None
        keys = list(ticket.seen.outstanding)
        self.send_answers(ticket, dict.fromkeys(keys[: 1 if partly else None], answer), plan)

    def send_answers(self, ticket: Ticket, sent: dict[str, Any], plan: Plan) -> None:
        """An update by the ticket's owner, and all that must be true of it."""
        outside, before = self.world.outside, ticket.seen
        assert before is not None
        for key, response in sent.items():
            if response not in WRONG:
                ticket.sent.setdefault(key, []).append(response)
        overdue = before.answer_deadline is not None and self.now >= before.answer_deadline
        asked = set() if overdue else set(before.outstanding) & set(sent)
        wrong = any(sent[key] in WRONG for key in asked)
        outside.new_process("client", plan)
        try:
            self.world.rail.update(ticket.owner, ticket.task_id, sent)
        except InvalidParams as error:
            assert not isinstance(error, TaskNotFound), "a ticket that its owner holds was not found"
            assert wrong or outside.struck, "a usable answer was refused"
            assert any(repr(key) in error.message for key in sent), "the refusal names no key"
            assert outside.overtaken or (ticket.seen is not None and ticket.seen.answers == before.answers)
            return
        except (StoreUnavailable, Died):
            assert outside.struck, "an update failed though nothing happened"
            return
        assert not wrong or outside.struck, "a malformed answer was taken"
        if not outside.overtaken and not wrong:
            self._check_answered(ticket, asked, all_of_it=bool(asked) and asked == set(before.outstanding))

    def _check_answered(self, ticket: Ticket, asked: set[str], *, all_of_it: bool) -> None:
        after = ticket.seen
        assert after is not None
        for key in asked:
            assert key in after.answers and key not in after.outstanding, "an acknowledged answer was not kept"
        if all_of_it and not self.world.outside.struck:
            assert after.status is Status.WORKING, "all is answered, and nothing goes on"
            assert self.world.started(run_name(after.task_id, after.run)), "the next run was not started"
            assert not after.due, "an answer was not passed on"

    @precondition(lambda self: self.tickets)
    @rule(pick=picks, own=own, plan=plans)
    def cancel(self, pick: int, own: bool, plan: Plan) -> None:
        """A client wants the end."""
        ticket, world = self.ticket(pick), self.world
        owner = self.owner_of(ticket, own)
        if self.refuses_strangers(ticket, owner, lambda: world.rail.cancel(owner, ticket.task_id)):
            return
        before = ticket.seen
        world.outside.new_process("client", plan)
        try:
            world.rail.cancel(owner, ticket.task_id)
        except (StoreUnavailable, Died):
            assert world.outside.struck, "a cancel failed though nothing happened"
            return
        after = ticket.seen
        assert before is not None and after is not None
        assert not after.open or after.cancel_requested_at is not None, "an acknowledged cancel was not kept"
        if before.open and before.run_open and not after.open and not world.outside.struck:
            assert not world.goes_on(before), "the work was not stopped"

    @rule(owner=owners, task_id=st.sampled_from(UNKNOWN_IDS))
    def unknown(self, owner: str, task_id: Any) -> None:
        """Somebody names a task that there never was."""
        self.world.outside.new_process("client")
        rail = self.world.rail
        assert not_found(lambda: rail.read(owner, task_id))
        assert not_found(lambda: rail.update(owner, task_id, {"a": RIGHT}))
        assert not_found(lambda: rail.cancel(owner, task_id))
        rail.run_heard(str(task_id), 1, RunReport(RunState.FAILED))
