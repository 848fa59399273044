"""Finding personal data in documents and blacking it out. The job's code is in `jobs/redact_documents`."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from taskrail import Call, StepFunctions, TaskContext, Toolset, days, hours, minutes, seconds
from tools.inputs import Documents, Uris, require_some

tools = Toolset()


class Redaction(BaseModel):
    """What was blacked out; the attached redacted.zip has the documents."""

    documents: int = Field(description="Documents that were changed.")
    emails: int
    ip_addresses: int
    card_numbers: int
    scanned_at: datetime = Field(description="When the documents were read for what is now blacked out.")


@tools.task(
    title="Redact documents",
    job="jobs.redact_documents",
    runs_on=StepFunctions(memory_mb=512, timeout=minutes(10)),
    keep_result=hours(24),
    answer_within=days(2),
    poll_interval=seconds(1),
)
def redact_documents(task: TaskContext, documents: Documents = (), uris: Uris = ()) -> Redaction:
    """Black out personal data in documents, once you approve.

    Looks for e-mail addresses, IPv4 addresses and payment card numbers, tells what it found, and asks before it
    changes anything. Attached: redacted.zip with every document.
    """


@redact_documents.before
def nothing_to_redact(call: Call, documents: Documents = (), uris: Uris = ()) -> None:
    """Refuse an empty call inside the request: no task is made for it."""
    require_some(documents, uris)
