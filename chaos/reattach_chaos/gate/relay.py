"""The relay: one client connection, one server connection, and the cut between two bytes.

Bytes pass unchanged and at once. The server's direction is parsed on the way (framing, then blocks of an event stream), so that
the relay knows at which byte an event has ended; there it asks its lane for a cut. What follows the cut is never sent, not even the
end of the chunk. Times, seeds and verdicts live elsewhere.

A cut at an event that the server already had when the stream was attached is one during a replay.

Checked by tests/chaos/gate/test_relay.py with a server and clients on plain sockets.
"""

import asyncio
import contextlib
import hashlib
from collections import deque
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import parse_qs, urlsplit

from reattach_chaos.gate import sockets
from reattach_chaos.gate.blocks import Block, BlockScanner
from reattach_chaos.gate.framing import Framing, Head, Span
from reattach_chaos.gate.history import History
from reattach_chaos.gate.plan import Lane, StreamFault
from reattach_chaos.history.foreign import is_number, json_of

Route: TypeAlias = Literal["create", "stream", "status", "other"]
READ_BYTES = 256 * 1024


Ends: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, slots=True)
class Place:
    """An event's boundary on one connection; `replay`: the server had the event when it announced the stream."""

    run: str | None
    id: str
    sequence: int
    replay: bool

    def facts(self) -> dict[str, object]:
        """Return the members for a record."""
        return {"run": self.run, "id": self.id, "sequence": self.sequence, "replay": self.replay}


@dataclass(frozen=True, slots=True)
class Request:
    """A request that was forwarded and waits for its answer."""

    route: Route
    run: str | None
    loses_answer: bool = False


class _Over(Exception):
    """Nothing more is sent on this connection: the way out of a half-parsed read."""


class Connection:
    """Relays one connection of one lane until it ends or is cut.

    Args:
        number: From 1, over all lanes.
        lane: Whose cuts apply.
        history: Where to write what happens.
        client: The accepted side.
        server: The opened side.
    """

    def __init__(self, number: int, lane: Lane, history: History, client: Ends, server: Ends) -> None:
        self._number = number
        self._lane = lane
        self._history = history
        self._from_client, self._to_client = client
        self._from_server, self._to_server = server
        self._up = Framing(responses=False)
        self._down = Framing(responses=True)
        self._waiting: deque[Request] = deque()
        self._answering = Request("other", None)
        self._scanner: BlockScanner | None = None
        self._head_at_attach = 0
        self._out = bytearray()
        self._silent = False
        self._firing = False

    async def run(self) -> None:
        """Relay until one side ends; both are closed then."""
        upward = asyncio.create_task(self._relay_up())
        downward = asyncio.create_task(self._relay_down())
        try:
            await asyncio.wait({upward, downward}, return_when=asyncio.FIRST_COMPLETED)
            if self._firing:
                # The client has closed, as it may once it has the last event: the cut is on its way all the same.
                await asyncio.wait({downward}, timeout=sockets.SETTLE_S)
            if downward.done() and not downward.exception():
                # The client has been sent all that it will get: it closes, or is left after a while.
                limit = sockets.STALL_S if self._silent else sockets.SETTLE_S
                await asyncio.wait({upward}, timeout=limit)
        finally:
            # Before the first await: we may be cancelled at any, when the gate ends.
            for writer in (self._to_server, self._to_client):
                writer.close()
            for task in (upward, downward):
                task.cancel()
            for result in await asyncio.gather(upward, downward, return_exceptions=True):
                if isinstance(result, Exception):
                    self._record("trouble", message=f"{type(result).__name__}: {result}")
            for writer in (self._to_server, self._to_client):
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
            self._record("close", cut=self._silent)

    def _record(self, kind: str, **facts: object) -> None:
        self._history.write(kind, lane=self._lane.name, conn=self._number, **facts)

    # -- client to server

    async def _relay_up(self) -> None:
        while data := await _read(self._from_client):
            if self._silent:
                continue  # a cut is silent in both directions
            for span in self._up.feed(data):
                if span.head is not None:
                    self._note_request(span.head)
            with contextlib.suppress(OSError):
                self._to_server.write(data)
                await self._to_server.drain()

    def _note_request(self, head: Head) -> None:
        route, run = classify(head.method, head.target)
        loses = route == "create" and self._lane.loses_create()
        self._down.expect(head.method)
        self._waiting.append(Request(route, run, loses))
        query = parse_qs(urlsplit(head.target).query, keep_blank_values=True)
        after = head.get("last-event-id") or next(iter(query.get("after", [])), None)
        key = head.get("idempotency-key")
        self._record("request", route=route, method=head.method, target=head.target, run=run, after=after, key=key)
        if loses:
            self._record("cut.planned", route="create", fault="lose")

    # -- server to client

    async def _relay_down(self) -> None:
        with contextlib.suppress(_Over):
            while data := await _read(self._from_server):
                for span in self._down.feed(data):
                    await self._pass(span)
                await self._flush()
            sockets.fin(self._to_client)

    async def _pass(self, span: Span) -> None:
        if span.head is not None:
            self._note_answer(span.head)
        if self._answering.loses_answer:
            if span.kind == "end":
                self._lose_answer()
        elif span.kind != "body" or self._scanner is None:
            self._out += span.data
        else:
            sent = 0
            for end, block in self._scanner.feed(span.data):
                self._out += span.data[sent:end]
                sent = end
                await self._after_block(block)
            self._out += span.data[sent:]

    def _note_answer(self, head: Head) -> None:
        if self._waiting and head.status >= 200:
            self._answering = self._waiting.popleft()
        media = (head.get("content-type") or "").partition(";")[0].strip().lower()
        self._scanner = BlockScanner() if media == "text/event-stream" and self._answering.route == "stream" else None
        self._record("head", route=self._answering.route, status=head.status, media=media)

    async def _after_block(self, block: Block) -> None:
        run, sequence = self._answering.run, block.sequence
        if block.type == "stream.attached" and block.id is None:
            with contextlib.suppress(ValueError, AttributeError):
                attached = json_of(block.data)
                self._head_at_attach = attached["last_sequence"] if is_number(attached.get("last_sequence")) else 0
                self._record("attached", run=run, cursor=attached.get("cursor"), head=self._head_at_attach)
        if sequence is None:
            return
        place = Place(run, block.id or "", sequence, sequence <= self._head_at_attach)
        digest = hashlib.sha256(block.data).hexdigest()
        self._record("event", **place.facts(), sha256=digest)
        for fault in self._lane.first_seen(sequence):
            self._record("cut.planned", route="stream", sequence=sequence, fault=fault)
        if (taken := self._lane.take(sequence)) is not None:
            await self._fire(taken, place)

    async def _fire(self, fault: StreamFault, place: Place) -> None:
        """Send what is up to the boundary, be sure that it came, cut. A client that has left is not cut off."""
        came = False
        if not self._from_client.at_eof():
            self._firing = True
            await self._flush()
            came = await sockets.settled(self._to_client)
            self._firing = False
        if not came:
            # Another connection of the lane will pass this place, and may be cut there.
            self._lane.give_back(place.sequence, fault)
            self._record("cut.missed", route="stream", fault=fault, **place.facts())
            raise _Over
        self._silent = True
        self._record("cut.fired", route="stream", fault=fault, **place.facts())
        match fault:
            case "fin":
                sockets.fin(self._to_client)
            case "rst":
                sockets.rst(self._to_client)
            case "stall":
                pass
        raise _Over

    def _lose_answer(self) -> None:
        self._silent = True
        self._record("cut.fired", route="create", fault="lose")
        sockets.rst(self._to_client)
        raise _Over

    async def _flush(self) -> None:
        if self._out:
            with contextlib.suppress(OSError):
                self._to_client.write(bytes(self._out))
                await self._to_client.drain()
            self._out.clear()


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(READ_BYTES)
    except OSError:
        return b""


def classify(method: str, target: str) -> tuple[Route, str | None]:
    """Return what a request is for and the run that it names, by the protocol's paths under any prefix."""
    parts = [part for part in urlsplit(target).path.split("/") if part]
    match parts:
        case [*_, "runs"] if method == "POST":
            return "create", None
        case [*_, "runs", run, "events"] if method == "GET":
            return "stream", run
        case [*_, "runs", run] if method == "GET":
            return "status", run
        case [*_, "runs", run, _]:
            return "other", run
        case _:
            return "other", None
