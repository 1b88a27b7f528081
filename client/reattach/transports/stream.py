"""An answered stream request over any httpx client: what the answer is, its frames read by read, and a close that always closes.

One request's life after its head; who sent it and on which connection is `client.py`'s and `http.py`'s. The body is never
decoded but as an event stream in UTF-8: a `charset` is ignored, as the standard says, and a content coding is an objection.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

import anyio

from reattach.transports.base import Batch, WireLost, WireOversize
from reattach.transports.failures import told
from reattach.wire.eventstream import Decoder, Oversize

HANG_UP = "reattach.hang_up"
"""The key in a response's extensions under which our own transport leaves the means to cut the connection."""

CLOSE_TIMEOUT = 2.0  # seconds; a client that is not ours may want to say goodbye, over a line that nobody reads
LEFT_CHUNKS = 1_000  # a double may have an endless body, and never wait


class HttpStream:
    """One answer, as the seam's `Stream`.

    Args:
        response: An httpx response whose body is not read.
        max_event_bytes: The decoder's limit.
        timeout: Seconds for reading a body that is no stream.
    """

    def __init__(self, response: Any, *, max_event_bytes: int, timeout: float) -> None:
        self._response = response
        self._decoder = Decoder(max_event_bytes)
        self._timeout = timeout
        # A double's answer may have been read before it was given (respx, MockTransport); then only this way is open.
        whole = getattr(response, "is_stream_consumed", False)
        self._chunks: AsyncGenerator[bytes, None] = response.aiter_bytes() if whole else response.aiter_raw()
        self._unusable = False  # a read is under way, was interrupted or failed: there is nothing to go on from
        self._closed = False
        self.status: int = response.status_code
        self.headers: Mapping[str, str] = dict(response.headers.items())

    @property
    def coding(self) -> str | None:
        """The content coding that nobody asked for, else None."""
        coding = self.headers.get("content-encoding", "").strip()
        return None if coding.lower() in ("", "identity") else coding

    @property
    def objection(self) -> str | None:
        """Why this is not an event stream that can be read, else None."""
        kind = self.headers.get("content-type", "").partition(";")[0].strip()
        if kind.lower() != "text/event-stream":
            return f"{kind or 'no content type'} instead of text/event-stream"
        return None if self.coding is None else f"content coding {self.coding}, which was not asked for"

    async def read(self) -> Batch | None:
        """Return what the next read brought; see the seam."""
        if self.coding is not None:
            raise WireLost(f"content coding {self.coding}, which was not asked for")
        if self._decoder.spent:
            raise WireOversize(self._decoder.limit)
        chunk = await self.chunk()
        if chunk is None:
            return None
        try:
            frames = self._decoder.feed(chunk)
        except Oversize as exc:
            raise WireOversize(exc.limit) from exc
        return Batch(frames, self._decoder.take_retry(), self._decoder.growing)

    async def body(self, limit: int) -> bytes:
        """Return the body's first `limit` bytes, nothing if it is in a coding; see the seam."""
        if self.coding is not None:
            return b""
        body = bytearray()
        try:
            with anyio.fail_after(self._timeout):
                while len(body) < limit and (chunk := await self.chunk()) is not None:
                    body += chunk
        except TimeoutError as exc:
            raise WireLost(f"the body did not end within {self._timeout:g} s") from exc
        return bytes(body[:limit])

    async def chunk(self) -> bytes | None:
        """Return the next bytes of the body, None at its clean end.

        Raises:
            WireLost: The connection ended first, or an earlier read did not come to its end.
        """
        if self._unusable:
            raise WireLost("the connection is closed")
        self._unusable = True
        try:
            chunk = await anext(self._chunks, None)
        except Exception as exc:
            raise told(exc, sent=True) from exc
        self._unusable = False
        return chunk

    async def aclose(self) -> None:
        """Close the connection at once; see the seam."""
        if self._closed:
            return
        self._closed = self._unusable = True
        hang_up: Callable[[], Awaitable[None]] | None = self._response.extensions.get(HANG_UP)
        with anyio.move_on_after(CLOSE_TIMEOUT, shield=True):
            if hang_up is not None:
                await hang_up()
                # The library reads through nested generators. Left suspended they would be finished by the event loop some
                # time after us (with a warning on trio); led to the closed socket they end here.
                with suppress(Exception):
                    while True:
                        await anext(self._chunks)
            with suppress(Exception):
                await self._response.aclose()
            if hang_up is None:
                await self._unwind()

    async def _unwind(self) -> None:
        """End the generators through which a client that is not ours reads: a cancellation in the innermost ends them all."""
        with anyio.CancelScope() as scope, suppress(Exception):
            scope.cancel()
            for _ in range(LEFT_CHUNKS):  # what is buffered comes without a wait that could be cancelled
                await anext(self._chunks)
