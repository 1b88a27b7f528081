"""Event-stream blocks: where each one ends, and what its fields say.

A boundary is the place just after a block's blank line. Blocks without data (comments, a `retry:` alone) have none. Only what a
cut and a history need is read: `id`, `event`, `data`. Incremental: any split of the bytes gives the same boundaries.

One rule is the gate's own. A lone CR that ends a blank line may be the first half of CR LF; waiting for the next byte would hold
an event back on a quiet stream. So the stream's earlier line ends decide: after CR LF line ends it waits, after CR line ends it
does not.

Rules: WHATWG HTML, "Server-sent events", parsing. Checked by tests/chaos/gate/test_blocks.py.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from reattach_chaos.gate.numbering import sequence_of

_LINE_END = re.compile(rb"[\r\n]")
_BOM = b"\xef\xbb\xbf"
_CR, _LF = 0x0D, 0x0A


@dataclass(frozen=True, slots=True)
class Block:
    """One block with data. `id` is None where the block itself names none, as control frames do not."""

    id: str | None
    type: str
    data: bytes

    @property
    def sequence(self) -> int | None:
        """The sequence in an id of the form `<epoch>.<sequence>`, else None."""
        return sequence_of(self.id)


class BlockScanner:
    """Finds the boundaries of one response body."""

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._id: str | None = None
        self._type = ""
        self._data: list[bytes] = []
        self._first_line = True
        self._after_cr = False
        self._crlf: bool | None = None  # what followed the last CR of which we know it
        self._pending: Block | None = None

    def feed(self, data: bytes) -> Iterator[tuple[int, Block]]:
        """Take some bytes; yield each block that ended, with the index in `data` just after its blank line.

        The index is 0 where the block had ended before, which only now is certain. What lies behind a block is read when the next
        one is asked for: after a cut, never.
        """
        at = 0
        if self._after_cr and data:
            self._after_cr = False
            self._crlf = data[0] == _LF
            at = int(self._crlf)  # the second half of a line end
            if self._pending is not None:
                yield at, self._pending
                self._pending = None
        while (end := _LINE_END.search(data, at)) is not None:
            self._line.append(data[at : end.start()])
            at = end.end()
            if data[end.start()] == _CR:
                if at == len(data):
                    self._after_cr = True
                else:
                    self._crlf = data[at] == _LF
                    at += self._crlf
            block = self._take_line()
            if block is None:
                continue
            if self._after_cr and self._crlf is not False:
                self._pending = block
            else:
                yield at, block
        if at < len(data):
            self._line.append(data[at:])

    def _take_line(self) -> Block | None:
        line = b"".join(self._line)
        self._line.clear()
        if self._first_line:
            self._first_line = False
            line = line.removeprefix(_BOM)
        if not line:
            return self._take_block()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._data.append(value)
            case b"event":
                self._type = value.decode("utf-8", "replace")
            case b"id" if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
            case _:
                pass  # a comment, retry, or a field that nobody knows
        return None

    def _take_block(self) -> Block | None:
        block = Block(self._id, self._type or "message", b"\n".join(self._data)) if self._data else None
        self._id, self._type = None, ""
        self._data.clear()
        return block
