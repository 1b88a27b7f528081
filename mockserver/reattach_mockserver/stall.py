"""Notices a reader that takes nothing any more. A slow one takes something each time one looks; its pace is its own.

For `guard.py` and `pinging.py`: what is asked is whether the bytes that wait in a transport became fewer.
"""

import asyncio


class Stall:
    """Breaks a connection off whose full buffer stays as it is for so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, transport: asyncio.Transport) -> None:
        """The buffer is full: look again later, and again."""
        self.end()
        self._look(transport, transport.get_write_buffer_size() + 1)

    def end(self) -> None:
        """It has been taken, or the connection is gone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self, transport: asyncio.Transport, before: int) -> None:
        waiting = transport.get_write_buffer_size()
        if waiting >= before:
            transport.abort()
            return
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._look, transport, waiting)
