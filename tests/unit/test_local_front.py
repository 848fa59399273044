"""The HTTP front with a stand-in for the handler: what it lets through, what it refuses, and how."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from local import front as front_module
from local.front import MOST_BODY, Front, developer, facts_of, routed
from local.http_event import Invocation
from taskrail.clock import SystemClock
from tests.workflows.catalogue import server

Events = list[dict[str, Any]]


class Handler:
    """Answers every event with itself, or as told."""

    def __init__(self) -> None:
        self.events: Events = []
        self.answer: Any = None

    def __call__(self, event: dict[str, Any], context: Any) -> Any:
        assert 0 < context.get_remaining_time_in_millis() <= 29_000
        self.events.append(event)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer or {"statusCode": 200, "headers": {"Content-Type": "application/json"}, "body": "{}"}


class Served:
    """A front that serves, and ways to speak to it."""

    def __init__(self) -> None:
        self.handler = Handler()
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        self.front = Front(listener, self.handler)
        self.thread = threading.Thread(target=self.front.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self) -> None:
        self.front.shutdown()
        self.front.server_close()
        self.thread.join()

    def raw(self, data: bytes, *, half_close: bool = False) -> bytes:
        """Send bytes; everything that comes back until the connection closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            try:
                connection.sendall(data)
                if half_close:
                    connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            answer = b""
            while part := connection.recv(65_536):
                answer += part
            return answer

    def post(self, body: bytes = b"{}", **headers: str) -> tuple[int, Any]:
        """A request whose headers are given with underscores; status and JSON."""
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("POST", "/mcp", body, names)
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"null")
        finally:
            connection.close()

    def head(self, *lines: str, method: str = "POST", target: str = "/mcp") -> bytes:
        """A request's head with the right Host."""
        return "\r\n".join([f"{method} {target} HTTP/1.1", f"Host: localhost:{self.port}", *lines, "", ""]).encode()


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    yield made
    made.close()


def status(answer: bytes) -> int:
    assert answer.startswith(b"HTTP/1.1 "), answer[:200]
    return int(answer.split(b" ", 2)[1])


def refused(served: Served, answer: bytes, expected: int) -> None:
    """It is an answer of that status, in the shape of API Gateway's, and nothing got through."""
    assert status(answer) == expected, answer
    head, _, body = answer.partition(b"\r\n\r\n")
    assert set(json.loads(body)) == {"message"}
    assert b"connection: close" in head.lower()
    assert b"Traceback" not in answer
    assert served.handler.events == []


def test_a_request_becomes_an_event_of_an_http_api(served: Served) -> None:
    lines = ("Content-Type: application/json", "X-Twice: a", "x-twice:  b ", "Content-Length: 5", "Connection: close")
    served.raw(served.head(*lines, target="/mcp?a=1&a=2&b=%20") + "{}é"[:4].encode() + b"!")
    event = served.handler.events[0]
    assert (event["version"], event["routeKey"]) == ("2.0", "$default")
    assert (event["rawPath"], event["rawQueryString"]) == ("/mcp", "a=1&a=2&b=%20")
    assert event["queryStringParameters"] == {"a": "1,2", "b": " "}
    assert event["headers"]["x-twice"] == "a,b"
    assert event["headers"]["content-type"] == "application/json"
    assert event["requestContext"]["http"] == {
        "method": "POST",
        "path": "/mcp",
        "protocol": "HTTP/1.1",
        "sourceIp": "127.0.0.1",
        "userAgent": "",
    }
    assert (event["body"], event["isBase64Encoded"]) == ("{}é!", False)


def test_a_body_that_is_no_text_travels_as_base64(served: Served) -> None:
    served.post(b"\xff\x00")
    assert served.handler.events[0]["isBase64Encoded"] is True
    assert base64.b64decode(served.handler.events[0]["body"]) == b"\xff\x00"


def test_a_request_without_a_body_has_none(served: Served) -> None:
    served.raw(served.head("Connection: close", method="GET"))
    assert "body" not in served.handler.events[0]


def test_the_handlers_answer_goes_back_as_it_is(served: Served) -> None:
    served.handler.answer = {"statusCode": 405, "headers": {"Allow": "POST"}, "cookies": ["a=1", "b=2"], "body": "nö"}
    answer = served.raw(served.head("Connection: close"))
    assert status(answer) == 405
    assert b"Allow: POST\r\n" in answer
    assert b"set-cookie: a=1\r\nset-cookie: b=2\r\n" in answer
    assert answer.endswith("\r\n\r\nnö".encode())


def test_an_answer_in_base64_goes_back_as_bytes(served: Served) -> None:
    served.handler.answer = {"statusCode": 200, "body": base64.b64encode(b"\xff").decode(), "isBase64Encoded": True}
    assert served.raw(served.head("Connection: close")).endswith(b"\r\n\r\n\xff")


def test_an_empty_answer_has_a_length_and_no_content_type(served: Served) -> None:
    served.handler.answer = {"statusCode": 202, "headers": {}, "body": ""}
    answer = served.raw(served.head("Connection: close")).lower()
    assert b"content-length: 0\r\n" in answer
    assert b"content-type" not in answer


def test_a_connection_serves_one_request_after_the_other(served: Served) -> None:
    answer = served.raw(
        served.head("Content-Length: 2")
        + b"{}"
        + served.head("Transfer-Encoding: chunked")
        + b"1\r\n1\r\n0\r\n\r\n"
        + served.head("Connection: close", method="HEAD")
    )
    assert answer.count(b"HTTP/1.1 200 OK") == 3
    assert [event.get("body") for event in served.handler.events] == ["{}", "1", None]


@pytest.mark.parametrize(
    "host", ["evil.example.com", "evil.example.com:{port}", "127.0.0.1", "localhost:1", "127.0.0.1.evil.com:{port}", ""]
)
def test_a_foreign_host_is_refused(served: Served, host: str) -> None:
    head = f"POST /mcp HTTP/1.1\r\nHost: {host.format(port=served.port)}\r\nContent-Length: 2\r\n\r\n{{}}"
    refused(served, served.raw(head.encode()), 403)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_this_machines_own_names_are_served(served: Served, host: str) -> None:
    assert served.post(Host=f"{host}:{served.port}")[0] == 200


def test_a_host_named_twice_or_not_at_all_is_refused(served: Served) -> None:
    refused(served, served.raw(served.head("Host: evil.example.com")), 400)
    refused(served, served.raw(b"POST /mcp HTTP/1.1\r\nContent-Length: 0\r\n\r\n"), 400)


def test_a_foreign_name_in_the_target_is_refused(served: Served) -> None:
    refused(served, served.raw(served.head(target="http://evil.example.com/mcp")), 403)
    refused(served, served.raw(served.head(target="evil")), 400)
    served.raw(served.head("Connection: close", target=f"http://localhost:{served.port}/mcp?a"))
    assert (served.handler.events[0]["rawPath"], served.handler.events[0]["rawQueryString"]) == ("/mcp", "a")


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example.com",
        "null",
        "http://localhost.evil.com",
        "file://",
        "http://127.0.0.1:x",
        "http://[::1",
        "",
    ],
)
def test_a_foreign_origin_is_refused(served: Served, origin: str) -> None:
    refused(served, served.raw(served.head(f"Origin: {origin}", "Content-Length: 0")), 403)


@pytest.mark.parametrize(
    "origin", ["http://localhost", "http://127.0.0.1:6274", "https://localhost:3000", "http://[::1]:5173"]
)
def test_pages_of_this_machine_may_call(served: Served, origin: str) -> None:
    assert served.post(Origin=origin)[0] == 200
    assert served.handler.events[0]["headers"]["origin"] == origin


@pytest.mark.parametrize(
    ("chunks", "body"),
    [
        (b"2\r\n{}\r\n0\r\n\r\n", "{}"),
        (b"1;ext=1\r\n{\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n", "{0123456789"),
        (b"0\r\n\r\n", None),
    ],
)
def test_a_chunked_body_is_put_together(served: Served, chunks: bytes, body: str | None) -> None:
    answer = served.raw(served.head("Transfer-Encoding: chunked", "Connection: close") + chunks)
    assert status(answer) == 200
    assert served.handler.events[0].get("body") == body


@pytest.mark.parametrize(
    "chunks", [b"zz\r\n{}\r\n0\r\n\r\n", b"-1\r\n", b"\r\n", b"2\r\n{}}\r\n0\r\n\r\n", b"5\r\n{}", b"1" * 5000]
)
def test_a_broken_chunked_body_is_refused(served: Served, chunks: bytes) -> None:
    refused(served, served.raw(served.head("Transfer-Encoding: chunked") + chunks, half_close=True), 400)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("Transfer-Encoding: chunked", "Content-Length: 2"), 400),
        (("Transfer-Encoding: gzip",), 501),
        (("Transfer-Encoding: gzip, chunked",), 501),
        (("Content-Length: 2", "Content-Length: 3"), 400),
        (("Content-Length: -1",), 400),
        (("Content-Length: 1e3",), 400),
        (("Content-Length: 5",), 400),
        (("no header at all",), 400),
        (("X-Folded: a", " b"), 400),
        (("X-Long: " + "x" * 11_000,), 431),
        (("X-Longer: " + "x" * 70_000,), 431),
        (tuple(f"X-{number}: y" for number in range(150)), 431),
    ],
)
def test_an_unclear_head_is_refused(served: Served, lines: tuple[str, ...], expected: int) -> None:
    refused(served, served.raw(served.head(*lines) + b"{}", half_close=True), expected)


@pytest.mark.parametrize("head", ["Content-Length: {size}", "Transfer-Encoding: chunked"])
def test_a_body_over_ten_megabytes_is_refused_while_it_is_being_sent(served: Served, head: str) -> None:
    body = b"x" * (MOST_BODY + 1)
    if head.startswith("Transfer"):
        body = b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"
    refused(served, served.raw(served.head(head.format(size=len(body))) + body), 413)


def test_a_body_of_ten_megabytes_is_served(served: Served) -> None:
    assert served.post(b"x" * MOST_BODY)[0] == 200


def test_a_client_that_asks_first_is_told_before_it_sends(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection:
        connection.sendall(served.head("Content-Length: 2", "Expect: 100-continue", "Connection: close"))
        assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"{}")
        assert status(connection.recv(1000)) == 200
    served.handler.events.clear()
    refused(served, served.raw(served.head(f"Content-Length: {MOST_BODY + 1}", "Expect: 100-continue")), 413)


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 200 + b"\n",
        b"\r\n",
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / FTP/1.1\r\n\r\n",
        b"GET  /  a  b HTTP/1.1\r\n\r\n",
        b"\x00\xff\xfe\r\n\r\n",
        b"DANCE /mcp HTTP/1.1\r\n\r\n",
        b"POST " + b"/" * 70_000 + b" HTTP/1.1\r\n\r\n",
    ],
)
def test_garbage_is_answered_without_a_word_of_it(served: Served, garbage: bytes) -> None:
    answer = served.raw(garbage, half_close=True)
    assert answer == b"" or 400 <= status(answer) < 600
    for word in (b"GARBAGE", b"DANCE", b"FTP", b"Traceback", b"<html", b"<!DOCTYPE"):
        assert word not in answer
    assert served.handler.events == []
    assert served.post()[0] == 200, "and it serves on"


@pytest.mark.parametrize(
    "answer",
    [
        RuntimeError("a secret"),
        {"statusCode": "odd"},
        {"statusCode": 200, "body": 7},
        {"statusCode": 200, "headers": {"x": "a\r\nSet-Cookie: b"}},
        {"statusCode": 200, "headers": {"x:": "a"}},
        {"statusCode": 200, "body": "!", "isBase64Encoded": True},
    ],
)
def test_a_broken_handler_is_a_500_without_detail(served: Served, answer: Any) -> None:
    served.handler.answer = answer
    assert served.post() == (500, {"message": "Internal Server Error"})


def test_a_client_that_drips_is_not_waited_for(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_module, "READ_WITHIN_MS", 150)
    refused(served, served.raw(served.head("Content-Length: 2") + b"{"), 408)


def test_a_silent_connection_is_closed(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_module, "IDLE_MS", 100)
    assert served.raw(b"") == b""


def test_a_client_that_leaves_does_not_disturb_the_rest(served: Served) -> None:
    for data in (b"", b"POST /mc", served.head("Content-Length: 100") + b"{"):
        socket.create_connection(("127.0.0.1", served.port)).close()
        with socket.create_connection(("127.0.0.1", served.port)) as connection:
            connection.sendall(data)
    assert served.post()[0] == 200


def test_a_route_has_a_handler_of_its_own() -> None:
    reports, rest = Handler(), Handler()
    handle = routed(rest, {"POST /report": reports})
    for method, path in (("POST", "/report"), ("GET", "/report"), ("POST", "/mcp"), ("POST", "/report/more")):
        handle({"requestContext": {"http": {"method": method, "path": path}}}, Invocation("id", SystemClock()))
    assert [event["requestContext"]["http"]["path"] for event in reports.events] == ["/report"]
    assert len(rest.events) == 3


def test_the_developer_may_call_every_tool() -> None:
    tool = next(iter(server.tools.values()))
    caller = developer([replace(tool, scopes=("a", "b")), replace(tool, scopes=("b",)), tool])
    assert (caller.owner, caller.anonymous, caller.scopes) == ("local", False, {"a", "b"})


def test_the_start_up_text_says_where_work_runs_here() -> None:
    said = {name: facts_of(tool)["note"] for name, tool in server.tools.items()}
    assert said["on_batch"] is None
    assert said["both"] == "a state machine"
    assert said["adopted_machine"] == "a state machine in AWS: not on this machine"
    assert said["shell"] == "a container: here its command is a process"
    assert said["image_command"] == said["adopted_job"] == "a container without command=: not on this machine"
