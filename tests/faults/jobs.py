"""AWS Batch as the wire sees it: jobs that run when a test says so, as many of a name as were submitted."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from botocore.awsrequest import AWSResponse

from tests.faults.faults import answer

QUEUE = "arn:aws:batch:eu-central-1:123456789012:job-queue/jobs"

_numbers = itertools.count(1)
"""A job's id never comes again, not even in a world that was taken back."""


@dataclass
class Job:
    """One job, of one attempt unless a test says otherwise.

    Parameters
    ----------
    job_id, name, tool, environment
        Its own id, the name it was submitted under, its definition's name, and its variables.
    status
        As Batch has it: ``RUNNABLE``, ``RUNNING``, ``SUCCEEDED``, ``FAILED``.
    ordered
        Whether it was told to end while it ran.
    exit_code
        Of its container, once that has ended.
    reason
        Why it ended, in Batch's words.
    """

    job_id: str
    name: str
    tool: str
    environment: dict[str, str]
    created: int
    status: str = "RUNNABLE"
    ordered: bool = False
    exit_code: int | None = None
    reason: str | None = None

    @property
    def living(self) -> bool:
        """Whether it is not over."""
        return self.status not in ("SUCCEEDED", "FAILED")

    def end(self, exit_code: int | None, reason: str | None = None) -> None:
        """It is over; without an exit code its container never was."""
        self.status = "FAILED" if exit_code or reason else "SUCCEEDED"
        self.exit_code, self.reason = exit_code, reason

    def detail(self) -> dict[str, Any]:
        """As DescribeJobs and the state change events have it."""
        exit_code = {} if self.exit_code is None else {"exitCode": self.exit_code}
        stopped = {"startedAt": 2, "stoppedAt": 3, "container": {**exit_code, "reason": "secret-detail-of-aws"}}
        begun = self.exit_code is not None
        return {
            "jobId": self.job_id,
            "jobName": self.name,
            "jobQueue": QUEUE,
            "jobDefinition": self.tool,
            "status": self.status,
            "createdAt": self.created,
            "startedAt": 2,
            "isTerminated": self.reason == "Taskrail.Stopped",
            "attempts": [stopped] if begun else [],
            "container": exit_code,
            **({} if self.reason is None else {"statusReason": self.reason}),
        }


@dataclass
class Jobs:
    """Answers SubmitJob, ListJobs, DescribeJobs and TerminateJob as their API reference has it."""

    all: dict[str, Job] = field(default_factory=dict)
    refuse: bool = False

    def __call__(self, event_name: str, request: Any) -> AWSResponse:
        """Perform a request."""
        parameters = json.loads(request.body or "{}")
        status, body = getattr(self, "_" + event_name.rpartition(".")[2])(parameters)
        return answer(request.url, status, json.dumps(body))

    def of(self, name: str) -> list[Job]:
        """The jobs of a name, the first submitted first."""
        return [job for job in self.all.values() if job.name == name]

    def living(self) -> Iterator[Job]:
        """The jobs that are not over."""
        return iter([job for job in self.all.values() if job.living])

    def kill(self) -> None:
        """Half a minute after the order to end: what has not ended by itself is killed."""
        for job in self.living():
            if job.ordered:
                job.end(137, "Taskrail.Stopped")

    def time_out(self) -> None:
        """Their time is long over."""
        for job in self.living():
            job.end(137, "Job attempt duration exceeded timeout")

    def _SubmitJob(self, parameters: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if self.refuse:
            return 403, {"__type": "AccessDeniedException", "message": "secret-detail-of-aws"}
        number = next(_numbers)
        environment = {pair["name"]: pair["value"] for pair in parameters["containerOverrides"]["environment"]}
        job = Job(f"job-{number}", parameters["jobName"], parameters["jobDefinition"], environment, number)
        self.all[job.job_id] = job
        return 200, {"jobArn": f"arn:{job.job_id}", "jobName": job.name, "jobId": job.job_id}

    def _ListJobs(self, parameters: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        ((name,),) = (filter_["values"] for filter_ in parameters["filters"])
        # The newest come first, and the filter knows no case.
        found = [job for job in reversed(self.all.values()) if job.name.lower() == name.lower()]
        return 200, {"jobSummaryList": [{"jobId": job.job_id, "jobName": job.name} for job in found]}

    def _DescribeJobs(self, parameters: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return 200, {"jobs": [self.all[job_id].detail() for job_id in parameters["jobs"] if job_id in self.all]}

    def _TerminateJob(self, parameters: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        job = self.all.get(parameters["jobId"])
        if job is not None and job.status == "RUNNABLE":
            job.end(None, parameters["reason"])
        elif job is not None and job.living:
            job.ordered = True
        return 200, {}
