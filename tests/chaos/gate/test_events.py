"""The reader of event streams: the same marks at the same bytes, however the bytes are split and whatever ends the lines."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from reattach_chaos.gate.events import EventReader
from reattach_chaos.gate.marks import Mark
from reattach_chaos.gate.numbering import Numbering, sequence_of
from reattach_chaos.schedules import Place

LINES = st.lists(
    st.sampled_from([
        b"", b"", b"id: e1.1", b"id: e1.2", b"id:7", b"id: x", b"event: message.delta", b"event: stream.attached", b"data: {}",
        b'data: {"cursor":"e1.0","last_sequence":2}', b"data:x", b"data", "data: é€🙂".encode(), b": heartbeat",
        b":", b"retry: 10", b"data: two words", b"d", b"dummy: 1",
    ]),
    max_size=14,
)  # fmt: skip
ENDS = st.lists(st.sampled_from([b"\n", b"\r\n", b"\r"]), min_size=1, max_size=4)


def marks(pieces: list[bytes]) -> list[tuple[int, Mark]]:
    """Return all marks with their places in the whole."""
    reader = EventReader(Numbering())
    found, at = [], 0
    for piece in pieces:
        found += [(at + index, mark) for index, mark in reader.feed(piece)]
        at += len(piece)
    return found + [(at, mark) for mark in reader.finish()]


def split(data: bytes, places: list[int]) -> list[bytes]:
    """Return the data in pieces."""
    edges = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


@given(LINES, ENDS, st.lists(st.integers(0, 200), max_size=12), st.booleans())
def test_every_split_of_every_stream_gives_the_same_marks(lines, ends, places, bom):
    """Also with mixed line ends, and with a byte order mark."""
    data = (b"\xef\xbb\xbf" if bom else b"") + b"".join(
        line + end for line, end in zip(lines, itertools.cycle(ends), strict=False)
    )
    whole = marks([data])
    assert marks(split(data, places)) == whole
    assert marks([data[at : at + 1] for at in range(len(data))]) == whole
    assert [index for index, _ in whole] == sorted(index for index, _ in whole)


@given(LINES)
def test_a_line_end_of_another_kind_moves_no_meaning(lines):
    """LF, CR LF and CR give the same places of the same events."""

    def told(end: bytes) -> list[Mark]:
        found = marks([b"".join(line + end for line in lines)])
        return [mark for _, mark in found if mark.place is not Place.IN_LINE_END]

    assert told(b"\n") == told(b"\r\n") == told(b"\r")


def test_a_quiet_stream_with_cr_line_ends_is_not_held_back():
    """The last CR of an event is its boundary at once where the CR before stood alone."""
    found = list(EventReader(Numbering()).feed(b"id: e1.1\rdata: x\r\r"))
    assert found[-1][0] == 18
    assert found[-1][1].place is Place.AFTER_EVENT


def test_half_a_crlf_is_waited_for():
    """After CR LF a CR at the end of a read is not the boundary yet; what comes then decides."""
    reader = EventReader(Numbering())
    assert all(mark.place is not Place.AFTER_EVENT for _, mark in reader.feed(b"id: e1.1\r\ndata: x\r\n\r"))
    assert [(index, mark.place) for index, mark in reader.feed(b"\n")] == [(1, Place.AFTER_EVENT)]


def test_what_is_no_event_has_no_place():
    """Comments, retries, ids alone, and the server's own frames."""
    data = b": ping\n\nid: 3\n\nretry: 5\n\nevent: stream.attached\ndata: {}\n\nevent: stream.closing\ndata: {}\n\n"
    assert not any(mark.place is Place.AFTER_EVENT for _, mark in marks([data]))
    assert not any(mark.place is Place.IN_DATA_LINE for _, mark in marks([data]))


def test_events_are_numbered_by_their_ids_or_by_their_order():
    """`e1.7` is the seventh; an id that says nothing is the next, and keeps its number on another connection."""
    numbering = Numbering()
    data = b"id: a\ndata: 1\n\nid: b\ndata: 2\n\ndata: 3\n\n"
    numbers = [mark.number for _, mark in EventReader(numbering).feed(data) if mark.place is Place.AFTER_EVENT]
    assert numbers == [1, 2, 3]
    again = EventReader(numbering, numbering.after("a"))
    assert [mark.number for _, mark in again.feed(b"id: b\ndata: 2\n\n") if mark.block] == [2]
    assert [mark.number for _, mark in marks([b"id: e1.7\ndata: x\n\n"]) if mark.block] == [7]


def test_a_number_that_is_a_time_is_no_sequence():
    """Milliseconds since 1970 count nothing."""
    assert [sequence_of(id) for id in ("e1.12", "12", "1764470000123", "7f-1.", "evt_x", None, "e.١")] == [
        12, 12, None, None, None, None, None,
    ]  # fmt: skip


def test_live_begins_behind_what_the_server_had():
    """The announcement names its head: the place between replay and live is after that event, once."""
    attached = b'event: stream.attached\ndata: {"cursor":"e1.0","last_sequence":1}\n\n'
    found = marks([attached + b"id: e1.1\ndata: x\n\nid: e1.2\ndata: y\n\n"])
    live = [index for index, mark in found if mark.place is Place.BEFORE_LIVE]
    assert live == [len(attached) + len(b"id: e1.1\ndata: x\n\n")]
    assert [mark.replay for _, mark in found if mark.place is Place.AFTER_EVENT] == [True, False]
