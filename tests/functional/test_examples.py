"""The example tools, tested as a user of the kit would test their own."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from catalogue import server
from jobs import redact_documents as redacting
from taskrail import ToolError
from taskrail.testing import Kit, harness
from tools import documents as counting
from workflows import run_migration

LETTER = {"name": "letter", "text": "Write to ada@example.org or 192.0.2.7, card 4111 1111 1111 1111."}
POEM = {"name": "poem", "text": "One fish, two fish, red fish, blue fish."}
APPROVED = {"redact": True, "kinds": ["email", "ip", "card"]}


@pytest.fixture
def kit() -> Iterator[Kit]:
    """The catalogue, deployed for one test."""
    with harness(server) as made:
        yield made


def table(data: bytes) -> list[dict[str, str]]:
    """The rows of a CSV."""
    return list(csv.DictReader(io.StringIO(data.decode())))


def texts(data: bytes) -> dict[str, str]:
    """The files of a zip."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


@pytest.mark.parametrize(
    ("text", "measures"),
    [
        ("", {"characters": 0, "bytes": 0, "lines": 0, "words": 0}),
        ("Größe, naïveté, 東京", {"characters": 18, "bytes": 26, "lines": 1, "words": 3}),
        ("well-known\nl'été 42", {"characters": 19, "bytes": 21, "lines": 2, "words": 2}),
    ],
)
def test_measure_text_answers_inside_the_request(kit: Kit, text: str, measures: dict[str, int]) -> None:
    called = kit.call("measure_text", text=text)
    assert not called.is_task
    assert called.structured == measures


def test_count_words_counts_whatever_the_case_and_the_encoding_of_a_letter(kit: Kit) -> None:
    task = kit.call("count_words", documents=[{"name": "a", "text": "Été été e\u0301te\u0301 ÉTÉ"}]).run()
    assert task.structured == {
        "documents": 1,
        "words": 4,
        "distinct_words": 1,
        "most_frequent": [{"word": "été", "count": 4}],
        "closest": None,
    }


def test_count_words_attaches_a_row_per_document(kit: Kit) -> None:
    task = kit.call("count_words", documents=[POEM, LETTER, {**POEM, "name": "copy"}]).run()
    rows = table(task.attachment("words.csv"))
    assert [row["document"] for row in rows] == ["poem", "letter", "copy"]
    assert [row["words"] for row in rows] == ["8", "7", "8"]
    assert [row["closest_document"] for row in rows] == ["copy", "", "poem"]
    assert task.structured["closest"] == {"first": "poem", "second": "copy", "similarity": 1.0}
    assert sum(int(row["words"]) for row in rows) == task.structured["words"]


def test_count_words_reads_documents_under_the_callers_prefix(kit: Kit) -> None:
    uri = kit.upload("2026/poem.txt", b"\xef\xbb\xbf" + POEM["text"].encode())
    task = kit.call("count_words", uris=[uri]).run()
    assert task.structured["words"] == 8
    assert table(task.attachment("words.csv"))[0]["document"] == "poem.txt"


@pytest.mark.parametrize("uri", ["s3://payloads/inputs/somebody-else/a.txt", "s3://elsewhere/inputs/anonymous/a.txt"])
def test_count_words_refuses_documents_of_others(kit: Kit, uri: str) -> None:
    task = kit.call("count_words", uris=[uri]).run()
    assert task.is_error
    assert "s3://payloads/inputs/anonymous/" in task.text
    assert "somebody-else" not in task.text


def test_count_words_says_which_document_is_no_text(kit: Kit) -> None:
    uris = [kit.upload("fine.txt", b"fine"), kit.upload("image.png", b"\x89PNG\r\n")]
    task = kit.call("count_words", uris=uris).run()
    assert task.is_error
    assert task.text == "uris[1] is no UTF-8 text."


@pytest.mark.parametrize("tool", ["count_words", "redact_documents"])
def test_an_empty_call_makes_no_task(kit: Kit, tool: str) -> None:
    called = kit.call(tool)
    assert not called.is_task
    assert called.is_error
    assert "nothing to read" in called.text
    assert kit.scan() == []


@pytest.mark.parametrize("arguments", [{"documents": [{"name": "a"}]}, {"documents": "a"}, {"uris": ["http://a/b"]}])
def test_arguments_that_do_not_fit_make_no_task(kit: Kit, arguments: dict[str, Any]) -> None:
    called = kit.call("count_words", **arguments)
    assert called.is_error
    assert kit.scan() == []


def test_a_cancelled_count_is_never_done(kit: Kit) -> None:
    task = kit.call("count_words", documents=[POEM]).cancel()
    kit.run()
    assert task.status == "cancelled"


def test_redact_documents_asks_before_it_changes_anything(kit: Kit) -> None:
    task = kit.call("redact_documents", documents=[LETTER, POEM]).run()
    assert task.status == "input_required"
    message = task.questions["approval"]["params"]["message"]
    assert message.startswith("Found 1 e-mail addresses, 1 IPv4 addresses, 1 card numbers in 1 of 2 documents.")
    task.answer(approval=APPROVED).run()
    assert {**task.structured, "scanned_at": None} == {
        "documents": 1,
        "emails": 1,
        "ip_addresses": 1,
        "card_numbers": 1,
        "scanned_at": None,
    }
    assert texts(task.attachment("redacted.zip")) == {
        "0001-letter": f"Write to {'█' * 15} or {'█' * 9}, card {'█' * 19}.",
        "0002-poem": POEM["text"],
    }


def test_redact_documents_leaves_what_was_not_approved(kit: Kit) -> None:
    task = kit.call("redact_documents", documents=[LETTER]).run()
    task.answer(approval={"redact": True, "kinds": ["ip"]}).run()
    assert (task.structured["emails"], task.structured["ip_addresses"]) == (0, 1)
    assert texts(task.attachment("redacted.zip"))["0001-letter"] == LETTER["text"].replace("192.0.2.7", "█" * 9)


@pytest.mark.parametrize("answer", [{"action": "decline"}, {"action": "accept", "content": {"redact": False}}])
def test_redact_documents_does_nothing_without_approval(kit: Kit, answer: dict[str, Any]) -> None:
    task = kit.call("redact_documents", documents=[LETTER]).run().answer_with({"approval": answer}).run()
    assert task.is_error
    assert "not approved" in task.text


def test_redact_documents_scans_once_however_late_the_answer_comes(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    scanned: list[str] = []
    scan = redacting.scan
    monkeypatch.setattr(redacting, "scan", lambda text: (scanned.append(text), scan(text))[1])
    task = kit.call("redact_documents", documents=[LETTER, POEM]).run()
    kit.advance(timedelta(hours=40))
    task.answer(approval=APPROVED).run()
    assert task.structured["documents"] == 1
    assert scanned == [LETTER["text"], POEM["text"]]


def test_redact_documents_refuses_a_document_that_changed_since_the_scan(kit: Kit) -> None:
    uri = kit.upload("letter.txt", LETTER["text"].encode())
    task = kit.call("redact_documents", uris=[uri]).run()
    kit.upload("letter.txt", b"Another letter, with nothing in it.")
    task.answer(approval=APPROVED).run()
    assert task.is_error
    assert "changed" in task.text


def test_redact_documents_asks_nothing_when_there_is_nothing_to_find(kit: Kit) -> None:
    task = kit.call("redact_documents", documents=[POEM]).run()
    assert task.status == "completed"
    assert task.structured["documents"] == 0


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("a.b+c@sub.example.co.uk", ["email"]),
        ("no@tld, @handle, a@b", []),
        ("255.255.255.255 and 1.2.3.4.", ["ip", "ip"]),
        ("256.1.1.1, 1.2.3, 1.2.3.4.5, v1.2.3.4", []),
        ("4111-1111-1111-1111 5500005555555559", ["card", "card"]),
        ("4111 1111 1111 1112, 0000000000000000, 123456789012", []),
    ],
)
def test_the_scan_finds_what_passes_the_check_of_its_kind(text: str, kinds: list[str]) -> None:
    assert [finding["kind"] for finding in redacting.scan(text)["findings"]] == kinds


@pytest.mark.parametrize("unit", ["a", "1", "1 ", "a.", "a@b.", "1.", "a-"])
def test_a_long_text_of_one_kind_is_read_in_moments(unit: str) -> None:
    # A pattern that tries every split of such a text would not be done within the time limit of a test.
    text = unit * (400_000 // len(unit))
    redacting.scan(text)
    counting.count(text)


def test_every_document_finds_the_one_most_like_it() -> None:
    counts = [counting.count(text) for text in ("red fish", "red fish blue", "green tea", "")]
    neighbours = counting.closest(counting.vectors(counts))
    assert [other for other, _ in neighbours] == [1, 0, None, None]
    assert all(0 <= similarity <= 1 for _, similarity in neighbours)


def migrated(**arguments: Any) -> dict[str, Any]:
    """What the functions of `run_migration` make of arguments, one after the other as its states invoke them."""
    planned = run_migration.plan({"arguments": arguments}, None)
    applied = [run_migration.apply_batch({"batch": batch}, None) for batch in planned["batches"]]
    return run_migration.verify({"plan": planned, "applied": applied}, None)


@pytest.mark.parametrize(("rows", "size", "batches"), [(1, 1, 1), (10, 10, 1), (10, 3, 4), (1000, 300, 4)])
def test_a_migration_covers_every_row_once(rows: int, size: int, batches: int) -> None:
    result = migrated(table="orders", rows=rows, batch_size=size)
    assert (result["rows"], result["batches"]) == (rows, batches)
    assert result["total"] == migrated(table="orders", rows=rows, batch_size=rows)["total"]


def test_a_migration_whose_sums_differ_says_so() -> None:
    planned = run_migration.plan({"arguments": {"table": "orders", "rows": 10, "batch_size": 5}}, None)
    once = run_migration.apply_batch({"batch": planned["batches"][0]}, None)
    with pytest.raises(ToolError, match="The sums of orders differ"):
        run_migration.verify({"plan": planned, "applied": [once, once]}, None)


def test_a_migration_of_too_many_batches_is_refused() -> None:
    with pytest.raises(ToolError, match="201 batches"):
        run_migration.plan({"arguments": {"table": "orders", "rows": 201, "batch_size": 1}}, None)


def test_a_workflow_gets_its_arguments_with_the_defaults_filled_in(kit: Kit) -> None:
    task = kit.call("run_migration", table="orders", rows=10)
    assert task.order.input["arguments"] == {"table": "orders", "rows": 10, "batch_size": 1_000}
    kit.advance(timedelta(seconds=5))
    task.report("progress", done=1, total=2)
    assert task.poll()["_meta"]["io.taskrail/progress"] == {"done": 1, "total": 2}
    task.end({"table": "orders", "rows": 10, "batches": 1, "total": "1.00"})
    assert task.structured["batches"] == 1


@pytest.mark.parametrize("table", ["orders; drop table orders", "", "1st"])
def test_a_table_that_is_no_name_makes_no_task(kit: Kit, table: str) -> None:
    assert kit.call("run_migration", table=table, rows=10).is_error
    assert kit.scan() == []


def test_a_container_gets_its_text_as_a_parameter_and_leaves_a_result(kit: Kit) -> None:
    task = kit.call("line_statistics", text="one $(two)")
    assert task.order.parameters == {"text": "one $(two)"}
    task.report("result", result={"lines": 1, "words": 2, "longest_line": 10})
    task.end()
    assert task.structured == {"lines": 1, "words": 2, "longest_line": 10}


def test_the_examples_are_listed_with_what_a_client_needs(kit: Kit) -> None:
    tools = {tool["name"]: tool for tool in kit.request("tools/list")["tools"]}
    assert list(tools) == [
        "measure_text",
        "count_words",
        "redact_documents",
        "run_migration",
        "compare_counts",
        "line_statistics",
    ]
    for tool in tools.values():
        assert tool["title"] and tool["description"]
        assert tool["outputSchema"]["type"] == "object"
        assert "$ref" not in json.dumps(tool["inputSchema"]["properties"]) or "$defs" in tool["inputSchema"]
