"""Measuring, counting and comparing documents."""

from __future__ import annotations

import csv
import io
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields

from pydantic import BaseModel, Field

from taskrail import Call, Lambda, TaskContext, Toolset, hours, minutes, seconds
from tools.inputs import Documents, Uris, read, require_some

tools = Toolset()

# Letters and marks of any script, joined by an apostrophe or a hyphen: "l'été", "well-known".
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


class Measures(BaseModel):
    """What a language model cannot count by looking."""

    characters: int = Field(description="Unicode code points.")
    bytes: int = Field(description="Length in UTF-8.")
    lines: int
    words: int


class Frequency(BaseModel):
    """A word and how often it occurs."""

    word: str
    count: int


class Pair(BaseModel):
    """Two documents and how alike their words are."""

    first: str
    second: str
    similarity: float = Field(ge=0, le=1, description="Cosine of the two tf-idf vectors.")


class WordCount(BaseModel):
    """All documents together; the attached words.csv has a row for each."""

    documents: int
    words: int
    distinct_words: int
    most_frequent: list[Frequency] = Field(description="The ten most frequent words.")
    closest: Pair | None = Field(description="The two documents that are most alike; null if no two share a word.")


@dataclass(frozen=True)
class Row:
    """One document's line in words.csv."""

    document: str
    characters: int
    words: int
    distinct_words: int
    only_here: int
    longest_word: str
    closest_document: str
    similarity: float


@tools.tool(title="Measure a text", annotations={"readOnlyHint": True})
def measure_text(text: str) -> Measures:
    """Count the characters, bytes, lines and words of a text.

    Parameters
    ----------
    text
        The text to measure.
    """
    return Measures(
        characters=len(text),
        bytes=len(text.encode()),
        lines=len(text.splitlines()),
        words=count(text).total(),
    )


@tools.task(
    title="Count words",
    # It changes nothing, so that it may begin anew when its function dies.
    runs_on=Lambda(memory_mb=1024, timeout=minutes(10), attempts=2),
    keep_result=hours(24),
    poll_interval=seconds(1),
)
def count_words(task: TaskContext, documents: Documents = (), uris: Uris = ()) -> WordCount:
    """Count the words of documents and compare the documents.

    Words of any script are counted, without regard to case. For each document the one that reads most
    like it is found. Attached: words.csv, a row per document.
    """
    given = list(read(task, documents, uris))
    counts = [count(document.text) for document in task.track(given, "Counting words in document")]
    neighbours = closest(task.track(vectors(counts), "Comparing document"))
    in_documents = Counter(word for words in counts for word in words)
    rows = [
        Row(
            document=document.name,
            characters=len(document.text),
            words=words.total(),
            distinct_words=len(words),
            only_here=sum(in_documents[word] == 1 for word in words),
            longest_word=max(words, key=len, default=""),
            closest_document="" if other is None else given[other].name,
            similarity=round(similarity, 4),
        )
        for document, words, (other, similarity) in zip(given, counts, neighbours, strict=True)
    ]
    task.attach("words.csv", as_csv(rows))
    return summary(rows, counts)


@count_words.before
def nothing_to_count(call: Call, documents: Documents = (), uris: Uris = ()) -> None:
    """Refuse an empty call inside the request: no task is made for it."""
    require_some(documents, uris)


def count(text: str) -> Counter[str]:
    """Every word of a text and how often it occurs; equal words of unequal encoding or case are one."""
    return Counter(WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def vectors(counts: Sequence[Counter[str]]) -> list[dict[str, float]]:
    """Documents as tf-idf vectors of length one: a word weighs more the fewer documents have it."""
    in_documents = Counter(word for words in counts for word in words)
    rarity = {word: 1 + math.log((1 + len(counts)) / (1 + having)) for word, having in in_documents.items()}
    result = []
    for words in counts:
        weights = {word: (1 + math.log(occurrences)) * rarity[word] for word, occurrences in words.items()}
        length = math.hypot(*weights.values())
        result.append({word: weight / length for word, weight in weights.items()})
    return result


def closest(documents: Iterable[dict[str, float]]) -> list[tuple[int | None, float]]:
    """For each document the index of the most similar other one, None if it resembles none, and their cosine."""
    seen: list[dict[str, float]] = []
    best: list[tuple[int | None, float]] = []
    for here, vector in enumerate(documents):
        best.append((None, 0.0))
        for there, other in enumerate(seen):
            small, large = sorted((vector, other), key=len)
            cosine = sum(weight * large[word] for word, weight in small.items() if word in large)
            if cosine > best[here][1]:
                best[here] = (there, cosine)
            if cosine > best[there][1]:
                best[there] = (here, cosine)
        seen.append(vector)
    return best


def summary(rows: Sequence[Row], counts: Sequence[Counter[str]]) -> WordCount:
    """The rows and counts of all documents in one."""
    total: Counter[str] = Counter()
    for words in counts:
        total.update(words)
    top = max(rows, key=lambda row: row.similarity)
    return WordCount(
        documents=len(rows),
        words=total.total(),
        distinct_words=len(total),
        most_frequent=[Frequency(word=word, count=n) for word, n in total.most_common(10)],
        closest=Pair(first=top.document, second=top.closest_document, similarity=min(1.0, top.similarity))
        if top.closest_document
        else None,
    )


def as_csv(rows: Sequence[Row]) -> bytes:
    """A CSV with a header line, in UTF-8."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(field.name for field in fields(Row))
    writer.writerows(astuple(row) for row in rows)
    return text.getvalue().encode()
