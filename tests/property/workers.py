"""What workers do: claim, report, finish, die, or do a whole run by its script."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from taskrail.engines import RunReport, RunState, run_name
from taskrail.errors import StoreUnavailable
from taskrail.rail import endings
from taskrail.rail.reports import RunLost
from taskrail.task import Progress, Status, Task
from taskrail.worker import run_attempt
from tests.property.clients import ClientRules
from tests.property.invocations import over
from tests.property.machine import Worker
from tests.property.outside import Died, Plan
from tests.property.strategies import RIGHT, attempts, picks, plans
from tests.property.world import KEYS, ON_LAMBDA, STEPS, Ticket, question


class WorkerRules(ClientRules):
    """Workers, some of them superseded and not aware of it."""

    @precondition(lambda self: self.runs())
    @rule(pick=picks, which=attempts, plan=plans)
    def claim(self, pick: int, which: str, plan: Plan) -> None:
        """A worker takes up a run, or finds that it is none of its business."""
        task_id, run, run_id, attempt = self.work(pick, which)
        ticket, outside = self.world.tickets[task_id], self.world.outside
        before, expected = ticket.seen, self.claimable(ticket, run, run_id, attempt)
        self._begin(run_id)
        outside.new_process("worker", plan)
        try:
            task = self.take_up(task_id, run, run_id, attempt)
        except (StoreUnavailable, Died):
            assert outside.struck, "a claim failed though nothing happened"
            return
        if not outside.overtaken:
            assert (task is not None) == expected, "a worker was let into, or turned away from, the wrong run"
            assert expected or self._harmless(before, ticket.seen), "a worker changed what is not its own"
        if task is not None:
            assert task == ticket.seen
            self.workers.append(Worker(task))

    def _harmless(self, before: Task | None, after: Task | None) -> bool:
        """Whether a claim that was turned away changed nothing that anybody may still see."""
        if before is None or after is None or before == after:
            return before == after
        # The table takes claims up to the end of an item's last second; and who comes after a worker that
        # died holding its run open for an answer lets go of the run.
        held = before.status is Status.INPUT_REQUIRED and before.run_open and not after.run_open
        return before.expired(self.now) or (held and after.outstanding == before.outstanding)

    @precondition(lambda self: self.workers)
    @rule(pick=picks, what=st.sampled_from(["progress", "let go", "look"]), number=st.integers(0, 9), plan=plans)
    def tell(self, pick: int, what: str, number: int, plan: Plan) -> None:
        """A worker tells something, which counts only while the run is its own."""
        worker, rail = self.workers[pick % len(self.workers)], self.world.reports
        mine = worker.task
        tell: dict[str, Callable[[], Task]] = {
            "progress": lambda: rail.progress(mine, Progress(number, 9), f"{number} of 9"),
            "let go": lambda: rail.let_go(mine),
            "look": lambda: rail.hear(mine),
        }
        self._tell(worker, tell[what], plan)

    @precondition(lambda self: self.workers)
    @rule(pick=picks, name=st.sampled_from(STEPS), number=st.integers(0, 9), plan=plans)
    def step(self, pick: int, name: str, number: int, plan: Plan) -> None:
        """A worker has done a step; its outcome is recorded once."""
        worker = self.workers[pick % len(self.workers)]
        task = self._tell(worker, lambda: self.world.reports.step(worker.task, name, f'{{"value":{number}}}'), plan)
        if task is not None:
            assert name in task.steps, "an acknowledged step was not kept"

    @precondition(lambda self: self.workers)
    @rule(pick=picks, keys=st.sampled_from([*KEYS, "ab", "bc"]), hold=st.booleans(), other=st.booleans(), plan=plans)
    def ask(self, pick: int, keys: str, hold: bool, other: bool, plan: Plan) -> None:
        """A worker asks, and ends its run or holds it open; it may use a key that stands for something else."""
        worker = self.workers[pick % len(self.workers)]
        questions = {key: question(key, "Something else?" if other else "") for key in keys}
        task = self._tell(worker, lambda: self.world.reports.ask(worker.task, questions, 180_000, hold=hold), plan)
        if task is not None:
            assert task.cancel_requested_at or set(questions) <= set(task.questions), "a question was not asked"

    @precondition(lambda self: self.workers)
    @rule(pick=picks, how=st.sampled_from(["completed", "failed", "cancelled", "broken"]), plan=plans)
    def finish(self, pick: int, how: str, plan: Plan) -> None:
        """A worker reports the end of its run; the first end counts."""
        worker, now = self.workers[pick % len(self.workers)], self.now

        def move(task: Task) -> Task:
            if how == "completed":
                return endings.completed(task, '{"content":[]}', "Completed.", now)
            if how == "failed":
                return endings.failed(task, now, code=-1, message="Never.", data={"why": "so"})
            return endings.cancelled(task, now) if how == "cancelled" else endings.broken(task, "It broke.", now)

        task = self._tell(worker, lambda: self.world.reports.finish(worker.task, move), plan)
        if task is not None:
            assert task.status.value == ("completed" if how == "broken" else how)
            self.workers.remove(worker)

    def _tell(self, worker: Worker, tell: Callable[[], Task], plan: Plan) -> Task | None:
        outside, ticket = self.world.outside, self.world.tickets[worker.task.task_id]
        stored = ticket.seen
        own = stored is not None and stored.open and stored.run_open and stored.claim == worker.task.claim
        expired = stored is None or stored.expired(self.now)
        outside.new_process("worker", plan)
        try:
            worker.task = tell()
        except RunLost:
            assert not own or expired or outside.overtaken, "a worker lost its own run"
            return None
        except (StoreUnavailable, Died) as error:
            assert outside.struck, "a report failed though nothing happened"
            if isinstance(error, Died):
                self.workers.remove(worker)
            return None
        if outside.calls == 0:
            # What it has to tell is known as far as it knows, so that nothing was told.
            return None
        assert own, "a worker reported for a run that is not its own"
        assert worker.task == ticket.seen, "a worker saw something else than what is stored"
        return worker.task

    @precondition(lambda self: self.workers)
    @rule(pick=picks)
    def vanish(self, pick: int) -> None:
        """A worker is gone without a word."""
        self.workers.pop(pick % len(self.workers))

    @precondition(lambda self: self.runs())
    @rule(pick=picks, which=attempts, answered=st.booleans(), plan=plans)
    def run(self, pick: int, which: str, answered: bool, plan: Plan) -> None:
        """A worker does a whole run by its script: to its end, to its question, or to its own death."""
        world = self.world
        task_id, run, run_id, attempt = self.work(pick, which)
        ticket, name = world.tickets[task_id], run_name(task_id, run)
        expected = self.claimable(ticket, run, run_id, attempt)
        self._begin(run_id)
        world.outside.new_process("worker", plan)
        world.clock.on_sleep = (lambda: self._answer_meanwhile(ticket)) if answered else (lambda: None)
        try:
            outcome = run_attempt(
                world.reports,
                world.server,
                task_id=task_id,
                run=run,
                run_id=run_id,
                attempt=None if ticket.tool in ON_LAMBDA else attempt,
                remaining_ms=(lambda: 0) if ticket.tool in ON_LAMBDA else None,
                ticker=False,
            )
        except (StoreUnavailable, Died):
            assert world.outside.struck, "a run failed though nothing happened"
            return
        finally:
            world.clock.on_sleep = lambda: None
        assert expected or outcome == "nothing to do" or world.outside.struck, "a run that is not its own was done"
        if outcome in ("completed", "failed", "cancelled"):
            assert ticket.seen is not None and ticket.seen.status.value == outcome
        if outcome != "nothing to do" and world.engine.lives(name):
            world.engine.runs[name] = RunReport(RunState.SUCCEEDED)
        over(world.functions.all.get(run_id))
        job = world.jobs.all.get(run_id)
        if job is not None and world.jobs.lives(job):
            job.report = world.jobs.account(job, RunState.SUCCEEDED)

    def _begin(self, run_id: str) -> None:
        """A job of Batch has a container now."""
        if (job := self.world.jobs.all.get(run_id)) is not None:
            job.begun = True

    def _answer_meanwhile(self, ticket: Ticket) -> None:
        """A client answers while the worker holds its run open for it."""
        task = ticket.seen
        if task is not None and task.outstanding and ticket.resolves(self.now):
            answers = dict.fromkeys(task.outstanding, RIGHT)
            self.world.outside.aside(lambda: self.send_answers(ticket, answers, {}))
