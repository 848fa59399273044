"""Where the arguments of a call name objects in S3: whatever their type, and in the places declared for it."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from taskrail import InputFile, StepFunctions, TaskServer, Toolset, hours, minutes, seconds
from taskrail.errors import ArgumentsError, DeclarationError
from taskrail.inputs import KEYWORD, S3Uri, s3_uris
from taskrail.signature import Signature, signature_from, signature_of


class Part(BaseModel):
    uri: InputFile
    note: str = ""


class Arguments(BaseModel):
    one: InputFile
    maybe: InputFile | None = None
    many: list[InputFile] = []
    pair: tuple[InputFile, str] | None = None
    named: dict[str, InputFile] = {}
    parts: list[Part] = []
    text: str = ""
    anything: Any = None


def signature() -> Signature:
    return signature_from("t", Arguments)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"one": "s3://b/k"}, [S3Uri("one", "s3://b/k", True)]),
        ({"maybe": "s3://b/k"}, [S3Uri("maybe", "s3://b/k", True)]),
        ({"maybe": None}, []),
        ({"many": ["s3://b/1", "s3://b/2"]}, [S3Uri("many[0]", "s3://b/1", True), S3Uri("many[1]", "s3://b/2", True)]),
        ({"pair": ["s3://b/1", "s3://b/2"]}, [S3Uri("pair[0]", "s3://b/1", True), S3Uri("pair[1]", "s3://b/2", False)]),
        ({"named": {"x": "s3://b/k"}}, [S3Uri("named.x", "s3://b/k", True)]),
        ({"parts": [{"uri": "s3://b/k", "note": "s3://b/n"}]},
         [S3Uri("parts[0].uri", "s3://b/k", True), S3Uri("parts[0].note", "s3://b/n", False)]),
        ({"text": "s3://b/k"}, [S3Uri("text", "s3://b/k", False)]),
        ({"text": "see s3://b/k"}, []),
        ({"anything": {"a": [{"b": "s3://b/k"}]}}, [S3Uri("anything.a[0].b", "s3://b/k", False)]),
        ({"anything": {"s3://b/k": 1}}, []),
        ({"one": "https://example.com"}, [S3Uri("one", "https://example.com", True)]),
    ],
)  # fmt: skip
def test_every_place_is_found(arguments: dict[str, Any], found: list[S3Uri]) -> None:
    assert signature().input_files(arguments) == found


def test_deep_arguments_and_circular_schemas_come_to_an_end() -> None:
    deep: Any = "s3://b/k"
    for _ in range(5000):
        deep = [deep]
    assert s3_uris({"a": deep})[0].uri == "s3://b/k"
    circular: dict[str, Any] = {"allOf": [{"$ref": "#"}], "properties": {"a": {"$ref": "#/nowhere/else"}}}
    assert s3_uris({"a": "s3://b/k"}, circular) == [S3Uri("a", "s3://b/k", False)]


def test_without_a_schema_no_place_is_declared() -> None:
    assert s3_uris({"one": "s3://b/k"}) == [S3Uri("one", "s3://b/k", False)]


def test_the_schema_says_where_such_a_file_comes_from() -> None:
    schema = signature().input_schema["properties"]["one"]
    assert (schema["type"], schema["format"], schema["pattern"], schema[KEYWORD]) == (
        "string", "uri", "^s3://[^/]+/.+", True,
    )  # fmt: skip
    assert "request_upload" in schema["description"]


def test_a_function_takes_them_too_and_its_own_words_win() -> None:
    def read(source: InputFile, other: Annotated[InputFile, Field(description="Mine.")]) -> None:
        """Read.

        Parameters
        ----------
        source
            What to read.
        """

    made = signature_of("t", read)
    properties = made.input_schema["properties"]
    assert properties["source"]["description"] == "What to read."
    assert properties["other"]["description"] == "Mine."
    assert [found.declared for found in made.input_files({"source": "s3://b/1", "other": "s3://b/2"})] == [True, True]
    with pytest.raises(ArgumentsError, match="source: String should match"):
        made.bind({"source": "https://example.com/a", "other": "s3://b/2"})


def test_a_server_with_uploads_lists_the_tool_for_them_last() -> None:
    tools = Toolset()

    @tools.task(runs_on=StepFunctions())
    def read(source: InputFile) -> None:
        """Read."""

    server = TaskServer("s", version="1", tools=[tools], uploads=True)
    assert list(server.tools) == ["read", "request_upload"]
    tool = server.tools["request_upload"]
    assert (tool.kind, tool.mode, tool.builtin, server.uploads) == ("inline", "forbidden", "upload", minutes(15))
    assert server.tools["read"].builtin is None
    bound = tool.signature.bind({"filename": "a.csv", "content_type": "text/csv", "size_bytes": 5})
    assert bound == {"filename": "a.csv", "content_type": "text/csv", "size_bytes": 5}
    assert tool.signature.bind({"filename": ".env", "content_type": "text/csv; charset=utf-8"})
    assert tool.signature.bind({"filename": "a"}) == {"filename": "a", "content_type": None, "size_bytes": None}
    with pytest.raises(NotImplementedError):
        tool.load()(filename="a")


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"filename": ""},
        {"filename": "a/b"},
        {"filename": "a\\b"},
        {"filename": ".."},
        {"filename": "a\nb"},
        {"filename": "a" * 256},
        {"filename": "a", "content_type": "text"},
        {"filename": "a", "content_type": "text/csv\r\nx: y"},
        {"filename": "a", "size_bytes": 5 * 1024**3 + 1},
        {"filename": "a", "size_bytes": -1},
    ],
)
def test_uploads_that_are_refused(arguments: dict[str, Any]) -> None:
    tool = TaskServer("s", version="1", tools=[Toolset()], uploads=True).tools["request_upload"]
    with pytest.raises(ArgumentsError):
        tool.signature.bind(arguments)


def test_without_uploads_the_name_is_free() -> None:
    tools = Toolset()

    @tools.tool()
    def request_upload() -> str:
        """Mine."""
        return ""

    assert TaskServer("s", version="1", tools=[tools]).tools["request_upload"].builtin is None
    with pytest.raises(DeclarationError, match=r"tool 'request_upload': uploads=\.\.\. brings a tool of this name"):
        TaskServer("s", version="1", tools=[tools], uploads=True)


def test_how_long_an_upload_may_take() -> None:
    assert TaskServer("s", version="1", tools=[], uploads=hours(1)).uploads == hours(1)
    assert TaskServer("s", version="1", tools=[], uploads=False).uploads is None
    for wrong in (seconds(59), hours(13), 900, None, "yes"):
        with pytest.raises(DeclarationError, match="1 minute to 12 hours"):
            TaskServer("s", version="1", tools=[], uploads=wrong)  # type: ignore[arg-type]
