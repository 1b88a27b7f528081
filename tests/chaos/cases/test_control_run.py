"""The control run: where no fault is planned, nothing that stands between a client and a server changes a byte.

One session of three runs is made and followed again and again: straight, through the gate alone, and through the gate behind
either Toxiproxy, also behind toxics of strength 0. A plain relay at the client's side keeps each request and its answer, heads and
chunks included. The server is deterministic, its clock stands still, and it sends no Date: so the only difference is in the ids of
runs, sessions, events and operations, and in an ETag, which is a digest of them. Here they are counted in the order in
which they come, so that one in the wrong place would be seen.
"""

import asyncio
import contextlib
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest

import toxiproxy_stage
from chaos_cases import faults
from reattach_chaos.cases.player import Player
from reattach_chaos.cases.theatre import Bill, theatre
from reattach_chaos.checkers import Valid
from reattach_chaos.gate.actuators import LocalActuator
from reattach_chaos.gate.actuators.toxiproxy import ToxiproxyActuator
from reattach_chaos.history import CutPlanned, Delivered, Finished, Head, Logged, Surfaced
from reattach_chaos.report import Played
from reattach_chaos.toxiproxy.control.backends import PROGRAM

PATHS = ("straight", "gate", "embedded", "embedded at 0", "toxiproxy", "toxiproxy at 0")
COMPARING = {"I1", "I2", "I3", "I7", "I8", "I9", "I10", "I11", "I12", "I13", "I16", "I27"}
"""The laws that have something to compare in a session without a fault; where the gate is passed, the rate of requests, too."""


class Relayed:
    """A client under test behind a relay. `straight`: where that leads; "": where the client is sent."""

    marks = True

    def __init__(self, client, straight):
        self._client, self._straight = client, straight
        self.name, self.routes, self.steps = client.name, client.routes, client.steps
        self.settings, self.instants, self.ways, self.backoff = (
            client.settings,
            client.instants,
            client.ways,
            client.backoff,
        )
        self.exchanges: list[list[bytes]] = []
        self.relays: list[asyncio.Server] = []
        self.passing: list[asyncio.Task | None] = []  # a task that nobody holds may be collected before its end

    async def start(self, errand, step, attempt):
        there = int((self._straight or errand.url).rpartition(":")[2])
        self.relays.append(await asyncio.start_server(lambda *ends: self._pass(there, *ends), "127.0.0.1", 0))
        here = self.relays[-1].sockets[0].getsockname()[1]
        return await self._client.start(replace(errand, url=f"http://127.0.0.1:{here}"), step, attempt)

    async def _pass(self, there, reader, writer):
        self.passing.append(asyncio.current_task())
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", there)
        last: list[bytes] = [b"", b"answered"]

        async def upward():
            nonlocal last
            while data := await reader.read(65536):
                if last[1]:
                    self.exchanges.append(last := [b"", b""])
                last[0] += data
                server_writer.write(data)
            server_writer.write_eof()

        async def downward():
            while data := await server_reader.read(65536):
                last[1] += data
                writer.write(data)
            writer.write_eof()

        with contextlib.suppress(OSError):
            await asyncio.gather(upward(), downward())
        for each in (server_writer, writer):
            each.close()


class AtZero(ToxiproxyActuator):
    """Toxics both ways that delay by nothing, or concern no connection.

    Without `reset_peer`, which makes every end a reset whatever its toxicity.
    """

    async def open(self, address, first):
        found = await super().open(address, first)
        await asyncio.to_thread(self._fill)
        return found

    def _fill(self):
        for stream in ("upstream", "downstream"):
            self._proxy.toxic("latency", stream, latency=0)
            self._proxy.toxic("slow_close", stream, delay=0)
            self._proxy.toxic("bandwidth", stream, toxicity=0, rate=1)
            self._proxy.toxic("slicer", stream, toxicity=0, average_size=1, size_variation=0, delay=0)
            self._proxy.toxic("timeout", stream, toxicity=0, timeout=1)
            self._proxy.toxic("limit_data", stream, toxicity=0, bytes=0)


def counted(data: bytes) -> bytes:
    """Return the bytes with each number of an id as its place among them."""
    numbers: dict[bytes, bytes] = {}

    def place(found: re.Match[bytes]) -> bytes:
        return numbers.setdefault(found[0], b"<%d>" % len(numbers))

    return re.sub(rb"(?<![0-9a-f])[0-9a-f]{20,32}(?![0-9a-f])", place, data)


@dataclass(frozen=True)
class Path:
    """What came of one way: the case, each request with its answer, and what the client said."""

    case: Played
    exchanges: tuple[tuple[bytes, bytes], ...]

    @property
    def said(self):
        """Return all records of the client's words, but for what is a time or a digest of ids."""
        told = [record for kind in (Delivered, Surfaced, Finished) for record in self.case.history.of(kind)]
        timeless = [replace(record, at_ms=0.0, n=0) for record in told]
        plain = [replace(each, sha256=None) if isinstance(each, Delivered) else each for each in timeless]
        return [counted(repr(each).encode()) for each in plain]


async def play(real):
    """Play it on all paths at once; `real`: the server of Toxiproxy, None where there is none."""
    async with theatre(Bill(backend="embedded")) as stage:
        whole = stage.player.stage
        with toxiproxy_stage.toxiproxy("embedded") as embedded:
            actuators = {
                "straight": LocalActuator,
                "gate": LocalActuator,
                "embedded": lambda: ToxiproxyActuator(embedded),
                "embedded at 0": lambda: AtZero(embedded),
            }
            if real is not None:
                actuators |= {"toxiproxy": lambda: ToxiproxyActuator(real), "toxiproxy at 0": lambda: AtZero(real)}
            ways = await asyncio.gather(*(followed(whole, name, make) for name, make in actuators.items()))
    return dict(zip(actuators, ways, strict=True))


async def followed(whole, name, make):
    """Play the session on one path."""

    @asynccontextmanager
    async def actuator():
        yield make()

    client = Relayed(whole.client, whole.url if name == "straight" else "")
    case = await Player(replace(whole, client=client, actuator=actuator)).play(faults())
    for relay in client.relays:
        relay.close()
    return Path(case, tuple((up, down) for up, down in client.exchanges))


@pytest.fixture(scope="module")
def paths():
    with contextlib.ExitStack() as stack:
        try:
            real = stack.enter_context(toxiproxy_stage.toxiproxy("toxiproxy"))
        except pytest.skip.Exception:
            real = None
        return asyncio.run(play(real))


@pytest.fixture(params=PATHS)
def path(request, paths):
    if request.param.startswith("toxiproxy"):
        toxiproxy_stage.program(PROGRAM)  # where it is missing, that is said for its own two only
    return paths[request.param]


def test_each_path_brings_the_same_bytes(path, paths):
    """Every answer, from its status line to its last chunk; and what is asked is the same, but for the address."""

    def all_of(which):
        asked = [re.sub(rb"127\.0\.0\.1:\d+", b"there", up) for up, _ in which.exchanges]
        return [counted(up + down) for up, (_, down) in zip(asked, which.exchanges, strict=True)]

    assert all_of(path) == all_of(paths["straight"])
    assert path.said == paths["straight"].said


def test_each_paths_history_is_valid_and_has_something_to_say(path, paths):
    """No law is broken, nothing is unknown; each run was shown whole, and each law that can compare something did."""
    case = path.case
    assert case.verdict.word == "valid", case.verdict.sentence()
    streams = [down for up, down in path.exchanges if b"/events " in up.split(b"\r\n", 1)[0]]
    assert [down.count(b"\nid: ") for down in streams] == [9, 4, 4]
    assert all(down.endswith(b"\r\n0\r\n\r\n") for down in streams)
    assert [record.id for record in case.history.of(Delivered)] == [record.id for record in case.history.of(Logged)]
    assert [record.status for record in case.history.of(Finished)] == ["completed", "paused", "failed"]
    assert not case.history.of(CutPlanned)
    compared = {law for law, ruling in case.verdict.rulings.items() if isinstance(ruling, Valid) and ruling.compared}
    seen = bool(case.history.of(Head))
    assert seen == (path is not paths["straight"]), "who goes straight is not seen by the gate"
    assert compared >= COMPARING | ({"I14"} if seen else set())
