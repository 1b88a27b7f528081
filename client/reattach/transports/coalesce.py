"""Many small HTTP chunks made one: what keeps the cost of a chunk from being the cost of an event.

A server sends one HTTP chunk an event, and the HTTP library below us spends more on each chunk than all of reattach on the
event. A `Coalescer` stands between the socket and that library: it is fed what a read brought and returns what the library shall
see, the same body in one chunk a read. It never waits, never judges and never hides: it takes over only where head and framing
have the plainest form, at the first thing it does not know it hands over every byte as it came, and the library decides.

Rules and their sources
    * RFC 9112, 7.1: chunk = size in hexadecimal, extensions that may be dropped, CRLF, data, CRLF. The last chunk and the
      trailers after it are handed over as they came.
    * A chunk that does not end in CRLF cannot be left to the library, since its data was already handed over as a whole chunk:
      `MALFORMED` takes its place, which no parser accepts.
    * Interim answers (1xx, but for 101) precede the head that counts; 204 and 304 have no body; RFC 9110, 15.

Checked by tests/client/transports/test_coalesce.py: for any bytes in any cut, h11 says the same with and without it.
"""

from __future__ import annotations

import re
from enum import Enum, auto

MALFORMED = b"malformed chunk end\r\n"
LONGEST_HEAD = 100 * 1024  # bytes; where httpcore gives up on a head too
LONGEST_SIZE_LINE = 4096  # bytes, extensions included
KNOWN_SIZES = 4096

_HEAD_END = re.compile(rb"\n\r?\n")
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([0-9]{3})(?: [^\r\n]*)?")
_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?")


class _At(Enum):
    HEAD = auto()
    SIZE = auto()
    DATA = auto()
    END = auto()  # the CRLF after the data
    HANDED_OVER = auto()  # nothing here looks at bytes any more


class Coalescer:
    """One response's bytes on their way from the socket to the HTTP library."""

    __slots__ = ("_at", "_held", "_left", "_sizes")

    def __init__(self) -> None:
        self._at = _At.HEAD
        self._held = b""
        self._left = 0  # bytes of the chunk's data that have not come
        self._sizes: dict[bytes, int] = {}  # a stream's chunks are of few sizes: reading one again costs nothing

    def feed(self, data: bytes) -> bytes:
        """Return what the library shall see now; b"" if that has to wait for more."""
        if self._at is _At.HANDED_OVER:
            return data
        data, self._held = self._held + data, b""
        out = b""
        while self._at is _At.HEAD and data:
            found = _HEAD_END.search(data)
            if found is None:
                if len(data) > LONGEST_HEAD or not data.startswith(b"HTTP/1."[: len(data)]):
                    self._at = _At.HANDED_OVER
                    return out + data
                self._held = data
                return out
            out += data[: found.end()]
            self._at = _after(data[: found.end()])
            data = data[found.end() :]
        return out + (data if self._at is _At.HANDED_OVER else self._body(data))

    def rest(self) -> bytes:
        """Return what is held at the end of the connection, so that the library sees the same cut as the socket."""
        held, self._held, self._at = self._held, b"", _At.HANDED_OVER
        return held

    def _body(self, data: bytes) -> bytes:
        at, left, here, size = self._at, self._left, 0, len(data)
        find, ends, sizes = data.find, data.startswith, self._sizes
        pieces: list[bytes] = []
        add = pieces.append
        unknown = b""
        together = True
        while here < size:
            if at is _At.SIZE:
                if together:
                    together = False
                    whole, end = self._together(data[here:])
                    add(whole)
                    here += end
                    if here == size:
                        break
                end = find(b"\r\n", here)
                if end < 0:
                    if size - here > LONGEST_SIZE_LINE:
                        at, unknown, here = _At.HANDED_OVER, data[here:], size
                    break
                line = data[here:end]
                known = sizes.get(line)
                if known is None:
                    known = self._learn(line)
                    if not known:
                        at, unknown, here = _At.HANDED_OVER, data[here:], size
                        break
                here, left = end + 2, known
                end = here + left
                if ends(b"\r\n", end):  # the usual case: the whole chunk is here
                    add(data[here:end])
                    here = end + 2
                    continue
                at = _At.DATA
            if at is _At.DATA:
                piece = data[here : here + left]
                add(piece)
                here += len(piece)
                left -= len(piece)
                if left:
                    break
                at = _At.END
            if at is _At.END:
                mark = data[here : here + 2]
                if not b"\r\n".startswith(mark):
                    at, unknown, here = _At.HANDED_OVER, MALFORMED, size
                elif len(mark) < 2:
                    break
                else:
                    at, here = _At.SIZE, here + 2
        self._at, self._left, self._held = at, left, data[here:]
        payload = b"".join(pieces)
        return (b"%x\r\n%b\r\n" % (len(payload), payload) if payload else b"") + unknown

    def _together(self, data: bytes) -> tuple[bytes, int]:
        """Return the joined data of all chunks that are whole, and where they end; nothing if one is not of the usual kind.

        Cut at every CRLF, size and data alternate if there is none inside the data: then each piece is as long as the line before
        it says. Where all are, this is what reading them one by one finds, at half the price.
        """
        parts = data.split(b"\r\n")
        end = (len(parts) - 1) // 2 * 2
        lines, pieces = parts[:end:2], parts[1:end:2]
        lengths = list(map(len, pieces))
        if lengths != list(map(self._sizes.get, lines)):
            return b"", 0
        return b"".join(pieces), sum(lengths) + sum(map(len, lines)) + 2 * end

    def _learn(self, line: bytes) -> int | None:
        """Return the size that the line states; None or 0 if the library has to see it."""
        found = _SIZE_LINE.fullmatch(line)
        if found is None:
            return None
        size = int(found[1], 16)
        if size and len(self._sizes) < KNOWN_SIZES:
            self._sizes[line] = size
        return size


def _after(head: bytes) -> _At:
    """Say what follows a head: another one, plain chunks, or what the library alone may read."""
    if not head.endswith(b"\r\n\r\n") or head.count(b"\n") != head.count(b"\r\n"):
        return _At.HANDED_OVER
    lines = head[:-4].split(b"\r\n")
    status = _STATUS_LINE.fullmatch(lines[0])
    if status is None or status[1] in (b"101", b"204", b"304"):
        return _At.HANDED_OVER
    if status[1].startswith(b"1"):
        return _At.HEAD
    codings = []
    for line in lines[1:]:
        if line.startswith((b" ", b"\t")):  # a folded line: which header it belongs to is not for us to say
            return _At.HANDED_OVER
        name, _, value = line.partition(b":")
        if name.lower() == b"transfer-encoding":
            codings.append(value.strip(b" \t").lower())
    return _At.SIZE if codings == [b"chunked"] else _At.HANDED_OVER
