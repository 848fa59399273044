"""Inside a job: the line to its task, one attempt of its run, and the order to end."""

from taskrail.worker.attempt import run_attempt
from taskrail.worker.channel import RunChannel
from taskrail.worker.notice import Notice

__all__ = ["Notice", "RunChannel", "run_attempt"]
