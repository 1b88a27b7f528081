"""WebSocket frames: the messages of either direction, and `FrameReader`, the marks in the server's.

The places are named as in a stream: in the frame's header ("in-chunk-size"), in an event's message once it is known as one
("in-data-line"), before the message's last byte ("before-blank-line"), behind it ("after-event"); a ping is a comment, the answer
to a resume is the head, the close is the terminator. Compressed messages are relayed, and have no places.

Rules: RFC 6455, 5.2 (framing), 5.4 (fragments). Checked by tests/chaos/gate/test_frames.py.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from reattach_chaos.gate.blocks import Block
from reattach_chaos.gate.characters import Halves
from reattach_chaos.gate.marks import Mark
from reattach_chaos.gate.numbering import Numbering
from reattach_chaos.gate.routes import json_object
from reattach_chaos.history.foreign import is_number
from reattach_chaos.schedules.place import Place

MOST_MESSAGE = 16 * 1024 * 1024  # a longer one is relayed, not understood
_CLOSE, _PING, _PONG = 8, 9, 10
_KIND = re.compile(rb'\{\s*"type"\s*:\s*"(event|resume_ok)"')
_EVENT = re.compile(r'"event"\s*:')


@dataclass(slots=True)
class Frame:
    """A frame's header, while it comes, and how much of the payload is left."""

    header: bytearray = field(default_factory=bytearray)
    left: int = 0

    @property
    def opcode(self) -> int:
        """What it is."""
        return self.header[0] & 0x0F

    @property
    def final(self) -> bool:
        """Whether the message ends with it."""
        return bool(self.header[0] & 0x80)

    @property
    def control(self) -> bool:
        """Whether it may come inside a message."""
        return self.opcode >= _CLOSE

    def add(self, byte: int) -> bool:
        """Take a byte of the header; return whether it is whole now."""
        self.header.append(byte)
        if len(self.header) < 2:
            return False
        length, mask = self.header[1] & 0x7F, 4 * (self.header[1] >> 7)
        extended = {126: 2, 127: 8}.get(length, 0)
        if len(self.header) < 2 + extended + mask:
            return False
        self.left = int.from_bytes(self.header[2 : 2 + extended]) if extended else length
        return True

    def unmasked(self, payload: bytes) -> bytes:
        """Return a whole payload as it was meant."""
        if not self.header[1] & 0x80:
            return payload
        size = len(payload)
        mask = (bytes(self.header[-4:]) * (size // 4 + 1))[:size]
        return (int.from_bytes(payload) ^ int.from_bytes(mask)).to_bytes(size)


class Messages:
    """Finds the messages that a client sends."""

    def __init__(self) -> None:
        self._frame = Frame()
        self._whole_header = False
        self._payload = bytearray()
        self._message = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Take some bytes; yield each message with the index just behind it."""
        at = 0
        while at < len(data):
            if not self._whole_header:
                self._whole_header = self._frame.add(data[at])
                at += 1
            else:
                piece = data[at : at + self._frame.left]
                self._payload += piece
                self._frame.left -= len(piece)
                at += len(piece)
            if self._whole_header and not self._frame.left:
                frame, payload = self._frame, bytes(self._payload)
                self._frame, self._whole_header = Frame(), False
                self._payload.clear()
                if not frame.control:
                    self._message += frame.unmasked(payload)
                    if frame.final:
                        message = bytes(self._message)
                        self._message.clear()
                        yield at, message


class FrameReader:
    """Reads what the server sends; see the seam."""

    def __init__(self) -> None:
        self._frame = Frame()
        self._whole_header = False
        self._message = bytearray()
        self._kind: tuple[bytes, int] | None = None  # what the message is, and where that was known
        self._halves = Halves()
        self._live = False
        self.attach(Numbering(), 0)

    def attach(self, numbering: Numbering, after: int) -> None:
        """Begin a run's events: a client has asked for them."""
        self._numbering = numbering
        self._expected = after + 1
        self._head = numbering.highest

    @property
    def number(self) -> int:
        """The number of the event that is on its way, or is expected next."""
        return self._expected

    @property
    def partial(self) -> str | None:
        """None: a message is received whole or not at all."""
        return None

    def finish(self) -> Iterator[Mark]:
        """Take the end; nothing is uncertain before it."""
        return iter(())

    def feed(self, data: bytes) -> Iterator[tuple[int, Mark]]:
        """Take some bytes; yield each mark with its index."""
        at = 0
        while at < len(data):
            if not self._whole_header:
                first = not self._frame.header
                if first:
                    yield at, Mark(place=Place.AFTER_REQUEST)
                self._whole_header = self._frame.add(data[at])
                at += 1
                if first:
                    beat = self._frame.opcode in (_PING, _PONG)
                    yield at, Mark(place=Place.IN_COMMENT) if beat else self._mark(Place.IN_CHUNK_SIZE)
            else:
                piece = data[at : at + self._frame.left]
                if not self._frame.control and len(self._message) <= MOST_MESSAGE:
                    for place, mark in sorted(self._grow(piece), key=lambda each: each[0]):
                        yield at + place, mark
                self._frame.left -= len(piece)
                at += len(piece)
            if self._whole_header and not self._frame.left:
                for mark in self._end_frame():
                    yield at, mark

    def _grow(self, piece: bytes) -> Iterator[tuple[int, Mark]]:
        """Add bytes of a message; yield the marks in them, with their index in the piece."""
        before = len(self._message)
        self._message += piece
        if self._kind is None and (found := _KIND.match(self._message)):
            self._kind = found[1], found.end()
        if self._kind is None:
            return
        kind, known = self._kind
        event = kind == b"event"
        if before < known:
            yield known - before, self._mark(Place.IN_DATA_LINE if event else Place.IN_HEAD)
        if not event:
            return
        for place, width in self._halves.found(self._message, max(before, known)):
            yield place - before, self._mark(Place.IN_CHARACTER, width)
        last = self._frame.left - 1  # the message's last byte lies so far behind the piece's first
        if self._frame.final and (0 < last <= len(piece)):
            yield last, self._mark(Place.BEFORE_BLANK_LINE)

    def _end_frame(self) -> Iterator[Mark]:
        frame, self._frame, self._whole_header = self._frame, Frame(), False
        if frame.opcode in (_PING, _PONG):
            yield Mark(place=Place.AFTER_COMMENT)
        elif frame.opcode == _CLOSE:
            yield Mark(place=Place.AFTER_TERMINATOR)
        elif frame.final:
            message = bytes(self._message)
            self._message.clear()
            self._kind = None
            self._halves.clear()
            yield from self._end_message(message)

    def _end_message(self, message: bytes) -> Iterator[Mark]:
        told = json_object(message)
        kind = str(told.get("type", ""))
        if kind != "event":
            yield Mark(place=None, block=Block(None, kind, message))
            if kind == "resume_ok":
                last = told.get("last_sequence")
                self._head = last if is_number(last) else self._head
                after = told.get("cursor")
                self._expected = self._numbering.after(after if isinstance(after, str) else None) + 1
                yield Mark(place=Place.AFTER_HEAD)
                yield from self._before_live()
            return
        cursor, event = told.get("cursor"), told.get("event")
        name = cursor if isinstance(cursor, str) else None
        number = self._numbering.of(name, self._expected)
        self._expected = number + 1
        type_ = str(event.get("type", "message")) if isinstance(event, dict) else "message"
        block = Block(name, type_, _text_of_event(message))
        yield Mark(place=Place.AFTER_EVENT, number=number, replay=number <= self._head, block=block)
        yield from self._before_live()

    def _before_live(self) -> Iterator[Mark]:
        if self._expected > self._head and not self._live:
            self._live = True
            yield Mark(place=Place.BEFORE_LIVE, number=self._expected)

    def _mark(self, place: Place, width: int | None = None) -> Mark:
        return Mark(place=place, number=self._expected, replay=self._expected <= self._head, width=width)


def _text_of_event(message: bytes) -> bytes:
    """Return the event's own JSON text, as it stands in the message."""
    text = message.decode("utf-8", "replace")
    found = _EVENT.search(text)
    if found is None:
        return message
    start = found.end() + len(text[found.end() :]) - len(text[found.end() :].lstrip())
    try:
        _, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return message
    return text[start:end].encode()
