"""The code of the tool `redact_documents`: scan once, ask, black out."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Literal, TypedDict

from pydantic import BaseModel, Field

from taskrail import TaskContext, ToolError
from tools.inputs import Document, Documents, Uris, read
from tools.privacy import Redaction

Kind = Literal["email", "ip", "card"]
NAMES: dict[Kind, str] = {"email": "e-mail addresses", "ip": "IPv4 addresses", "card": "card numbers"}
PATTERNS: dict[Kind, re.Pattern[str]] = {
    "email": re.compile(r"(?<![\w.+-])[\w.+-]+@(?:[\w-]+\.)+[^\W\d_]{2,}"),
    "ip": re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.]*\w)", re.ASCII),
    "card": re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-])", re.ASCII),
}


class Finding(TypedDict):
    """One place in a document."""

    kind: Kind
    start: int
    end: int


class Scanned(TypedDict):
    """What the scan found in one document, and the digest of the text that it read."""

    sha256: str
    findings: list[Finding]


class Scan(TypedDict):
    """What the scan found in all documents, and when."""

    at: str
    documents: list[Scanned]


class Approval(BaseModel):
    """What the caller is asked."""

    redact: bool = Field(description="Black them out?")
    kinds: list[Kind] = Field(default=["email", "ip", "card"], description="Which kinds.")


def redact_documents(task: TaskContext, documents: Documents = (), uris: Uris = ()) -> Redaction:
    """Scan the documents, ask what to do, and do it.

    The scan is a step: the run that follows the answer gets its outcome and does not scan again.
    """
    given = list(read(task, documents, uris))
    outcome = task.step("scan", lambda: scan_all(task, given))
    scanned, scanned_at = outcome["documents"], datetime.fromisoformat(outcome["at"])
    found = Counter(finding["kind"] for each in scanned for finding in each["findings"])
    if not found:
        return Redaction(documents=0, emails=0, ip_addresses=0, card_numbers=0, scanned_at=scanned_at)

    affected = sum(bool(each["findings"]) for each in scanned)
    listed = ", ".join(f"{found[kind]} {name}" for kind, name in NAMES.items() if found[kind])
    answer = task.ask("approval", f"Found {listed} in {affected} of {len(given)} documents. Black them out?", Approval)
    if not answer.accepted or not answer.content.redact:
        raise ToolError("Nothing was blacked out: it was not approved.")

    kinds = frozenset(answer.content.kinds)
    task.attach("redacted.zip", archive(given, redacted(task, given, scanned, kinds)))
    return Redaction(
        documents=sum(any(finding["kind"] in kinds for finding in each["findings"]) for each in scanned),
        emails=found["email"] * ("email" in kinds),
        ip_addresses=found["ip"] * ("ip" in kinds),
        card_numbers=found["card"] * ("card" in kinds),
        scanned_at=scanned_at,
    )


def scan_all(task: TaskContext, given: Sequence[Document]) -> Scan:
    """Scan every document."""
    at = datetime.now(UTC).isoformat()
    return Scan(at=at, documents=[scan(document.text) for document in task.track(given, "Scanning document")])


def scan(text: str) -> Scanned:
    """Every place of a text that looks like personal data and passes the check of its kind."""
    findings = [
        Finding(kind=kind, start=match.start(), end=match.end())
        for kind, pattern in PATTERNS.items()
        for match in pattern.finditer(text)
        if holds(kind, match.group())
    ]
    return Scanned(sha256=digest(text), findings=findings)


def holds(kind: Kind, candidate: str) -> bool:
    """Whether a candidate passes the arithmetic of its kind: octets up to 255, the Luhn sum of a card number."""
    if kind == "ip":
        return all(int(octet) <= 255 for octet in candidate.split("."))
    if kind == "card":
        digits = [int(character) for character in candidate if character.isdigit()]
        doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
        return len(set(digits)) > 1 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
    return True


def redacted(
    task: TaskContext, given: Sequence[Document], scanned: Sequence[Scanned], kinds: frozenset[Kind]
) -> Iterator[str]:
    """The documents with the findings of the approved kinds blacked out.

    Raises
    ------
    ToolError
        A document behind a URI is no longer the one that was scanned: the places found in it mean nothing now.
    """
    for document, each in zip(task.track(given, "Redacting document"), scanned, strict=True):
        if digest(document.text) != each["sha256"]:
            raise ToolError("A document has changed since it was scanned. Nothing was blacked out; start again.")
        text = list(document.text)
        for finding in each["findings"]:
            if finding["kind"] in kinds:
                for place in range(finding["start"], finding["end"]):
                    text[place] = "█"
        yield "".join(text)


def archive(given: Sequence[Document], texts: Iterator[str]) -> bytes:
    """A zip of the texts; numbered, since two documents may have the same name."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as file:
        for number, (document, text) in enumerate(zip(given, texts, strict=True), 1):
            name = re.sub(r"[^\w.-]+", "_", document.name).strip(".")
            file.writestr(f"{number:04}-{name}", text)
    return data.getvalue()


def digest(text: str) -> str:
    """A fingerprint of a text."""
    return hashlib.sha256(text.encode()).hexdigest()
