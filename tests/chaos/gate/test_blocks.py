"""The gate's block scanner: the byte just after each blank line, under every split and line end."""

import pytest

from reattach_chaos.gate.blocks import Block, BlockScanner

LINES = [
    "retry: 1000",
    "event: stream.attached",
    'data: {"last_sequence":2}',
    "",
    "id: e1.1",
    "event: message.delta",
    'data: {"text":"Größe 🙂 a\u2028b"}',
    "",
    ": heartbeat",
    "",
    "id: e1.2",
    "data: one",
    "data:two",
    "data",
    "",
]
BLOCKS = [
    Block(None, "stream.attached", b'{"last_sequence":2}'),
    Block("e1.1", "message.delta", '{"text":"Größe 🙂 a\u2028b"}'.encode()),
    Block("e1.2", "message", b"one\ntwo\n"),
]


def stream(line_end: str) -> tuple[bytes, list[int]]:
    """The lines as bytes, and the indices just after the blank lines of blocks that have data."""
    data, boundaries = b"", []
    for number, line in enumerate(LINES):
        data += (line + line_end).encode()
        if number in (3, 7, 14):
            boundaries.append(len(data))
    return data, boundaries


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
def test_every_split_gives_the_same_boundaries(line_end):
    """Three reads, every pair of places to part them: the same blocks at the same bytes."""
    data, boundaries = stream(line_end)
    for first in range(0, len(data) + 1, 1):
        for second in range(first, len(data) + 1, 3):
            scanner, found, at = BlockScanner(), [], 0
            for piece in (data[:first], data[first:second], data[second:]):
                found += [(at + end, block) for end, block in scanner.feed(piece)]
                at += len(piece)
            assert [block for _, block in found[:2]] == BLOCKS[:2], (first, second)
            # Of CR LF the very last half may be cut off by nothing: the last block is there in any case.
            assert found == list(zip(boundaries, BLOCKS, strict=True)), (first, second)


def test_a_quiet_stream_with_cr_line_ends_is_not_held_back():
    """The last CR of a block is its boundary at once where earlier lines showed CR alone."""
    assert [end for end, _ in BlockScanner().feed(b"id: e1.1\rdata: x\r\r")] == [18]


def test_half_a_crlf_is_waited_for():
    """After CR LF line ends a CR at the end of a read is not the boundary yet."""
    scanner = BlockScanner()
    assert list(scanner.feed(b"id: e1.1\r\ndata: x\r\n\r")) == []
    assert [end for end, _ in scanner.feed(b"\nid: e1.2")] == [1]


def test_a_block_that_ended_before_is_told_at_zero():
    """Waiting for LF in vain: the boundary lies before the first byte of this read."""
    scanner = BlockScanner()
    assert list(scanner.feed(b"id: e1.1\r\ndata: x\r\n\r")) == []
    assert [end for end, _ in scanner.feed(b"id: e1.2")] == [0]


def test_a_block_without_data_has_no_boundary():
    """Comments, ids and retries alone are not events (WHATWG: empty data is not dispatched)."""
    assert list(BlockScanner().feed(b": ping\n\nid: 3\n\nretry: 5\n\nevent: x\n\n\n\n")) == []


def test_an_id_does_not_outlive_its_block():
    """A control frame after an event is not that event again."""
    blocks = [block for _, block in BlockScanner().feed(b"id: e1.7\ndata: x\n\nevent: stream.closing\ndata: {}\n\n")]
    assert [block.sequence for block in blocks] == [7, None]


def test_a_byte_order_mark_is_not_part_of_the_first_field():
    """One at the very start is passed over, also split."""
    scanner = BlockScanner()
    found = [each for byte in b"\xef\xbb\xbfid: e1.1\ndata: x\n\n" for each in scanner.feed(bytes([byte]))]
    assert [block.id for _, block in found] == ["e1.1"]


@pytest.mark.parametrize(
    ("id_", "sequence"), [("e1.12", 12), ("12", 12), ("7f-1.", None), ("evt_x", None), (None, None), ("e.١", None)]
)
def test_a_sequence_is_the_number_after_the_last_dot(id_, sequence):
    """Other ids are no place of a plan."""
    assert Block(id_, "x", b"").sequence == sequence
