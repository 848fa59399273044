"""The front of the local stack, over real sockets: any bytes, and nearly right requests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.counts import count, sized
from tests.fuzz.events import good_requests
from tests.fuzz.mutations import TOKENS, mutated
from tests.fuzz.served import Served, served
from tests.fuzz.strategies import header_values

pytestmark = pytest.mark.timeout(sized(60, 600))

AT_ONCE = 8
"""Mutations of one drawn request, each on a connection of its own."""

HTTP_TOKENS = (
    *TOKENS[::3],
    b"Host: evil.example.com\r\n",
    b"Host: localhost\r\n",
    b"Content-Length: 5\r\n",
    b"Content-Length: 0\r\n",
    b"Content-Length: -1\r\n",
    b"Content-Length: 99999999999999999999\r\n",
    b"Content-Length: 10485761\r\n",
    b"Content-Length: 1, 1\r\n",
    b"Content-Length : 5\r\n",
    b"Content-Length: \xb2\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: chunked, chunked\r\n",
    b"Transfer-Encoding: gzip\r\n",
    b"Transfer-Encoding:\tchunked\r\n",
    b"Connection: close\r\n",
    b"Connection: keep-alive\r\n",
    b"Expect: 100-continue\r\n",
    b"Expect: 200-maybe\r\n",
    b"Upgrade: websocket\r\n",
    b"Origin: null\r\n",
    b"Origin: http://[::1\r\n",
    b"Origin: http://localhost:99999\r\n",
    b"Content-Type: text/plain; charset=utf-7\r\n",
    b"Content-Type: multipart/form-data; boundary=\r\n",
    b"Content-Encoding: gzip\r\n",
    b"Accept: image/png\r\n",
    b"Accept: */*;q=0\r\n",
    b"Mcp-Name: =?base64?////?=\r\n",
    b"Mcp-Name: \xff\xfe\r\n",
    b"Cookie: a=1; b=2\r\n",
    b": no name\r\n",
    b"no colon\r\n",
    b" folded\r\n",
    b"X-\x00: y\r\n",
    b"\r",
    b"\n",
    b"\t",
    b" HTTP/1.0\r\n",
    b" HTTP/2.0\r\n",
    b" HTTP/1.11\r\n",
    b"HEAD ",
    b"OPTIONS * ",
    b"CONNECT localhost:80 ",
    b"http://localhost/mcp ",
    b"http://[/mcp ",
    b"//evil.example.com/mcp ",
    b"?a=%zz&b&=c&a=1;b ",
    b"0\r\n\r\n",
    b"ffffffff\r\n",
    b"00000005\r\n",
    b"5;a=b\r\n",
    b"+5\r\n",
    b"0x5\r\n",
    b"GET /mcp HTTP/1.1\r\n",
    b"X-Long: " + b"x" * 11_000 + b"\r\n",
    b"X-Many: y\r\n" * 120,
)
"""Pieces of HTTP that parsers trip over."""


@pytest.fixture(scope="module")
def front() -> Iterator[Served]:
    with served() as made:
        yield made


def many(examples: int) -> settings:
    """Settings for that many examples."""
    return settings(max_examples=examples, suppress_health_check=list(HealthCheck))


def requests(front: Served) -> list[bytes]:
    """Valid requests as bytes."""
    made = []
    for body, headers in good_requests(front.live):
        lines = [f"Host: localhost:{front.port}", "Content-Type: application/json", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        made.append("\r\n".join(["POST /mcp HTTP/1.1", *lines, "", ""]).encode() + body)
    return made


def serves_on(front: Served) -> None:
    """A valid request is answered as if nothing had been."""
    (response,) = front.send(requests(front)[0])
    assert (response.status, b'"supportedVersions"' in response.body) == (200, True)


def test_valid_requests_are_answered_one_after_the_other(front: Served) -> None:
    valid = requests(front)
    responses = front.send(b"".join(valid))
    assert [response.status for response in responses] == [200] * len(valid)
    count("fuzz inputs at the front", len(valid))


def test_bytes_that_were_a_valid_request_once(front: Served) -> None:
    valid = requests(front)
    others = tuple(valid)

    @many(sized(40, 1_200))
    @given(st.sampled_from(range(len(valid))), st.integers(0, 2**32))
    def fuzz(chosen: int, seed: int) -> None:
        random = Random(seed)
        for _ in range(AT_ONCE):
            data = valid[chosen]
            if random.randrange(2):
                head, _, body = data.partition(b"\r\n\r\n")
                data = mutated(head, random, others, HTTP_TOKENS) + b"\r\n\r\n" + body
            else:
                data = mutated(data, random, others, HTTP_TOKENS)
            if random.randrange(4) == 0:
                data = data + random.choice(valid)
            front.send(data)
            count("fuzz inputs at the front")
        serves_on(front)

    fuzz()


targets = st.sampled_from(
    [
        "/mcp",
        "/mcp?x=%00&x=2",
        "//mcp",
        "http://localhost:{port}/mcp",
        "HTTP://LOCALHOST:{port}/mcp?a",
        "http://localhost:{port}",
        "http://user:secret@localhost:{port}/mcp",
        "http://evil.example.com/mcp",
        "http://[",
        "http://[::1]:{port}/mcp",
        "http://[zz]/mcp",
        "http://localhost:{port}:1/mcp",
        "http://\u2100/mcp",
        "https://localhost:{port}/mcp",
        "ftp://localhost/mcp",
        "*",
        "localhost:{port}",
        "/%2e%2e/mcp",
        "/" + "x" * 20_000,
        "/" + "x" * 70_000,
        "\\mcp",
        "/mcp#fragment",
    ]
)
fields = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "Accept",
                "Connection",
                "Content-Encoding",
                "Content-Length",
                "Content-Type",
                "Cookie",
                "Expect",
                "Host",
                "Mcp-Method",
                "Mcp-Name",
                "Origin",
                "Transfer-Encoding",
                "X\u00e4",
                "",
            ]
        ),
        header_values | st.sampled_from(["chunked", "0", "close", "localhost", "http://localhost", "x" * 9_000]),
    ),
    max_size=3,
)


@st.composite
def framed(draw: st.DrawFn, body: bytes) -> tuple[list[str], bytes]:
    """A body and the headers that tell its length: rightly, wrongly, in two ways, or not at all."""
    kind = draw(st.sampled_from(["right", "right", "chunks", "chunks", "short", "long", "both", "none", "odd", "cut"]))
    size = draw(st.integers(1, 40))
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in _parts(body, size)) + b"0\r\n\r\n"
    match kind:
        case "right":
            return [f"Content-Length: {len(body)}"], body
        case "chunks":
            return ["Transfer-Encoding: chunked"], chunks
        case "short":
            return [f"Content-Length: {max(0, len(body) - size)}"], body
        case "long":
            return [f"Content-Length: {len(body) + size}"], body
        case "both":
            return [f"Content-Length: {len(body)}", "Transfer-Encoding: chunked"], chunks
        case "odd":
            length = draw(st.sampled_from(["-1", "1e3", "0x10", "5 5", "\u0665", "", "9" * 18, "9" * 400]))
            return [f"Content-Length: {length}"], body
        case "cut":
            return ["Transfer-Encoding: chunked"], chunks[: draw(st.integers(0, len(chunks)))]
        case _:
            return [], body


def _parts(body: bytes, size: int) -> list[bytes]:
    return [body[at : at + size] for at in range(0, min(len(body), size * 8), size)] + [body[size * 8 :]] * (
        len(body) > size * 8
    )


class Raw(bytes):
    """Bytes that are shown with their long repetitions told by number."""

    def __repr__(self) -> str:
        return re.sub(rb"(.)\1{60,}", lambda run: b"[%s x %d]" % (run[1], len(run[0])), self).decode("latin-1")


@st.composite
def exchanges(draw: st.DrawFn, valid: list[tuple[bytes, dict[str, str]]], port: int) -> Raw:
    """One to three requests in a row, each nearly right, the last one perhaps cut."""
    data = b""
    for _ in range(draw(st.integers(1, 3))):
        body, headers = draw(st.sampled_from(valid))
        lines, framing = draw(framed(body))
        method = draw(
            st.sampled_from(["POST"] * 6 + ["GET", "HEAD", "OPTIONS", "DELETE", "PUT", "post", "TRACE", "\u00e4"])
        )
        version = draw(st.sampled_from(["HTTP/1.1"] * 8 + ["HTTP/1.0", "HTTP/0.9", "HTTP/2", "HTTP/1.1 x", ""]))
        lines = [f"Host: localhost:{port}", *lines, *(f"{name}: {value}" for name, value in headers.items())]
        if draw(st.booleans()):
            lines += [f"{name}: {value}" for name, value in draw(fields)]
        line = f"{method} {draw(targets) if draw(st.booleans()) else '/mcp'} {version}".replace("{port}", str(port))
        data += "\r\n".join([line, *lines, "", ""]).encode("utf-8", "replace") + framing
    return Raw(data[: draw(st.integers(0, len(data)))] if draw(st.integers(0, 5)) == 0 else data)


def test_requests_that_are_nearly_right(front: Served) -> None:
    @many(sized(150, 6_000))
    @given(exchanges(good_requests(front.live), front.port))
    def fuzz(data: bytes) -> None:
        front.send(data)
        count("fuzz inputs at the front")

    fuzz()
    serves_on(front)


def test_bytes_of_any_kind(front: Served) -> None:
    @many(sized(150, 3_000))
    @given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode("utf-8")))
    @example(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
    @example(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    @example(b"\r\n" * 100)
    def fuzz(data: bytes) -> None:
        front.send(data)
        front.send(data + b"\r\n\r\n")
        count("fuzz inputs at the front", 2)

    fuzz()
    serves_on(front)


def test_every_broken_target_is_answered(front: Served) -> None:
    for target in ("http://[", "http://[::1", "http://]/", "http://[v1.x]/mcp", "http://\u2100/mcp", "http://a:b:c/"):
        (response,) = front.send(f"POST {target} HTTP/1.1\r\nHost: localhost:{front.port}\r\n\r\n".encode())
        assert 400 <= response.status < 500
        count("fuzz inputs at the front")


@pytest.mark.parametrize(
    "line", ["POST /mcp HTTP/0.9", "{}POST /mcp HTTP/0.9", "GET / a HTTP/0.9", "BREW /mcp HTTP/0.9"]
)
def test_the_oldest_version_gets_a_status_line(front: Served, line: str) -> None:
    (response,) = front.send(f"{line}\r\nHost: localhost:{front.port}\r\n\r\n".encode())
    assert response.status in (400, 501, 505)
    count("fuzz inputs at the front")
