"""AWS Batch as an engine: one job per run, tried as often as its definition says.

`SubmitJob` takes no token that would make it safe to repeat, so a run may be submitted twice under its name.
Whoever claims the run first does it, and a second job finds nothing to do; a container that does not know the
kit counts only under the id that its task has recorded. A job is ended by `TerminateJob` in whatever state it
is: `CancelJob` succeeds on a running job without doing anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from botocore.exceptions import BotoCoreError, ClientError

from taskrail.engines import RunOrder, RunReport, RunState
from taskrail.engines.adopted import Adopted
from taskrail.errors import EngineUnavailable, StartRefused

LOG_GROUP = "/aws/batch/job"
"""Where the jobs' logs go, unless a definition says otherwise."""

STOPPED = "Taskrail.Stopped"
"""The reason that a stop gives for terminating a job."""

_OVERRIDES = 8_192
"""Bytes that a job's container overrides may have (SubmitJob, containerOverrides)."""
_SHORTEST_S = 60
"""Shortest time-out that Batch takes (JobTimeout, attemptDurationSeconds)."""
_SPARE_S = 30
"""Time that Batch leaves an attempt beyond the tool's own: it counts from the container's start, and the worker
has to get going and to have the last word."""
_DESCRIBED = 100
"""Jobs that one DescribeJobs takes."""
_LONGEST_LINE = 1_000
_LONGEST_REASON = 200

_REFUSALS = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "ClientException",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "NotAuthorized",
        "OptInRequired",
        "RequestExpired",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "UnrecognizedClientException",
        "ValidationError",
        "ValidationException",
    }
)
"""Errors of SubmitJob after which no job exists (API reference, SubmitJob, Errors, and Common Error Types)."""

_BEFORE = frozenset({"SUBMITTED", "PENDING", "RUNNABLE"})
_STATES: Mapping[str, RunState] = {"SUCCEEDED": RunState.SUCCEEDED, "FAILED": RunState.FAILED}

_KINDS = tuple(
    (re.compile(said), words)
    for said, words in (
        (r"Host EC2 .*(terminated|stopped)", "its host was lost"),
        (r"Your Spot Task was interrupted", "its Spot capacity was taken back"),
        (r"Canceled by JobStateTimeLimit action.*CAPACITY:", "there was no capacity for it in time"),
        (r"Canceled by JobStateTimeLimit action", "its queue has nothing that can run it"),
        (r"CannotPull\w*Error", "its image could not be pulled"),
        (r"OutOfMemoryError", "it ran out of memory"),
        (r"ResourceInitializationError", "its container could not be prepared"),
        (r"Cannot(Create|Start)ContainerError|DockerTimeoutError", "its container could not be started"),
        (r"Task failed to start", "its container could not be started"),
    )
)
"""What Batch and ECS say of an end, by how it begins, and what is told of it: their texts quote and name more.

Sources: Batch User Guide, "Jobs stuck in a RUNNABLE status" and "Automated job retries"; ECS Developer Guide,
"Stopped tasks error messages".
"""
_TIME_LIMIT = "Canceled by JobStateTimeLimit action"
_TIMED_OUT = "Job attempt duration exceeded timeout"
_EXITED = "Essential container in task exited"
_PRIVATE = re.compile(r"arn:\S+|\b\d{12}\b")


class Batch:
    """Runs as jobs.

    Parameters
    ----------
    client
        A boto3 Batch client; one that sends a request once is best, since a repeated SubmitJob is a second job.
    jobs
        By the tool's name its ``queue`` and its ``definition``: an ARN, a name, or ``tag:key=value``.
    adopted
        Looks tags up.
    logs
        Makes a boto3 CloudWatch Logs client, at its first use.
    """

    records_ids: ClassVar[bool] = True
    stops_gently: ClassVar[bool] = True
    by_lease: ClassVar[bool] = False

    def __init__(
        self,
        client: Any,
        jobs: Mapping[str, Mapping[str, str]],
        adopted: Adopted,
        logs: Callable[[], Any],
    ) -> None:
        self._client = client
        self._jobs = jobs
        self._adopted = adopted
        self._logs = logs

    def start(self, order: RunOrder) -> str:
        """Submit a job under the run's name; its id.

        Raises
        ------
        StartRefused, EngineUnavailable
            As in `Engine.start`.
        """
        job = self._jobs.get(order.tool)
        if job is None:
            raise StartRefused(f"No job queue and no job definition are configured for the tool {order.tool!r}.")
        overrides = {"environment": [{"name": name, "value": value} for name, value in order.environment.items()]}
        size = len(json.dumps(overrides))
        if size > _OVERRIDES:
            raise StartRefused(
                f"The variables of a job of the tool {order.tool!r} take {size} bytes; AWS Batch allows {_OVERRIDES}: "
                "give it less in environment=..., and let it read the rest from its arguments."
            )
        try:
            queue, definition = self._adopted.queue(job["queue"]), self._adopted.definition(job["definition"])
        except EngineUnavailable as error:
            raise StartRefused(str(error)) from error
        try:
            answer = self._client.submit_job(
                jobName=order.name,
                jobQueue=queue,
                jobDefinition=definition,
                containerOverrides=overrides,
                parameters=dict(order.parameters),
                timeout={"attemptDurationSeconds": max(_SHORTEST_S, -(-order.timeout_ms // 1000) + _SPARE_S)},
            )
        except ClientError as error:
            # An earlier try of the same call, unanswered, may have taken effect.
            repeated = error.response.get("ResponseMetadata", {}).get("RetryAttempts", 0)
            if _code(error) in _REFUSALS and not repeated:
                raise StartRefused(_code(error)) from error
            raise EngineUnavailable(_code(error)) from error
        except BotoCoreError as error:
            raise EngineUnavailable(type(error).__name__) from error
        return str(answer["jobId"])

    def stop(self, tool: str, name: str, run_id: str | None) -> bool:
        """Terminate the run's job, or without an id every job of that name.

        A job that has begun gets SIGTERM and, 30 s later, SIGKILL: until it has ended this is False, and may
        be asked again. One that has not begun will not begin any more.

        Raises
        ------
        EngineUnavailable
            It may or may not have been stopped.
        """
        told = []
        for detail in self._details(tool, name, run_id):
            if detail["status"] not in _STATES:
                self._call("terminate_job", jobId=detail["jobId"], reason=STOPPED)
                told.append(detail["jobId"])
        if not told:
            return True
        # It may have begun between the look and the order.
        return all(detail["status"] in _BEFORE or detail["status"] in _STATES for detail in self._described(told))

    def describe(self, tool: str, name: str, run_id: str | None) -> RunReport:
        """How the job stands; without an id, how the run of that name does.

        Of several jobs of a name, submitted twice, the first one that still goes on speaks for the run, else
        the first of all.

        Raises
        ------
        EngineUnavailable
            No clear answer.
        """
        reports = [report for detail in self._details(tool, name, run_id) if (report := report_of_job(detail))]
        open_ones = [report for report in reports if not report.ended]
        return next(iter(open_ones or reports), RunReport(RunState.NOT_FOUND))

    def resume(self, token: str, output: str) -> None:
        """Nothing: no job waits with a task token."""

    def log_tail(self, tool: str, log: str, lines: int) -> tuple[str, ...]:
        """The last lines that a job wrote, each cut to a length that can be read; empty without an answer."""
        group, _, stream = log.rpartition(":")
        if lines < 1:
            return ()
        try:
            answer = self._logs().get_log_events(
                logGroupName=group or LOG_GROUP, logStreamName=stream, limit=lines, startFromHead=False
            )
        except (ClientError, BotoCoreError):
            return ()
        return tuple(event.get("message", "")[:_LONGEST_LINE] for event in answer["events"][-lines:])

    def _details(self, tool: str, name: str, run_id: str | None) -> list[dict[str, Any]]:
        """The job of that id or the jobs of that name, the first created first."""
        found = self._described([run_id] if run_id is not None else list(self._named(tool, name)))
        return sorted(found, key=lambda detail: (detail.get("createdAt", 0), detail["jobId"]))

    def _named(self, tool: str, name: str) -> Iterator[str]:
        job = self._jobs.get(tool)
        if job is None:
            return
        try:
            queue = self._adopted.queue(job["queue"])
        except StartRefused as error:
            raise EngineUnavailable(str(error)) from error
        more: dict[str, str] = {}
        while True:
            # With a filter, jobs of every status are listed; the filter knows no case.
            page = self._call("list_jobs", jobQueue=queue, filters=[{"name": "JOB_NAME", "values": [name]}], **more)
            yield from (job["jobId"] for job in page["jobSummaryList"] if job["jobName"] == name)
            if not page.get("nextToken"):
                return
            more = {"nextToken": page["nextToken"]}

    def _described(self, ids: list[str]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for first in range(0, len(ids), _DESCRIBED):
            found += self._call("describe_jobs", jobs=ids[first : first + _DESCRIBED])["jobs"]
        return found

    def _call(self, operation: str, **parameters: Any) -> Any:
        try:
            return getattr(self._client, operation)(**parameters)
        except ClientError as error:
            raise EngineUnavailable(_code(error)) from error
        except BotoCoreError as error:
            raise EngineUnavailable(type(error).__name__) from error


def report_of_job(detail: Mapping[str, Any]) -> RunReport | None:
    """The account in a job's detail, as DescribeJobs and "Batch Job State Change" events have it.

    Parameters
    ----------
    detail
        The job. Texts that quote what happened inside its container are left alone.

    Returns
    -------
    RunReport or None
        None for the children of array and multi-node jobs: the kit submits neither.
    """
    if re.search("[:#]", str(detail.get("jobId", ""))) or "index" in (detail.get("arrayProperties") or {}):
        return None
    attempts = detail.get("attempts") or []
    container = detail.get("container") or {}
    # Attempts are listed once they have stopped; the job's own container is that of the latest.
    running = detail.get("status") == "RUNNING" and all("stoppedAt" in attempt for attempt in attempts)
    last = {} if running or not attempts else attempts[-1]
    state = _STATES.get(str(detail.get("status")), RunState.RUNNING)
    reason = None
    if state is RunState.FAILED:
        state, reason = _ending(detail, last)
    begun = len(attempts) + running
    return RunReport(
        state,
        reason,
        run_id=detail.get("jobId"),
        attempt=max(begun, 1) if state is RunState.SUCCEEDED else begun,
        log=_log((last.get("container") or {}).get("logStreamName") or container.get("logStreamName"), container),
    )


def _ending(detail: Mapping[str, Any], last: Mapping[str, Any]) -> tuple[RunState, str | None]:
    """What a failed job failed of."""
    said = str(detail.get("statusReason") or last.get("statusReason") or "")
    if said.startswith(_TIMED_OUT):
        return RunState.TIMED_OUT, None
    # Whoever terminates or cancels a job gives the reason in words of their own.
    if said == STOPPED or (
        (detail.get("isTerminated") or detail.get("isCancelled")) and not said.startswith(_TIME_LIMIT)
    ):
        return RunState.STOPPED, None
    container = last.get("container") or detail.get("container") or {}
    texts = (said, str(container.get("reason") or ""))
    words = next((words for kind, words in _KINDS if any(kind.match(text) for text in texts)), None)
    code = container.get("exitCode")
    if code is not None:
        return RunState.FAILED, f"exit code {code}" if words is None else f"exit code {code} ({words})"
    if words is None:
        words = "its container left no exit code" if said.startswith(_EXITED) else _shown(said)
    return RunState.FAILED, words or "AWS Batch gave no reason"


def _shown(said: str) -> str:
    """A text of Batch's own that is of no known kind: one line, not long, without names of the account."""
    return " ".join(_PRIVATE.sub("…", said).split())[:_LONGEST_REASON]


def _log(stream: str | None, container: Mapping[str, Any]) -> str | None:
    """Where a job's log is: its stream, with the group in front where a definition names one."""
    configuration = container.get("logConfiguration") or {}
    group = (configuration.get("options") or {}).get("awslogs-group")
    return f"{group}:{stream}" if stream and group and configuration.get("logDriver") == "awslogs" else stream


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", "Unknown"))
