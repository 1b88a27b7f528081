"""Public reports played on sockets: our server, the gate that does what was reported, our client, and what is right."""

import asyncio
import json
import zlib
from contextlib import asynccontextmanager, contextmanager
from itertools import pairwise

import pytest

import reattach
from reattach.observe import Fact
from reattach_chaos.gate import Gate
from reattach_chaos.history import Recorder, Request, Resume
from reattach_chaos.schedules import Fault, Place, Planned, Schedule, at
from reattach_mockserver.event import SETTLING
from reattach_mockserver.library import Library
from reattach_mockserver.live import LiveServer
from reattach_mockserver.mutants.stream import WrongStream
from reattach_mockserver.mutants.wrong import WrongServer, is_status
from reattach_mockserver.scenarios.parse import loads_script
from reattach_mockserver.settings import Limits, Settings

pytestmark = [pytest.mark.anyio]
LIMIT_S = 30.0
POLICY = reattach.Policy(retry_floor=0.01, retry_base=0.02, poll_interval=0.5)
BEAT_MS = 200


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def settings():
    """Return those of a server, with a log of its own."""
    return Settings(scripts=Library(), default="tools", limits=Limits(heartbeat_ms=BEAT_MS))


@pytest.fixture
def server():
    with LiveServer(settings()) as live:
        yield live


class NeverEnds(WrongServer):
    """A server whose streams keep beating where the event that settles the run should come."""

    over = False
    """The test is: whoever beats would hold the server's end up."""

    class streams(WrongStream):
        async def event(self, block):
            if block.kind not in SETTLING:
                await self.put(block)
                return
            while not self.server.over:
                await self.put(b": still here\n")
                await asyncio.sleep(BEAT_MS / 1000)


class NeverWritesTheEnd(NeverEnds):
    """And no log has it: the status tells that the run is over, and is the only one to know."""

    async def answered(self, scope, answer):
        if is_status(scope):
            told = json.loads(answer.body)
            if told["result"] is not None:
                told["last_sequence"] -= 1
                told["cursor"] = f"{told['epoch']}.{told['last_sequence']}"
                answer.body = json.dumps(told).encode()
        return answer


class Compresses(WrongServer):
    """A server behind a proxy that compresses all that it hands on, and never flushes: no byte of a small stream comes."""

    class streams(WrongStream):
        def headers(self, headers):
            self.compressor = zlib.compressobj(wbits=31)
            return {**headers, "content-encoding": "gzip"}

        async def put(self, piece):
            data = self.compressor.compress(piece if isinstance(piece, bytes) else piece.encoded())
            if data:
                await super().put(data)


@contextmanager
def wrong_server(wrong):
    """Yield a server that is wrong in one decision, with the settings of the right one."""
    live = LiveServer(settings())
    live.app = wrong(settings())
    with live:
        try:
            yield live
        finally:
            live.app.over = True


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


SILENCE = """
reattach: scenario/1
name: silence
steps:
  - {status: "one"}
  - {wait_ms: 700}
  - {status: "two"}
  - {end: completed, result: {ok: true}}
"""


async def test_b18_a_proxy_that_cuts_idle_streams():
    """B18: silent for 60 s, cut with a clean FIN, and reported as failed. Here the status is asked, and the run goes on to its end.

    The server does not beat, as theirs; the proxy's patience is scaled to 50 ms, and each idle stream is cut.
    """
    scripts = {"silence": loads_script(SILENCE)}
    idle = Planned(fault=Fault.FIN, at=at(Place.IDLE, 3))
    again = Planned(fault=Fault.FIN, at=at(Place.AFTER_HEAD), nth=2)
    with LiveServer(Settings(scripts=Library(scripts), default="silence")) as server:
        async with stage(server, idle, again) as played:
            run = await played.client.start("work", key="k1")
            shown = [event.id async for event in run]
            assert shown == log_of(server, run)
            assert (await run.wait()).status is reattach.Status.COMPLETED
            assert played.afters() == [None, 3, 3]
            assert played.asked("status")


async def test_b20_a_proxy_that_compresses_and_does_not_flush():
    """B20: events come in bursts or never, heartbeats too. Here the head says why, before any silence, and so does the error.

    A path that says nothing and holds everything back is in tests/client/promises/test_10_buffering.py.
    """
    with wrong_server(Compresses) as wrong:
        async with stage(wrong) as played:
            run = await played.client.start({"scenario": "hello"}, key="k1")
            with pytest.raises(reattach.RemoteProtocolError, match="content coding gzip, which was not asked for"):
                async for _ in run:
                    pass
            assert len(played.asked("stream")) == 3
            assert (await run.status()) in (reattach.Status.RUNNING, reattach.Status.COMPLETED)


async def test_b30_connections_that_close_at_once(server):
    """B30: 200 and nothing, at once and again, made a storm. Here waits grow, then it is one attach each poll interval."""
    empty = Planned(fault=Fault.EMPTY, at=at(Place.AFTER_REQUEST), times=13)
    policy = reattach.Policy(retry_floor=0.01, retry_base=0.02, retry_ceiling=0.04, poll_interval=0.3)
    facts: list[Fact] = []
    async with stage(server, empty, policy=policy, observer=facts.append) as played:
        run = await played.client.start({"scenario": "hello"}, key="k1")
        shown = [event.id async for event in run]
        assert shown == log_of(server, run), "the status answers, so nobody gives up"
        assert len(played.asked("stream")) == 14
        assert [fact.name for fact in facts].count("fast_loop") == 1
        times = [fact.at for fact in facts if fact.name == "attach"]
        waits = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
        assert min(waits[9:]) >= policy.poll_interval


@pytest.mark.slow
async def test_b30_a_storm_ends_at_the_budget_if_the_status_does_not_answer_either(server):
    """B30: nobody answers anything; the error is the budget's, and asks a person to come back."""
    empty = Planned(fault=Fault.EMPTY, at=at(Place.AFTER_REQUEST), nth="every")
    busy = Planned(fault=Fault.BUSY, at=at(Place.AFTER_REQUEST), nth="every", route="status")
    policy = reattach.Policy(retry_floor=0.01, retry_base=0.02, poll_interval=0.5, give_up_after=2.0)
    async with stage(server, empty, busy, policy=policy) as played:
        run = await played.client.start({"scenario": "hello"}, key="k1")
        with pytest.raises(reattach.ReconnectExhausted):
            async for _ in run:
                pass
        assert len(played.asked("stream")) < 30


async def test_b82_a_run_whose_end_never_comes():
    """B82: the spinner turned for ever. Here a status says that it is over, and that nothing is behind what was shown."""
    with wrong_server(NeverWritesTheEnd) as wrong:
        async with stage(wrong) as played:
            run = await played.client.start({"scenario": "hello"}, key="k1")
            shown = [event.id async for event in run]
            assert shown == log_of(wrong, run)[:-1]
            outcome = await run.wait()
            assert (outcome.status, outcome.evidence) == (reattach.Status.COMPLETED, "status")
            assert len(played.asked("stream")) == 1


@pytest.mark.slow
async def test_b82_an_end_that_only_the_streams_keep_back():
    """B82: a status tells of an event that no stream brings; it is fetched by pages, and the run ends with it."""
    with wrong_server(NeverEnds) as wrong:
        async with stage(wrong) as played:
            run = await played.client.start({"scenario": "hello"}, key="k1")
            shown = [event.id async for event in run]
            assert shown == log_of(wrong, run)
            assert (await run.wait()).evidence == "event"
            assert len(played.asked("stream")) == 3, "two streams, and a page"
