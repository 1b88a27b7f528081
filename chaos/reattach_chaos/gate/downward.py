"""`Downward`: what the server sends: its marks are found, recorded, and what is planned there is done between two bytes.

Bytes pass unchanged and at once, but for a head, which passes when it is whole. What follows a cut is never sent, not even the end
of its chunk.
"""

import asyncio
import hashlib
import heapq
from collections.abc import Iterator
from typing import Any

from reattach_chaos.gate import sockets
from reattach_chaos.gate.around import Around
from reattach_chaos.gate.blocks import Block
from reattach_chaos.gate.cuts import Exchange
from reattach_chaos.gate.events import EventReader
from reattach_chaos.gate.faults import EDITS
from reattach_chaos.gate.faults.base import READ_BYTES, Over
from reattach_chaos.gate.frames import FrameReader
from reattach_chaos.gate.framing import FramingError, Head, Span
from reattach_chaos.gate.link import Link
from reattach_chaos.gate.marks import Mark, Reader
from reattach_chaos.gate.offsets import Boundary
from reattach_chaos.gate.pages import PageReader
from reattach_chaos.gate.rewriting import Rewriter
from reattach_chaos.gate.routes import json_object
from reattach_chaos.gate.tap import MOST_BODY, media_of
from reattach_chaos.history import is_number, printable
from reattach_chaos.schedules import Place

KEPT = 64  # bytes for a caption
_RAW = frozenset(
    {Place.IN_HEAD, Place.OFFSET}
)  # places of the server's own bytes: an answer with one is not framed anew


class Downward:
    """The server's direction of one server connection.

    Args:
        link: The connection.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._exchange = Exchange()
        self._head: Head | None = None
        self._reader: Reader | None = None
        self._body: bytearray | None = None  # of an answer that is understood as a whole
        self._out = bytearray()
        self._begin()

    def _begin(self) -> None:
        self._tail = b""
        self._sha256 = hashlib.sha256()
        self._passed = self._passed_body = 0

    async def run(self) -> None:
        """Relay until the server closes, or a cut."""
        link = self._link
        reader = link.from_server
        assert reader is not None
        try:
            while data := await self._read(reader):
                try:
                    for span in link.down.feed(data):
                        await self._pass(span)
                    await self._flush()
                except FramingError as error:
                    link.tap.trouble(f"what the server sent is not HTTP/1.1: {error}")
                    link.down.tunnel()
                    self._reader = self._body = None
                    await link.send_down(data)
            await self._end()
        except Over:
            link.over.set()
        except asyncio.CancelledError:
            raise  # the server's side is dropped: whoever did it says what becomes of the client's
        except Exception as error:
            link.tap.trouble(f"{type(error).__name__}: {error}")
            link.over.set()
            raise

    async def _read(self, reader: asyncio.StreamReader) -> bytes:
        try:
            return await reader.read(self._link.pace.read_bytes if self._link.pace is not None else READ_BYTES)
        except OSError:
            self._link.end("server", "rst")
            return b""

    async def _end(self) -> None:
        """The server has closed: so is the client's side, in the same way."""
        link = self._link
        if self._reader is not None:
            for mark in self._reader.finish():
                await self._meet(mark, b"")
            self._tell_partial()
        if link.down.until_close:
            await self._meet(Mark(place=Place.AFTER_TERMINATOR), b"")
        await self._flush()
        if link.rewriter is not None and link.down.until_close:
            await link.send_down(link.rewriter.end)
        if not link.silent:
            if link.ended == ("server", "rst"):
                sockets.rst(link.to_client)
            else:
                link.end("server", "fin")
                sockets.fin(link.to_client)
        link.over.set()

    async def _pass(self, span: Span) -> None:
        if span.head is not None:
            self._take_head(span.head)
        if self._link.asked is not None:
            self._exchange, self._link.asked = self._link.asked, None
        sent = 0
        for index, mark in self._marks(span):
            self._put(span, sent, index)
            sent = index
            await self._meet(mark, span.data[index:])
        self._put(span, sent, len(span.data))
        if span.kind == "end":
            await self._end_answer()

    def _take_head(self, head: Head) -> None:
        link = self._link
        self._head = head
        if link.waiting and (head.status >= 200 or head.status == 101):
            self._exchange = link.waiting.popleft()
        self._begin()
        exchange = self._exchange
        places = {cut.planned.at.place for cut in exchange.cuts}
        edited = any(cut.planned.fault in EDITS for cut in exchange.cuts) and not places & _RAW
        link.rewriter = Rewriter(head, until_close=link.down.until_close) if edited and head.status == 200 else None
        self._reader, self._body = None, None
        if head.status == 101:
            link.tap.head(exchange, head)
            link.up.tunnel()
            self._reader = link.socket = FrameReader()
        elif exchange.route == "stream" and media_of(head) == "text/event-stream" and head.status == 200:
            numbering = link.setting.cuts.numbering(exchange.run)
            self._reader = EventReader(numbering, numbering.after(exchange.after))
        elif media_of(head).endswith("json"):
            self._body = bytearray()
            if exchange.route == "stream" and head.status == 200:
                numbering = link.setting.cuts.numbering(exchange.run)
                self._reader = PageReader(numbering, numbering.after(exchange.after))

    def _marks(self, span: Span) -> Iterator[tuple[int, Mark]]:
        found: Iterator[tuple[int, Mark]] = iter(())
        match span.kind:
            case "head":
                size = len(span.data)
                places = ((0, Place.AFTER_REQUEST), (size // 2, Place.IN_HEAD), (size, Place.AFTER_HEAD))
                found = iter([(index, Mark(place=place)) for index, place in places])
            case "framing" if span.size:
                number = self._reader.number if self._reader is not None else None
                found = iter([(1, Mark(place=Place.IN_CHUNK_SIZE, number=number))])
            case "body" if self._reader is not None:
                found = self._reader.feed(span.data)
            case "end":
                found = iter([(0, Mark(place=Place.AFTER_TERMINATOR))])
            case _:
                pass
        first, last = self._passed, self._passed + len(span.data)
        offsets = [
            (offset - first, Mark(place=Place.OFFSET, offset=offset))
            for offset in self._exchange.offsets()
            if first <= offset <= last
        ]
        return heapq.merge(found, offsets, key=lambda each: each[0]) if offsets else found

    async def _meet(self, mark: Mark, behind: bytes) -> None:
        """Record what a mark tells, and do what is planned there."""
        link, exchange, status = self._link, self._exchange, None
        match mark:
            case Mark(place=Place.AFTER_HEAD) if link.socket is None:
                assert self._head is not None
                link.tap.head(exchange, self._head)
            case Mark(place=Place.AFTER_COMMENT):
                link.tap.heartbeat(exchange)
            case Mark(place=Place.AFTER_EVENT, block=block) if block is not None:
                if mark.whole:
                    link.tap.event(exchange, block, self._passed_body)
                status = link.tap.settles(block)
                if link.rewriter is not None:
                    link.rewriter.end_event(block)
            case Mark(place=None, block=block) if block is not None:
                self._tell_control(block)
                if link.rewriter is not None:
                    link.rewriter.begin_event()
            case _:
                pass
        await self._reach(mark, behind)
        if status is not None:
            await self._reach(Mark(place=Place.AFTER_TERMINAL, number=mark.number), behind)

    async def _reach(self, mark: Mark, behind: bytes) -> None:
        """Note the place, where that was asked for, and do what is planned there."""
        exchange, cuts = self._exchange, self._link.setting.cuts
        if self._link.setting.boundaries is not None and mark.place is not None and exchange.route == "stream":
            run = cuts.name_run(exchange.run) if exchange.run is not None else 1
            reached = Boundary(run, exchange.nth, mark, self._passed, self._sha256.hexdigest())
            self._link.setting.boundaries.append(reached)
        while self._exchange.cuts and (cut := self._exchange.due(mark)) is not None:
            await self._flush()
            around = Around(
                before=self._tail,
                behind=behind[:KEPT],
                number=mark.number,
                offset=self._passed,
                prefix_sha256=self._sha256.hexdigest(),
            )
            try:
                await self._link.fire(cut, self._exchange, around)
            except Over:
                self._tell_partial()
                raise

    def _tell_control(self, block: Block) -> None:
        """A frame of the server's own goes to the client."""
        told, link = json_object(block.data), self._link
        match block.type, told:
            case (("stream.attached" | "resume_ok"), _):
                self._tell_attached(told)
            case "resume_rejected", _:
                link.tap.rejected(self._exchange, 0, printable(told.get("code", "")))
            case "started", {"run": {"id": str(run)}} if link.planned:
                # Its events follow without another request.
                self._exchange = link.setting.cuts.begin("stream", run, None, None, "GET")
                if link.socket is not None:
                    link.socket.attach(link.setting.cuts.numbering(run), 0)
            case _:
                pass

    def _tell_attached(self, told: dict[str, Any]) -> None:
        cursor, epoch, last = told.get("cursor"), told.get("epoch"), told.get("last_sequence")
        self._link.tap.attached(
            self._exchange,
            cursor if isinstance(cursor, str) else None,
            epoch if isinstance(epoch, str) else None,
            last if is_number(last) else None,
        )

    def _tell_partial(self) -> None:
        if self._reader is not None and self._reader.partial is not None:
            self._link.tap.partial(self._exchange, self._reader.partial, self._passed_body)

    async def _end_answer(self) -> None:
        body, reader, self._body, self._reader = self._body, self._reader, None, None
        if isinstance(reader, EventReader):
            self._link.tap.ended(self._exchange)
        elif isinstance(reader, PageReader):
            self._link.tap.page(self._exchange, bytes(body or b""), reader.events)
        elif body is not None and self._head is not None:
            run = self._link.tap.body(self._exchange, self._head, bytes(body))
            if run is not None:
                self._link.setting.cuts.name_run(run)
        rewriter, self._link.rewriter = self._link.rewriter, None
        if rewriter is not None:
            self._out += rewriter.flush() + rewriter.end

    def _put(self, span: Span, start: int, end: int) -> None:
        piece = span.data[start:end]
        if not piece:
            return
        self._passed += len(piece)
        self._sha256.update(piece)
        self._tail = (self._tail + piece[-KEPT:])[-KEPT:]
        if span.kind == "body":
            self._passed_body += len(piece)
            if self._body is not None and len(self._body) < MOST_BODY:
                self._body += piece
        if self._link.rewriter is None:
            self._out += piece
        else:
            self._link.rewriter.put(span, piece)

    async def _flush(self) -> None:
        if self._link.rewriter is not None:
            self._out += self._link.rewriter.flush()
        if self._out:
            data = bytes(self._out)
            self._out.clear()
            await self._link.send_down(data)
