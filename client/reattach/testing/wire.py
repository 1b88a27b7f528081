"""`Wire`: a scripted transport. A test says what each request is answered with; the client's real decoder reads it.

    wire = Wire(clock=clock)
    wire.on_call("POST", "/v1/runs", told(frames.run_json(), 201))
    wire.on_call("GET", "/v1/runs/run_1", told(frames.run_json(last=3)))        # the last answer given serves all further ones
    first = wire.expect_attach(after=None)
    first.send(frames.attached(), frames.event(1), frames.event(2)).reset()
    second = wire.expect_attach(after="e1.2")
    second.send(frames.attached(2), frames.end(3)).fin()
    client = reattach.Client("http://server.test", ":memory:", transport=wire, _seams=Seams(clock=lambda: clock))

No socket, no thread, no name but the one above. It decides nothing for the client and keeps to the seam's law: time limits,
event size, one exception a fault. Every request is kept in `requests`, with its time. A request that no answer was scripted for
is a `ScriptError`, in `faults` and at the client. What a whole server would answer is `MemoryServer`'s.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

import anyio

from reattach.runtime.clock import Clock, sleep
from reattach.testing.answers import CallAnswer, StreamAnswer, as_stream
from reattach.testing.body import Body
from reattach.transports.base import Batch, Request, Response, Stream, WireLost, WireOversize
from reattach.transports.outgoing import outgoing
from reattach.wire.eventstream import Decoder, Oversize


class ScriptError(AssertionError):
    """The client asked for something that the script does not have."""


class Answers(Protocol):
    """Who answers: a script, or a server."""

    def answer_stream(self, sent: Sent) -> StreamAnswer:
        """Return what becomes of a request for a stream."""
        ...

    def answer_call(self, sent: Sent) -> CallAnswer | Awaitable[CallAnswer]:
        """Return what becomes of a finite call, now or when it is time."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One request as it left the client.

    Attributes:
        method: In capitals.
        path: With the query, without the server's address.
        headers: Names in lower case, values as text.
        body: The bytes, None for none.
        at: The clock's seconds.
        stream: Whether a stream was asked for.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes | None
    at: float
    stream: bool

    @property
    def after(self) -> str | None:
        """The cursor that an attach asks after, None for the beginning."""
        if "sec-websocket-protocol" in self.headers:
            cursor = json.loads(self.body or b"{}").get("cursor")
            return cursor if isinstance(cursor, str) else None
        cursor = self.headers.get("last-event-id")
        if cursor is not None:
            return cursor
        return parse_qs(urlsplit(self.path).query).get("after", [None])[0]


_ANY: Any = object()


@dataclass(slots=True)
class _Attach:
    after: str | None
    answer: StreamAnswer


class Wire:
    """A transport without a network; give it to a client as `transport=`.

    Args:
        clock: The client's, for delays and time limits; None takes real time.
        server: Who answers instead of a script.
    """

    def __init__(self, *, clock: Clock | None = None, server: Answers | None = None) -> None:
        self.requests: list[Sent] = []
        """All requests, in order."""
        self.faults: list[ScriptError] = []
        """What was asked for and not scripted."""
        self.open_streams = 0
        """Streams that were asked for and not closed; one that gets no answer counts while it is waited for."""
        self.most_streams = 0
        """The most that were open at once."""
        self._clock = clock
        self._server = server
        self._attaches: deque[_Attach] = deque()
        self._calls: dict[tuple[str, str], deque[CallAnswer | Callable[[Sent], CallAnswer]]] = {}
        self._changed = threading.Condition()

    # the test's side --------------------------------------------------------------------------------------------------

    def expect_attach(self, after: str | None = _ANY, answer: StreamAnswer | CallAnswer | None = None) -> Body:
        """Script the next attach, and return its body to be written, now or while it is open.

        Args:
            after: The cursor that must be asked after, None for the beginning; left out: any.
            answer: Its head; by default a 200 with an event stream. A `CallAnswer`, as `refused` makes it, is a refusal.
        """
        told = as_stream(answer) if isinstance(answer, CallAnswer) else answer or StreamAnswer()
        self._attaches.append(_Attach(after, told))
        return told.body

    def on_call(self, method: str, path: str, *answers: CallAnswer | Callable[[Sent], CallAnswer]) -> None:
        """Script the answers to a finite call, in order; the last one serves for ever.

        Args:
            method: In capitals.
            path: Without the server's address and the query.
            answers: Answers, or functions of the request that make one.
        """
        self._calls.setdefault((method, path), deque()).extend(answers)

    def attaches(self) -> list[Sent]:
        """Return the requests for streams so far."""
        return [each for each in self.requests if each.stream]

    def calls(self, method: str, path: str) -> list[Sent]:
        """Return the finite calls of this kind so far, whatever their query."""
        return [
            each
            for each in self.requests
            if not each.stream and each.method == method and each.path.partition("?")[0] == path
        ]

    def wait_until(self, condition: Callable[[], bool], *, limit: float = 10.0) -> None:
        """Wait in the test's own thread until a condition over this wire holds; it is looked at after every request and close.

        Raises:
            TimeoutError: Not within `limit` real seconds.
        """
        with self._changed:
            if not self._changed.wait_for(condition, limit):
                raise TimeoutError(f"the condition did not come true within {limit:g} s")

    # the seam ---------------------------------------------------------------------------------------------------------

    async def stream(self, request: Request, *, max_event_bytes: int) -> Stream:
        """Answer a request for a stream; see the seam."""
        sent = self._sent(request, stream=True)
        answer = self._scripted_attach(sent) if self._server is None else self._server.answer_stream(sent)
        self.open_streams += 1
        self.most_streams = max(self.most_streams, self.open_streams)
        try:
            await self._until_head(answer, request.timeout)
        except BaseException:
            answer.body.hang_up()
            self._closed()
            raise
        if answer.status == 101:
            from reattach.testing.sockets import opened  # the extra `ws`; who scripts none of it needs none

            return opened(request, answer.body, max_event_bytes, self._closed)
        return ScriptedStream(answer.status, answer.headers, answer.body, max_event_bytes, self._closed)

    async def call(self, request: Request) -> Response:
        """Answer a finite call; see the seam."""
        sent = self._sent(request, stream=False)
        told = self._scripted_call(sent) if self._server is None else self._server.answer_call(sent)
        answer = told if isinstance(told, CallAnswer) else await told
        await self._until_head(answer, request.timeout)
        return Response(answer.status, answer.headers, answer.body)

    async def aclose(self) -> None:
        """Nothing is pooled."""

    # inside -----------------------------------------------------------------------------------------------------------

    def _sent(self, request: Request, *, stream: bool) -> Sent:
        headers = {name.decode(): value.decode("utf-8", "replace") for name, value in outgoing(request.headers).items()}
        parts = urlsplit(request.url)
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        at = self._clock.now() if self._clock is not None else 0.0
        sent = Sent(method=request.method, path=path, headers=headers, body=request.body, at=at, stream=stream)
        with self._noticed():
            self.requests.append(sent)
        return sent

    def _scripted_attach(self, sent: Sent) -> StreamAnswer:
        if not self._attaches:
            raise self._fault(f"attach after {sent.after!r}: no further attach was scripted")
        expected = self._attaches.popleft()
        if expected.after is not _ANY and expected.after != sent.after:
            raise self._fault(f"attach after {sent.after!r}: the script has one after {expected.after!r}")
        return expected.answer

    def _scripted_call(self, sent: Sent) -> CallAnswer:
        answers = self._calls.get((sent.method, sent.path.partition("?")[0]))
        if not answers:
            raise self._fault(f"{sent.method} {sent.path}: no answer was scripted")
        answer = answers.popleft() if len(answers) > 1 else answers[0]
        return answer if isinstance(answer, CallAnswer) else answer(sent)

    def _fault(self, text: str) -> ScriptError:
        fault = ScriptError(text)
        self.faults.append(fault)
        return fault

    async def _until_head(self, answer: StreamAnswer | CallAnswer, timeout: float) -> None:
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
        if self._clock is None:
            await anyio.sleep(seconds)
        else:
            await sleep(self._clock, seconds)

    def _closed(self) -> None:
        with self._noticed():
            self.open_streams -= 1

    @contextmanager
    def _noticed(self) -> Any:
        with self._changed:
            yield
            self._changed.notify_all()


class Bytes(Protocol):
    """A body as a stream reads it: `Body`, or another that brings bytes read by read."""

    async def read(self) -> bytes | None:
        """Return what the next read brings, None at the clean end."""
        ...

    def hang_up(self) -> None:
        """The client closed the connection."""
        ...


class ScriptedStream:
    """One answered stream request, as the seam's `Stream`.

    Args:
        status: Of the head.
        headers: Of the head, names in lower case.
        body: What comes behind it.
        max_event_bytes: The decoder's limit.
        closed: Called once, when it is closed.
    """

    def __init__(
        self, status: int, headers: Mapping[str, str], body: Bytes, max_event_bytes: int, closed: Callable[[], None]
    ) -> None:
        self.status = status
        self.headers = headers
        self._body = body
        self._decoder = Decoder(max_event_bytes)
        self._told_closed: Callable[[], None] | None = closed

    @property
    def objection(self) -> str | None:
        """Why a 200 is no event stream, else None."""
        kind = self.headers.get("content-type", "").partition(";")[0].strip()
        if kind.lower() != "text/event-stream":
            return f"{kind or 'no content type'} instead of text/event-stream"
        coding = self.headers.get("content-encoding", "identity")
        return None if coding == "identity" else f"content coding {coding}, which was not asked for"

    async def read(self) -> Batch | None:
        """Return what the next read brings; see the seam."""
        if self._told_closed is None:
            raise WireLost("the connection is closed")
        if self._decoder.spent:
            raise WireOversize(self._decoder.limit)
        data = await self._body.read()
        if data is None:
            return None
        try:
            frames = self._decoder.feed(data)
        except Oversize as error:
            raise WireOversize(error.limit) from error
        return Batch(frames, self._decoder.take_retry(), self._decoder.growing)

    async def body(self, limit: int) -> bytes:
        """Return the first bytes of an answer that is no stream; see the seam."""
        body = bytearray()
        while len(body) < limit and (data := await self._body.read()) is not None:
            body += data
        return bytes(body[:limit])

    async def aclose(self) -> None:
        """Hang up."""
        told, self._told_closed = self._told_closed, None
        if told is not None:
            self._body.hang_up()
            told()
