"""`EventReader`: the marks in an event stream: inside lines, between lines, before and after each blank line.

Incremental, and the same under every split of the bytes. Line ends are LF, CR LF, CR, in any mixture. One rule is the gate's own:
a CR may be the first half of CR LF, and waiting for the next byte would hold an event back on a quiet stream. So the stream's
latest CR decides: where it stood alone, the next one ends its line at once, whatever follows; else the next byte is waited for.

A place inside a line is one where something can be mistaken: a field's name after one byte, an id and an event line when all but
their line end has come, a data line after the first byte of its value.

Rules: WHATWG HTML, "Server-sent events", parsing. Checked by tests/chaos/gate/test_events.py.
"""

import re
from collections.abc import Generator, Iterator

from reattach_chaos.gate.blocks import Block
from reattach_chaos.gate.characters import Halves
from reattach_chaos.gate.marks import Mark
from reattach_chaos.gate.numbering import Numbering, sequence_of
from reattach_chaos.history.foreign import is_number, json_of
from reattach_chaos.schedules.place import Place

CONTROL = frozenset({"stream.attached", "stream.closing"})
_LINE_END = re.compile(rb"[\r\n]")
_BOM = b"\xef\xbb\xbf"
_CR, _LF = 0x0D, 0x0A


class EventReader:
    """Reads one response body.

    Args:
        numbering: Of the run.
        after: The number of the event at the cursor that was asked after.
    """

    def __init__(self, numbering: Numbering, after: int = 0) -> None:
        self._numbering = numbering
        self._expected = after + 1
        self._head = numbering.highest
        self._attached = self._live = False
        # the line
        self._line = bytearray()
        self._first_line = True
        self._after_cr = False
        self._waiting = False  # a line has ended with CR, or with CR LF: not known yet
        self._crlf: bool | None = None  # what the latest CR was
        self._line_name = b""
        self._between: Mark | None = None  # what lies between CR and LF of the latest line end
        # the block
        self._id: str | None = None
        self._id_came = False
        self._type = ""
        self._data: list[bytes] = []
        self._halves = Halves()

    @property
    def number(self) -> int:
        """The number of the event that is on its way, or is expected next."""
        return self._expected

    @property
    def partial(self) -> str | None:
        """The id of an event that has not come whole, but its id line has; None for none."""
        return self._id if self._id_came else None

    def feed(self, data: bytes) -> Iterator[tuple[int, Mark]]:
        """Take some bytes; yield each mark with its index. What lies behind a mark is read when the next is asked for."""
        at = 0
        while at < len(data):
            if self._after_cr:
                at = yield from self._read_after_cr(data, at)
                continue
            end = _LINE_END.search(data, at)
            stop = end.start() if end else len(data)
            if stop > at:
                for place, mark in self._grow(data[at:stop]):
                    yield at + place, mark
                at = stop
            if end is None:
                return
            for mark in self._take_line():
                yield at, mark
            self._after_cr = data[at] == _CR
            at += 1
            if self._after_cr and self._crlf is not False:
                self._waiting = True
            else:
                for mark in self._end_line():
                    yield at, mark

    def finish(self) -> Iterator[Mark]:
        """Take the end: a last CR was a line end of its own."""
        if self._waiting:
            self._waiting = self._after_cr = False
            yield from self._end_line()

    def _read_after_cr(self, data: bytes, at: int) -> Generator[tuple[int, Mark], None, int]:
        self._after_cr = False
        self._crlf = data[at] == _LF
        if self._crlf:
            if self._between is not None:
                yield at, self._between
            at += 1
        if self._waiting:
            self._waiting = False
            for mark in self._end_line():
                yield at, mark
        return at

    def _mark(self, place: Place, width: int | None = None) -> Mark:
        return Mark(place=place, number=self._expected, replay=self._expected <= self._head, width=width)

    def _grow(self, piece: bytes) -> list[tuple[int, Mark]]:
        """Add bytes of a line; return the marks inside it, with their index in the piece."""
        before = len(self._line)
        self._line += piece
        line, start = self._line, 0
        if self._first_line and line.startswith(_BOM[: len(line)]):
            if len(line) <= len(_BOM):
                return []
            start = len(_BOM)
        found: list[tuple[int, Mark]] = []
        if before <= start and line[start : start + 1] == b":":
            found.append((start + 1, Mark(place=Place.IN_COMMENT)))
        elif self._type not in CONTROL:
            if before <= start and line[start : start + 1] == b"d":
                found.append((start + 1, self._mark(Place.IN_FIELD_NAME)))
            if line[start : start + 5] == b"data:":
                value = start + 5 + (line[start + 5 : start + 6] == b" ")
                if before <= value < len(line):
                    found.append((value + 1, self._mark(Place.IN_DATA_LINE)))
                halves = self._halves.found(line, max(before, value))
                found += [(at, self._mark(Place.IN_CHARACTER, width)) for at, width in halves]
        return sorted(((at - before, mark) for at, mark in found), key=lambda each: each[0])

    def _take_line(self) -> Iterator[Mark]:
        """Take a line's meaning, all but its line end having come."""
        line = bytes(self._line)
        self._line.clear()
        self._between = None
        if self._first_line:
            self._first_line = False
            line = line.removeprefix(_BOM)
        if not line:
            self._line_name = b"\n"
            if self._data and self._type not in CONTROL:
                yield self._mark(Place.BEFORE_BLANK_LINE)
            return
        self._line_name, colon, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match self._line_name:
            case b"":
                self._line_name = b":" if colon else b""
            case b"data":
                self._data.append(value)
                if self._type not in CONTROL:
                    self._between = self._mark(Place.IN_LINE_END)
            case b"event":
                self._type = value.decode("utf-8", "replace")
                if self._type not in CONTROL:
                    yield self._mark(Place.IN_EVENT_LINE)
            case b"id" if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
                self._expected = self._numbering.of(self._id, self._expected)
                yield self._mark(Place.IN_ID_LINE)
            case _:
                pass  # retry, or a field that nobody knows

    def _end_line(self) -> Iterator[Mark]:
        """Yield what lies behind the line's end."""
        match self._line_name:
            case b":":
                yield Mark(place=Place.AFTER_COMMENT)
            case b"id" if self._id is not None:
                self._id_came = True
                yield self._mark(Place.AFTER_ID_LINE)
            case b"\n":
                yield from self._end_block()
            case _:
                pass

    def _end_block(self) -> Iterator[Mark]:
        block = Block(self._id, self._type or "message", b"\n".join(self._data)) if self._data else None
        self._id, self._id_came, self._type = None, False, ""
        self._data.clear()
        self._halves.clear()
        if block is None:
            return
        if block.id is None and block.type in CONTROL:
            yield Mark(place=None, block=block)
            if block.type == "stream.attached":
                self._attach(block)
                yield from self._before_live()
            return
        number = self._expected if block.id is not None else self._numbering.of(None, self._expected)
        replay = number <= self._head
        self._expected = number + 1
        yield Mark(place=Place.AFTER_EVENT, number=number, replay=replay, block=block)
        if self._attached or replay:
            yield from self._before_live()

    def _attach(self, block: Block) -> None:
        """Take what the server announced: where it goes on, and what it has."""
        try:
            told = json_of(block.data)
            cursor, head = told.get("cursor"), told.get("last_sequence")
        except (ValueError, AttributeError):
            return
        self._attached = True
        if isinstance(cursor, str) and (at := sequence_of(cursor)) is not None:
            self._expected = at + 1
        if is_number(head):
            self._head = head

    def _before_live(self) -> Iterator[Mark]:
        """Yield the place between replay and live, once: all that the server had has passed."""
        if self._expected > self._head and not self._live:
            self._live = True
            yield Mark(place=Place.BEFORE_LIVE, number=self._expected)
