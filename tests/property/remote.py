"""What becomes of work that is none of the kit's, of jobs on Batch, of calls made once, and of what is removed."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from taskrail.engines import RunState, parse_run_name, run_name
from taskrail.errors import EngineUnavailable, NotStarted, QuestionError, StoreUnavailable
from taskrail.payloads import dump
from taskrail.rail.remote import ReportRefused, TaskCancelled
from taskrail.task import Status, Task
from taskrail.testing import BUCKET, TABLE
from tests.property.jobs import Job
from tests.property.machine import look
from tests.property.outside import Died, Plan
from tests.property.strategies import owners, picks, plans
from tests.property.workers import WorkerRules
from tests.property.world import KEYS, REMOTE, Ticket

ANY_FORM = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}


class RemoteRules(WorkerRules):
    """Workflows, containers and their engines; the table that deletes; and callers that call again."""

    def __init__(self) -> None:
        super().__init__()
        self.removed: list[Task] = []
        """What was removed, and is not cleaned up after yet."""
        self.once: dict[str, tuple[Ticket, int]] = {}
        """By owner: the task of its call that is made once, and until when that holds."""
        self._states = 0

    def remote(self) -> list[Ticket]:
        """The tickets of such work that was started."""
        return [t for t in self.tickets if t.tool in REMOTE and self.world.started(run_name(t.task_id, 1))]

    def token(self, ticket: Ticket) -> str:
        """The report token that the work of a ticket got."""
        name = run_name(ticket.task_id, 1)
        if ticket.tool == "flow":
            return str(self.world.engine.orders[name].input["reportToken"])
        tokens = {job.order.environment["TASKRAIL_REPORT_TOKEN"] for job in self.world.jobs.of(name)}
        assert len(tokens) == 1, "one run, two tokens"
        return tokens.pop()

    def report_of(self, ticket: Ticket, what: str, key: str, job: Job | None) -> dict[str, Any]:
        """A report as that work makes it; every time that a state asks it has a new task token."""
        self._states += 1
        bodies: dict[str, dict[str, Any]] = {
            "progress": {"done": self._states, "total": 9, "message": f"{self._states} of 9"},
            "ask": {"key": key, "message": f"What is {key}?", "schema": ANY_FORM},
            "answers": {},
            "result": {"result": {"number": self._states}},
        }
        report = {"do": what, **bodies[what]}
        if job is not None:
            return {**report, "job": job.job_id, "attempt": 1}
        return {**report, "taskToken": f"{ticket.task_id}-{self._states}"} if what == "ask" else report

    @precondition(lambda self: self.remote())
    @rule(
        pick=picks,
        what=st.sampled_from(["progress", "ask", "ask", "answers", "result"]),
        key=st.sampled_from(KEYS),
        which=picks,
        plan=plans,
    )
    def report(self, pick: int, what: str, key: str, which: int, plan: Plan) -> None:
        """A workflow or a container reports; of two containers only the recorded one counts."""
        tickets = self.remote()
        ticket = tickets[pick % len(tickets)]
        jobs = self.world.jobs.of(run_name(ticket.task_id, 1))
        job = jobs[which % len(jobs)] if jobs else None
        if job is not None:
            job.begun = True
        self._report(ticket, self.report_of(ticket, what, key, job), job, plan)

    def _report(self, ticket: Ticket, report: dict[str, Any], job: Job | None, plan: Plan) -> None:
        outside, before = self.world.outside, ticket.seen
        counts = before is not None and before.open and not before.expired(self.now)
        counts = counts and (job is None or (before is not None and before.run_id in (None, job.job_id)))
        outside.new_process("work", plan)
        try:
            reply = self.world.runtime.remote.take(self.token(ticket), report)
        except (StoreUnavailable, Died):
            assert outside.struck, "a report failed though nothing happened"
            return
        except (QuestionError, ReportRefused):
            # The same key for another question; a workflow's result is its output.
            assert ticket.seen is before or outside.overtaken or job is not None
            return
        except TaskCancelled:
            wanted = ticket.seen is not None and ticket.seen.open and ticket.seen.cancel_requested_at is None
            assert not (counts and wanted) or outside.overtaken, "a state was turned away that somebody waits for"
            return
        if outside.overtaken:
            return
        after = ticket.seen
        if not counts:
            assert reply["cancel"], "work that does not count was not told to stop"
            assert after == before, "a report that does not count changed a task"
            return
        assert after is not None and after.open
        assert reply["cancel"] == (after.cancel_requested_at is not None), "work was told something else than is true"
        if report["do"] == "ask" and not reply["cancel"]:
            assert report["key"] in after.questions, "a question was taken and not kept"
            assert set(reply["answers"]) | set(reply["waiting"]) == {report["key"]}
            if "taskToken" in report and report["key"] in after.answers and not outside.struck:
                assert report["taskToken"] in self.world.engine.handed, "a state waits though its answer is there"

    @precondition(lambda self: self.world.jobs.all)
    @rule(
        pick=picks,
        how=st.sampled_from(["begins", "ends", "fails", "killed"]),
        heard=st.booleans(),
        plan=plans,
    )
    def job(self, pick: int, how: str, heard: bool, plan: Plan) -> None:
        """A job begins, or is over; its durable event comes at once, or later."""
        jobs = list(self.world.jobs.all.values())
        job = jobs[-1 - pick % len(jobs)]
        if self.world.jobs.lives(job):
            job.begun = True
            states = {"ends": RunState.SUCCEEDED, "fails": RunState.FAILED, "killed": RunState.STOPPED}
            if how in states:
                job.report = self.world.jobs.account(job, states[how], "exit code 1" if how == "fails" else None)
        if heard:
            self._hear_of_job(job, plan)

    @precondition(lambda self: self.world.jobs.all)
    @rule(pick=picks, plan=plans)
    def job_event(self, pick: int, plan: Plan) -> None:
        """An event about a job: late, again, or about one that is not the run's."""
        jobs = list(self.world.jobs.all.values())
        self._hear_of_job(jobs[-1 - pick % len(jobs)], plan)

    def _hear_of_job(self, job: Job, plan: Plan) -> None:
        parsed = parse_run_name(job.name)
        assert parsed is not None
        ticket, report, outside = self.world.tickets[parsed[0]], self.world.jobs.report(job), self.world.outside
        before = ticket.seen
        outside.new_process("event", plan)
        try:
            self.world.rail.run_heard(*parsed, report)
        except (StoreUnavailable, EngineUnavailable, Died):
            assert outside.struck, "an event failed though nothing happened"
            return
        after = ticket.seen
        if before is None or after is None or outside.struck or before.expired(self.now):
            return
        current = before.open and before.run == parsed[1]
        if current and before.run_id is None:
            assert after.run_id == job.job_id, "the first job that was heard of is not recorded"
        elif not current or before.run_id != job.job_id:
            assert after == before, "an event about a job that does not count changed a task"
            if ticket.tool in REMOTE:
                assert not self.world.jobs.lives(job) or job.ordered_at is not None, "a job too many goes on"
            return
        if report.ended and before.run_open:
            assert not after.run_open, "the end of a run was told, and its task waits on"

    @rule(owner=owners, plan=plans)
    def call_once(self, owner: str, plan: Plan) -> None:
        """A call that stands for one task: of equal calls all get the same, as long as that can still be of use."""
        world = self.world
        ticket = Ticket("", owner, "single", {"script": [], "pad": world.name}, None)
        world.creating = ticket
        world.outside.new_process("client", plan)
        known = self.once.get(owner)
        stands = known is not None and self.now < known[1] and known[0].resolves(self.now) and self._useful(known[0])
        try:
            task = self.call(ticket, owner)
        except NotStarted:
            assert world.outside.struck and not (stands and not world.outside.overtaken), "refused without a reason"
            return
        except (StoreUnavailable, Died):
            assert world.outside.struck, "no clear answer though nothing happened"
            return
        finally:
            if ticket.task_id:
                self.tickets.append(ticket)
        holder = world.tickets[task.task_id]
        assert holder.owner == owner and holder.tool == "single"
        if known is not None and stands and not world.outside.overtaken:
            assert holder is known[0], "an equal call got another task"
        if known is None or holder is not known[0]:
            holder.acknowledged = True
            assert holder.seen is not None and holder.seen.reservation is not None
            item = look(f"dedupe#{holder.seen.reservation}")
            assert item is not None and item["taskId"]["S"] == holder.task_id, "a ticket that no equal call will find"
            self.once[owner] = holder, int(item["until"]["N"])

    def _useful(self, ticket: Ticket) -> bool:
        """Whether a task may still stand for its call: it has not ended in an error, nor been cancelled."""
        task = ticket.seen
        if task is None or task.status in (Status.CANCELLED, Status.FAILED):
            return False
        return task.status is not Status.COMPLETED or dump({"isError": True})[1:-1] not in (task.result or "")

    def expired(self) -> list[Ticket]:
        """The tickets whose items the table may delete."""
        return [t for t in self.tickets if t.seen is not None and t.seen.expired(self.now)]

    @precondition(lambda self: self.expired() or self.removed)
    @rule(pick=picks, again=st.booleans(), plan=plans)
    def expire(self, pick: int, again: bool, plan: Plan) -> None:
        """The table deletes an item, and its stream tells; or tells again."""
        tickets = self.expired()
        if tickets and not (again and self.removed):
            ticket = tickets[pick % len(tickets)]
            assert ticket.seen is not None
            self.dynamodb.delete_item(TableName=TABLE, Key={"pk": {"S": f"task#{ticket.task_id}"}})
            self.removed.append(ticket.seen)
            ticket.seen = None
        self.clean(self.removed[-1], plan)

    def clean(self, task: Task, plan: Plan) -> None:
        """The table's stream tells of an item that is gone."""
        world = self.world
        world.outside.new_process("stream", plan)
        try:
            world.runtime.cleanup.removed(task)
        except (StoreUnavailable, Died):
            assert world.outside.struck, "cleaning up failed though nothing happened"
            return
        self.removed.remove(task)
        if (task.open and task.run_open) or task.tool in REMOTE:
            assert not world.goes_on(task), "a run goes on whose task is gone"
        found = self.s3.list_objects_v2(Bucket=BUCKET, Prefix=f"tasks/{task.task_id}/")
        assert not found.get("Contents"), "objects are left of a task that is gone"
        if task.reservation is not None:
            item = look(f"dedupe#{task.reservation}")
            assert item is None or item["taskId"]["S"] != task.task_id, "a reservation is left of a task that is gone"
