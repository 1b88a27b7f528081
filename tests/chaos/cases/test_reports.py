"""Public reports played on sockets: our server, the gate that does what was reported, our client, and what is right."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

import reattach
from reattach_chaos.gate import Gate
from reattach_chaos.history import Recorder, Request, Resume
from reattach_chaos.schedules import Fault, Place, Planned, Schedule, at
from reattach_mockserver.library import Library
from reattach_mockserver.live import LiveServer
from reattach_mockserver.settings import Limits, Settings

pytestmark = [pytest.mark.anyio]
LIMIT_S = 30.0
POLICY = reattach.Policy(retry_floor=0.01, retry_base=0.02, poll_interval=0.5)
BEAT_MS = 200


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def server():
    settings = Settings(scripts=Library(), default="tools", limits=Limits(heartbeat_ms=BEAT_MS))
    with LiveServer(settings) as live:
        yield live


class Played:
    """A gate before a server, a client behind it, and what the server is told to do while the gate holds."""

    def __init__(self, server, gate, client, recorder):
        self.server, self.gate, self.client, self.recorder = server, gate, client, recorder

    def afters(self):
        """The sequences that streams were asked after."""
        return [record.after and int(record.after.rpartition(".")[2]) for record in self.recorder.history().of(Resume)]

    def asked(self, route):
        return [record for record in self.recorder.history().of(Request) if record.route == route]


@asynccontextmanager
async def stage(server, *planned, perform=None, policy=POLICY, **options):
    host, _, port = server.url.removeprefix("http://").partition(":")
    recorder = Recorder()
    async with (
        asyncio.timeout(LIMIT_S),
        Gate((host, int(port)), Schedule(id="case", faults=planned), recorder, perform=perform) as gate,
        reattach.AsyncClient(gate.url, ":memory:", policy=policy, **options) as client,
    ):
        yield Played(server, gate, client, recorder)
    assert gate.troubles == []
    assert all(gate.fired[number] for number in range(1, len(planned) + 1)), gate.fired


def log_of(server, run):
    return [json.loads(body)["id"] for body in server.log(run.id)]


async def test_b14_a_connection_that_is_dead_and_open(server):
    """B14: no byte comes and nobody says so. Here it is left after three heartbeats, and asked again after the same event."""
    async with stage(server, Planned(fault=Fault.HALF_OPEN, at=at(Place.AFTER_EVENT, 2))) as played:
        run = await played.client.start({"scenario": "tools"}, key="k1")
        shown = [event.id async for event in run]
        log = log_of(server, run)
        assert shown == log
        assert played.afters() == [None, 2]


@pytest.mark.slow
async def test_b49_a_resume_that_drops_before_its_first_event(server):
    """B49: the second resume was from nowhere. Here all four requests say the same event."""
    first = Planned(fault=Fault.RST, at=at(Place.AFTER_EVENT, 4))
    drops = [Planned(fault=Fault.FIN, at=at(Place.AFTER_HEAD), nth=nth) for nth in (2, 3, 4)]
    async with stage(server, first, *drops) as played:
        run = await played.client.start({"scenario": "tools"}, key="k1")
        shown = [event.id async for event in run]
        log = log_of(server, run)
        assert shown == log
        assert played.afters() == [None, 4, 4, 4, 4]


@pytest.mark.parametrize(("number", "keep"), [("B62", 1), ("B63", None)])
async def test_b62_b63_a_log_that_was_replaced(server, number, keep):
    """B62: the cursor is above all of the new log, and was waited for in silence. B63: it fits, and events were skipped.

    Here the epoch tells: the application hears of it, and is shown the new log from its beginning.
    """

    async def perform(planned, exchange):
        await asyncio.to_thread(server.new_epoch, exchange.run, keep)

    replaced = Planned(fault=Fault.NEW_EPOCH, at=at(Place.AFTER_EVENT, 3))
    cut = Planned(fault=Fault.FIN, at=at(Place.AFTER_EVENT, 3))
    async with stage(server, replaced, cut, perform=perform, on_gap="continue") as played:
        run = await played.client.start({"scenario": "tools"}, key="k1")
        events = [event async for event in run]
        log = log_of(server, run)
        (gap,) = [event.gap for event in events if event.gap is not None]
        assert gap.reason in ("epoch", "diverged")
        assert [event.id for event in events if event.gap is None][-len(log) :] == log
        assert gap.after.endswith(".3")
        assert (await run.wait()).status is reattach.Status.COMPLETED
