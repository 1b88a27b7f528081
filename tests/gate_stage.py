"""Around the gate: a server that gives made-up answers, a client on a plain socket."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from reattach_chaos.gate import Gate
from reattach_chaos.gate.frames import Messages
from reattach_chaos.history import CutFired, CutMissed, Record, Recorder
from reattach_chaos.schedules import Fault, Planned, Schedule, at

LIMIT_S = 20.0
SILENCE_S = 0.15  # so long a client that expects silence listens
GET = b"GET /v1/runs/r1/events HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b'POST /v1/runs HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: 13\r\n\r\n{"input":"x"}'
LINES = (
    (b"retry: 1000", b"event: stream.attached", b'data: {"cursor":"e1.0","epoch":"e1","last_sequence":2}', b""),
    (b"id: e1.1", b"event: run.created", b'data: {"n":1}', b""),
    (b"id: e1.2", b"event: message.delta", 'data: {"t":"é€🙂"}'.encode(), b""),
    (b": heartbeat",),
    (b"id: e1.3", b"event: message.delta", b"data: one", b"data: two", b""),
    (b"id: e1.4", b"event: run.completed", b'data: {"n":4}', b""),
)
"""A stream: the announcement, two events of a replay, a heartbeat, two live ones, the last of which settles the run."""


def body(line_end: bytes = b"\n") -> list[bytes]:
    """Return the stream's pieces, each as a server writes it at once."""
    return [b"".join(line + line_end for line in lines) for lines in LINES]


def framed(pieces: list[bytes], framing: str = "chunked", media: bytes = b"text/event-stream") -> bytes:
    """Return an answer of these pieces: chunked, a chunk each; sized; or until the connection ends."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: " + media + b"\r\n"
    match framing:
        case "chunked":
            chunks = b"".join(b"%x\r\n" % len(piece) + piece + b"\r\n" for piece in pieces)
            return head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
        case "sized":
            whole = b"".join(pieces)
            return head + b"Content-Length: %d\r\n\r\n" % len(whole) + whole
        case _:
            return head + b"\r\n" + b"".join(pieces)


@dataclass
class Heard:
    """What a client read, and how it ended: "fin", "rst" or "silence"."""

    data: bytes
    how: str


@dataclass
class Server:
    """Answers every request with the same bytes, written in pieces of `split` bytes; keeps what it was sent."""

    answer: Callable[[bytes], bytes]
    closes: bool = False
    split: int | None = None
    socket: bytes | None = None
    """What is said once the protocol was switched, and the client has said something."""
    requests: list[bytes] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = b""
                try:
                    request = await reader.readuntil(b"\r\n\r\n")
                    length = [line for line in request.split(b"\r\n") if line.lower().startswith(b"content-length:")]
                    request += await reader.readexactly(int(length[0].partition(b":")[2]) if length else 0)
                except asyncio.IncompleteReadError as error:
                    if request + error.partial:
                        self.requests.append(request + error.partial)
                    self.ends.append("fin")
                    return
                self.requests.append(request)
                answer = self.answer(request)
                step = self.split or len(answer) or 1
                for start in range(0, len(answer), step):
                    writer.write(answer[start : start + step])
                    await writer.drain()
                if self.socket is not None:
                    messages, said = Messages(), b""
                    while data := await reader.read(65536):
                        said += data
                        if list(messages.feed(data)):
                            break
                    self.requests.append(said)
                    if not data:
                        return
                    writer.write(self.socket)
                    await writer.drain()
                    await reader.read()
                    return
                if self.closes:
                    return
        except OSError:
            self.ends.append("rst")
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


@dataclass
class Stage:
    """A gate before a server, and its history."""

    gate: Gate
    server: Server
    recorder: Recorder

    async def ask(
        self, request: bytes = GET, *, then: bytes = b"", silent: bool = False, url: str | None = None
    ) -> Heard:
        """Send a request on a connection of its own; read until it ends, or, with `silent`, until nothing has come for a while.

        `then` is sent when the answer's head has come.
        """
        host, _, port = (url or self.gate.url).removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        heard = b""
        how = "fin"
        try:
            writer.write(request)
            if then:
                async with asyncio.timeout(LIMIT_S):
                    heard += await reader.readuntil(b"\r\n\r\n")
                writer.write(then)
            while True:
                async with asyncio.timeout(SILENCE_S if silent else LIMIT_S):
                    data = await reader.read(65536)
                if not data:
                    break
                heard += data
        except TimeoutError:
            if not silent:
                raise
            how = "silence"
        except ConnectionResetError:
            how = "rst"
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        return Heard(heard, how)

    def of(self, *kinds: type[Record]) -> list[Any]:
        """Return the records of some kinds, in order."""
        return [record for record in self.recorder.history() if isinstance(record, kinds)]

    @property
    def fired(self) -> list[CutFired]:
        """The records of faults that were done."""
        return self.of(CutFired)

    @property
    def missed(self) -> list[CutMissed]:
        """The records of faults that were not."""
        return self.of(CutMissed)


def planned(fault: str, place: str, event: int | None = None, **more: Any) -> Planned:
    """Return a fault; what belongs to its position is told apart by its name."""
    where = {name: more.pop(name) for name in ("run", "offset", "width") if name in more}
    return Planned(fault=Fault(fault), at=at(place, event, **where), **more)


@asynccontextmanager
async def stage(
    answer: bytes | Callable[[bytes], bytes],
    *faults: Planned,
    closes: bool = False,
    split: int | None = None,
    socket: bytes | None = None,
    **more: Any,
) -> AsyncIterator[Stage]:
    """Serve an answer, put a gate with these faults before it."""
    server = Server(
        (lambda _: answer) if isinstance(answer, bytes) else answer, closes=closes, split=split, socket=socket
    )
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    try:
        recorder = Recorder()
        address = listening.sockets[0].getsockname()[:2]
        async with Gate(address, Schedule(id="case", faults=faults), recorder, **more) as gate:
            yield Stage(gate, server, recorder)
    finally:
        listening.close()
