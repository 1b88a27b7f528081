"""The event-stream decoder against the standard: a table of its rules, and a law over any bytes in any cut."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import pairwise
from time import process_time

import httpx
import httpx_sse
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.wire.standard import Reading, interpret
from reattach.wire.eventstream import Decoder, Oversize
from reattach.wire.frame import Frame

LIMIT = 1 << 24


def read(chunks: Iterable[bytes], limit: int = LIMIT) -> Reading:
    decoder = Decoder(limit)
    frames: list[Frame] = []
    for chunk in chunks:
        try:
            frames += decoder.feed(chunk)
        except Oversize:
            break
    if decoder.spent:
        with pytest.raises(Oversize):
            decoder.feed(b"")
    return Reading(frames, decoder.last_id, decoder.take_retry(), not decoder.spent and decoder.growing, decoder.spent)


def cuts(body: bytes) -> Iterator[list[bytes]]:
    """The whole, each cut in two, and byte by byte."""
    yield [body]
    for at in range(1, len(body)):
        yield [body[:at], body[at:]]
    yield [body[at : at + 1] for at in range(len(body))]


def message(data: str, id: str = "") -> Frame:
    return Frame("message", data, id)


RULES: list[tuple[str, bytes, list[Frame]]] = [
    ("LF ends lines", b"data: a\ndata: b\n\n", [message("a\nb")]),
    ("CRLF ends lines", b"data: a\r\ndata: b\r\n\r\n", [message("a\nb")]),
    ("CR ends lines", b"data: a\rdata: b\r\r", [message("a\nb")]),
    ("line ends may be mixed", b"data: a\rdata: b\r\ndata: c\n\r\n", [message("a\nb\nc")]),
    ("CR LF CR is two ends", b"data: a\r\n\rdata: b\n\n", [message("a"), message("b")]),
    ("LF CR is two ends", b"data: a\n\rdata: b\n\n", [message("a"), message("b")]),
    ("a byte order mark is dropped", b"\xef\xbb\xbfdata: a\n\n", [message("a")]),
    ("only one byte order mark is dropped", b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", [message("b")]),
    ("a later byte order mark is text", b"data: a\n\n\xef\xbb\xbfdata: b\n\ndata: \xef\xbb\xbfc\n\n",
     [message("a"), message("\ufeffc")]),
    ("half a byte order mark is text", b"\xef\xbbdata: a\n\ndata: b\n\n", [message("b")]),
    ("one space is stripped", b"data:  a\n\n", [message(" a")]),
    ("no space is needed", b"data:a\n\n", [message("a")]),
    ("a tab is kept", b"data:\ta\n\n", [message("\ta")]),
    ("a trailing space is kept", b"data: a \n\n", [message("a ")]),
    ("a colon in the value is kept", b"data: a: b:c\n\n", [message("a: b:c")]),
    ("a leading space makes another field", b" data: a\n\ndata: b\n\n", [message("b")]),
    ("a space before the colon makes another field", b"data : a\n\ndata: b\n\n", [message("b")]),
    ("a field needs no colon", b"data\n\n", [message("")]),
    ("empty data is an event", b"data:\n\n", [message("")]),
    ("empty data twice is one LF", b"data:\ndata:\n\n", [message("\n")]),
    ("the standard's own example of bare data", b"data\n\ndata\ndata\n\ndata:", [message(""), message("\n")]),
    ("data that ends in an empty line keeps it", b"data: a\ndata:\n\n", [message("a\n")]),
    ("a block without data is nothing", b"event: x\n\ndata: b\n\n", [message("b")]),
    ("its event name is forgotten", b"event: x\n\ndata: b\n\n", [message("b")]),
    ("a block with only an id sets it", b"id: 1\n\ndata: b\n\n", [message("b", "1")]),
    ("a block with only retry is nothing", b"retry: 10\n\ndata: b\n\n", [message("b")]),
    ("blank lines are nothing", b"\n\n\ndata: a\n\n\n\n\ndata: b\n\n\n", [message("a"), message("b")]),
    ("blank lines after an id are nothing", b"id: 1\ndata: a\n\n\n\n", [message("a", "1")]),
    ("the id is sticky", b"id: 1\ndata: a\n\ndata: b\n\n", [message("a", "1"), message("b", "1")]),
    ("an empty id resets", b"id: 1\ndata: a\n\nid:\ndata: b\n\nid: 2\ndata: c\n\nid\ndata: d\n\n",
     [message("a", "1"), message("b"), message("c", "2"), message("d")]),
    ("an id with NUL is ignored", b"id: 1\ndata: a\n\nid: 2\0\ndata: b\n\n", [message("a", "1"), message("b", "1")]),
    ("NUL elsewhere is text", b"event: x\0\ndata: a\0\n\n", [Frame("x\0", "a\0", "")]),
    ("an id keeps its spaces but one", b"id:  7 \ndata: a\n\n", [message("a", " 7 ")]),
    ("the last id of a block counts", b"id: 1\ndata: a\nid: 2\n\n", [message("a", "2")]),
    ("the last event name counts", b"event: x\nevent: y\ndata: a\n\n", [Frame("y", "a", "")]),
    ("an empty event name is message", b"event: x\nevent:\ndata: a\n\n", [message("a")]),
    ("event names do not stick", b"event: x\ndata: a\n\ndata: b\n\n", [Frame("x", "a", ""), message("b")]),
    ("any order of fields", b"data: a\nevent: x\nid: 1\n\n", [Frame("x", "a", "1")]),
    ("the usual order", b"id: 1\nevent: x\ndata: a\n\n", [Frame("x", "a", "1")]),
    ("unknown fields are ignored", b"foo: 1\ndata: a\nbar\n\n", [message("a")]),
    ("names are told by case", b"DATA: a\nData: b\ndata: c\nID: 1\n\n", [message("c")]),
    ("comments are ignored", b": hi\ndata: a\n:\n: data: b\n\n", [message("a")]),
    ("comments between events are no events", b"id: 1\ndata: a\n\n: ping\n\n: ping\n\ndata: b\n\n",
     [message("a", "1"), message("b", "1")]),
    ("a last event without its end is discarded", b"data: a\n\ndata: b\n", [message("a")]),
    ("a last line without its end is discarded", b"data: a\n\ndata: b", [message("a")]),
    ("only LF and CR end lines", "data: a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\x1dh\x1ei\n\n".encode(),
     [message("a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\x1dh\x1ei")]),
    ("invalid UTF-8 is replaced", b"data: a\xffb\n\n", [message("a\ufffdb")]),
    ("truncated UTF-8 is replaced", b"data: a\xe2\x82\n\nid: \xe2\ndata: b\n\n", [message("a\ufffd"), message("b", "\ufffd")]),
    ("a surrogate is invalid", b"data: \xed\xa0\x80\n\n", [message("\ufffd\ufffd\ufffd")]),
    ("text of many planes", "id: é€\nevent: ñ\ndata: 😀\n\n".encode(), [Frame("ñ", "😀", "é€")]),
    ("data lines one by one", b"id: 1\nevent: x\ndata: {\ndata:   a\ndata:\ndata:}\n\n", [Frame("x", "{\n  a\n\n}", "1")]),
]  # fmt: skip


@pytest.mark.parametrize(("body", "frames"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES])
def test_the_rule_holds_under_every_cut(body: bytes, frames: list[Frame]) -> None:
    """Each rule of the standard gives the frames that its algorithm gives, however the network cuts the bytes."""
    assert interpret(body).frames == frames, "the table disagrees with the standard"
    for chunks in cuts(body):
        assert read(chunks).frames == frames, chunks


RETRIES: list[tuple[bytes, float | None]] = [
    (b"0", 0.0),
    (b"1500", 1.5),
    (b"007", 0.007),
    (b"", None),
    (b"-5", None),
    (b"+5", None),
    (b"1_000", None),
    (b" 5 ", None),
    (b"5 ", None),
    (b"1e3", None),
    (b"1.5", None),
    ("٣".encode(), None),
    ("²".encode(), None),
    (b"9" * 12, 999_999_999.999),
    (b"9" * 5000, 1e9),
    (b"0" * 5000 + b"7", 0.007),
]


@pytest.mark.parametrize(("value", "seconds"), RETRIES, ids=[str(value[:12]) for value, _ in RETRIES])
def test_only_ascii_digits_are_a_retry(value: bytes, seconds: float | None) -> None:
    """`retry` takes digits alone, of any number, and a mad value is a long time, not an error."""
    assert read([b"retry: " + value + b"\n\n"]).retry == seconds


def test_retry_is_told_once() -> None:
    """The wish is handed out with the read that brought it, the last if there are two, and not again."""
    decoder = Decoder(LIMIT)
    decoder.feed(b"retry: 1\nretry: 2000\n")
    assert decoder.take_retry() == 2.0
    assert decoder.take_retry() is None


def test_a_block_that_ends_in_cr_is_delivered_at_once() -> None:
    """With CR alone as line end nothing waits for the next byte, and the LF that may follow makes no blank line."""
    decoder = Decoder(LIMIT)
    assert decoder.feed(b"id: 1\rdata: a\r\r") == (message("a", "1"),)
    assert decoder.feed(b"\n") == ()
    assert decoder.feed(b"data: b\r\n\r") == (message("b", "1"),)
    assert decoder.feed(b"\ndata: c\r\r") == (message("c", "1"),)


@pytest.mark.parametrize(
    ("body", "growing"),
    [
        (b"", False),
        (b"\xef\xbb", False),
        (b"data: a\n\n", False),
        (b"data: a\n\n: ping", False),
        (b": ping\n", False),
        (b": ping\n\n: ", False),
        (b"d", True),
        (b"id: 1\n", True),
        (b"data: a\n", True),
        (b"data: a\n: ping\n", True),
        (b"data: a\n\ndata: b", True),
    ],
)
def test_growing_is_inside_an_event(body: bytes, growing: bool) -> None:
    """A comment that has not ended is no event that grows; anything else after the last blank line is."""
    assert read([body]).growing is growing
    assert interpret(body).growing is growing


def test_the_last_id_is_that_of_the_last_ended_block() -> None:
    """An id counts from its block's end on, with data or without."""
    decoder = Decoder(LIMIT)
    decoder.feed(b"id: 1\n\nid: 2\n")
    assert decoder.last_id == "1"
    decoder.feed(b"\n")
    assert decoder.last_id == "2"
    decoder.feed(b"id: 3\nevent: x\ndata: y\n\n")
    assert decoder.last_id == "3"
    decoder.feed(b"id: 4\ndata: y\n\n")
    assert decoder.last_id == "4"


# ------------------------------------------------------------------------------------------------------- the law

PIECES = [
    b"data", b"data:", b"data: ", b"data: x", b"event: e", b"event:", b"id: 1", b"id", b"id: 2\0", b"id:  3", b"retry: 5",
    b"retry: 5x", b":", b": ping", b"foo: 1", b" ", b":", b"\n", b"\n", b"\r", b"\r\n", b"\n\n", b"\r\n\r\n", b"\r\r", b"\0",
    b"\xef\xbb\xbf", b"\xef\xbb", b"\xff", b"\xe2\x82", b"\xe2\x82\xac", b"\xf0\x9f\x98\x80", b"\xc2\x85", b"\xe2\x80\xa8",
    b"\x0b", b"id: 4\nevent: x\ndata: y\n\n", b"event: x\ndata: y\n\n", b"data: y\n\n", b"id: 5\ndata: y\ndata: z\n\n",
    b"id: 6\r\nevent: x\r\ndata: y\r\n\r\n", b"a" * 40,
]  # fmt: skip
bodies = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join),
    st.lists(st.sampled_from(PIECES), max_size=12).map(b"\n".join),
    st.binary(max_size=40),
)


@settings(deadline=None)
@given(body=bodies, data=st.data(), limit=st.sampled_from([LIMIT, LIMIT, 60, 20, 8]))
def test_any_bytes_in_any_cut_are_read_as_the_standard_says(body: bytes, data: st.DataObject, limit: int) -> None:
    """Frames, last id, retry, whether an event grows and whether one is too large depend on the bytes alone."""
    places = data.draw(st.lists(st.integers(0, len(body)), max_size=12).map(sorted), label="cuts")
    expected = interpret(body, limit)
    edges = [0, *places, len(body)]
    for chunks in ([body[a:b] for a, b in pairwise(edges)], [body], [body[at : at + 1] for at in range(len(body))]):
        assert read(chunks, limit) == expected, chunks


@settings(deadline=None)
@given(body=bodies)
def test_usual_blocks_after_any_beginning(body: bytes) -> None:
    """What came before changes nothing in how whole blocks of the usual shapes are read, which take a path of their own."""
    body += (
        b"\n\nid: 7\nevent: x\ndata: y\n\nid: 8\nevent:\ndata: \n\n"
        + body[:20]
        + b"\nid: 9\nevent: z\ndata: 1\ndata: 2\n\n"
    )
    assert read([body]) == interpret(body)


# Rules that httpx-sse gets wrong (BOM, phantom events, data-less blocks, lax retry) are left out; see the design's libraries.md.
ORACLE_PIECES = [
    b"data: a\n", b"data:b\n", b"data:  c\n", b"data\n", b"event: e\n", b"event:\n", b"foo: bar\n", b"DATA: x\n",
    "data: \u2028é😀\x0b\x85\n".encode(), b"data: \xff\xe2\x82\n", b": ping\n", b"data: a\r", b"data: b\r\n",
]  # fmt: skip


@settings(deadline=None)
@given(
    blocks=st.lists(st.lists(st.sampled_from(ORACLE_PIECES), max_size=6), max_size=5),
    ends=st.sampled_from([b"\n", b"\r\n"]),
)
def test_httpx_sse_agrees_where_it_is_right(blocks: list[list[bytes]], ends: bytes) -> None:
    """An oracle by other hands: with data in each block and no ids, httpx-sse reads the same."""
    body = b"".join(b"".join(block) + b"data: end" + ends + ends for block in blocks)
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body)
    theirs = [Frame(sse.event, sse.data, sse.id) for sse in httpx_sse.EventSource(response).iter_sse()]
    assert read([body]).frames == theirs


# -------------------------------------------------------------------------------------------------- sizes and work


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_an_event_above_the_limit_is_refused_as_soon_as_it_is_known(step: int) -> None:
    """The error comes with the first byte too many; the event before is handed out, nothing of the one above the limit is."""
    body = b"data: ok\n\nid: 1\ndata: " + b"x" * 200
    decoder = Decoder(100)
    frames: list[Frame] = []
    fed = 0
    while not decoder.spent:
        with suppress(Oversize):
            frames += decoder.feed(body[fed : fed + step])
        fed += step
    assert frames == [message("ok")]
    assert fed <= max(step, len(b"data: ok\n\n") + 100 + step)
    with pytest.raises(Oversize, match="100 bytes"):
        decoder.feed(b"")


def test_an_event_of_exactly_the_limit_is_read() -> None:
    """The limit counts each line with one byte for its end, whatever the end is; the blank line is free."""
    body = b"id: 1\ndata: " + b"x" * 87
    for end in (b"\n", b"\r", b"\r\n"):
        whole = body.replace(b"\n", end) + end + end
        assert [len(frame.data) for frame in read([whole], 100).frames] == [87]
        assert read([whole], 99).oversize
        assert not read([whole[at : at + 1] for at in range(len(whole))], 100).oversize


def test_comments_are_not_part_of_an_event() -> None:
    """Heartbeats for days, even inside an event, never add up to an event that is too large."""
    decoder = Decoder(100)
    for _ in range(100):
        assert decoder.feed(b": still here\n") == ()
    decoder.feed(b"data: a\n")
    for _ in range(100):
        assert decoder.feed(b": still here\n") == ()
    assert decoder.feed(b"\n") == (message("a"),)
    assert len(read([b"data: " + b"a" * 60 + b"\n:" + b"b" * 60 + b"\n\n"], 100).frames) == 1


def test_many_lines_of_an_event_count_together() -> None:
    """Lines that are small one by one are refused once their event is too large, ids and unknown fields included."""
    for line in (b"data: x\n", b"data\n", b"id: 1\n", b"event: x\n", b"foo\n"):
        assert read([line] * 30, 100).oversize, line
        assert read([line * 30], 100).oversize, line


def test_a_spent_decoder_stays_spent() -> None:
    """After the error there is no way on: what follows in the stream would be half an event."""
    decoder = Decoder(10)
    for _ in range(2):
        with pytest.raises(Oversize):
            decoder.feed(b"data: " + b"x" * 50 + b"\n\ndata: y\n\n")


def test_memory_stays_below_the_limit_and_a_chunk() -> None:
    """A line without end takes no more than the limit and what a growing buffer reserves, and the error frees it."""
    limit, chunk = 1 << 20, b"x" * 1460
    decoder = Decoder(limit)
    tracemalloc.start()
    try:
        with suppress(Oversize):
            while True:
                decoder.feed(chunk)
        assert decoder.spent
        assert tracemalloc.get_traced_memory()[1] < 1.3 * limit
        assert tracemalloc.get_traced_memory()[0] < 0.05 * limit
    finally:
        tracemalloc.stop()


def test_one_large_event_takes_little_more_than_itself() -> None:
    """Finishing a large event makes its text and no further copies: at most three times its size at the peak."""
    size = 4 << 20
    decoder = Decoder(2 * size)
    tracemalloc.start()
    try:
        decoder.feed(b"data: ")
        for _ in range(size // 65536):
            decoder.feed(b"x" * 65536)
        (frame,) = decoder.feed(b"\n\n")
        assert len(frame.data) == size
        assert tracemalloc.get_traced_memory()[1] < 3 * size
    finally:
        tracemalloc.stop()


class Counted(bytes):
    """Bytes that count what is copied out of them by a slice."""

    copied = 0

    def __getitem__(self, at: object) -> object:
        part = bytes.__getitem__(self, at)  # type: ignore[index]  # whatever a caller may pass
        if isinstance(part, bytes):
            Counted.copied += len(part)
        return part


def test_many_events_in_one_chunk_are_cut_out_once() -> None:
    """100,000 events in one read: the chunk is copied once, not once an event (the quadratic fault of several parsers)."""
    body = Counted(b"id: 1\nevent: x\ndata: y\n\n" * 100_000)
    Counted.copied = 0
    assert len(Decoder(LIMIT).feed(body)) == 100_000
    assert Counted.copied <= 2 * len(body)


def chunked(body: bytes, size: int) -> list[bytes]:
    return [body[at : at + size] for at in range(0, len(body), size)]


SHAPES = {
    "one line in small chunks": lambda n: chunked(b"data: " + b"x" * (n << 21) + b"\n\n", 1460),
    "one line byte by byte": lambda n: chunked(b"data: " + b"x" * (n << 15) + b"\n\n", 1),
    "events in one chunk": lambda n: [b"id: 1\nevent: x\ndata: y\n\n" * (n * 12_500)],
    "unusual events in one chunk": lambda n: [b"event: x\nid: 1\ndata: y\r\n\r\n" * (n * 12_500)],
    "events and comments in one chunk": lambda n: [b"data: y\n\n: ping\n\n" * (n * 12_500)],
    "data lines in one chunk": lambda n: [b"id: 1\n" + b"data: y\n" * (n * 50_000) + b"\n"],
    "data lines in small chunks": lambda n: chunked(b"data: y\n" * (n * 50_000) + b"\n", 1460),
    "data lines that end in something unknown": lambda n: [b"data: y\n" * (n * 50_000) + b"foo\n\n"],
    "bare data lines": lambda n: [b"data\n" * (n * 50_000) + b"\n"],
    "blank lines": lambda n: [b"\n" * (n * 50_000)],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_work_grows_with_the_bytes(shape: str) -> None:
    """Eight times the bytes cost about eight times the processor's time; 64 times would be quadratic, 32 is the bound.

    Processor time, not time, and one of three is enough; the large case is 16 MiB, 400,000 lines or 100,000 events.
    """

    def cost(n: int) -> float:
        chunks, decoder = SHAPES[shape](n), Decoder(1 << 25)
        gc.disable()  # it would look at all that earlier tests left, again and again
        try:
            begin = process_time()
            for chunk in chunks:
                decoder.feed(chunk)
            return process_time() - begin
        finally:
            gc.enable()

    bound = 32 * max(0.0005, min(cost(1) for _ in range(3)))
    assert any(cost(8) <= bound for _ in range(3))
