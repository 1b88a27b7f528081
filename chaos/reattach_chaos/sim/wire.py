"""The client's end of the simulated network: its transport, and the bodies that it reads. Real frames, by the client's own decoder.

As `reattach.testing`'s `Wire` and `Body`, for one thread and one loop; what is answered is the server's.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple, Protocol
from urllib.parse import parse_qs, urlsplit

from reattach.testing import CallAnswer, frames
from reattach.testing.seams import Request, Response, WireLost
from reattach.testing.wire import ScriptedStream
from reattach_chaos.sim.clock import SimClock

URL = "http://sim.test"


class Sent:
    """A request as it left the client: `path` with its query, `headers` in lower case."""

    __slots__ = ("body", "headers", "method", "path")

    def __init__(self, request: Request) -> None:
        self.method = request.method
        self.path = request.url.removeprefix(URL)
        self.body = request.body
        self.headers = {
            name.lower(): value if isinstance(value, str) else value.decode("utf-8", "replace")
            for name, value in request.headers.items()
        }

    @property
    def after(self) -> str | None:
        """The cursor that an attach asks after, None for the beginning."""
        cursor = self.headers.get("last-event-id")
        if cursor is not None or "?" not in self.path:
            return cursor
        return parse_qs(urlsplit(self.path).query).get("after", [None])[0]


class SimBody:
    """What a connection brings, read by read; where nothing is left the line is silent."""

    __slots__ = ("_items", "_reader", "hung_up")

    def __init__(self) -> None:
        self.hung_up: Callable[[], None] | None = None
        """Called once, when the client closes."""
        self._items: deque[bytes | WireLost | None] = deque()
        self._reader: asyncio.Future[None] | None = None

    def send(self, whole: bytes, reads: Sequence[int] = ()) -> SimBody:
        """Let the next reads bring these bytes: reads of these sizes, and one of what is left over."""
        for size in reads:
            self._add(whole[:size])
            whole = whole[size:]
        if whole:
            self._add(whole)
        return self

    def fin(self) -> SimBody:
        """End it cleanly."""
        self._add(None)
        return self

    def reset(self, detail: str = "connection reset by peer") -> SimBody:
        """Break it."""
        self._add(WireLost(detail))
        return self

    async def read(self) -> bytes | None:
        """Return what the next read brings, None at the clean end.

        Raises:
            WireLost: The connection broke.
        """
        while not self._items:
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        item = self._items[0]
        if isinstance(item, bytes):
            self._items.popleft()
            return item
        if item is None:
            return None
        raise item

    def hang_up(self) -> None:
        """The client closed the connection."""
        told, self.hung_up = self.hung_up, None
        if told is not None:
            told()

    def _add(self, item: bytes | WireLost | None) -> None:
        self._items.append(item)
        reader, self._reader = self._reader, None
        if reader is not None and not reader.done():
            reader.set_result(None)


class Opening(NamedTuple):
    """What becomes of a request for a stream.

    Attributes:
        body: What comes after the head.
        status: The HTTP status.
        headers: Names in lower case.
        delay: Seconds until the head; None: it never comes.
        lost: The connection breaks instead, with these words.
        definite: Nothing of the request left the machine.
    """

    body: SimBody
    status: int = 200
    headers: Mapping[str, str] = frames.STREAM_HEADERS
    delay: float | None = 0.0
    lost: str | None = None
    definite: bool = False


def finite(answer: CallAnswer, body: SimBody | None = None) -> Opening:
    """Return a finite answer in place of a stream."""
    whole = SimBody().send(answer.body).fin() if body is None else body
    return Opening(whole, answer.status, answer.headers, answer.delay, answer.lost, answer.definite)


class Answers(Protocol):
    """Who answers."""

    def answer_stream(self, sent: Sent) -> Opening:
        """Return what becomes of a request for a stream."""
        ...

    def answer_call(self, sent: Sent) -> CallAnswer | Awaitable[CallAnswer]:
        """Return what becomes of a finite call, now or when it is time."""
        ...


class SimWire:
    """A client's transport.

    Args:
        clock: For delays and time limits.
        server: Who answers.
    """

    def __init__(self, clock: SimClock, server: Answers) -> None:
        self._clock = clock
        self._server = server

    async def stream(self, request: Request, *, max_event_bytes: int) -> ScriptedStream:
        """See the client's seam."""
        answer = self._server.answer_stream(Sent(request))
        try:
            await self._until_head(answer, request.timeout)
        except BaseException:
            answer.body.hang_up()
            raise
        return ScriptedStream(answer.status, answer.headers, answer.body, max_event_bytes, lambda: None)

    async def call(self, request: Request) -> Response:
        """See the client's seam."""
        told = self._server.answer_call(Sent(request))
        answer = told if isinstance(told, CallAnswer) else await told
        await self._until_head(answer, request.timeout)
        return Response(answer.status, answer.headers, answer.body)

    async def aclose(self) -> None:
        """Nothing is pooled."""

    async def _until_head(self, answer: Opening | CallAnswer, timeout: float) -> None:
        """Wait for the answer's head, no longer than the request allows.

        Raises:
            WireLost: It does not come.
        """
        if answer.delay is None or answer.delay > timeout:
            await self._sleep(timeout)
            raise WireLost(f"no answer within {timeout:g} s", definite=answer.definite)
        if answer.delay > 0:
            await self._sleep(answer.delay)
        if answer.lost is not None:
            raise WireLost(answer.lost, definite=answer.definite)

    async def _sleep(self, seconds: float) -> None:
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        alarm = self._clock.call_at(self._clock.now() + seconds, lambda: None if over.done() else over.set_result(None))
        try:
            await over
        finally:
            alarm.cancel()
