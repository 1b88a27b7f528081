"""What people report of event-stream parsers, each with the right behaviour. The numbers are those of the collected reports."""

from __future__ import annotations

import json

import pytest

from reattach.core.messages import Received
from reattach.profiles.native import Native
from reattach.wire.eventstream import Decoder, Oversize
from reattach.wire.frame import Frame

LIMIT = 1 << 25


def frames(chunks: list[bytes]) -> list[Frame]:
    decoder = Decoder(LIMIT)
    return [frame for chunk in chunks for frame in decoder.feed(chunk)]


def native(sequence: int, kind: str = "message.delta", **data: object) -> bytes:
    told = {
        "id": f"evt_{sequence}",
        "prev_id": f"evt_{sequence - 1}" if sequence > 1 else None,
        "run_id": "r",
        "sequence": sequence,
        "type": kind,
        "data": data,
    }
    text = json.dumps(told, ensure_ascii=False)
    return f"id: e1.{sequence}\nevent: {kind}\ndata: {text}\n\n".encode()


def test_b01_a_heartbeat_after_an_id_is_no_event() -> None:
    """B01: id and data, then a comment with a blank line twice, then data: two events, and the heartbeats still are bytes heard."""
    decoder = Decoder(LIMIT)
    reads = [decoder.feed(chunk) for chunk in (b"id: 1\ndata: {}\n\n", b": ping\n\n", b": ping\n\n", b"data: {}\n\n")]
    assert [len(read) for read in reads] == [1, 0, 0, 1]
    assert decoder.last_id == "1"


def test_b02_unicode_line_ends_in_the_final_event_end_nothing() -> None:
    """B02: the settling event holds U+2028, U+2029, U+0085, VT, FF and FS raw: one event, data equal, the run seen as finished."""
    odd = "a\u2028b\u2029c\u0085d"
    body = native(1, "run.completed", result={"text": odd}).replace(b'd"', b'd\x0b\x0c\x1c"')
    (frame,) = frames([body])
    assert "\x0b\x0c\x1c" in frame.data
    (frame,) = frames([native(1, "run.completed", result={"text": odd})])
    (told,) = Native().reader("r").read([frame])
    assert isinstance(told, Received)
    (arrival,) = told.arrivals
    assert arrival.outcome is not None
    assert arrival.outcome.result == {"text": odd}


def test_b03_the_same_bytes_are_the_same_event_wherever_they_are_cut() -> None:
    """B03: two data lines with CRLF, cut at every index and byte by byte, also when CR is the last byte of the stream."""
    for body in (b"data: a\r\ndata: b\r\n\r\n", b"data: a\r\ndata: b\r\n\r"):
        for at in range(1, len(body)):
            assert frames([body[:at], body[at:]]) == [Frame("message", "a\nb", "")], (body, at)
        assert frames([body[at : at + 1] for at in range(len(body))]) == [Frame("message", "a\nb", "")]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["lf", "crlf", "cr"])
def test_b04_every_line_end_is_read_and_cr_needs_no_further_byte(end: bytes) -> None:
    """B04: a client that looks for LF LF waits for ever on a server that sends CRLF."""
    decoder = Decoder(LIMIT)
    assert decoder.feed(native(1, text="x").replace(b"\n", end)) == tuple(frames([native(1, text="x")]))


def test_b05_a_large_line_in_small_chunks_is_linear_and_bounded() -> None:
    """B05: 8 MiB, then 16 MiB, in chunks of 1,460 bytes; above the limit a typed error; work is in test_eventstream.py."""
    for size in (8 << 20, 16 << 20):
        body = b"data: " + b"x" * size + b"\n\n"
        (frame,) = frames([body[at : at + 1460] for at in range(0, len(body), 1460)])
        assert len(frame.data) == size
    decoder = Decoder(1 << 20)
    for _ in range(715):
        decoder.feed(b"data: " + b"x" * 1460)  # data lines of one event, still below 1 MiB
    with pytest.raises(Oversize):
        decoder.feed(b"x" * 1460 * 4)


def test_b06_a_hundred_thousand_events_in_one_chunk_are_one_read() -> None:
    """B06: they come out as one batch; that the copying is linear is counted in test_eventstream.py."""
    body = b"".join(native(sequence, text="t") for sequence in range(1, 2001)) * 50
    assert len(frames([body])) == 100_000


def test_b10_an_id_that_no_header_can_carry_never_becomes_a_cursor() -> None:
    """B10: native cursors are built from epoch and sequence; an odd SSE id is only a hint, or refuses its event."""
    reader = Native().reader("r")
    reader.read([Frame("stream.attached", json.dumps({"epoch": "e1", "cursor": "e1.0", "cursor_id": None}), "")])
    for odd in ("é€", "7 ", "x" * 70_000, "a\x01b"):
        block = native(1, text="t")
        (frame,) = frames([block])
        (told,) = reader.read([frame._replace(id=odd)])
        assert isinstance(told, Received)
        assert [arrival.cursor for arrival in told.arrivals] == ["e1.1"]
