"""What becomes of runs on Lambda: events that are delivered again, and functions that are given up."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from taskrail.engines import parse_run_name
from taskrail.errors import StoreUnavailable
from tests.property.invocations import Invocation
from tests.property.outside import Died, Plan
from tests.property.remote import RemoteRules
from tests.property.strategies import picks, plans


class FunctionRules(RemoteRules):
    """Lambda, which tells only of what it has given up."""

    @precondition(lambda self: self.world.functions.all)
    @rule(pick=picks, heard=st.sampled_from([True, True, False]), plan=plans)
    def give_up(self, pick: int, heard: bool, plan: Plan) -> None:
        """A function died for the last time; its record comes at once, again, or never. Its worker may not know."""
        events = list(self.world.functions.all.values())
        event = events[-1 - pick % len(events)]
        event.over = True
        if heard:
            self.hear_of(event, plan)

    def hear_of(self, event: Invocation, plan: Plan) -> None:
        """The record of a function that was given up: it counts for the run that its event has claimed, or nobody."""
        parsed = parse_run_name(event.name)
        assert parsed is not None
        ticket, outside = self.world.tickets[parsed[0]], self.world.outside
        before = ticket.seen
        outside.new_process("event", plan)
        try:
            with self.world.functions.tells(event) as record:
                self.world.rail.run_heard(*parsed, record)
        except (StoreUnavailable, Died):
            assert outside.struck, "a record failed though nothing happened"
            return
        after = ticket.seen
        if before is None or after is None or outside.struck:
            return
        mine = before.open and before.run == parsed[1] and before.run_open
        if not mine or before.run_id not in (None, event.request_id):
            assert after == before, "the record of another invocation, or of one that is late, changed something"
        elif not after.expired(self.now):
            assert not after.run_open, "a function was given up, and its task waits on"
