"""`Rewriter`: an answer framed anew, for faults that put bytes into its body or end it early.

Only answers with such a fault planned on them are rewritten; all others pass byte for byte. A sized answer becomes a chunked one;
one that lasts until the connection ends stays so.
"""

from collections import deque

from reattach_chaos.gate.blocks import Block
from reattach_chaos.gate.framing import Head, Span

MOST_EVENTS = 64  # so many are kept to be sent again


class Rewriter:
    """Frames one answer.

    Args:
        head: The server's.
        until_close: Whether the body lasts until the connection ends.
    """

    def __init__(self, head: Head, *, until_close: bool) -> None:
        self._head = head
        self.chunked = not until_close
        self._head_bytes = bytearray()
        self._body = bytearray()
        self._event = bytearray()
        self._recent: deque[tuple[bytes, Block]] = deque(maxlen=MOST_EVENTS)

    def put(self, span: Span, piece: bytes) -> None:
        """Take a piece of a span. A head goes on when it is whole; the server's framing never does."""
        match span.kind:
            case "head":
                self._head_bytes += piece
            case "body":
                self._event += piece
                self._body += piece
            case _:
                pass

    def flush(self) -> bytes:
        """Return what goes on now."""
        head, body = bytes(self._head_bytes), bytes(self._body)
        self._head_bytes.clear()
        self._body.clear()
        return (self._headed(head) if head else b"") + self.body(body)

    def body(self, data: bytes) -> bytes:
        """Return body bytes with their framing."""
        return b"%x\r\n" % len(data) + data + b"\r\n" if self.chunked and data else data

    @property
    def end(self) -> bytes:
        """The framing of the body's end."""
        return b"0\r\n\r\n" if self.chunked else b""

    def end_event(self, block: Block) -> None:
        """Say that the body so far ends with this whole event."""
        self._recent.append((bytes(self._event), block))
        self._event.clear()

    def begin_event(self) -> None:
        """Say that the body so far belongs to no event: a frame of the server's own has ended."""
        self._event.clear()

    def recent(self, events: int) -> list[tuple[bytes, Block]]:
        """Return the last events as they were sent, at most so many."""
        return list(self._recent)[-events:]

    def _headed(self, piece: bytes) -> bytes:
        if not self.chunked:
            return piece
        skip = ("content-length", "transfer-encoding")
        lines = [
            line for line in piece[:-4].split(b"\r\n") if line.partition(b":")[0].strip().lower().decode() not in skip
        ]
        return b"\r\n".join([*lines, b"Transfer-Encoding: chunked", b"", b""])
