"""HTTP/1.1 message framing: which bytes of one direction are head, chunk framing and body.

Incremental and lossless: the spans given back, put together, are the bytes put in. A head is given in one piece when it is whole;
all else at once, so that a relay never holds a body back. Nothing here waits, writes or knows what a body means.

Rules: RFC 9112, section 6 (Transfer-Encoding before Content-Length; no body after HEAD, 1xx, 204, 304; a response without either
ends with the connection) and section 7.1 (chunks).

Checked by tests/chaos/gate/test_framing.py under every split of every framing.
"""

from collections import deque
from dataclasses import dataclass
from typing import Literal, TypeAlias

MAX_HEAD_BYTES = 256 * 1024  # the protocol's own bound for a head is 32 KiB; beyond 256 KiB a bare close is allowed
MAX_LINE_BYTES = 64 * 1024  # a chunk-size line or a trailer

SpanKind: TypeAlias = Literal["head", "framing", "body", "end"]


class FramingError(Exception):
    """The bytes are not HTTP/1.1: nothing can be said of what follows."""


@dataclass(frozen=True, slots=True)
class Head:
    """A request's or response's first line and headers, names in lower case."""

    start_line: str
    headers: tuple[tuple[str, str], ...]

    def get(self, name: str) -> str | None:
        """Return the first value of a header (name in lower case), or None."""
        return next((value for each, value in self.headers if each == name), None)

    @property
    def method(self) -> str:
        """The method of a request."""
        return self.start_line.partition(" ")[0]

    @property
    def target(self) -> str:
        """The target of a request: path and query."""
        return self.start_line.split(" ")[1]

    @property
    def status(self) -> int:
        """The status of a response."""
        return int(self.start_line.split(" ")[1])


@dataclass(frozen=True, slots=True)
class Span:
    """Some bytes of one direction and what they are. `end` has no bytes: the message is whole.

    `size`: its first byte begins a chunk-size line.
    """

    kind: SpanKind
    data: bytes = b""
    head: Head | None = None
    size: bool = False


_State: TypeAlias = Literal["head", "sized", "chunk size", "chunk", "chunk end", "trailer", "until close"]


class Framing:
    """The framing of one direction of one connection.

    Args:
        responses: Whether this is the server's direction; then `expect` must be called for each request, in order.
    """

    def __init__(self, *, responses: bool) -> None:
        self._responses = responses
        self._methods: deque[str] = deque()
        self._state: _State = "head"
        self._kept = bytearray()  # of an unfinished head, or of an unfinished framing line (already given out)
        self._left = 0

    def expect(self, method: str) -> None:
        """Note that a request with this method was sent: a response follows, after those to the earlier ones."""
        self._methods.append(method)

    def tunnel(self) -> None:
        """Take all that follows as one body until the end: another protocol is spoken from now on."""
        self._state = "until close"

    @property
    def until_close(self) -> bool:
        """Whether the body lasts until the connection ends."""
        return self._state == "until close"

    @property
    def between(self) -> bool:
        """Whether the last message is whole and no byte of another has come."""
        return self._state == "head" and not self._kept

    def feed(self, data: bytes) -> list[Span]:
        """Take what came; return it as spans.

        Raises:
            FramingError: Not HTTP/1.1. Bytes already given back stand.
        """
        spans: list[Span] = []
        at = 0
        while at < len(data):
            at = self._step(data, at, spans)
        return spans

    def _step(self, data: bytes, at: int, spans: list[Span]) -> int:
        match self._state:
            case "head":
                return self._read_head(data, at, spans)
            case "sized" | "chunk":
                piece = data[at : at + self._left]
                spans.append(Span("body", piece))
                self._left -= len(piece)
                if not self._left:
                    if self._state == "chunk":
                        self._state = "chunk end"
                    else:
                        self._end(spans)
                return at + len(piece)
            case "until close":
                spans.append(Span("body", data[at:]))
                return len(data)
            case "chunk size" | "chunk end" | "trailer":
                return self._read_line(data, at, spans)

    def _read_head(self, data: bytes, at: int, spans: list[Span]) -> int:
        seen = len(self._kept)
        self._kept += data[at:]
        # Three bytes back: the blank line may have begun in what came before.
        found = self._kept.find(b"\r\n\r\n", max(0, seen - 3))
        if found < 0:
            if len(self._kept) > MAX_HEAD_BYTES:
                raise FramingError(f"a head of more than {MAX_HEAD_BYTES} bytes")
            return len(data)
        size = found + 4
        raw = bytes(self._kept[:size])
        self._kept.clear()
        head = _parse_head(raw)
        spans.append(Span("head", raw, head))
        self._begin_body(head, spans)
        return at + size - seen

    def _begin_body(self, head: Head, spans: list[Span]) -> None:
        try:
            if self._responses:
                interim = 100 <= head.status < 200
                waits = interim and head.status != 101
                method = "GET" if waits or not self._methods else self._methods.popleft()
                if head.status == 101:
                    self.tunnel()
                    return
                if interim:
                    return  # not the answer yet
                if method == "HEAD" or head.status in (204, 304):
                    self._end(spans)
                    return
            codings = (head.get("transfer-encoding") or "").lower()
            length = head.get("content-length")
            if codings.rpartition(",")[2].strip() == "chunked":
                self._state = "chunk size"
            elif length is not None:
                self._left = int(length)
                self._state = "sized"
                if not self._left:
                    self._end(spans)
            elif self._responses:
                self._state = "until close"
            else:
                self._end(spans)
        except (ValueError, IndexError) as error:
            raise FramingError(f"not a head: {head.start_line[:80]!r}") from error

    def _read_line(self, data: bytes, at: int, spans: list[Span]) -> int:
        found = data.find(b"\n", at)
        end = len(data) if found < 0 else found + 1
        piece = data[at:end]
        spans.append(Span("framing", piece, size=self._state == "chunk size" and not self._kept))
        self._kept += piece
        if len(self._kept) > MAX_LINE_BYTES:
            raise FramingError("a framing line without an end")
        if found >= 0:
            line = bytes(self._kept).strip()
            self._kept.clear()
            self._take_line(line, spans)
        return end

    def _take_line(self, line: bytes, spans: list[Span]) -> None:
        match self._state:
            case "chunk size":
                digits = line.partition(b";")[0].strip()
                if not digits or digits.strip(b"0123456789abcdefABCDEF"):
                    raise FramingError(f"not a chunk size: {line[:40]!r}")
                self._left = int(digits, 16)
                self._state = "chunk" if self._left else "trailer"
            case "chunk end":
                if line:
                    raise FramingError(f"a chunk is longer than its size: {line[:40]!r}")
                self._state = "chunk size"
            case _:
                if not line:
                    self._end(spans)

    def _end(self, spans: list[Span]) -> None:
        self._state = "head"
        spans.append(Span("end"))


def _parse_head(raw: bytes) -> Head:
    start_line, *lines = raw[:-4].decode("latin-1").split("\r\n")
    headers = tuple((name.strip().lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines))
    if len(start_line.split(" ")) < 2:
        raise FramingError(f"not a head: {start_line[:80]!r}")
    return Head(start_line, headers)
