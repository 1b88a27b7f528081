"""The event-stream decoder: bytes as they come from the network, frames as the standard defines them.

One class, fed read by read. It knows lines, fields and blocks; never HTTP, time, a vendor, or what an event means. Nothing here
waits. What is handed out depends on the bytes alone, never on where the network cut them.

Rules and their sources
    * Everything from the WHATWG HTML standard, "Interpreting an event stream" and "Decode" of the Encoding standard: one byte
      order mark at the start is dropped, LF, CR and CRLF end lines, the id is sticky, a block without data is no event.
    * A CR ends its line at once: a block that ends in CR CR is delivered without waiting to see whether LF follows.
    * Ours: the limit. The bytes of one event are those of its lines, each counted with one byte for its end, without comments;
      a comment alone may not pass it either.
    * Ours: a `retry` value beyond the largest time that makes sense counts as that time (the reader clamps further).

There are two paths and one meaning: `_whole` matches blocks of the usual shapes, `_lines` can read everything.
Checked by tests/client/wire/test_eventstream.py against an interpreter of the standard that shares no code with this file.
"""

from __future__ import annotations

import re
from itertools import chain

from reattach.wire.frame import Frame

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
COLON = 0x3A
LONGEST_RETRY = 10**12  # milliseconds: 31 years, and far below the length at which Python refuses to read digits

# The usual shapes: an id, a name, lines of data, in this order and each with its colon. `[^\n]*` is one tight loop, and the
# possessive `*+` takes no way back: what does not match costs one look at it.
_USUAL = re.compile(
    r"(?:id: ?([^\n]*)\n)?(?:event: ?([^\n]*)\n)?data: ?([^\n]*)\n((?:data:[^\n]*\n)*+)\n",
).match
_MORE_DATA = re.compile(r"\ndata: ?")

# The shape of a replay from a server of our own protocol: found all at once, a third cheaper still. What is found is all there
# was if its groups and its fixed characters together are as long as the text.
_PLAIN = re.compile(r"id: ([^\n]*)\nevent: ([^\n]*)\ndata: ([^\n]*)\n\n").findall
_PLAIN_FIXED = len("id: \nevent: \ndata: \n\n")


class Oversize(Exception):
    """One event is larger than `limit` bytes. The decoder is spent: nothing after it can be read."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"an event larger than {limit} bytes")
        self.limit = limit


class Decoder:
    """Turns one response's body into frames. Holds at most one unfinished event; work is linear in what is fed.

    Args:
        max_event_bytes: The limit of one event, see the module; `feed` raises as soon as it is passed, finished or not.
    """

    __slots__ = (
        "_after_cr",
        "_block",
        "_data",
        "_event",
        "_id",
        "_line",
        "_mark",
        "_retry",
        "last_id",
        "limit",
        "spent",
    )

    def __init__(self, max_event_bytes: int) -> None:
        self.limit = max_event_bytes
        self._mark: bytes | None = b""  # what has come of a byte order mark; None when the start is behind us
        self._after_cr = False
        self._line = bytearray()  # the line that has not ended
        self._block = 0  # bytes of the ended lines of the open event, comments not counted
        self._data = bytearray()
        self._event = b""
        self._id = ""
        self._retry: int | None = None
        self.last_id = ""
        """The id in force after the last block that ended; "" if there was none."""
        self.spent = False
        """Whether an event passed the limit: the next `feed` raises, whatever it is given."""

    @property
    def growing(self) -> bool:
        """Whether what was fed ends inside an event (a comment is none)."""
        return self._block > 0 or (len(self._line) > 0 and self._line[0] != COLON)

    def take_retry(self) -> float | None:
        """Return the last `retry` in seconds since this was asked last, else None."""
        retry, self._retry = self._retry, None
        return None if retry is None else retry / 1000

    def feed(self, data: bytes) -> tuple[Frame, ...]:
        """Return all frames that these bytes complete, in order.

        Raises:
            Oversize: An event passed the limit. If whole events came before it in `data` they are returned, and the next
                call raises instead, so that the cut of the network decides nothing.
        """
        if self.spent:
            raise Oversize(self.limit)
        if self._mark is not None:
            data = self._start(data)
        if self._after_cr and data:
            self._after_cr = False
            if data.startswith(b"\n"):
                data = data[1:]
        if not data:
            return ()
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

        frames: list[Frame] = []
        try:
            if b"\n" in data:
                self._read(data, frames)
            else:
                self._grow(data)
        except Oversize:
            self.spent = True
            self._line, self._data = bytearray(), bytearray()
            if not frames:
                raise
        return tuple(frames)

    def _start(self, data: bytes) -> bytes:
        """Drop the byte order mark; return b"" while it cannot be told whether there is one."""
        data = (self._mark or b"") + data
        if len(data) < len(BYTE_ORDER_MARK) and BYTE_ORDER_MARK.startswith(data):
            self._mark = data
            return b""
        self._mark = None
        return data.removeprefix(BYTE_ORDER_MARK)

    def _read(self, data: bytes, frames: list[Frame]) -> None:
        """Send the end of the open block, the whole blocks, and the beginning of the next to who reads them best."""
        start = 0
        if self._line or self._block:
            end = data.find(b"\n\n")
            start = len(data) if end < 0 else end + 2
            self._lines(data[:start], frames)
        end = data.rfind(b"\n\n", start) + 2
        if end > start:
            # Where not even all of it together is above the limit, no event of it can be.
            whole = data[start:end]
            (self._whole if len(whole) <= self.limit else self._lines)(whole, frames)
            start = end
        if start < len(data):
            self._lines(data[start:], frames)

    def _whole(self, data: bytes, frames: list[Frame]) -> None:
        """Read blocks that are all here, beginning between two blocks; hand the unusual ones to `_lines`."""
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return self._lines(data, frames)
        if "\0" in text:  # an id with it does not count
            return self._lines(data, frames)
        new, add, usual = tuple.__new__, frames.append, _USUAL
        if text.startswith("id: "):
            plain = _PLAIN(text)
            if sum(map(len, chain.from_iterable(plain))) + _PLAIN_FIXED * len(plain) == len(text):
                frames += [new(Frame, (event or "message", value, named)) for named, event, value in plain]
                self._id = self.last_id = plain[-1][0]
                return None
        last = self._id
        at, size = 0, len(text)
        while at < size:
            found = usual(text, at)
            if found is None:
                end = text.find("\n\n", at) + 2
                if end == 1:
                    end = size
                self._id = self.last_id = last
                self._lines(text[at:end].encode(), frames)
                last = self._id
                at = end
                continue
            named, event, value, more = found.groups()
            if named is not None:
                last = named
            if more:
                value += _MORE_DATA.sub("\n", "\n" + more[:-1])
            add(new(Frame, (event or "message", value, last)))
            at = found.end()
        self._id = self.last_id = last
        return None

    def _lines(self, data: bytes, frames: list[Frame]) -> None:
        """Read any lines, in any state; line ends are LF by now."""
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines:
            if self._line:
                first = self._line
                self._line = bytearray()
                first += lines[0]
                self._take(first, frames)
                del lines[0]
            for line in lines:
                self._take(line, frames)
        self._grow(rest)

    def _grow(self, rest: bytes) -> None:
        """Add to the line that has not ended, or see that it need not end to be too long."""
        self._line += rest
        if self._line:
            self._measure(self._line)

    def _measure(self, line: bytes | bytearray) -> int:
        """Return the bytes of the open event with this line.

        Raises:
            Oversize: They are more than the limit.
        """
        size = len(line) + 1 if line[0] == COLON else self._block + len(line) + 1
        if size > self.limit:
            raise Oversize(self.limit)
        return size

    def _take(self, line: bytes | bytearray, frames: list[Frame]) -> None:
        """Read one ended line: a field, a comment, or the end of the block."""
        if not line:
            self._end(frames)
            return
        size = self._measure(line)
        if line[0] == COLON:
            return
        self._block = size
        if line.startswith(b"data:"):
            begin = 6 if line.startswith(b" ", 5) else 5
            if isinstance(line, bytearray) and not self._data:
                del line[:begin]  # a line of many reads: it becomes the data, no copy of it is made
                self._data = line
            else:
                self._data += line[begin:]
            self._data += b"\n"
            return
        name, _, value = bytes(line).partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._data += b"\n"
            case b"event":
                self._event = value
            case b"id":
                if b"\0" not in value:
                    self._id = value.decode(errors="replace")
            case b"retry":
                if value.isdigit():
                    digits = value.lstrip(b"0")
                    self._retry = min(int(digits or b"0"), LONGEST_RETRY) if len(digits) < 20 else LONGEST_RETRY

    def _end(self, frames: list[Frame]) -> None:
        """End the block: its id is in force now, and if it has data it is a frame."""
        self.last_id = self._id
        data, event = self._data, self._event
        self._block, self._event = 0, b""
        if data:
            self._data = bytearray()
            del data[-1:]
            name = event.decode(errors="replace") if event else "message"
            frames.append(Frame(name, data.decode(errors="replace"), self._id))
