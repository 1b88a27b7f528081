"""`PageReader`: the marks in a page of events as JSON: inside each event's object, before its last brace, behind it.

A client can use nothing of a page before it has all of it, so a cut anywhere in it loses the page; the places are named as in a
stream all the same, that one schedule can be played on both. What only lines have (an id line, a comment) a page has not.

The elements of the member `events` of the outermost object are the events. Checked by tests/chaos/gate/test_pages.py.
"""

import re
from collections.abc import Iterator

from reattach_chaos.gate.blocks import Block
from reattach_chaos.gate.characters import Halves
from reattach_chaos.gate.marks import Mark
from reattach_chaos.gate.numbering import Numbering
from reattach_chaos.gate.routes import json_object
from reattach_chaos.schedules.place import Place

_OUTSIDE = re.compile(rb'["{}\[\]]')
_INSIDE = re.compile(rb'["\\]')
_EVENT_DEPTH = 3  # the page, its array, the event


class PageReader:
    """Reads one page.

    Args:
        numbering: Of the run.
        after: The number of the event at the cursor that was asked after.
    """

    def __init__(self, numbering: Numbering, after: int = 0) -> None:
        self._numbering = numbering
        self._expected = after + 1
        self._known = numbering.highest
        self._depth = 0
        self._string: bytearray | None = None
        self._escaped = False
        self._member = b""  # the last string of the outermost object
        self._in_events = False
        self._event: bytearray | None = None
        self._halves = Halves()
        self.events: list[Block] = []
        """The events of the page so far; `data` is each one's JSON text, `id` the decimal sequence."""

    @property
    def number(self) -> int:
        """The number of the event that is on its way, or is expected next."""
        return self._expected

    @property
    def partial(self) -> str | None:
        """None: of a page nothing is received before it is whole."""
        return None

    def finish(self) -> Iterator[Mark]:
        """Take the end; nothing is uncertain before it."""
        return iter(())

    def feed(self, data: bytes) -> Iterator[tuple[int, Mark]]:
        """Take some bytes; yield each mark with its index."""
        at = 0
        while at < len(data):
            if self._escaped:
                self._escaped = False
                yield from self._take(data, at, at + 1)
                at += 1
                continue
            found = (_OUTSIDE if self._string is None else _INSIDE).search(data, at)
            stop = found.start() if found else len(data)
            yield from self._take(data, at, stop)
            at = stop
            if found:
                yield from self._structure(data, at)
                at += 1

    def _take(self, data: bytes, start: int, end: int) -> Iterator[tuple[int, Mark]]:
        """Take bytes that are no structure."""
        if self._string is not None and self._depth == 1:
            self._string += data[start:end]
        if self._event is not None and start < end:
            before = len(self._event)
            self._event += data[start:end]
            for place, width in sorted(self._halves.found(self._event, before)):
                yield start + place - before, self._mark(Place.IN_CHARACTER, width)

    def _structure(self, data: bytes, at: int) -> Iterator[tuple[int, Mark]]:
        byte = data[at : at + 1]
        if byte == b"}" and self._event is not None and self._depth == _EVENT_DEPTH:
            yield at, self._mark(Place.BEFORE_BLANK_LINE)
        if self._event is not None:
            self._event += byte
        match byte:
            case b"\\":
                self._escaped = True
            case b'"' if self._string is None:
                self._string = bytearray()
            case b'"':
                self._member = bytes(self._string or b"") if self._depth == 1 else self._member
                self._string = None
            case b"{" | b"[":
                self._depth += 1
                if byte == b"[" and self._depth == _EVENT_DEPTH - 1:
                    self._in_events = self._member == b"events"
                if byte == b"{" and self._depth == _EVENT_DEPTH and self._in_events:
                    self._event = bytearray(byte)
                    self._halves.clear()
                    yield at + 1, self._mark(Place.IN_DATA_LINE)
            case _:
                self._depth -= 1
                if self._event is not None and self._depth == _EVENT_DEPTH - 1:
                    yield at + 1, self._end_event()

    def _end_event(self) -> Mark:
        data = bytes(self._event or b"")
        self._event = None
        told = json_object(data)
        sequence = told.get("sequence")
        name = str(sequence) if type(sequence) is int else str(told.get("id") or "") or None
        number = self._numbering.of(name, self._expected)
        self._expected = number + 1
        block = Block(name, str(told.get("type", "message")), data)
        self.events.append(block)
        return Mark(place=Place.AFTER_EVENT, number=number, replay=number <= self._known, block=block, whole=False)

    def _mark(self, place: Place, width: int | None = None) -> Mark:
        return Mark(place=place, number=self._expected, replay=self._expected <= self._known, width=width)
