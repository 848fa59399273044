"""The functions that nobody calls: they hear of runs and of removed tasks, and by option tell of tasks."""

from __future__ import annotations

from constructs import Construct

from infra.expired_function import ExpiredFunction
from infra.foundation import Foundation
from infra.function import KitFunction
from infra.plan import Plan
from infra.run_events import RunEvents
from infra.task_events_function import TaskEventsFunction
from infra.work import Work


class Behind(Construct):
    """What is behind the API; nothing for a catalogue without tasks.

    Parameters
    ----------
    foundation, work, plan
        What it works on, and whether it is needed.
    """

    def __init__(self, scope: Construct, name: str, *, foundation: Foundation, work: Work, plan: Plan) -> None:
        super().__init__(scope, name)
        self.expired: KitFunction | None = None
        self.all: list[KitFunction] = []
        if not plan.has_tasks:
            return
        engines = work.engines
        self.expired = ExpiredFunction(self, "Expired", foundation=foundation, engines=engines).kit
        heard = RunEvents(self, "RunEvents", foundation=foundation, engines=engines).heard
        for invoked in work.invoked.values():
            invoked.tell(heard.function)
        self.all = [heard, self.expired]
        if foundation.configuration.event_bus is not None:
            self.all.append(TaskEventsFunction(self, "TaskEvents", foundation=foundation).kit)
