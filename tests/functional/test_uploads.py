"""Documents of a caller's own: where to put them, and that a call can name no others."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest

from taskrail.testing import BUCKET, Kit, harness
from tests.functional import work_tools


@pytest.fixture(scope="module")
def deployment() -> Iterator[Kit]:
    with harness(work_tools.server) as made:
        yield made


@pytest.fixture
def kit(deployment: Kit) -> Kit:
    deployment.clear()
    deployment.owner = "alice"
    return deployment


def test_an_upload_gets_a_place_of_its_own(kit: Kit) -> None:
    first = kit.call("request_upload", filename="../Ä b.csv", content_type="text/csv", size_bytes=10)
    assert first.is_error, "a name is no path"
    made = [kit.call("request_upload", filename="Ä b.csv", content_type="text/csv").structured for _ in range(2)]
    assert made[0]["uri"] != made[1]["uri"]
    for upload in made:
        assert upload["uri"].startswith(f"s3://{BUCKET}/inputs/alice/") and upload["uri"].endswith("/__b.csv")
        assert (upload["method"], upload["headers"]) == ("PUT", {"Content-Type": "text/csv"})
        assert urlsplit(upload["url"]).path.endswith("/__b.csv")
        assert parse_qs(urlsplit(upload["url"]).query)["X-Amz-Expires"] == ["900"]


def test_the_length_is_signed_when_it_is_told(kit: Kit) -> None:
    upload = kit.call("request_upload", filename="a.csv", size_bytes=10).structured
    assert upload["headers"] == {"Content-Length": "10"}
    assert "content-length" in parse_qs(urlsplit(upload["url"]).query)["X-Amz-SignedHeaders"][0]


def test_an_upload_is_no_task_and_stores_nothing(kit: Kit) -> None:
    assert not kit.call("request_upload", filename="a.csv").is_task
    assert kit.scan() == []


def test_a_document_of_ones_own_is_taken(kit: Kit) -> None:
    upload = kit.call("request_upload", filename="a.csv").structured
    assert kit.call("take_in", document=upload["uri"]).is_task


@pytest.mark.parametrize(
    "uri",
    [
        f"s3://{BUCKET}/inputs/bob/a.csv",
        f"s3://{BUCKET}/inputs/alice2/a.csv",
        f"s3://{BUCKET}/inputs/alice/../bob/a.csv",
        f"s3://{BUCKET}/inputs/alice/",
        f"s3://{BUCKET}/tasks/{'0' * 32}/1-1/n/result.json",
        "s3://elsewhere/inputs/alice/a.csv",
        "s3://elsewhere/a.csv",
    ],
)
def test_no_other_document_is_taken_where_one_is_declared(kit: Kit, uri: str) -> None:
    called = kit.call("take_in", document=uri)
    assert called.is_error and f"s3://{BUCKET}/inputs/alice/" in called.text and "document" in called.text
    assert uri.endswith("/alice/") or uri not in called.text
    assert kit.scan() == []


@pytest.mark.parametrize(
    ("uri", "taken"),
    [
        ("s3://elsewhere/a.csv", True),
        (f"s3://{BUCKET}/inputs/alice/a.csv", True),
        (f"s3://{BUCKET}/inputs/bob/a.csv", False),
        (f"s3://{BUCKET}/tasks/x", False),
        (f"s3://{BUCKET}", False),
        (f"see s3://{BUCKET}/tasks/x", True),
    ],
)
def test_any_text_that_points_into_the_payloads_must_be_ones_own(kit: Kit, uri: str, taken: bool) -> None:
    """Whatever the argument was declared as: the job that reads it has the kit's own permissions."""
    assert kit.call("migrate", table=uri).is_task is taken


def test_a_bucket_whose_name_begins_alike_is_another(kit: Kit) -> None:
    assert kit.call("migrate", table=f"s3://{BUCKET}-of-somebody/x").is_task
