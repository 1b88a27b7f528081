"""`Body`: the body of one scripted answer, written by a test and read by the client, in this thread or another.

A queue of what reads bring: bytes, a clean end, a broken connection. Where it is empty the line is silent. It knows no protocol;
what a good native body looks like is in `frames`, who gets which body is decided in `wire`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

import anyio

from reattach.runtime.loop import Soon, soon_in_this_loop
from reattach.transports.base import WireLost


class Body:
    r"""What one connection brings, read by read. Every method may be called from any thread, before or after it is opened.

    ```python
    body.send(frames.attached(), frames.event(1))       # one read brings both
    body.send(b"data: ", b"x\n\n", reads=(1,))           # two reads more, of one byte each, and one of the rest
    body.fin()                                          # or reset(), or nothing: silence
    ```
    """

    def __init__(self) -> None:
        self._items: deque[bytes | WireLost | None] = deque()
        self._lock = threading.Lock()
        self._soon: Soon | None = None
        self._wake: anyio.Event | None = None
        self.heard = bytearray()
        """What the client said after its request: a WebSocket's frames."""
        self.closed = threading.Event()
        """Set when the client has hung up."""

    def send(self, *pieces: bytes, reads: Sequence[int] = ()) -> Body:
        """Let the next reads bring these bytes.

        Args:
            pieces: Joined before they are cut into reads.
            reads: The sizes of the reads in bytes; what is left over is one read more.
        """
        whole = b"".join(pieces)
        for size in reads:
            self._put(whole[:size])
            whole = whole[size:]
        self._put(whole)
        return self

    def fin(self) -> Body:
        """End the body cleanly."""
        self._add(None)
        return self

    def reset(self, detail: str = "connection reset by peer") -> Body:
        """Break the connection."""
        self._add(WireLost(detail))
        return self

    async def read(self) -> bytes | None:
        """Return what the next read brings, None at the clean end; waits while the line is silent. In the client's loop.

        Raises:
            WireLost: The connection broke.
        """
        while True:
            with self._lock:
                if self._items:
                    item = self._items[0]
                    if isinstance(item, bytes):
                        self._items.popleft()
                        return item
                    if item is None:
                        return None
                    raise item
                wake = self._wake = anyio.Event()
                self._soon = self._soon or soon_in_this_loop()
            await wake.wait()

    def hang_up(self) -> None:
        """The client closed the connection."""
        self.closed.set()

    def _put(self, data: bytes) -> None:
        if data:
            self._add(data)

    def _add(self, item: bytes | WireLost | None) -> None:
        with self._lock:
            self._items.append(item)
            wake, self._wake = self._wake, None
            soon = self._soon
        if wake is not None and soon is not None:
            soon(wake.set)
