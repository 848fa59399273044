"""The ground that the rules of the machine stand on: the world, the tickets and the workers in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis.stateful import RuleBasedStateMachine

from taskrail.engines import RunReport, RunState, parse_run_name, run_name
from taskrail.errors import RpcError
from taskrail.rail import endings, leases
from taskrail.rail.reports import RunLost
from taskrail.task import Status, Task
from taskrail.testing import TABLE
from tests.property.outside import Meanwhile
from tests.property.strategies import OWNERS, RIGHT
from tests.property.world import CLIENT, ON_LAMBDA, REMOTE, Ticket, World, not_found, question


@dataclass(eq=False)
class Worker:
    """A process that holds a run, as it last saw it. It may be long superseded and not know it."""

    task: Task


class Machine(RuleBasedStateMachine):
    """The deployment under random events, without the events."""

    dynamodb: Any = None
    s3: Any = None

    def __init__(self) -> None:
        super().__init__()
        self.world = World(self.dynamodb, self.s3, look, self.meanwhile)
        self.tickets: list[Ticket] = []
        self.workers: list[Worker] = []

    @property
    def now(self) -> int:
        """What time it is."""
        return self.world.clock.now()

    def call(self, ticket: Ticket, owner: str) -> Task:
        """The tool call of a ticket, as its owner or somebody else sends it."""
        return self.world.rail.create(
            owner,
            self.world.server.tools[ticket.tool],
            ticket.arguments,
            CLIENT,
            task_id=ticket.task_id or None,
            sealed_until=ticket.sealed_until,
            traceparent="00-1-1-01",
        )

    def ticket(self, pick: int) -> Ticket:
        """One of the tickets."""
        return self.tickets[pick % len(self.tickets)]

    def owner_of(self, ticket: Ticket, own: bool) -> str:
        """The owner of a ticket, or somebody else."""
        return ticket.owner if own else OWNERS[1 - OWNERS.index(ticket.owner)]

    def runs(self) -> list[str]:
        """The runs of the kit's own workers that were ever started, the first first."""
        others = (*self.world.jobs.all.values(), *self.world.functions.all.values())
        names = [*self.world.engine.runs, *dict.fromkeys(run.name for run in others)]
        return [name for name in names if self.world.tickets[name.partition("-")[0]].tool not in REMOTE]

    def run_of(self, pick: int) -> tuple[str, int]:
        """One of the runs that were ever started, the latest first."""
        return self._parsed(self.runs(), pick)

    def execution_of(self, pick: int) -> tuple[str, int]:
        """One of the executions that were ever started, the latest first."""
        return self._parsed(list(self.world.engine.runs), pick)

    def _parsed(self, names: list[str], pick: int) -> tuple[str, int]:
        parsed = parse_run_name(names[-1 - pick % len(names)])
        assert parsed is not None
        return parsed

    def engine_id(self, task_id: str, run: int, pick: int = 0) -> str:
        """The engine's own id of a run; of one of its jobs, on Batch."""
        name = run_name(task_id, run)
        jobs, events = self.world.jobs.of(name), self.world.functions.of(name)
        if events:
            return events[pick % len(events)].request_id
        return jobs[pick % len(jobs)].job_id if jobs else f"run:{name}"

    def work(self, pick: int, which: str) -> tuple[str, int, str, int]:
        """A run and an attempt at it: one that goes on, if there is any and it is the next or a rival that comes."""
        for ticket in self.tickets[pick % 4 :] + self.tickets:
            task = ticket.seen
            if task is None or which in ("first", "late") or ticket.tool in REMOTE or not self.world.lives(task):
                continue
            run_id = task.run_id or self.engine_id(task.task_id, task.run, pick)
            if self.claimable(ticket, task.run, run_id, task.attempt + 1):
                return task.task_id, task.run, run_id, max(task.attempt + (which == "next"), 1)
        task_id, run = self.run_of(pick)
        return task_id, run, self.engine_id(task_id, run, pick), 3 if which == "late" else 1

    def living(self) -> list[str]:
        """The runs that are not over."""
        return [name for name in self.world.engine.runs if self.world.engine.lives(name)]

    def sealed(self) -> list[Ticket]:
        """The tickets whose sealed state may still be sent again."""
        return [t for t in self.tickets if t.sealed_until is not None and self.now < t.sealed_until]

    def asking(self) -> list[Ticket]:
        """The tickets with open questions."""
        return [t for t in self.tickets if t.seen and t.seen.outstanding and t.resolves(self.now)]

    def held(self) -> list[Ticket]:
        """The tickets that somebody holds and that have not expired."""
        return [t for t in self.tickets if t.acknowledged and t.resolves(self.now)]

    def moments(self) -> list[int]:
        """The moments to come that matter."""
        moments = []
        for ticket in self.tickets:
            if (task := ticket.seen) is not None:
                moments += [task.run_deadline, task.answer_deadline, task.lease_until, task.expires_at]
        return [moment for moment in moments if moment is not None and moment >= self.now]

    def claimable(self, ticket: Ticket, run: int, run_id: str, attempt: int) -> bool:
        """Whether an attempt may take the run up."""
        task = ticket.seen
        if task is None or task.expired(self.now) or task.status is not Status.WORKING:
            return False
        later = task.attempt < attempt
        if ticket.tool in ON_LAMBDA:
            later = not leases.holds(task, self.now)
        mine = task.attempt == 0 or (later and task.run_id == run_id)
        return task.run == run and task.run_open and mine

    def take_up(self, task_id: str, run: int, run_id: str, attempt: int) -> Task | None:
        """A worker claims a run; on Lambda it is not told which attempt it is, and has no time to wait."""
        if self.world.tickets[task_id].tool in ON_LAMBDA:
            return self.world.reports.claim_by_lease(task_id, run, run_id, lambda: 0)
        return self.world.reports.claim(task_id, run, run_id, attempt)

    def refuses_strangers(self, ticket: Ticket, owner: str, act: Callable[[], object]) -> bool:
        """Whether this caller has no such ticket; then it was told nothing else, and changed nothing."""
        if owner == ticket.owner and ticket.resolves(self.now):
            return False
        before, runs = ticket.seen, self._all_runs()
        self.world.outside.new_process("client")
        assert not_found(act), "a ticket was shown to somebody who has none"
        assert self.world.stored(ticket.task_id) == before and self._all_runs() == runs
        assert self.world.outside.calls == 1, "more was done for a stranger than looking"
        return True

    def _all_runs(self) -> tuple[Any, ...]:
        jobs = [(job.job_id, job.ordered_at, job.report) for job in self.world.jobs.all.values()]
        return dict(self.world.engine.runs), jobs, list(self.world.functions.all)

    def check_detail(self, task: Task, detail: Mapping[str, Any]) -> None:
        """What a poll tells is whole: a status and what belongs to it."""
        parts = {"inputRequests", "result", "error"} & set(detail)
        wanted = {"input_required": {"inputRequests"}, "completed": {"result"}, "failed": {"error"}}
        assert parts == wanted.get(task.status.value, set()), "a status without what belongs to it"
        assert detail["createdAt"] <= detail["lastUpdatedAt"]
        if parts == {"inputRequests"}:
            assert detail["inputRequests"] == {key: asked.request() for key, asked in task.outstanding.items()}
        if parts == {"result"}:
            assert isinstance(detail["result"]["content"], list)
        if parts == {"error"}:
            assert isinstance(detail["error"]["code"], int) and isinstance(detail["error"]["message"], str)

    def meanwhile(self, what: Meanwhile, task_id: str) -> None:
        """Another process does something to the task while a call of this one is under way."""
        ticket = self.world.tickets.get(task_id)
        task = None if ticket is None else ticket.seen
        if ticket is None or task is None:
            return
        worker = next((worker for worker in self.workers if worker.task.task_id == task_id), None)
        self.world.outside.new_process(
            "worker" if what in (Meanwhile.CLAIMS, Meanwhile.ASKS, Meanwhile.FINISHES) else "client"
        )
        try:
            if what is Meanwhile.CLAIMS:
                self._claim_meanwhile(task)
            elif what is Meanwhile.REPLAYS and ticket.sealed_until is not None and self.now < ticket.sealed_until:
                self.call(ticket, ticket.owner)
                ticket.acknowledged = True
            elif what is Meanwhile.ENDS:
                self._end_meanwhile(task)
            elif worker is not None and what is Meanwhile.ASKS:
                worker.task = self.world.reports.ask(worker.task, {"c": question("c")}, 180_000, hold=False)
            elif worker is not None and what is Meanwhile.FINISHES:
                worker.task = self.world.reports.finish(worker.task, lambda t: endings.cancelled(t, self.now))
            elif ticket.acknowledged and ticket.resolves(self.now):
                self._owner_meanwhile(what, ticket, task)
        except RunLost:
            return
        except RpcError as error:
            self.world.broken(f"{what.name}: {error}")

    def _owner_meanwhile(self, what: Meanwhile, ticket: Ticket, task: Task) -> None:
        if what is Meanwhile.POLLS:
            self.world.rail.read(ticket.owner, ticket.task_id)
        elif what is Meanwhile.CANCELS:
            self.world.rail.cancel(ticket.owner, ticket.task_id)
        elif what is Meanwhile.ANSWERS:
            for key in task.outstanding:
                ticket.sent.setdefault(key, []).append(RIGHT)
            self.world.rail.update(ticket.owner, ticket.task_id, dict.fromkeys(task.outstanding, RIGHT))

    def _claim_meanwhile(self, task: Task) -> None:
        if self.world.lives(task) and task.tool not in REMOTE:
            run_id = task.run_id or self.engine_id(task.task_id, task.run)
            claimed = self.take_up(task.task_id, task.run, run_id, task.attempt + 1)
            if claimed is not None:
                self.workers.append(Worker(claimed))

    def _end_meanwhile(self, task: Task) -> None:
        name, failed = run_name(task.task_id, task.run), RunReport(RunState.FAILED, "exit code 3")
        if self.world.engine.lives(name):
            self.world.engine.runs[name] = failed
            self.world.rail.run_heard(task.task_id, task.run, failed)
        for event in self.world.functions.of(name)[:1]:
            with self.world.functions.tells(event) as record:
                self.world.rail.run_heard(task.task_id, task.run, record)
        for job in self.world.jobs_of(task):
            if self.world.jobs.lives(job):
                job.report = self.world.jobs.account(job, RunState.FAILED, "exit code 3")
                self.world.rail.run_heard(task.task_id, task.run, job.report)


def look(key: str) -> Any:
    """The item as moto holds it: a look that costs nothing and that no process makes."""
    from moto.dynamodb.models import dynamodb_backends

    item = dynamodb_backends["123456789012"]["eu-central-1"].get_item(TABLE, {"pk": {"S": key}})
    return None if item is None else item.to_json()["Attributes"]
