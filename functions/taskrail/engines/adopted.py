"""What is in the account already, found by a tag: state machines, job queues and job definitions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from taskrail.errors import EngineUnavailable, StartRefused

_TAG = "tag:"
_REVISION = re.compile(r"(?P<name>.+:job-definition/[^:]+):(?P<revision>\d+)")


class Adopted:
    """Turns references of the settings into what an API takes.

    A reference is an ARN or a name, which stays as it is, or ``tag:key=value``, which is looked up at its
    first use and then kept for the life of the process.

    Parameters
    ----------
    client
        Makes a boto3 client of the Resource Groups Tagging API, at its first use.
    """

    def __init__(self, client: Callable[[], Any]) -> None:
        self._client = client
        self._found: dict[tuple[str, str], str] = {}

    def state_machine(self, reference: str) -> str:
        """The ARN of a state machine.

        Raises
        ------
        StartRefused
            The tag names none, or several.
        EngineUnavailable
            The tag could not be looked up.
        """
        return self._find(reference, "states:stateMachine", "state machine")

    def queue(self, reference: str) -> str:
        """The ARN or name of a job queue.

        Raises
        ------
        StartRefused, EngineUnavailable
            As for `state_machine`.
        """
        return self._find(reference, "batch:job-queue", "job queue")

    def definition(self, reference: str) -> str:
        """The ARN or name of a job definition; of several tagged revisions of one, the newest.

        Raises
        ------
        StartRefused, EngineUnavailable
            As for `state_machine`.
        """
        return self._find(reference, "batch:job-definition", "job definition")

    def _find(self, reference: str, kind: str, what: str) -> str:
        if not reference.startswith(_TAG):
            return reference
        found = self._found.get((kind, reference))
        if found is None:
            found = self._found[kind, reference] = self._look_up(reference, kind, what)
        return found

    def _look_up(self, reference: str, kind: str, what: str) -> str:
        key, _, value = reference.removeprefix(_TAG).partition("=")
        try:
            arns = _newest(self._tagged(key, value, kind))
        except ClientError as error:
            raise EngineUnavailable(str(error.response.get("Error", {}).get("Code", "Unknown"))) from error
        except BotoCoreError as error:
            raise EngineUnavailable(type(error).__name__) from error
        if len(arns) != 1:
            many = f"{len(arns)} of them have it" if arns else "none has it"
            raise StartRefused(
                f"Exactly one {what} of this account and region must have the tag {key!r} = {value!r}; {many}."
            )
        return arns[0]

    def _tagged(self, key: str, value: str, kind: str) -> Iterator[str]:
        pages = (
            self._client()
            .get_paginator("get_resources")
            .paginate(TagFilters=[{"Key": key, "Values": [value]}], ResourceTypeFilters=[kind])
        )
        for page in pages:
            for resource in page["ResourceTagMappingList"]:
                yield resource["ResourceARN"]


def _newest(arns: Iterator[str]) -> list[str]:
    """The ARNs, each job definition once: its newest revision."""
    revisions: dict[str, int] = {}
    for arn in arns:
        match = _REVISION.fullmatch(arn)
        name, revision = (match["name"], int(match["revision"])) if match else (arn, 0)
        revisions[name] = max(revision, revisions.get(name, 0))
    return [f"{name}:{revision}" if revision else name for name, revision in revisions.items()]
