"""`Upward`: what the client sends, and what comes to a request before it is answered.

A head is read whole before a byte of it goes on: whose request it is decides where it goes and what is planned on it. The body of a
POST is waited for, too, since it tells a create from an answer.
"""

import contextlib

from reattach_chaos.gate.around import Around
from reattach_chaos.gate.cuts import Cut, Exchange
from reattach_chaos.gate.faults import ANSWERS
from reattach_chaos.gate.faults.base import READ_BYTES, Over
from reattach_chaos.gate.frames import FrameReader, Messages
from reattach_chaos.gate.framing import FramingError, Head, Span
from reattach_chaos.gate.link import Link
from reattach_chaos.gate.routes import cursor_of, json_object
from reattach_chaos.gate.tap import MOST_BODY
from reattach_chaos.history.wire import Route
from reattach_chaos.schedules import Place, Planned


class Upward:
    """The client's direction of one connection.

    Args:
        link: The connection.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._head: Head | None = None  # of a request that is not counted yet: more of it must come first
        self._kept: list[Span] = []
        self._kept_bytes = 0
        self._exchange = Exchange()
        self._answer: Cut | None = None  # what answers in the server's place
        self._tail = b""
        self._messages = Messages()

    async def run(self) -> None:
        """Relay until the client closes. After a cut whatever it sends is nobody's."""
        link = self._link
        while data := await self._read():
            if link.silent or link.held_up:
                continue
            try:
                for span in link.up.feed(data):
                    await self._take(span)
            except FramingError as error:
                link.tap.trouble(f"what the client sent is not HTTP/1.1: {error}")
                link.up.tunnel()
                await link.send_up(data)
            except Over:
                link.over.set()
        link.end("client", "fin")

    async def _read(self) -> bytes:
        with contextlib.suppress(OSError):
            return await self._link.from_client.read(READ_BYTES)
        self._link.end("client", "rst")
        return b""

    async def _take(self, span: Span) -> None:
        if span.head is not None:
            self._head, self._kept, self._kept_bytes = span.head, [], 0
        if self._link.socket is not None:
            await self._pass_messages(self._link.socket, span.data)
            return
        if self._head is None:
            await self._pass(span)
            return
        self._kept.append(span)
        self._kept_bytes += len(span.data)
        waits = self._head.method == "POST" and self._head.get("expect") is None
        if waits and span.kind != "end" and self._kept_bytes <= MOST_BODY:
            return
        head, kept, self._head, self._kept = self._head, self._kept, None, []
        await self._begin(head, b"".join(each.data for each in kept if each.kind == "body"))
        for each in kept:
            await self._pass(each)

    async def _begin(self, head: Head, body: bytes) -> None:
        """Count the request, do what comes before its first byte goes on, and open the way."""
        link = self._link
        route, run = link.setting.dialect.classify(head, body)
        after = cursor_of(head) if route == "stream" else None
        self._exchange = self._count(route, run, head.get("idempotency-key"), after, head.method)
        self._tail = b""
        link.begin()
        link.tap.request(self._exchange, head, body)
        while (cut := self._exchange.at(Place.CONNECTING, Place.IN_BACKOFF)) is not None:
            await self._fire(cut)
        self._answer = self._exchange.take(lambda planned: planned.fault in ANSWERS)
        if self._answer is None:
            await link.connect()
            link.down.expect(head.method)
            link.waiting.append(self._exchange)

    async def _pass(self, span: Span) -> None:
        if self._answer is None:
            places = {"head": Place.IN_REQUEST_HEAD, "body": Place.IN_REQUEST_BODY}
            data, sent = span.data, 0
            while span.kind in places and (cut := self._exchange.at(places[span.kind])) is not None:
                sent = len(data) // 2
                await self._forward(data[:sent])
                await self._fire(cut, data[sent:])
            await self._forward(data[sent:])
        if span.kind != "end":
            return
        answer, self._answer = self._answer, None
        if answer is not None:
            await self._fire(answer)
        while cut := self._exchange.take(_is_before_answer):
            await self._fire(cut)

    async def _pass_messages(self, socket: FrameReader, data: bytes) -> None:
        """Pass a client's WebSocket frames; a message that asks for a run or its events is a request."""
        link, sent = self._link, 0
        for end, message in self._messages.feed(data):
            told = json_object(message)
            run, cursor, key = (_text(told.get(name)) for name in ("run_id", "cursor", "idempotency_key"))
            match told.get("type"):
                case "resume":
                    head = Head("RESUME / HTTP/1.1", ())
                    self._exchange = self._count("stream", run, None, cursor, "GET")
                    numbering = link.setting.cuts.numbering(run)
                    socket.attach(numbering, numbering.after(cursor))
                case "start":
                    head = Head("START / HTTP/1.1", (("idempotency-key", key or ""),))
                    self._exchange = self._count("create", None, key, None, "POST")
                case _:
                    continue
            link.tap.request(self._exchange, head, message)
            for places, before in (
                ((Place.CONNECTING, Place.IN_BACKOFF), sent),
                ((Place.IN_REQUEST_HEAD, Place.IN_REQUEST_BODY), max(sent, end - 2)),
            ):
                while (cut := self._exchange.at(*places)) is not None:
                    await self._forward(data[sent:before])
                    sent = before
                    await self._fire(cut, data[sent:])
            link.asked = self._exchange
            await self._forward(data[sent:end])
            sent = end
            while cut := self._exchange.take(_is_before_answer):
                await self._fire(cut)
        await self._forward(data[sent:])

    def _count(self, route: Route, run: str | None, key: str | None, after: str | None, method: str) -> Exchange:
        if self._link.planned:
            return self._link.setting.cuts.begin(route, run, key, after, method)
        return Exchange(route, run, after=after, method=method)

    async def _forward(self, data: bytes) -> None:
        if data:
            self._tail = (self._tail + data[-64:])[-64:]
            await self._link.send_up(data)

    async def _fire(self, cut: Cut, behind: bytes = b"") -> None:
        await self._link.fire(cut, self._exchange, Around(before=self._tail, behind=behind[:64]))


def _is_before_answer(planned: Planned) -> bool:
    """Whether a fault comes after the request and before the server answers, not when its answer comes."""
    if planned.at.place is not Place.AFTER_REQUEST:
        return False
    return planned.direction != "downstream" or planned.fault.traits.actor == "runner"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
