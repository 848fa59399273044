"""The functions that nobody calls: they hear of runs and of removed tasks, and by option tell of tasks."""

from __future__ import annotations

from constructs import Construct

from infra.engines import Engines
from infra.expired_function import ExpiredFunction
from infra.foundation import Foundation
from infra.function import KitFunction
from infra.plan import Plan
from infra.run_events import RunEvents
from infra.task_events_function import TaskEventsFunction


class Behind(Construct):
    """What is behind the API; nothing for a catalogue without tasks.

    Parameters
    ----------
    foundation, engines, plan
        What it works on, and whether it is needed.
    """

    def __init__(self, scope: Construct, name: str, *, foundation: Foundation, engines: Engines, plan: Plan) -> None:
        super().__init__(scope, name)
        self.expired: KitFunction | None = None
        self.all: list[KitFunction] = []
        if not plan.has_tasks:
            return
        self.expired = ExpiredFunction(self, "Expired", foundation=foundation, engines=engines).kit
        self.all = [RunEvents(self, "RunEvents", foundation=foundation, engines=engines).heard, self.expired]
        if foundation.configuration.event_bus is not None:
            self.all.append(TaskEventsFunction(self, "TaskEvents", foundation=foundation).kit)
