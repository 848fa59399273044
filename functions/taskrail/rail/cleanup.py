"""What is left of a task when its item is gone: a run that nobody waits for, and objects that nobody can reach."""

from __future__ import annotations

from taskrail.errors import StoreUnavailable
from taskrail.payloads import Payloads
from taskrail.rail.repeats import Repeats
from taskrail.rail.runs import Runs
from taskrail.task import Task


class Cleanup:
    """Ends what a removed task leaves behind.

    Parameters
    ----------
    runs, payloads, repeats
        What stops runs, where objects are, and what reserves repeated calls.
    """

    def __init__(self, runs: Runs, payloads: Payloads, repeats: Repeats) -> None:
        self._runs = runs
        self._payloads = payloads
        self._repeats = repeats

    def removed(self, task: Task) -> None:
        """A task's item was removed: by its time to live, by hand, or since its start was refused.

        Again is as good as once.

        Parameters
        ----------
        task
            The task as its item last held it.

        Raises
        ------
        StoreUnavailable
            Not all could be ended or deleted; whoever tells must tell again.
        """
        if self._runs.come_back(task):
            # Taken back since its start was refused, and hung again by a repeated call: it is alive.
            return
        # Where nothing of the kit's runs, a run may outlive its task's end: one that was to be stopped then, in vain.
        going = (task.open and task.run_open) or not self._runs.claims(task)
        if going and not self._runs.stop_removed(task):
            raise StoreUnavailable("A run may go on.")
        self._payloads.delete_all(task.task_id)
        self._repeats.free(task)
