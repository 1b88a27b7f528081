"""The gate's framing: lossless, and right under every split."""

import pytest

from reattach_chaos.gate.framing import Framing, FramingError, Span

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5\r\nhello\r\n1;name=value\r\n!\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"
)
SIZED = b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nhello world"
CLOSED = b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\nuntil the end"


def spans_of(data: bytes, *, split: int, methods: tuple[str, ...] = ("GET",), responses: bool = True) -> list[Span]:
    framing = Framing(responses=responses)
    for method in methods if responses else ():
        framing.expect(method)
    return [*framing.feed(data[:split]), *framing.feed(data[split:])]


def body(spans: list[Span]) -> bytes:
    return b"".join(span.data for span in spans if span.kind == "body")


def ends(spans: list[Span]) -> int:
    return sum(span.kind == "end" for span in spans)


@pytest.mark.parametrize(
    ("data", "expected", "whole"),
    [(CHUNKED, b"hello!0123456789", 1), (SIZED, b"hello world", 1), (CLOSED, b"until the end", 0)],
    ids=["chunked", "sized", "until close"],
)
def test_every_split_gives_the_same_body_and_every_byte(data, expected, whole):
    """Wherever a read ends, the spans put together are the bytes, and the body is the body."""
    for split in range(len(data) + 1):
        spans = spans_of(data, split=split)
        assert b"".join(span.data for span in spans) == data, split
        assert body(spans) == expected, split
        assert ends(spans) == whole, split


def test_byte_by_byte():
    """One byte a read is a split too."""
    framing = Framing(responses=True)
    framing.expect("GET")
    spans = [span for byte in CHUNKED for span in framing.feed(bytes([byte]))]
    assert b"".join(span.data for span in spans) == CHUNKED
    assert body(spans) == b"hello!0123456789"
    assert framing.between


def test_answers_follow_each_other_on_one_connection():
    """A kept connection: the second answer begins where the first ends."""
    spans = spans_of(CHUNKED + SIZED + CHUNKED, split=7, methods=("GET", "GET", "GET"))
    assert [span.head.status for span in spans if span.head] == [200, 200, 200]
    assert ends(spans) == 3


@pytest.mark.parametrize("start", [b"HTTP/1.1 204 No Content", b"HTTP/1.1 304 Not Modified"])
def test_a_status_without_a_body_has_none(start):
    """204 and 304 end with their head, whatever Content-Length says."""
    spans = spans_of(start + b"\r\nContent-Length: 5\r\n\r\n" + SIZED, split=3, methods=("GET", "GET"))
    assert body(spans) == b"hello world"
    assert ends(spans) == 2


def test_the_answer_to_head_has_no_body():
    """The length is that of the answer to a GET."""
    spans = spans_of(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" + SIZED, split=0, methods=("HEAD", "GET"))
    assert body(spans) == b"hello world"


def test_an_interim_answer_is_not_the_answer():
    """After 100 the real answer comes, to the same request."""
    spans = spans_of(b"HTTP/1.1 100 Continue\r\n\r\n" + SIZED, split=5, methods=("HEAD",))
    assert body(spans) == b""
    assert ends(spans) == 1


def test_transfer_encoding_goes_before_content_length():
    """A message with both is chunked (RFC 9112, 6.3)."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n"
    assert body(spans_of(head + b"2\r\nab\r\n0\r\n\r\n", split=0)) == b"ab"


def test_a_request_without_length_has_no_body():
    """Requests never last until the connection ends."""
    two = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\nPOST /v1/runs HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"
    for split in range(len(two)):
        spans = spans_of(two, split=split, responses=False)
        assert [(span.head.method, span.head.target) for span in spans if span.head] == [
            ("GET", "/a"),
            ("POST", "/v1/runs"),
        ]
        assert ends(spans) == 2


def test_a_header_is_found_whatever_its_case():
    """Names are compared in lower case; the first value counts."""
    (span, *_) = spans_of(
        b"GET / HTTP/1.1\r\nLast-Event-ID: e1.4\r\nlast-event-id: e1.5\r\n\r\n", split=0, responses=False
    )
    assert span.head is not None
    assert span.head.get("last-event-id") == "e1.4"
    assert span.head.get("range") is None


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 yes\r\n\r\n",
    ],
)
def test_what_is_not_http_is_refused(data):
    """After bytes that are not HTTP/1.1 nothing can be said of a position."""
    with pytest.raises(FramingError):
        spans_of(data, split=0)


def test_a_head_without_end_is_refused():
    """Memory is bounded: a head of more than 256 KiB is none."""
    framing = Framing(responses=True)
    framing.feed(b"x: " + b"y" * 262_000)
    with pytest.raises(FramingError, match="head of more"):
        framing.feed(b"y" * 200)
