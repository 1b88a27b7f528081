"""The gate between a plain-socket client and a plain-socket server: bytes unchanged, cuts where the plan says."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reattach_chaos.gate.history import History, HistoryTail
from reattach_chaos.gate.plan import read_plan
from reattach_chaos.gate.relay import classify
from reattach_chaos.gate.server import Gate

ATTACHED = b'retry: 1000\nevent: stream.attached\ndata: {"cursor":"e1.0","last_sequence":2}\n\n'
EVENTS = [b'id: e1.%d\nevent: x\ndata: {"n":%d,"t":"\xf0\x9f\x99\x82"}\n\n' % (n, n) for n in (1, 2, 3)]
BIG = b"id: e1.2\ndata: " + b"x" * 4_000_000 + b"\n\n"
SSE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
LIMIT_S = 10.0
pytestmark = [pytest.mark.anyio]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n" % len(data) + data + b"\r\n"


def chunked(*blocks: bytes) -> bytes:
    """One chunk a block, as the reference server's deterministic mode does, and the end."""
    return SSE_HEAD + b"".join(map(chunk, blocks)) + b"0\r\n\r\n"


def json_answer(value: object) -> bytes:
    body = json.dumps(value).encode()
    return b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


class Stage:
    """A server that gives one answer to every request, a gate before it, its history."""

    def __init__(self, gate: Gate, history: HistoryTail) -> None:
        self.gate = gate
        self._tail = history
        self.records: list[dict[str, object]] = []
        self.requests: list[bytes] = []

    async def client(self, request: bytes, lane: str = "a") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.gate.ports[lane])
        writer.write(request)
        return reader, writer

    async def ask(self, request: bytes, lane: str = "a") -> tuple[bytes, str]:
        """Return what a client reads, and how it ended: "eof" or "reset"."""
        reader, writer = await self.client(request, lane)
        read, how = b"", "eof"
        async with asyncio.timeout(LIMIT_S):
            try:
                while data := await reader.read(65536):
                    read += data
            except ConnectionResetError:
                how = "reset"
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return read, how

    def told(self, kind: str) -> list[dict[str, object]]:
        """Return the history's records of a kind."""
        self.records += self._tail.read()
        return [record for record in self.records if record["kind"] == kind]

    async def until(self, kind: str, number: int = 1) -> dict[str, object]:
        """Wait for the history's `number`-th record of a kind."""
        async with asyncio.timeout(LIMIT_S):
            while len(told := self.told(kind)) < number:  # noqa: ASYNC110 -- the record is in a file
                await asyncio.sleep(0.005)
        return told[number - 1]


@contextlib.asynccontextmanager
async def stage(tmp_path: Path, answer: bytes, *cuts: dict[str, object], close: bool = True) -> AsyncIterator[Stage]:
    made: list[Stage] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                made[0].requests.append(head)
                writer.write(answer)
                await writer.drain()
                if close:
                    break
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    lanes = read_plan({"gate": "plan/1", "lanes": [{"name": "a", "cuts": list(cuts)}, {"name": "clean"}]})
    history = History(tmp_path / "history.jsonl")
    async with server, Gate(server.sockets[0].getsockname()[:2], lanes, history) as gate:
        made.append(Stage(gate, HistoryTail(tmp_path / "history.jsonl")))
        yield made[0]
    history.close()


STREAM = b"GET /v1/runs/r1/events HTTP/1.1\r\nHost: x\r\nLast-Event-ID: e1.0\r\n\r\n"
CREATE = b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n"


def cut(fault: str, *after: int) -> dict[str, object]:
    return {"route": "stream", "after": list(after) or "every", "fault": fault}


@pytest.mark.parametrize(
    "answer",
    [
        chunked(ATTACHED, *EVENTS),
        SSE_HEAD.replace(b"Transfer-Encoding: chunked\r\n", b"") + ATTACHED + b"".join(EVENTS),
        json_answer({"id": "r1"}),
    ],
    ids=["chunked", "until close", "sized"],
)
async def test_without_a_cut_every_byte_passes_unchanged(tmp_path, answer):
    """The gate adds, takes and changes nothing."""
    async with stage(tmp_path, answer) as gate:
        assert await gate.ask(STREAM, "clean") == (answer, "eof")
        assert gate.requests == [STREAM]


@pytest.mark.parametrize(("fault", "how"), [("fin", "eof"), ("rst", "reset")])
@pytest.mark.parametrize("sequence", [1, 2, 3])
async def test_a_cut_comes_exactly_after_the_blank_line(tmp_path, fault, how, sequence):
    """The client has the event's last byte and not one more: neither the chunk's end nor the terminator."""
    async with stage(tmp_path, chunked(ATTACHED, *EVENTS), cut(fault, sequence)) as gate:
        wanted = SSE_HEAD + b"".join(map(chunk, [ATTACHED, *EVENTS[:sequence]])).removesuffix(b"\r\n")
        assert await gate.ask(STREAM) == (wanted, how)


@pytest.mark.parametrize(("fault", "how"), [("fin", "eof"), ("rst", "reset")])
async def test_several_events_in_one_chunk_are_parted(tmp_path, fault, how):
    """A boundary inside a chunk is a boundary."""
    both = ATTACHED + EVENTS[0] + EVENTS[1]
    async with stage(tmp_path, chunked(both, EVENTS[2]), cut(fault, 1)) as gate:
        assert await gate.ask(STREAM) == (SSE_HEAD + b"%x\r\n" % len(both) + ATTACHED + EVENTS[0], how)


async def test_a_reset_after_a_large_event_loses_none_of_it(tmp_path):
    """A reset throws away what was not delivered; the gate waits until the client's kernel has it all."""
    answer = chunked(ATTACHED, EVENTS[0], BIG, EVENTS[2])
    async with stage(tmp_path, answer, cut("rst", 2)) as gate:
        read, how = await gate.ask(STREAM)
        assert (read.endswith(BIG), how) == (True, "reset")


async def test_a_client_that_leaves_before_the_boundary_is_not_cut(tmp_path):
    """It went away with the event on its way: the cut is left for the next connection, and the history says so."""
    answer = chunked(ATTACHED, EVENTS[0], BIG, EVENTS[2])
    async with stage(tmp_path, answer, cut("rst", 2)) as gate:
        reader, writer = await gate.client(STREAM)
        async with asyncio.timeout(LIMIT_S):
            await reader.readuntil(EVENTS[0])
            await gate.until("event", 2)
        writer.transport.abort()  # with bytes unread: the gate is told by a reset
        await gate.until("cut.missed")
        read, how = await gate.ask(STREAM)
        assert (read.endswith(BIG), how) == (True, "reset")


async def test_a_client_that_closes_at_the_last_event_was_cut_there(tmp_path):
    """It has the settling event and needs no more; the cut came between it and the end of the stream."""
    async with stage(tmp_path, chunked(ATTACHED, BIG), cut("stall", 2)) as gate:
        reader, writer = await gate.client(STREAM)
        async with asyncio.timeout(LIMIT_S):
            await reader.readuntil(b"id: e1.2")
            while not (await reader.read(1_000_000)).endswith(b"x\n\n"):
                pass
        writer.close()
        await gate.until("close")
        assert [record["sequence"] for record in gate.told("cut.fired")] == [2]


async def test_a_stall_keeps_the_connection_open_and_silent(tmp_path):
    """Nothing more comes, nothing more goes up, and only the client's close ends it."""
    async with stage(tmp_path, chunked(ATTACHED, *EVENTS), cut("stall", 2), close=False) as gate:
        reader, writer = await gate.client(STREAM)
        async with asyncio.timeout(LIMIT_S):
            await reader.readuntil(EVENTS[1])
        await gate.until("cut.fired")
        writer.write(STREAM)  # into the silence
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.2)
        assert gate.told("close") == []
        writer.close()
        assert (await gate.until("close"))["cut"] is True
        assert len(gate.requests) == 1


async def test_each_boundary_is_cut_once(tmp_path):
    """The connection after the cut gets past it, and is cut at the next boundary."""
    async with stage(tmp_path, chunked(ATTACHED, *EVENTS), cut("fin")) as gate:
        reads = [await gate.ask(STREAM) for _ in range(4)]
        lengths = [read.count(b"id: ") for read, _ in reads]
        assert lengths == [1, 2, 3, 3]
        assert reads[3][0] == chunked(ATTACHED, *EVENTS)
        assert [record["sequence"] for record in gate.told("cut.fired")] == [1, 2, 3]
        assert [record["sequence"] for record in gate.told("cut.planned")] == [1, 2, 3]


async def test_the_history_says_whether_it_was_a_replay(tmp_path):
    """Events up to the head that the server announced at the attach are a replay; later ones are live."""
    async with stage(tmp_path, chunked(ATTACHED, *EVENTS), cut("fin", 2), cut("fin", 3)) as gate:
        await gate.ask(STREAM)
        await gate.ask(STREAM)
        assert [(record["sequence"], record["replay"]) for record in gate.told("cut.fired")] == [(2, True), (3, False)]


async def test_a_cut_that_nobody_reaches_is_planned_and_not_fired(tmp_path):
    """A fault that did not fire can be seen: it is the demo's business to fail for it."""
    async with stage(tmp_path, chunked(ATTACHED, EVENTS[0]), cut("fin", 1), cut("rst", 1)) as gate:
        await gate.ask(STREAM)
        assert [record["fault"] for record in gate.told("cut.planned")] == ["fin", "rst"]
        assert [record["fault"] for record in gate.told("cut.fired")] == ["fin"]


async def test_a_lost_create_reaches_the_server_and_its_answer_nobody(tmp_path):
    """The request is forwarded, the answer is swallowed whole, the client sees a reset; the next create passes."""
    lose = {"route": "create", "nth": 1, "fault": "lose"}
    async with stage(tmp_path, json_answer({"id": "r1"}), lose) as gate:
        assert await gate.ask(CREATE) == (b"", "reset")
        assert await gate.ask(CREATE) == (json_answer({"id": "r1"}), "eof")
        assert gate.requests == [CREATE, CREATE]
        assert [record["key"] for record in gate.told("request")] == ["k", "k"]
        assert len(gate.told("cut.fired")) == 1


async def test_a_server_that_is_gone_is_trouble_not_a_cut(tmp_path):
    """An infrastructure fault has a name of its own in the history."""
    history = History(tmp_path / "history.jsonl")
    lanes = read_plan({"gate": "plan/1", "lanes": [{"name": "a"}]})
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    address = server.sockets[0].getsockname()[:2]
    server.close()
    await server.wait_closed()
    async with Gate(address, lanes, history) as gate:
        made = Stage(gate, HistoryTail(tmp_path / "history.jsonl"))
        assert await made.ask(STREAM) == (b"", "reset")
        assert "no server" in str((await made.until("trouble"))["message"])
    history.close()


async def test_the_process_ends_when_its_stdin_does(tmp_path):
    """A gate does not outlive who started it, also not after kill -9."""
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"gate": "plan/1", "lanes": [{"name": "a"}]}))
    history = tmp_path / "history.jsonl"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "reattach_chaos.gate",
        "--upstream", "127.0.0.1:1", "--plan", str(plan), "--history", str(history),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(LIMIT_S):
            listening = json.loads(await process.stdout.readline())
            assert listening["kind"] == "listening"
            assert list(listening["lanes"]) == ["a"]
            process.stdin.close()
            assert await process.wait() == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@pytest.mark.parametrize(
    ("method", "target", "expected"),
    [
        ("POST", "/v1/runs", ("create", None)),
        ("GET", "/v1/runs/r1/events?after=tail", ("stream", "r1")),
        ("GET", "/v1/runs/r1", ("status", "r1")),
        ("POST", "/v1/runs/r1/cancel", ("other", "r1")),
        ("GET", "/v1/runs?idempotency_key=k", ("other", None)),
        ("GET", "/prefix/v1/runs/r1", ("status", "r1")),
    ],
)
async def test_a_request_is_known_by_its_path(method, target, expected):
    """What a request is for comes from the protocol's paths, under any prefix."""
    assert classify(method, target) == expected
